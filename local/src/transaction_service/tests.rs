//! The simulated service: one outcome per payment, seeded, and a memory for contents.

use std::collections::{BTreeMap, BTreeSet};

use payments_model::{AccountId, IdempotencyKey};
use payments_queue::SettlementResult;
use payments_queue::in_process::{QueueSettings, RedrivePolicy};

use super::*;

struct Bench {
    requests: Queue,
    dead_letters: Queue,
    results: Queue,
    service: TransactionService,
}

fn bench(settings: TransactionServiceSettings) -> Bench {
    let dead_letters = Queue::new(QueueSettings::named("dead"));
    let policy = RedrivePolicy { max_receive_count: 2, dead_letter_queue: dead_letters.clone() };
    let requests = Queue::new(QueueSettings { redrive_policy: Some(policy), ..QueueSettings::named("requests") });
    let results = Queue::new(QueueSettings::named("results"));
    let service = TransactionService::new(settings, requests.clone(), results.clone());
    Bench { requests, dead_letters, results, service }
}

fn id(number: u32) -> PaymentId {
    let account: AccountId = "acc-1".parse().unwrap();
    PaymentId::derive(&account, &format!("key-{number}").parse::<IdempotencyKey>().unwrap())
}

fn request(number: u32, attempt: u32, data: &str) -> String {
    let id = id(number);
    format!(
        r#"{{"paymentId":"{id}","accountId":"acc-1","amountMinor":5,"dueAt":"2026-11-20T00:00:00Z","data":{data},"dispatchAttempt":{attempt}}}"#
    )
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_000 + seconds, 0).unwrap()
}

/// All results so far, in the order in which they came.
fn reports(bench: &Bench, now: DateTime<Utc>) -> Vec<SettlementResult> {
    let batches = std::iter::repeat_with(|| bench.results.receive(10, now)).take_while(|batch| !batch.is_empty());
    batches.flatten().map(|message| SettlementResult::parse(&message.body).unwrap()).collect()
}

fn run(seed: u64, numbers: impl Iterator<Item = u32>) -> (Vec<SettlementResult>, Saw) {
    let mut bench = bench(TransactionServiceSettings::seeded(seed));
    for number in numbers {
        bench.requests.send(request(number, 1, "1"), at(0)).unwrap();
    }
    assert_eq!(bench.service.step(at(0)).answered, 0, "nothing is answered before the shortest delay");
    for second in 1..=90 {
        bench.service.step(at(second));
    }
    (reports(&bench, at(90)), bench.service.saw())
}

#[test]
fn results_are_seeded_late_repeated_out_of_order_and_some_fail() {
    let (reports, saw) = run(1, 0..1_000);
    assert_eq!((saw.requests, saw.payments, saw.other_contents, saw.unreadable), (1_000, 1_000, 0, 0));
    assert_eq!(saw.results, 1_000 + saw.repeated_results);
    assert_eq!(u64::try_from(reports.len()).unwrap(), saw.results);
    assert!((15..=45).contains(&saw.repeated_results), "{saw:?}");

    let mut outcomes: BTreeMap<String, &Settlement> = BTreeMap::new();
    for report in &reports {
        assert!(report.echo.is_some(), "the account and due time come back");
        let known = outcomes.entry(report.payment_id.to_string()).or_insert(&report.settlement);
        assert_eq!(*known, &report.settlement, "a payment has one outcome");
    }
    let failed = outcomes.values().filter(|outcome| matches!(outcome, Settlement::Failed(_))).count();
    assert!((8..=35).contains(&failed), "{failed}");
    let transactions: BTreeSet<&str> = outcomes
        .values()
        .filter_map(|outcome| match outcome {
            Settlement::Processed(id) => Some(id.as_str()),
            Settlement::Failed(_) => None,
        })
        .collect();
    assert_eq!(transactions.len() + failed, 1_000);

    let asked: Vec<PaymentId> = (0..1_000).map(id).collect();
    let answered: Vec<PaymentId> = reports.iter().map(|report| report.payment_id).collect();
    assert_ne!(answered[..100], asked[..100]);

    assert_eq!(run(1, 0..1_000), (reports.clone(), saw), "the same seed does the same");
    assert_ne!(run(2, 0..1_000).0, reports);
    let mut backwards: Vec<String> = run(1, (0..1_000).rev()).0.iter().map(|report| format!("{report:?}")).collect();
    let mut forwards: Vec<String> = reports.iter().map(|report| format!("{report:?}")).collect();
    backwards.sort();
    forwards.sort();
    assert_eq!(backwards, forwards, "the order of requests changes no outcome");
}

#[test]
fn a_redelivered_payment_gets_the_same_answer_and_another_content_is_noticed() {
    let mut bench =
        bench(TransactionServiceSettings { repeats_per_thousand: 0, ..TransactionServiceSettings::seeded(7) });
    for (text, others) in [
        (request(1, 1, r#"{"a":1}"#), 0),
        (request(1, 2, r#"{"a":1}"#), 0),
        (request(1, 2, r#"{"a":1}"#), 0),
        (request(1, 3, r#"{"a":1.0}"#), 1),
        (request(1, 1, r#"{"a": 1}"#), 2),
        (request(2, 1, "2"), 2),
    ] {
        bench.requests.send(text.clone(), at(0)).unwrap();
        bench.service.step(at(0));
        assert_eq!(bench.service.saw().other_contents, others, "{text}");
    }
    assert_eq!(bench.service.step(at(90)).answered, 6);
    let of_first = reports(&bench, at(90)).into_iter().filter(|report| report.payment_id == id(1));
    let outcomes: Vec<Settlement> = of_first.map(|report| report.settlement).collect();
    assert_eq!(outcomes, vec![bench.service.settings().outcome_of(id(1)); 5]);
    assert_eq!((bench.service.saw().payments, bench.service.saw().repeated_results), (2, 4));
}

#[test]
fn what_is_no_request_ends_in_the_dead_letters() {
    let mut bench = bench(TransactionServiceSettings::seeded(1));
    for text in ["hello", "[]", "{}", r#"{"paymentId":7}"#, r#"{"paymentId":"seven"}"#] {
        bench.requests.send(text, at(0)).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(bench.service.step(at(0)), Step::default());
    }
    assert_eq!(bench.service.saw().unreadable, 5);
    bench.service.step(at(30));
    assert_eq!(bench.service.saw().unreadable, 10, "each is received twice");
    bench.service.step(at(60));
    assert_eq!(bench.dead_letters.counts(at(60)).visible, 5);
    assert_eq!(bench.service.saw().payments, 0);
}
