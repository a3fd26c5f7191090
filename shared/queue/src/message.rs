//! The messages to and from the transaction service, as JSON.
//!
//! Both are a contract with another team, which `docs/transaction-service.md` describes. The queues are
//! standard queues, so messages can arrive twice, late or out of order.

use std::collections::HashMap;

use payments_model::currency::CurrencyError;
use payments_model::money::AmountError;
use payments_model::payment_id::PaymentIdError;
use payments_model::settlement::TransactionIdError;
use payments_model::{
    AccountId, CalendarError, Currency, Details, DuePayment, Failure, Instruction, Money, PaymentData, PaymentId,
    Reference, Settlement, account,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The request to make a payment. Each time it is sent, only the attempt differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentRequest {
    details: Details,
    dispatch_attempt: u32,
}

/// The version of the messages' form, `v`. A change that a reader must know raises it.
const FORM: u64 = 1;

payments_model::kinds! {
    /// A kind of messages.
    MessageKind {
        /// A request to make a payment.
        Payment = "payment",
        /// A settlement result.
        Settlement = "settlement",
    }
}

/// The JSON of a request, in its order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestJson<'a> {
    v: u64,
    kind: &'static str,
    payment_id: String,
    account_id: &'a str,
    payee_account_id: &'a str,
    amount_minor: i64,
    currency: &'a str,
    due_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    dispatch_attempt: u32,
}

impl PaymentRequest {
    /// Builds the request of a payment from its details in force. `dispatch_attempt` is the number
    /// of this attempt, from 1; missed attempts are skipped.
    pub fn new(details: &Details, dispatch_attempt: u32) -> Self {
        Self { details: details.clone(), dispatch_attempt }
    }

    /// Returns the payment's account.
    pub fn account(&self) -> &AccountId {
        &self.details.instruction.account
    }

    /// Encodes the message, in at most a payment's 8 KB and 323 bytes.
    ///
    /// The data is embedded byte by byte, except U+FFFE and U+FFFF, which SQS rejects. They become
    /// JSON escapes. They occur only inside strings, so the value stays the same.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let Instruction { account, payee, money, reference, data, .. } = &self.details.instruction;
        let text = |data| match PaymentData::text(data) {
            Ok(text) => serde_json::from_str(text.as_str()),
            // Only finished payments are sealed.
            Err(sealed) => Err(serde::ser::Error::custom(format!("its data is in the sealed row {}", sealed.place))),
        };
        let json = serde_json::to_string(&RequestJson {
            v: FORM,
            kind: MessageKind::Payment.as_str(),
            payment_id: self.details.payment_id.to_string(),
            account_id: account.as_str(),
            payee_account_id: payee.as_str(),
            amount_minor: money.amount.get(),
            currency: money.currency.code(),
            due_at: self.details.due_at.to_string(),
            reference: reference.as_ref().map(Reference::as_str),
            data: data.as_ref().map(text).transpose()?,
            dispatch_attempt: self.dispatch_attempt,
        })?;
        if json.contains(NOT_IN_SQS) {
            Ok(json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff"))
        } else {
            Ok(json)
        }
    }
}

/// The characters of an unknown kind that its error shows.
const MAX_SHOWN_KIND: usize = 32;

/// The characters that JSON allows and SQS rejects. SendMessage allows `#x9 | #xA | #xD | #x20 to
/// #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF`.
const NOT_IN_SQS: [char; 2] = ['\u{fffe}', '\u{ffff}'];

/// The transaction service's message that a payment is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettlementResult {
    /// The payment's id.
    pub payment_id: PaymentId,
    /// The amount that the service knows.
    pub money: Money,
    /// The payee that the service knows: the one that got the money, or was to get it.
    pub payee: AccountId,
    /// The outcome.
    pub settlement: Settlement,
    /// The payment with its account and due time, if the service echoes both: they locate the head of a payment that
    /// is due as at first without a read.
    pub echo: Option<DuePayment>,
}

