//! Parses the body of a create or an amendment into an `Order`, or finds all faults of the body.

use std::fmt::Display;
use std::str::FromStr;

use payments_http::json::Fields;
use payments_http::{Pointer, Problem, ProblemKind, bounded};
use payments_model::payment_id::MAX_IDEMPOTENCY_KEY_BYTES;
use payments_model::{
    AccountId, AmountMinor, Currency, DateRule, IdempotencyKey, Instruction, JsonText, Money, PaymentData, PaymentId,
    Reference, ScheduledFor,
};
use serde_json::value::RawValue;

/// The most payments of one batch: with 8 KB each, a batch stays below a megabyte.
const MAX_BATCH: usize = 100;

/// A well-formed create or amendment. Its size and date, and whether a new payment may have its
/// amount and currency, are not checked yet: a retry of an accepted payment skips these checks.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// The payment id, made of the account and the idempotency key.
    pub(crate) payment_id: PaymentId,
    /// The instruction.
    pub(crate) instruction: Instruction,
    /// The order's place in the request's body.
    pub(crate) pointer: Pointer,
}

/// An amendment that a client asks for.
pub(crate) struct Wish<'w> {
    /// The payment's id.
    pub(crate) payment_id: PaymentId,
    /// The amendment's own key.
    pub(crate) key: &'w IdempotencyKey,
    /// The version that the client has seen.
    pub(crate) version: u32,
    /// The new content.
    pub(crate) order: &'w Order,
}

/// An entry of a batch.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The account that the client sent in the entry, or else the path's account; cut to a bounded length.
    pub(crate) account: Option<String>,
    /// The idempotency key that the client sent, cut to a bounded length.
    pub(crate) key: Option<String>,
    /// The order, or its faults.
    pub(crate) order: Result<Order, Problem>,
}

/// The fields of a create or an amendment; `None` for a field that is missing or malformed.
struct Given {
    payee: Option<AccountId>,
    amount: Option<AmountMinor>,
    currency: Option<Currency>,
    scheduled_for: Option<ScheduledFor>,
    date_rule: Option<DateRule>,
    reference: Option<Reference>,
    data: Option<PaymentData>,
}

impl Given {
    fn take(fields: &mut Fields<'_>) -> Self {
        let payee = parse(fields, "payeeAccountId", ProblemKind::InvalidPayee, "payee");
        let amount = fields.number("amountMinor").map(str::to_owned);
        let amount = parsed(fields, amount, "amountMinor", ProblemKind::InvalidAmount, "amount");
        let currency = fields.text("currency").map(|code| Currency::from_stored(&code));
        if let Some(Err(error)) = currency {
            fields.fault(invalid("currency", ProblemKind::InvalidCurrency, "currency", &error));
        }
        let currency = currency.and_then(Result::ok);
        let scheduled_for = parse(fields, "scheduledFor", ProblemKind::InvalidDate, "date");
        let date_rule = fields.optional_text("dateRule");
        let date_rule = parsed(fields, date_rule, "dateRule", ProblemKind::InvalidDateRule, "date rule");
        let reference = fields.optional_text("reference");
        let reference = parsed(fields, reference, "reference", ProblemKind::InvalidReference, "reference");
        let data = fields.optional("data").map(JsonText::new);
        if let Some(Err(error)) = data {
            let detail = format!("The field \"data\" is invalid: {error}.");
            fields.fault(Problem::new(ProblemKind::InvalidShape, detail).at("data"));
        }
        let data = data.and_then(Result::ok).map(PaymentData::Text);
        Self { payee, amount, currency, scheduled_for, date_rule, reference, data }
    }
}

impl Order {
    /// Reads the body of a single create.
    ///
    /// # Errors
    /// All faults of the body.
    pub(crate) fn single(account: AccountId, key: &IdempotencyKey, json: &[u8]) -> Result<Self, Problem> {
        let mut fields = Fields::parse(json, &Pointer::body())?;
        for field in ["accountId", "idempotencyKey"] {
            if fields.optional(field).is_some() {
                let detail = format!(
                    "The field \"{field}\" is for batches only; send the account in the path, the key in the \
                     Idempotency-Key header."
                );
                fields.fault(Problem::new(ProblemKind::InvalidShape, detail).at(field));
            }
        }
        Self::parse(Some(account), Some(key), fields, Pointer::body())
    }

