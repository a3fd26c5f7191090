//! Parses the body of a create request into an `Order`, and reports the first error.
//!
//! Errors are reported in the order of [`payments_http::ProblemKind`]: first those of syntax and shape, then those
//! of values, in the order of the API's fields.

use std::fmt::Display;
use std::str::FromStr;

use payments_http::json::{read, required};
use payments_http::{Problem, ProblemKind};
use payments_model::currency::CurrencyError;
use payments_model::{AccountId, Currency, IdempotencyKey, Instruction, JsonText, Money, PaymentId, ScheduledFor};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most payments of one batch: at 8 KB each they stay below a megabyte.
const MAX_BATCH: usize = 100;

/// A well-formed create request. Its size and date, and whether its currency is on the current list, are not checked
/// yet: a retry of a payment that was accepted once needs none of them.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// The payment id, made of the account and the idempotency key.
    pub(crate) payment_id: PaymentId,
    /// The instruction.
    pub(crate) instruction: Instruction,
}

/// The JSON of a create request, and of a batch's entry.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Body<'b> {
    account_id: Option<String>,
    idempotency_key: Option<String>,
    payee_account_id: Option<String>,
    #[serde(borrow)]
    amount_minor: Option<&'b RawValue>,
    currency: Option<String>,
    scheduled_for: Option<String>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'b RawValue>,
}

/// The fields of every create request, with all required ones present.
struct Given<'b> {
    payee: &'b str,
    amount: &'b str,
    currency: &'b str,
    scheduled_for: &'b str,
    data: Option<JsonText>,
}

impl<'b> Given<'b> {
    fn of(body: &'b Body<'b>) -> Result<Self, Problem> {
        Ok(Self {
            payee: required("payeeAccountId", body.payee_account_id.as_deref())?,
            amount: number("amountMinor", required("amountMinor", body.amount_minor)?)?,
            currency: required("currency", body.currency.as_deref())?,
            scheduled_for: required("scheduledFor", body.scheduled_for.as_deref())?,
            data: body.data.map(data).transpose()?,
        })
    }
}

/// The JSON of a batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchBody<'b> {
    #[serde(borrow)]
    payments: Option<Vec<&'b RawValue>>,
}

/// Reads a field whose `null` is data like any other; only an absent field is `None`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Order {
    /// Reads the body of a single create.
    ///
    /// # Errors
    /// The first error.
    pub(crate) fn single(account: AccountId, key: &IdempotencyKey, json: &[u8]) -> Result<Self, Problem> {
        let body: Body<'_> = read(json)?;
        for (field, given) in [("accountId", &body.account_id), ("idempotencyKey", &body.idempotency_key)] {
            if given.is_some() {
                let detail = format!(
                    "The field \"{field}\" is for batches only; send the account in the path, the key in the \
                     Idempotency-Key header."
                );
                return Err(Problem::new(ProblemKind::InvalidShape, detail).at(field));
            }
        }
        Self::of(account, key, Given::of(&body)?)
    }

    /// Reads one entry of a batch.
    ///
    /// # Errors
    /// The first error.
    fn entry(json: &[u8]) -> Result<Self, Problem> {
        let body: Body<'_> = read(json)?;
        let account = required("accountId", body.account_id.as_deref())?;
        let key = required("idempotencyKey", body.idempotency_key.as_deref())?;
        let given = Given::of(&body)?;
        let account = parse("account", account, "accountId", ProblemKind::InvalidParameter)?;
        let key = parse("idempotency key", key, "idempotencyKey", ProblemKind::InvalidIdempotencyKey)?;
        Self::of(account, &key, given)
    }

    fn of(account: AccountId, key: &IdempotencyKey, given: Given<'_>) -> Result<Self, Problem> {
        let payee: AccountId = parse("payee", given.payee, "payeeAccountId", ProblemKind::InvalidPayee)?;
        if payee == account {
            let detail = "The payee is the payer; name another account.";
            return Err(Problem::new(ProblemKind::InvalidPayee, detail).at("payeeAccountId"));
        }
        let amount = parse("amount", given.amount, "amountMinor", ProblemKind::InvalidAmount)?;
        let currency = Currency::from_stored(given.currency).map_err(|error| invalid_currency(&error))?;
        // A malformed date is in no accepted payment, so the currency is reported first, as always.
        let scheduled_for: ScheduledFor = parse("date", given.scheduled_for, "scheduledFor", ProblemKind::InvalidDate)
            .or_else(|problem| require_listed(currency).and(Err(problem)))?;
        Ok(Self {
            payment_id: PaymentId::derive(&account, key),
            instruction: Instruction {
                account,
                payee,
                money: Money { amount, currency },
                scheduled_for,
                data: given.data,
            },
        })
    }
}

/// Returns the currency of a new payment.
///
/// # Errors
/// [`ProblemKind::InvalidCurrency`] if it is not on the current list.
pub(crate) fn require_listed(currency: Currency) -> Result<Currency, Problem> {
    currency.code().parse().map_err(|error| invalid_currency(&error))
}

fn invalid_currency(error: &CurrencyError) -> Problem {
    Problem::new(ProblemKind::InvalidCurrency, format!("The currency is invalid: {error}.")).at("currency")
}

/// Parses a field's text; `thing` is what the detail calls it.
fn parse<T: FromStr<Err: Display>>(thing: &str, text: &str, field: &str, kind: ProblemKind) -> Result<T, Problem> {
    text.parse().map_err(|error| Problem::new(kind, format!("The {thing} is invalid: {error}.")).at(field))
}

/// Reads a batch: each entry on its own, so an error in one does not affect the others.
///
/// # Errors
/// An error of the batch as a whole.
pub(crate) fn read_batch(json: &[u8]) -> Result<Vec<Result<Order, Problem>>, Problem> {
    let body: BatchBody<'_> = read(json)?;
    let entries = required("payments", body.payments)?;
    if !(1..=MAX_BATCH).contains(&entries.len()) {
        let detail = format!("The batch has {} payments; send 1 to {MAX_BATCH}.", entries.len());
        return Err(Problem::new(ProblemKind::InvalidBatchSize, detail).at("payments"));
    }
    Ok(entries.into_iter().map(|entry| Order::entry(entry.get().as_bytes())).collect())
}

/// The client's own JSON.
fn data(value: &RawValue) -> Result<JsonText, Problem> {
    let invalid = |error| Problem::new(ProblemKind::InvalidShape, format!("The field \"data\" is invalid: {error}."));
    JsonText::new(value).map_err(|error| invalid(error).at("data"))
}

/// The text of a JSON number.
fn number<'b>(field: &'static str, value: &'b RawValue) -> Result<&'b str, Problem> {
    let text = value.get();
    if text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Ok(text);
    }
    let detail = format!("The field \"{field}\" is not a number; send a number without quotes.");
    Err(Problem::new(ProblemKind::InvalidShape, detail).at(field))
}
