//! The simulated service: seeded settlements, one per payment, and requests that differ.

use std::collections::{BTreeMap, BTreeSet};

use payments_model::{AccountId, IdempotencyKey};
use payments_queue::SettlementResult;
use payments_queue::in_process::{QueueSettings, RedrivePolicy};

use super::*;

struct Fixture {
    requests: Queue,
    dead_letters: Queue,
    results: Queue,
    service: TransactionService,
}

fn fixture(settings: TransactionServiceSettings) -> Fixture {
    let dead_letters = Queue::new(QueueSettings::named("dead"));
    let policy = RedrivePolicy { max_receive_count: 2, dead_letter_queue: dead_letters.clone() };
    let requests = Queue::new(QueueSettings { redrive_policy: Some(policy), ..QueueSettings::named("requests") });
    let results = Queue::new(QueueSettings::named("results"));
    let service = TransactionService::new(settings, requests.clone(), results.clone());
    Fixture { requests, dead_letters, results, service }
}

fn id(number: u32) -> PaymentId {
    let account: AccountId = "acc-1".parse().unwrap();
    PaymentId::derive(&account, &format!("key-{number}").parse::<IdempotencyKey>().unwrap())
}

fn request(number: u32, attempt: u32, data: &str) -> String {
    let id = id(number);
    format!(
        r#"{{"v":1,"kind":"payment","paymentId":"{id}","accountId":"acc-1","payeeAccountId":"acc-2","amountMinor":5,"currency":"GBP","dueAt":"2026-11-20T00:00:00Z","data":{data},"dispatchAttempt":{attempt}}}"#
    )
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_000 + seconds, 0).unwrap()
}

/// Returns all settlement results so far, in the order of their arrival.
fn results(fixture: &Fixture, now: DateTime<Utc>) -> Vec<SettlementResult> {
    let batches = std::iter::repeat_with(|| fixture.results.receive(10, now)).take_while(|batch| !batch.is_empty());
    batches.flatten().map(|message| SettlementResult::parse(&message.body).unwrap()).collect()
}

fn run(seed: u64, numbers: impl Iterator<Item = u32>) -> (Vec<SettlementResult>, ServiceCounts) {
    let mut fixture = fixture(TransactionServiceSettings::seeded(seed));
    for number in numbers {
        fixture.requests.send(request(number, 1, "1"), at(0)).unwrap();
    }
    assert_eq!(fixture.service.step(at(0)).answered, 0, "no result is sent before the shortest delay");
    for second in 1..=90 {
        fixture.service.step(at(second));
    }
    (results(&fixture, at(90)), fixture.service.counts())
}

#[test]
fn results_are_seeded_late_repeated_and_out_of_order_and_some_fail() {
    let (results, counts) = run(1, 0..1_000);
    assert_eq!((counts.requests, counts.payments, counts.other_contents, counts.unreadable), (1_000, 1_000, 0, 0));
    assert_eq!(counts.results, 1_000 + counts.repeated_results);
    assert_eq!(u64::try_from(results.len()).unwrap(), counts.results);
    assert!((15..=45).contains(&counts.repeated_results), "{counts:?}");

    let mut settlements: BTreeMap<String, &Settlement> = BTreeMap::new();
    for result in &results {
        assert!(result.echo.is_some(), "the account and due time are those of the request");
        let known = settlements.entry(result.payment_id.to_string()).or_insert(&result.settlement);
        assert_eq!(*known, &result.settlement, "a payment has one settlement");
    }
    let failed = settlements.values().filter(|settlement| matches!(settlement, Settlement::Failed(_))).count();
    assert!((8..=35).contains(&failed), "{failed}");
    let transactions: BTreeSet<&str> = settlements
        .values()
        .filter_map(|settlement| match settlement {
            Settlement::Processed(id) => Some(id.as_str()),
            Settlement::Failed(_) => None,
        })
        .collect();
    assert_eq!(transactions.len() + failed, 1_000);

    let asked: Vec<PaymentId> = (0..1_000).map(id).collect();
    let answered: Vec<PaymentId> = results.iter().map(|result| result.payment_id).collect();
    assert_ne!(answered[..100], asked[..100]);

    assert_eq!(run(1, 0..1_000), (results.clone(), counts), "the same seed makes the same results");
    assert_ne!(run(2, 0..1_000).0, results);
    let mut backwards: Vec<String> = run(1, (0..1_000).rev()).0.iter().map(|result| format!("{result:?}")).collect();
    let mut forwards: Vec<String> = results.iter().map(|result| format!("{result:?}")).collect();
    backwards.sort();
    forwards.sort();
    assert_eq!(backwards, forwards, "the order of requests changes no settlement");
}

#[test]
fn a_repeated_request_gets_the_same_result_and_a_different_one_is_counted() {
    let mut fixture =
        fixture(TransactionServiceSettings { repeats_per_thousand: 0, ..TransactionServiceSettings::seeded(7) });
    for (text, others) in [
        (request(1, 1, r#"{"a":1}"#), 0),
        (request(1, 2, r#"{"a":1}"#), 0),
        (request(1, 2, r#"{"a":1}"#), 0),
        (request(1, 3, r#"{"a":1.0}"#), 1),
        (request(1, 1, r#"{"a": 1}"#), 2),
        (request(1, 4, r#"{"a":1}"#).replace(":5,", ":6,").replace("acc-2", "acc-3"), 3),
        (request(2, 1, "2"), 3),
    ] {
        fixture.requests.send(text.clone(), at(0)).unwrap();
        fixture.service.step(at(0));
        assert_eq!(fixture.service.counts().other_contents, others, "{text}");
    }
    assert_eq!(fixture.service.step(at(90)).answered, 7);
    let of_first = results(&fixture, at(90)).into_iter().filter(|result| result.payment_id == id(1));
    let ends: Vec<_> = of_first.map(|it| (it.settlement, it.money.amount.get(), it.payee.to_string())).collect();
    let first = (fixture.service.settings().settlement_of(id(1)), 5, "acc-2".to_owned());
    assert_eq!(ends, vec![first; 6], "each says what the first request asked for");
    assert_eq!((fixture.service.counts().payments, fixture.service.counts().repeated_results), (2, 5));
}

#[test]
fn a_message_that_is_not_a_request_ends_in_the_dead_letter_queue() {
    let mut fixture = fixture(TransactionServiceSettings::seeded(1));
    let valid = request(1, 1, "1");
    let other_kind = valid.replace(r#""kind":"payment""#, r#""kind":"recall""#);
    let other_form = valid.replace(r#""v":1"#, r#""v":2"#);
    let number = valid.replace(&format!(r#""{}""#, id(1)), "7");
    for text in ["hello", "[]", "{}", &number, &number.replace(":7", r#":"seven""#), &other_kind, &other_form] {
        fixture.requests.send(text, at(0)).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(fixture.service.step(at(0)), Step::default());
    }
    assert_eq!(fixture.service.counts().unreadable, 7);
    fixture.service.step(at(30));
    assert_eq!(fixture.service.counts().unreadable, 14, "each is received twice");
    fixture.service.step(at(60));
    assert_eq!(fixture.dead_letters.counts(at(60)).visible, 7);
    assert_eq!(fixture.service.counts().payments, 0);
}