    /// Parses the other fields of an order whose account and key were read.
    ///
    /// # Errors
    /// All faults of the fields.
    fn parse(
        account: Option<AccountId>,
        key: Option<&IdempotencyKey>,
        mut fields: Fields<'_>,
        pointer: Pointer,
    ) -> Result<Self, Problem> {
        let Given { payee, amount, currency, scheduled_for, date_rule, reference, data } = Given::take(&mut fields);
        if payee.is_some() && payee == account {
            let detail = "The payee is the payer; name another account.";
            fields.fault(Problem::new(ProblemKind::InvalidPayee, detail).at("payeeAccountId"));
        }
        let mut faults = fields.end();
        if let (true, Some(account), Some(key), Some(payee), Some(amount), Some(currency), Some(scheduled_for)) =
            (faults.is_empty(), account, key, payee, amount, currency, scheduled_for)
        {
            let payment_id = PaymentId::derive(&account, key);
            let money = Money { amount, currency };
            let instruction = Instruction { account, payee, money, scheduled_for, date_rule, reference, data };
            return Ok(Self { payment_id, instruction, pointer });
        }
        // This order was never accepted, because a field of it is malformed. So it is judged as a new payment.
        faults.extend(currency.and_then(fault_of_new));
        Err(Problem::for_body(&pointer, faults))
    }
}

impl Entry {
    /// Reads an entry of a batch. The request's path may name the account.
    fn read(json: &RawValue, of_path: Option<&AccountId>, pointer: Pointer) -> Self {
        let mut fields = match Fields::parse(json.get().as_bytes(), &pointer) {
            Ok(fields) => fields,
            Err(problem) => return Self { account: of_path.map(ToString::to_string), key: None, order: Err(problem) },
        };
        let account = match of_path {
            Some(account) if !fields.has("accountId") => Some(account.to_string()),
            Some(_) => fields.optional_text("accountId"),
            None => fields.text("accountId"),
        };
        let parsed_account =
            parsed(&mut fields, account.clone(), "accountId", ProblemKind::InvalidParameter, "account");
        if let (Some(own), Some(given)) = (of_path, &parsed_account)
            && own != given
        {
            let detail = "The account is not that of the path; leave it out, or send the batch to its own account.";
            fields.fault(Problem::new(ProblemKind::InvalidParameter, detail).at("accountId"));
        }
        let key = fields.text("idempotencyKey");
        let kind = ProblemKind::InvalidIdempotencyKey;
        let parsed_key: Option<IdempotencyKey> =
            parsed(&mut fields, key.clone(), "idempotencyKey", kind, "idempotency key");
        let order = Order::parse(parsed_account, parsed_key.as_ref(), fields, pointer);
        let echo = |text: String| bounded(&text, MAX_IDEMPOTENCY_KEY_BYTES);
        Self { account: account.map(echo).or_else(|| of_path.map(ToString::to_string)), key: key.map(echo), order }
    }
}

/// Reads a batch: each entry on its own, so an error in one does not affect the others.
///
/// # Errors
/// All faults of the batch as a whole: of its JSON, of its fields, or its size. Faults of an entry are in the entry.
pub(crate) fn read_batch(json: &[u8], of_path: Option<&AccountId>) -> Result<Vec<Entry>, Problem> {
    let mut fields = Fields::parse(json, &Pointer::body())?;
    let entries = fields.list("payments").unwrap_or_default();
    let faults = fields.end();
    if !faults.is_empty() {
        return Err(Problem::for_body(&Pointer::body(), faults));
    }
    if !(1..=MAX_BATCH).contains(&entries.len()) {
        let detail = format!("The batch has {} payments; send 1 to {MAX_BATCH}.", entries.len());
        let fault = Problem::new(ProblemKind::InvalidBatchSize, detail).at("payments");
        return Err(Problem::for_body(&Pointer::body(), vec![fault]));
    }
    let pointed = entries.into_iter().enumerate();
    Ok(pointed.map(|(place, json)| Entry::read(json, of_path, Pointer::entry("payments", place))).collect())
}

/// The fault of a currency that new payments may not have.
pub(crate) fn fault_of_new(currency: Currency) -> Option<Problem> {
    let error = currency.code().parse::<Currency>().err()?;
    Some(invalid("currency", ProblemKind::InvalidCurrency, "currency", &error))
}

/// Takes a required text and parses it; `thing` is its name in the problem's detail.
fn parse<T: FromStr<Err: Display>>(
    fields: &mut Fields<'_>,
    field: &'static str,
    kind: ProblemKind,
    thing: &str,
) -> Option<T> {
    let text = fields.text(field);
    parsed(fields, text, field, kind, thing)
}

/// Parses the text of a field, if the field is present. A fault is added to `fields`.
fn parsed<T: FromStr<Err: Display>>(
    fields: &mut Fields<'_>,
    text: Option<String>,
    field: &'static str,
    kind: ProblemKind,
    thing: &str,
) -> Option<T> {
    let parsed = text?.parse();
    parsed.map_err(|error| fields.fault(invalid(field, kind, thing, &error))).ok()
}

fn invalid(field: &str, kind: ProblemKind, thing: &str, why: &dyn Display) -> Problem {
    Problem::new(kind, format!("The {thing} is invalid: {why}.")).at(field)
}
