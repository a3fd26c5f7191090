//! Orders: what a create asks for, read from JSON with one fault reported at a time.
//!
//! A body's faults are reported in the order of [`payments_http::ProblemKind`]: first its syntax and
//! shape, then its values in the order of the API's fields.

use payments_http::json::{read, required};
use payments_http::{Problem, ProblemKind};
use payments_model::{AccountId, IdempotencyKey, Instruction, JsonText, Money, PaymentId, ScheduledFor};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most payments of one batch: at 8 KB each they stay below a megabyte.
pub(crate) const MAX_BATCH: usize = 100;

/// A payment that is asked for, well-formed, not yet judged by its date.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// Its id, made of its account and idempotency key.
    pub(crate) payment_id: PaymentId,
    /// What is asked for.
    pub(crate) instruction: Instruction,
}

/// The JSON of a create, and of a batch's entry.
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

/// The fields of a body that every create has, all of them there.
struct Given<'b> {
    payee: &'b str,
    amount: &'b str,
    currency: &'b str,
    scheduled_for: &'b str,
    data: Option<&'b RawValue>,
}

impl<'b> Given<'b> {
    fn of(body: &'b Body<'b>) -> Result<Self, Problem> {
        Ok(Self {
            payee: required("payeeAccountId", body.payee_account_id.as_deref())?,
            amount: number("amountMinor", required("amountMinor", body.amount_minor)?)?,
            currency: required("currency", body.currency.as_deref())?,
            scheduled_for: required("scheduledFor", body.scheduled_for.as_deref())?,
            data: body.data,
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

/// `null` is data like any other; only an absent field is none.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Order {
    /// Reads the body of a single create.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn single(account: AccountId, key: &IdempotencyKey, json: &[u8]) -> Result<Self, Problem> {
        let body: Body<'_> = read(json)?;
        for (field, given) in [("accountId", &body.account_id), ("idempotencyKey", &body.idempotency_key)] {
            if given.is_some() {
                let detail =
                    format!("The field \"{field}\" has no place here: the path has the account, a header the key.");
                return Err(Problem::new(ProblemKind::InvalidShape, detail).at(field));
            }
        }
        Self::of(account, key, &Given::of(&body)?)
    }

    /// Reads one entry of a batch.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn entry(json: &[u8]) -> Result<Self, Problem> {
        let body: Body<'_> = read(json)?;
        let account = required("accountId", body.account_id.as_deref())?;
        let key = required("idempotencyKey", body.idempotency_key.as_deref())?;
        let given = Given::of(&body)?;
        let account = account.parse().map_err(|e| {
            Problem::new(ProblemKind::InvalidParameter, format!("The account is not acceptable: {e}.")).at("accountId")
        })?;
        let key = key.parse().map_err(|e| {
            Problem::new(ProblemKind::InvalidIdempotencyKey, format!("The key is not acceptable: {e}."))
                .at("idempotencyKey")
        })?;
        Self::of(account, &key, &given)
    }

    fn of(account: AccountId, key: &IdempotencyKey, given: &Given<'_>) -> Result<Self, Problem> {
        let refuse = |kind, field, why: String| Problem::new(kind, format!("{why}.")).at(field);

        let payee: AccountId = given.payee.parse().map_err(|e| {
            refuse(ProblemKind::InvalidPayee, "payeeAccountId", format!("The payee is not acceptable: {e}"))
        })?;
        if payee == account {
            let why = "The payee is the payer; name another account".to_owned();
            return Err(refuse(ProblemKind::InvalidPayee, "payeeAccountId", why));
        }
        let amount = given.amount.parse().map_err(|e| {
            refuse(ProblemKind::InvalidAmount, "amountMinor", format!("The amount is not acceptable: {e}"))
        })?;
        let currency = given.currency.parse().map_err(|e| {
            refuse(ProblemKind::InvalidCurrency, "currency", format!("The currency is not acceptable: {e}"))
        })?;
        let scheduled_for: ScheduledFor = given.scheduled_for.parse().map_err(|e| {
            refuse(ProblemKind::InvalidDate, "scheduledFor", format!("The date is not acceptable: {e}"))
        })?;
        Ok(Self {
            payment_id: PaymentId::derive(&account, key),
            instruction: Instruction {
                account,
                payee,
                money: Money { amount, currency },
                scheduled_for,
                data: given.data.map(JsonText::of),
            },
        })
    }
}

/// Reads a batch: each entry on its own, so that one fault does not stop the others.
///
/// # Errors
/// A fault of the batch as a whole.
pub(crate) fn read_batch(json: &[u8]) -> Result<Vec<Result<Order, Problem>>, Problem> {
    let body: BatchBody<'_> = read(json)?;
    let entries = required("payments", body.payments)?;
    if !(1..=MAX_BATCH).contains(&entries.len()) {
        let detail = format!("A batch has 1 to {MAX_BATCH} payments, this one has {}.", entries.len());
        return Err(Problem::new(ProblemKind::InvalidBatchSize, detail).at("payments"));
    }
    Ok(entries.into_iter().map(|entry| Order::entry(entry.get().as_bytes())).collect())
}

/// The text of a JSON number.
fn number<'b>(field: &'static str, value: &'b RawValue) -> Result<&'b str, Problem> {
    let text = value.get();
    if text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Ok(text);
    }
    Err(Problem::new(ProblemKind::InvalidShape, format!("The field \"{field}\" is not a number.")).at(field))
}
