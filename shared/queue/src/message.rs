//! The messages to and from the transaction service, as JSON.
//!
//! Both are a contract with another team, which `docs/transaction-service.md` describes. The queues are
//! standard queues, so messages can arrive twice, late or out of order.

use std::collections::HashMap;

use payments_model::payment_id::PaymentIdError;
use payments_model::settlement::TransactionIdError;
use payments_model::{
    AccountId, Details, DuePayment, FailureReason, Instruction, PaymentId, Reference, Settlement, account, calendar,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The request to make a payment. Each time it is sent, only the attempt differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentRequest {
    details: Details,
    dispatch_attempt: u32,
}

/// The version of the messages' form, `v`. A change that a reader must know raises it.
const FORM: u64 = 1;

/// The kind of requests to make a payment.
const PAYMENT: &str = "payment";

/// The kind of settlement results.
const SETTLEMENT: &str = "settlement";

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
    /// Builds the request of a payment from its details in force. `dispatch_attempt` is the number of this attempt, from 1; those
    /// that were missed are skipped.
    pub fn of(details: &Details, dispatch_attempt: u32) -> Self {
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
        let json = serde_json::to_string(&RequestJson {
            v: FORM,
            kind: PAYMENT,
            payment_id: self.details.payment_id.to_string(),
            account_id: account.as_str(),
            payee_account_id: payee.as_str(),
            amount_minor: money.amount.get(),
            currency: money.currency.code(),
            due_at: self.details.due_at.to_string(),
            reference: reference.as_ref().map(Reference::as_str),
            data: data.as_ref().map(|data| serde_json::from_str(data.as_str())).transpose()?,
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
    /// Which payment.
    pub payment_id: PaymentId,
    /// How it ended.
    pub settlement: Settlement,
    /// The payment with its account and due time, if the service echoes both: they locate the head of a payment that
    /// is due as at first without a read.
    pub echo: Option<DuePayment>,
}

/// Why a message is not a settlement result. No retry makes it readable.
#[derive(Debug, thiserror::Error)]
pub enum SettlementResultError {
    /// Not a JSON object, or a field of the wrong type.
    #[error("not a settlement result")]
    Json(#[source] serde_json::Error),
    /// Another version of the form.
    #[error("v is {0}, and {FORM} is the only known one")]
    Form(u64),
    /// A kind that is not known. It is not guessed.
    #[error("the kind {0:?} is unknown; settlement is the only known one")]
    Kind(String),
    /// A required field is missing or null.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// An outcome other than `PROCESSED` and `FAILED`.
    #[error("outcome is neither PROCESSED nor FAILED")]
    Outcome,
    /// A malformed payment id.
    #[error("paymentId")]
    PaymentId(#[source] PaymentIdError),
    /// A malformed transaction id.
    #[error("transactionId")]
    TransactionId(#[source] TransactionIdError),
    /// A malformed account id.
    #[error("accountId")]
    AccountId(#[source] account::AccountIdError),
    /// A malformed due time.
    #[error("dueAt")]
    DueAt(#[source] calendar::CalendarError),
}

/// The JSON of a settlement result. Other fields are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultJson {
    v: Option<u64>,
    kind: Option<String>,
    payment_id: Option<String>,
    outcome: Option<String>,
    transaction_id: Option<String>,
    reason: Option<String>,
    account_id: Option<String>,
    due_at: Option<String>,
    /// Makes serde insist on an object: without it, an array of eight would be accepted.
    #[serde(flatten)]
    _others: HashMap<String, IgnoredAny>,
}

impl SettlementResult {
    /// Parses a message.
    ///
    /// Unknown fields are ignored. `accountId` and `dueAt` are used only together, because one alone
    /// locates nothing. A long reason is cut.
    pub fn parse(message: &str) -> Result<Self, SettlementResultError> {
        use SettlementResultError as E;
        let json: ResultJson = serde_json::from_str(message).map_err(E::Json)?;
        match json.v.ok_or(E::Missing("v"))? {
            FORM => {}
            other => return Err(E::Form(other)),
        }
        match json.kind.ok_or(E::Missing("kind"))? {
            kind if kind == SETTLEMENT => {}
            other => return Err(E::Kind(other.chars().take(MAX_SHOWN_KIND).collect())),
        }
        let payment_id = json.payment_id.ok_or(E::Missing("paymentId"))?;
        let settlement = match json.outcome.ok_or(E::Missing("outcome"))?.as_str() {
            "PROCESSED" => {
                let id = json.transaction_id.ok_or(E::Missing("transactionId"))?;
                Settlement::Processed(id.parse().map_err(E::TransactionId)?)
            }
            "FAILED" => Settlement::Failed(FailureReason::cut(&json.reason.ok_or(E::Missing("reason"))?)),
            _ => return Err(E::Outcome),
        };
        let account = json.account_id.map(|id| AccountId::from_stored(&id).map_err(E::AccountId)).transpose()?;
        let due_at = json.due_at.map(|at| at.parse().map_err(E::DueAt)).transpose()?;
        let payment_id = payment_id.parse().map_err(E::PaymentId)?;
        let echo = account.zip(due_at).map(|(account, due_at)| DuePayment { account, payment_id, due_at });
        Ok(Self { payment_id, settlement, echo })
    }
}

#[cfg(test)]
mod tests {
    use payments_model::{Actor, JsonText, Money, ScheduledFor, ShardCount};

    use super::*;

    /// The request of a payment with this data.
    fn request_of(data: Option<&str>, dispatch_attempt: u32) -> PaymentRequest {
        PaymentRequest::of(&details(data), dispatch_attempt)
    }

    fn details(data: Option<&str>) -> Details {
        let account: AccountId = "acc-1".parse().unwrap();
        let id = PaymentId::derive(&account, &"rent-2026-12".parse().unwrap());
        let shards: ShardCount = "10".parse().unwrap();
        let instruction = Instruction {
            account,
            payee: "landlord-7".parse().unwrap(),
            money: Money { amount: 125_000.try_into().unwrap(), currency: "GBP".parse().unwrap() },
            scheduled_for: "2026-12-01T09:30:00Z".parse::<ScheduledFor>().unwrap(),
            date_rule: None,
            reference: data.map(|_| "INV 2026/117".parse().unwrap()),
            data: data.map(|text| JsonText::from_stored(text.to_owned()).unwrap()),
        };
        let now = "2026-11-20T08:00:00Z".parse().unwrap();
        Details::accept(id, instruction, "Europe/London".parse().unwrap(), shards, now, Actor::client("feed"))
    }

    #[test]
    fn a_request_is_this_json() {
        let text = request_of(Some(r#"{ "ref":"Dec",  "n":1.0}"#), 1).to_json().unwrap();
        insta::assert_snapshot!(text, @r#"{"v":1,"kind":"payment","paymentId":"626e8292-8e84-575a-b684-0af73927405b","accountId":"acc-1","payeeAccountId":"landlord-7","amountMinor":125000,"currency":"GBP","dueAt":"2026-12-01T09:30:00Z","reference":"INV 2026/117","data":{ "ref":"Dec",  "n":1.0},"dispatchAttempt":1}"#);
        let text = request_of(None, 3).to_json().unwrap();
        insta::assert_snapshot!(text, @r#"{"v":1,"kind":"payment","paymentId":"626e8292-8e84-575a-b684-0af73927405b","accountId":"acc-1","payeeAccountId":"landlord-7","amountMinor":125000,"currency":"GBP","dueAt":"2026-12-01T09:30:00Z","dispatchAttempt":3}"#);
    }

    #[test]
    fn the_document_shows_these_messages() {
        let document = include_str!("../../../docs/transaction-service.md");
        let blocks = document.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
        let [request, processed, failed] = blocks.collect::<Vec<_>>()[..] else { panic!("not three messages") };
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let ours = request_of(Some(r#"{"ref":"Dec"}"#), 1).to_json().unwrap();
        assert_eq!(value(request), value(&ours));
        let processed = SettlementResult::parse(processed).unwrap();
        assert_eq!((processed.settlement, processed.echo), (Settlement::Processed("TX-1".parse().unwrap()), None));
        let failed = SettlementResult::parse(failed).unwrap();
        assert_eq!(failed.settlement, Settlement::Failed(FailureReason::cut("no funds")));
        assert!(failed.echo.is_some());
    }

    #[test]
    fn characters_that_sqs_rejects_are_escaped() {
        let data = "\"a\u{fffe}b\u{ffff}c\u{fffd}\u{1f600}\"";
        let text = request_of(Some(data), 1).to_json().unwrap();
        assert!(text.contains(r#""data":"a\ufffeb\uffffc"#), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["data"], serde_json::from_str::<serde_json::Value>(data).unwrap());
    }

    const ID: &str = "626e8292-8e84-575a-b684-0af73927405b";

    #[test]
    fn settlement_results_are_parsed() {
        let processed = SettlementResult::parse(&format!(
            r#"{{"v":1,"kind":"settlement","paymentId":"{ID}","outcome":"PROCESSED","transactionId":"TX-1","settledBy":"x","reason":"ignored"}}"#
        ));
        let want = SettlementResult {
            payment_id: ID.parse().unwrap(),
            settlement: Settlement::Processed("TX-1".parse().unwrap()),
            echo: None,
        };
        assert_eq!(processed.unwrap(), want);
        let failed = SettlementResult::parse(&format!(
            r#"{{"v":1,"kind":"settlement","paymentId":"{ID}","outcome":"FAILED","reason":"no funds","accountId":"acc-1","dueAt":"2026-12-01T09:30:00Z"}}"#
        ));
        let want = SettlementResult {
            payment_id: ID.parse().unwrap(),
            settlement: Settlement::Failed(FailureReason::cut("no funds")),
            echo: Some(DuePayment {
                account: "acc-1".parse().unwrap(),
                payment_id: ID.parse().unwrap(),
                due_at: "2026-12-01T09:30:00Z".parse().unwrap(),
            }),
        };
        assert_eq!(failed.unwrap(), want);
    }

    #[test]
    fn half_an_echo_is_ignored() {
        for half in [r#""accountId":"acc-1""#, r#""dueAt":"2026-12-01T09:30:00Z""#, r#""accountId":null,"dueAt":null"#]
        {
            let text =
                format!(r#"{{"v":1,"kind":"settlement","paymentId":"{ID}","outcome":"FAILED","reason":"",{half}}}"#);
            assert_eq!(SettlementResult::parse(&text).unwrap().echo, None, "{half}");
        }
    }

    #[test]
    fn long_reasons_are_cut() {
        let text = format!(
            r#"{{"v":1,"kind":"settlement","paymentId":"{ID}","outcome":"FAILED","reason":"{}"}}"#,
            "x".repeat(300)
        );
        let Settlement::Failed(reason) = SettlementResult::parse(&text).unwrap().settlement else {
            panic!("it failed")
        };
        assert_eq!(reason.as_str().len(), 256);
    }

    #[test]
    fn an_invalid_message_names_its_fault() {
        for (text, want) in [
            ("", "not a settlement result"),
            ("null", "not a settlement result"),
            ("[]", "not a settlement result"),
            (r#"[1,"settlement","ID","PROCESSED","TX-1",null,null,null]"#, "not a settlement result"),
            ("PROCESSED", "not a settlement result"),
            (
                r#"{"v":1,"kind":"settlement","paymentId":"ID","outcome":"PROCESSED","transactionId":"TX-1"} x"#,
                "not a settlement result",
            ),
            (
                r#"{"v":1,"kind":"settlement","paymentId":7,"outcome":"PROCESSED","transactionId":"TX-1"}"#,
                "not a settlement result",
            ),
            (
                r#"{"v":1,"kind":"settlement","paymentId":"ID","outcome":"PROCESSED","transactionId":1}"#,
                "not a settlement result",
            ),
            (
                r#"{"v":1,"kind":"settlement","paymentId":"ID","paymentId":"ID","outcome":"FAILED","reason":"x"}"#,
                "not a settlement result",
            ),
            ("{}", "v is missing"),
            (r#"{"v":null,"kind":"settlement"}"#, "v is missing"),
            (r#"{"v":2,"kind":"settlement"}"#, "v is 2, and 1 is the only known one"),
            (r#"{"v":"1","kind":"settlement"}"#, "not a settlement result"),
            (r#"{"v":1,"paymentId":"ID","outcome":"PROCESSED","transactionId":"TX-1"}"#, "kind is missing"),
            (r#"{"v":1,"kind":"recall","paymentId":"ID","outcome":"PROCESSED"}"#, "the kind \"recall\" is unknown"),
            (r#"{"v":1,"kind":"payment","paymentId":"ID"}"#, "the kind \"payment\" is unknown"),
            (r#"{"v":1,"kind":"settlement"}"#, "paymentId is missing"),
            (r#"{"v":1,"kind":"settlement","outcome":"PROCESSED","transactionId":"TX-1"}"#, "paymentId is missing"),
            (
                r#"{"v":1,"kind":"settlement","paymentId":null,"outcome":"PROCESSED","transactionId":"TX-1"}"#,
                "paymentId is missing",
            ),
            (r#"{"v":1,"kind":"settlement","paymentId":"ID"}"#, "outcome is missing"),
            (r#"{"v":1,"kind":"settlement","paymentId":"ID","outcome":"PROCESSED"}"#, "transactionId is missing"),
            (
                r#"{"v":1,"kind":"settlement","paymentId":"ID","outcome":"PROCESSED","reason":"x"}"#,
                "transactionId is missing",
            ),
            (
                r#"{"v":1,"kind":"settlement","paymentId":"ID","outcome":"FAILED","transactionId":"TX-1"}"#,
                "reason is missing",
            ),
            (
                r#"{"v":1,"kind":"settlement","paymentId":"ID","outcome":"processed","transactionId":"TX-1"}"#,
                "outcome is neither",
            ),
            (r#"{"v":1,"kind":"settlement","paymentId":"ID","outcome":"PENDING"}"#, "outcome is neither"),
            (
                r#"{"v":1,"kind":"settlement","paymentId":"42","outcome":"PROCESSED","transactionId":"TX-1"}"#,
                "paymentId",
            ),
            (
                r#"{"v":1,"kind":"settlement","paymentId":"ID","outcome":"PROCESSED","transactionId":""}"#,
                "transactionId",
            ),
            (
                r#"{"v":1,"kind":"settlement","paymentId":"ID","outcome":"FAILED","reason":"x","accountId":"a#b"}"#,
                "accountId",
            ),
            (
                r#"{"v":1,"kind":"settlement","paymentId":"ID","outcome":"FAILED","reason":"x","dueAt":"tomorrow"}"#,
                "dueAt",
            ),
        ] {
            let error = SettlementResult::parse(&text.replace("ID", ID));
            let Err(error) = error else { panic!("{text} was parsed") };
            assert!(error.to_string().starts_with(want), "{text}: {error}");
        }
    }
}
