//! The JSON of requests, and tests of which messages are settlement results.

use payments_model::{Actor, JsonText, ScheduledFor, ShardCount};

use super::*;

/// The request of a payment with this data.
fn request_of(data: Option<&str>, dispatch_attempt: u32) -> PaymentRequest {
    PaymentRequest::new(&details(data), dispatch_attempt)
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
        data: data.map(|text| JsonText::from_stored(text.to_owned()).unwrap().into()),
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
    let document = include_str!("../../../../docs/transaction-service.md");
    let blocks = document.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    let [request, processed, failed] = blocks.collect::<Vec<_>>()[..] else { panic!("not three messages") };
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let ours = request_of(Some(r#"{"ref":"Dec"}"#), 1).to_json().unwrap();
    assert_eq!(value(request), value(&ours));
    let processed = SettlementResult::parse(processed).unwrap();
    assert_eq!((processed.settlement, processed.echo), (Settlement::Processed("TX-1".parse().unwrap()), None));
    let failed = SettlementResult::parse(failed).unwrap();
    assert_eq!(failed.settlement, Settlement::Failed(Failure::new(Some("AM04"), "no funds")));
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

/// The form and the kind of results.
const IT: &str = r#""v":1,"kind":"settlement""#;

const ID: &str = "626e8292-8e84-575a-b684-0af73927405b";

fn five() -> Money {
    Money { amount: 5.try_into().unwrap(), currency: "GBP".parse().unwrap() }
}

#[test]
fn settlement_results_are_parsed() {
    let processed = SettlementResult::parse(&format!(
        r#"{{"v":1,"kind":"settlement","paymentId":"{ID}","status":"PROCESSED","transactionId":"TX-1","amountMinor":5,"currency":"GBP","payeeAccountId":"acc-2","settledBy":"x","failureCode":0,"failureReason":"ignored"}}"#
    ));
    let want = SettlementResult {
        payment_id: ID.parse().unwrap(),
        money: five(),
        payee: "acc-2".parse().unwrap(),
        settlement: Settlement::Processed("TX-1".parse().unwrap()),
        echo: None,
    };
    assert_eq!(processed.unwrap(), want);
    let failed = SettlementResult::parse(&format!(
        r#"{{"v":1,"kind":"settlement","paymentId":"{ID}","status":"FAILED","failureCode":"AM04","failureReason":"no funds","amountMinor":5,"currency":"GBP","payeeAccountId":"acc-2","accountId":"acc-1","dueAt":"2026-12-01T09:30:00Z"}}"#
    ));
    let want = SettlementResult {
        payment_id: ID.parse().unwrap(),
        money: five(),
        payee: "acc-2".parse().unwrap(),
        settlement: Settlement::Failed(Failure::new(Some("AM04"), "no funds")),
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
    for half in [r#""accountId":"acc-1""#, r#""dueAt":"2026-12-01T09:30:00Z""#, r#""accountId":null,"dueAt":null"#] {
        let text = format!(
            r#"{{"v":1,"kind":"settlement","paymentId":"{ID}","status":"FAILED","failureReason":"","amountMinor":5,"currency":"GBP","payeeAccountId":"acc-2",{half}}}"#
        );
        assert_eq!(SettlementResult::parse(&text).unwrap().echo, None, "{half}");
    }
}

#[test]
fn a_failure_without_a_listed_code_is_narrative() {
    for (code, want) in [
        ("", "NARR x"),
        (r#""failureCode":null,"#, "NARR x"),
        (r#""failureCode":"XY99","#, "NARR XY99: x"),
        (r#""failureCode":4,"#, "NARR 4: x"),
    ] {
        let text = format!(
            r#"{{"v":1,"kind":"settlement","paymentId":"{ID}","status":"FAILED",{code}"failureReason":"x","amountMinor":5,"currency":"GBP","payeeAccountId":"acc-2"}}"#
        );
        let Settlement::Failed(failure) = SettlementResult::parse(&text).unwrap().settlement else {
            panic!("it failed")
        };
        assert_eq!(format!("{} {}", failure.code(), failure.reason()), want);
    }
}

#[test]
fn long_reasons_are_cut() {
    let text = format!(
        r#"{{"v":1,"kind":"settlement","paymentId":"{ID}","status":"FAILED","failureReason":"{}","amountMinor":5,"currency":"GBP","payeeAccountId":"acc-2"}}"#,
        "x".repeat(300)
    );
    let Settlement::Failed(failure) = SettlementResult::parse(&text).unwrap().settlement else { panic!("it failed") };
    assert_eq!((failure.code().as_str(), failure.reason().len()), ("NARR", 105));
}

#[test]
fn an_invalid_message_names_its_fault() {
    for (text, want) in [
        ("", "not a settlement result"),
        ("null", "not a settlement result"),
        ("[]", "not a settlement result"),
        (r#"[1,"settlement","ID","PROCESSED","TX-1",null,null,5,"GBP","acc-2",null,null]"#, "not a settlement result"),
        ("PROCESSED", "not a settlement result"),
        (r#"{"IT","paymentId":"ID","status":"PROCESSED","transactionId":"TX-1"} x"#, "not a settlement result"),
        (r#"{"IT","paymentId":7,"status":"PROCESSED","transactionId":"TX-1"}"#, "not a settlement result"),
        (r#"{"IT","paymentId":"ID","status":"PROCESSED","transactionId":1}"#, "not a settlement result"),
        (
            r#"{"IT","paymentId":"ID","paymentId":"ID","status":"FAILED","failureReason":"x"}"#,
            "not a settlement result",
        ),
        ("{}", "v is missing"),
        (r#"{"v":null,"kind":"settlement"}"#, "v is missing"),
        (r#"{"v":2,"kind":"settlement"}"#, "v is 2, and 1 is the only known one"),
        (r#"{"v":"1","kind":"settlement"}"#, "not a settlement result"),
        (r#"{"v":1,"paymentId":"ID","status":"PROCESSED","transactionId":"TX-1"}"#, "kind is missing"),
        (r#"{"v":1,"kind":"recall","paymentId":"ID","status":"PROCESSED"}"#, "the kind \"recall\" is unknown"),
        (r#"{"v":1,"kind":"payment","paymentId":"ID"}"#, "the kind \"payment\" is unknown"),
        (r#"{"IT"}"#, "paymentId is missing"),
        (r#"{"IT","status":"PROCESSED","transactionId":"TX-1"}"#, "paymentId is missing"),
        (r#"{"IT","paymentId":null,"status":"PROCESSED","transactionId":"TX-1"}"#, "paymentId is missing"),
        (r#"{"IT","paymentId":"ID"}"#, "status is missing"),
        (r#"{"IT","paymentId":"ID","status":"PROCESSED"}"#, "transactionId is missing"),
        (r#"{"IT","paymentId":"ID","status":"PROCESSED","failureReason":"x"}"#, "transactionId is missing"),
        (r#"{"IT","paymentId":"ID","status":"FAILED","transactionId":"TX-1"}"#, "failureReason is missing"),
        (r#"{"IT","paymentId":"ID","status":"FAILED","failureCode":"AM04"}"#, "failureReason is missing"),
        (r#"{"IT","paymentId":"ID","status":"processed","transactionId":"TX-1"}"#, "status is neither"),
        (r#"{"IT","paymentId":"ID","status":"PENDING"}"#, "status is neither"),
        (r#"{"IT","paymentId":"42","status":"PROCESSED","transactionId":"TX-1","OF5"}"#, "paymentId"),
        (r#"{"IT","paymentId":"ID","status":"PROCESSED","transactionId":""}"#, "transactionId"),
        (r#"{"IT","paymentId":"ID","status":"FAILED","failureReason":"x","currency":"GBP"}"#, "amountMinor is missing"),
        (r#"{"IT","paymentId":"ID","status":"FAILED","failureReason":"x","amountMinor":5}"#, "currency is missing"),
        (
            r#"{"IT","paymentId":"ID","status":"FAILED","failureReason":"x","amountMinor":0,"currency":"GBP"}"#,
            "amountMinor",
        ),
        (
            r#"{"IT","paymentId":"ID","status":"FAILED","failureReason":"x","amountMinor":5,"currency":"gbp"}"#,
            "currency",
        ),
        (
            r#"{"IT","paymentId":"ID","status":"FAILED","failureReason":"x","amountMinor":5,"currency":"GBP"}"#,
            "payeeAccountId is missing",
        ),
        (
            r#"{"IT","paymentId":"ID","status":"FAILED","failureReason":"x","amountMinor":5,"currency":"GBP","payeeAccountId":"a#b"}"#,
            "payeeAccountId",
        ),
        (r#"{"IT","paymentId":"ID","status":"FAILED","failureReason":"x","OF5","accountId":"a#b"}"#, "accountId"),
        (r#"{"IT","paymentId":"ID","status":"FAILED","failureReason":"x","OF5","dueAt":"tomorrow"}"#, "dueAt"),
    ] {
        let text = text
            .replace("ID", ID)
            .replace(r#""IT""#, IT)
            .replace(r#""OF5""#, r#""amountMinor":5,"currency":"GBP","payeeAccountId":"acc-2""#);
        let error = SettlementResult::parse(&text);
        let Err(error) = error else { panic!("{text} was parsed") };
        assert!(error.to_string().starts_with(want), "{text}: {error}");
    }
}
