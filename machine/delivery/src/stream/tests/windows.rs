//! Tumbling windows, invocation by invocation.

use super::*;
use crate::window::MAX_STATE_BYTES;

/// Windows of a minute; second 0 is the first of one.
fn minutes() -> StreamSettings {
    StreamSettings { tumbling_window: Some(TimeDelta::seconds(60)), ..settings() }
}

/// A stream with records at these seconds, numbered from 1.
fn at_seconds(seconds: &[i64]) -> InMemoryStream {
    let stream = stream(0);
    for (number, second) in (1..).zip(seconds) {
        stream.push(&shard(), record(number, *second, "head")).unwrap();
    }
    stream
}

/// One invocation, in short: the records, how many the state has counted, and the kind.
#[derive(Debug, PartialEq)]
struct Seen(Vec<u64>, u64, &'static str);

fn seen(event: &Value) -> Seen {
    let kind = if event["isFinalInvokeForWindow"].as_bool().unwrap() { "end" } else { "batch" };
    Seen(numbers(event), event["state"]["count"].as_u64().unwrap_or_default(), kind)
}

/// Returns the response of a function that counts records in its state.
fn counted(event: &Value) -> Value {
    let Seen(numbers, before, _) = seen(event);
    json!({"state": {"count": before + u64::try_from(numbers.len()).unwrap()}})
}

#[tokio::test]
async fn a_state_lasts_for_its_window() {
    let stream = at_seconds(&[0, 1, 59, 60, 61]);
    let mut mapping = mapping(StreamSettings { batch_size: 2, ..minutes() }, &stream);
    let log = RefCell::new(Vec::new());
    let function = async |event: Value| {
        log.borrow_mut().push(seen(&event));
        Ok(counted(&event))
    };
    mapping.drain(at(62), 99, function).await.unwrap();
    let want =
        [Seen(vec![1, 2], 0, "batch"), Seen(vec![3], 2, "batch"), Seen(vec![], 3, "end"), Seen(vec![4, 5], 0, "batch")];
    assert_eq!(log.take(), want);
    assert_eq!(mapping.step(at(119), function).await.unwrap(), [], "the window is open");
    mapping.drain(at(120), 99, function).await.unwrap();
    assert_eq!(log.take(), [Seen(vec![], 2, "end")], "its time has passed");
    assert_eq!(mapping.step(at(999), function).await.unwrap(), []);
}

#[tokio::test]
async fn a_window_waits_for_records_that_are_there() {
    // The window's end has passed, but its records are delivered before it ends.
    let mut mapping = mapping(StreamSettings { batch_size: 1, ..minutes() }, &at_seconds(&[0, 1]));
    let log = RefCell::new(Vec::new());
    let function = async |event: Value| {
        log.borrow_mut().push(seen(&event));
        Ok(counted(&event))
    };
    mapping.drain(at(9_999), 99, function).await.unwrap();
    assert_eq!(log.take(), [Seen(vec![1], 0, "batch"), Seen(vec![2], 1, "batch"), Seen(vec![], 2, "end")]);
}

#[tokio::test]
async fn a_response_without_a_state_is_a_failure() {
    let mut mapping = mapping(minutes(), &at_seconds(&[0]));
    for answer in [json!(null), json!({}), json!({"state": null}), json!({"batchItemFailures": []})] {
        let step = mapping.step(at(1), async |_| Ok(answer.clone())).await.unwrap();
        let why = "the response of a function with a tumbling window has no state";
        assert_eq!(outcomes(step), [retrying(why, 1)], "{answer}");
    }
    let step = mapping.step(at(1), async |event| Ok(counted(&event))).await.unwrap();
    assert_eq!(outcomes(step), [DeliveryOutcome::Succeeded]);
}

#[tokio::test]
async fn a_retry_sees_the_state_from_before() {
    let mut mapping = mapping(StreamSettings { batch_size: 1, ..minutes() }, &at_seconds(&[0, 1]));
    let log = RefCell::new(Vec::new());
    for step in 0..4 {
        let function = async |event: Value| {
            log.borrow_mut().push(seen(&event));
            if step % 2 == 1 { Ok(counted(&event)) } else { Err("boom".to_owned()) }
        };
        mapping.step(at(2), function).await.unwrap();
    }
    let want = [(1, 0), (1, 0), (2, 1), (2, 1)].map(|(number, count)| Seen(vec![number], count, "batch"));
    assert_eq!(log.take(), want);
}

#[tokio::test]
async fn a_partial_response_carries_its_state_unless_no_record_succeeded() {
    let settings = StreamSettings { report_batch_item_failures: true, ..minutes() };
    let mut mapping = mapping(settings, &at_seconds(&[0, 1, 2]));
    let log = RefCell::new(Vec::new());
    for (failures, count) in [(vec![2], 7), (vec![2], 8), (vec![], 9)] {
        let function = async |event: Value| {
            log.borrow_mut().push(seen(&event));
            let mut answer = failed(failures.clone());
            answer["state"] = json!({"count": count});
            Ok(answer)
        };
        mapping.step(at(3), function).await.unwrap();
    }
    let want = [(vec![1, 2, 3], 0), (vec![2, 3], 7), (vec![2, 3], 7)];
    assert_eq!(log.take(), want.map(|(numbers, count)| Seen(numbers, count, "batch")));
}

#[tokio::test]
async fn the_end_of_a_window_is_repeated_until_it_succeeds() {
    let settings = StreamSettings { maximum_retry_attempts: Some(1), ..minutes() };
    let mut mapping = mapping(settings, &at_seconds(&[0, 60]));
    let log = RefCell::new(Vec::new());
    let failing = async |event: Value| {
        log.borrow_mut().push(seen(&event));
        if event["isFinalInvokeForWindow"] == json!(true) { Err("boom".to_owned()) } else { Ok(counted(&event)) }
    };
    mapping.drain(at(61), 5, failing).await.unwrap();
    let end = || Seen(vec![], 1, "end");
    assert_eq!(log.take(), [Seen(vec![1], 0, "batch"), end(), end(), end(), end()]);
    mapping.step(at(61), async |event| Ok(counted(&event))).await.unwrap();
    mapping.step(at(61), failing).await.unwrap();
    assert_eq!(log.take(), [Seen(vec![2], 0, "batch")]);
}

#[tokio::test]
async fn a_state_beyond_1_mb_is_a_failure() {
    let mut mapping = mapping(minutes(), &at_seconds(&[0]));
    let answer = json!({"state": "x".repeat(MAX_STATE_BYTES)});
    let step = mapping.step(at(1), async |_| Ok(answer.clone())).await.unwrap();
    assert!(matches!(&step[0].outcome, DeliveryOutcome::Retrying { why, .. } if why.contains("larger than 1 MB")));
}