/// The reason why a message is not a settlement result. No retry makes it readable.
#[derive(Debug, thiserror::Error)]
pub enum SettlementResultError {
    /// Not a JSON object, or a field of the wrong type.
    #[error("not a settlement result")]
    Json(#[source] serde_json::Error),
    /// Another version of the form.
    #[error("v is {0}, and {FORM} is the only known one")]
    Form(u64),
    /// An unknown kind, which is not guessed.
    #[error("the kind {0:?} is unknown; settlement is the only known one")]
    Kind(String),
    /// A required field is missing or null.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A status other than `PROCESSED` and `FAILED`.
    #[error("status is neither PROCESSED nor FAILED")]
    Status,
    /// A malformed payment id.
    #[error("paymentId")]
    PaymentId(#[source] PaymentIdError),
    /// An amount that no payment can have.
    #[error("amountMinor")]
    Amount(#[source] AmountError),
    /// A malformed currency.
    #[error("currency")]
    Currency(#[source] CurrencyError),
    /// A malformed transaction id.
    #[error("transactionId")]
    TransactionId(#[source] TransactionIdError),
    /// A malformed payee.
    #[error("payeeAccountId")]
    Payee(#[source] account::AccountIdError),
    /// A malformed account id.
    #[error("accountId")]
    AccountId(#[source] account::AccountIdError),
    /// A malformed due time.
    #[error("dueAt")]
    DueAt(#[source] CalendarError),
}

/// The JSON of a settlement result. Other fields are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultJson {
    v: Option<u64>,
    kind: Option<String>,
    payment_id: Option<String>,
    status: Option<String>,
    transaction_id: Option<String>,
    /// Some services send numbers, or a code of success: no form of it makes a result unreadable.
    failure_code: Option<Value>,
    failure_reason: Option<String>,
    amount_minor: Option<i64>,
    currency: Option<String>,
    payee_account_id: Option<String>,
    account_id: Option<String>,
    due_at: Option<String>,
    /// Makes serde insist on an object: without it, an array of twelve would be accepted.
    #[serde(flatten)]
    _others: HashMap<String, IgnoredAny>,
}

impl SettlementResult {
    /// Parses a message.
    ///
    /// Unknown fields are ignored. `accountId` and `dueAt` are used only together, because one alone locates nothing. A
    /// long reason is cut. A failure without a listed code is `NARR`. The code and the reason of a processed payment
    /// are ignored: the status alone says whether the money moved.
    pub fn parse(message: &str) -> Result<Self, SettlementResultError> {
        use SettlementResultError as E;
        let json: ResultJson = serde_json::from_str(message).map_err(E::Json)?;
        match json.v.ok_or(E::Missing("v"))? {
            FORM => {}
            other => return Err(E::Form(other)),
        }
        match json.kind.ok_or(E::Missing("kind"))? {
            kind if kind == MessageKind::Settlement.as_str() => {}
            other => return Err(E::Kind(other.chars().take(MAX_SHOWN_KIND).collect())),
        }
        let payment_id = json.payment_id.ok_or(E::Missing("paymentId"))?;
        let settlement = match json.status.ok_or(E::Missing("status"))?.as_str() {
            "PROCESSED" => {
                let id = json.transaction_id.ok_or(E::Missing("transactionId"))?;
                Settlement::Processed(id.parse().map_err(E::TransactionId)?)
            }
            "FAILED" => {
                let reason = json.failure_reason.ok_or(E::Missing("failureReason"))?;
                let code = json.failure_code.map(|code| code.as_str().map_or_else(|| code.to_string(), str::to_owned));
                Settlement::Failed(Failure::new(code.as_deref(), &reason))
            }
            _ => return Err(E::Status),
        };
        let amount = json.amount_minor.ok_or(E::Missing("amountMinor"))?.try_into().map_err(E::Amount)?;
        let currency = json.currency.ok_or(E::Missing("currency"))?;
        let money = Money { amount, currency: Currency::from_stored(&currency).map_err(E::Currency)? };
        let payee = json.payee_account_id.ok_or(E::Missing("payeeAccountId"))?.parse().map_err(E::Payee)?;
        let account = json.account_id.map(|id| id.parse::<AccountId>().map_err(E::AccountId)).transpose()?;
        let due_at = json.due_at.map(|at| at.parse().map_err(E::DueAt)).transpose()?;
        let payment_id = payment_id.parse().map_err(E::PaymentId)?;
        let echo = account.zip(due_at).map(|(account, due_at)| DuePayment { account, payment_id, due_at });
        Ok(Self { payment_id, money, payee, settlement, echo })
    }
}

#[cfg(test)]
mod tests;
