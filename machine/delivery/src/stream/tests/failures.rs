//! Retries, partial responses, splits, and discarded batches.

use payments_queue::in_process::QueueSettings;

use super::*;

const REPORTED: &str = "the function reported batch item failures";

fn with_destination(settings: StreamSettings) -> (StreamSettings, Queue) {
    let queue = Queue::new(QueueSettings::named("dispatch-failures"));
    (StreamSettings { on_failure: Some(queue.clone()), ..settings }, queue)
}

/// A failure record, in short.
#[derive(Debug, PartialEq)]
struct Lost {
    from: u64,
    to: u64,
    batch_size: u64,
    invocations: u64,
    condition: String,
}

fn exhausted(from: u64, to: u64, batch_size: u64, invocations: u64) -> Lost {
    Lost { from, to, batch_size, invocations, condition: "RetryAttemptsExhausted".to_owned() }
}

fn lost(queue: &Queue) -> Vec<Lost> {
    let read = |body: &str| {
        let record: Value = serde_json::from_str(body).unwrap();
        let (batch, context) = (&record["DDBStreamBatchInfo"], &record["requestContext"]);
        Lost {
            from: batch["startSequenceNumber"].as_str().unwrap().parse().unwrap(),
            to: batch["endSequenceNumber"].as_str().unwrap().parse().unwrap(),
            batch_size: batch["batchSize"].as_u64().unwrap(),
            invocations: context["approximateInvokeCount"].as_u64().unwrap(),
            condition: context["condition"].as_str().unwrap().to_owned(),
        }
    };
    queue.receive(10, at(0)).iter().map(|message| read(&message.body)).collect()
}

#[tokio::test]
async fn a_failing_batch_is_retried_whole_and_blocks_its_shard() {
    let mut mapping = mapping(StreamSettings { batch_size: 2, ..settings() }, &stream(3));
    let log = Log::default();
    for _ in 0..50 {
        let step = mapping.step(at(0), async |event| Err(format!("{:?}", log.note(&event)))).await.unwrap();
        assert_eq!(outcomes(step), [retrying("[1, 2]", 2)]);
    }
    assert_eq!(log.take(), vec![vec![1, 2]; 50]);
    assert_eq!(checkpoint(&mapping), None);
    mapping.drain(at(0), 9, async |event| Ok(json!(log.note(&event).len()))).await.unwrap();
    assert_eq!(log.take(), [vec![1, 2], vec![3]]);
}

#[tokio::test]
async fn exhausted_retries_leave_a_failure_record_and_move_on() {
    for (retries, invocations) in [(0, 1), (3, 4)] {
        let settings = StreamSettings { batch_size: 2, maximum_retry_attempts: Some(retries), ..settings() };
        let (settings, failures) = with_destination(settings);
        let mut mapping = mapping(settings, &stream(3));
        let function = async |event: Value| if numbers(&event)[0] == 1 { Err("boom".to_owned()) } else { Ok(json!(0)) };
        let done = mapping.drain(at(0), 99, function).await.unwrap();
        let mut want = vec![retrying("boom", 2); usize::try_from(retries).unwrap()];
        want.push(DeliveryOutcome::Discarded { records: 2 });
        want.push(DeliveryOutcome::Succeeded);
        assert_eq!(outcomes(done), want);
        assert_eq!(lost(&failures), [exhausted(1, 2, 2, invocations)]);
        assert_eq!(checkpoint(&mapping), Some(3.into()));
    }
}

#[tokio::test]
async fn a_partial_response_goes_on_from_its_lowest_record() {
    let settings = StreamSettings { report_batch_item_failures: true, ..settings() };
    let mut mapping = mapping(settings, &stream(11));
    let log = Log::default();
    // 9 is below 10 as a number, not as a text.
    let function = async |event: Value| Ok(if log.note(&event)[0] == 1 { failed([11, 10, 9]) } else { json!({}) });
    let first = mapping.step(at(0), function).await.unwrap();
    assert_eq!(outcomes(first), [retrying(REPORTED, 3)]);
    assert_eq!(checkpoint(&mapping), Some(8.into()));
    mapping.drain(at(0), 9, function).await.unwrap();
    assert_eq!(log.take(), [(1..=11).collect(), vec![9, 10, 11]]);
}

#[tokio::test]
async fn progress_makes_a_new_batch_with_retries_of_its_own() {
    let settings = StreamSettings { report_batch_item_failures: true, maximum_retry_attempts: Some(1), ..settings() };
    let (settings, failures) = with_destination(settings);
    let mut mapping = mapping(settings, &stream(3));
    let log = Log::default();
    let function = async |event: Value| {
        log.note(&event);
        Ok(failed([2]))
    };
    mapping.drain(at(0), 99, function).await.unwrap();
    assert_eq!(log.take(), [vec![1, 2, 3], vec![2, 3], vec![2, 3]]);
    // Without bisecting, the records behind the failed one are discarded with it.
    assert_eq!(lost(&failures), [exhausted(2, 3, 2, 2)]);
}

#[tokio::test]
async fn an_invalid_response_fails_the_whole_batch() {
    let settings = StreamSettings { report_batch_item_failures: true, ..settings() };
    for answer in [
        json!({"batchItemFailures": [{"itemIdentifier": ""}]}),
        json!({"batchItemFailures": [{"itemIdentifier": null}]}),
        json!({"batchItemFailures": [{"foo": "2"}]}),
        failed([2, 99]),
    ] {
        let mut mapping = mapping(settings.clone(), &stream(3));
        let step = mapping.step(at(0), async |_| Ok(answer.clone())).await.unwrap();
        assert!(matches!(&step[0].outcome, DeliveryOutcome::Retrying { remaining: 3, .. }), "{answer}: {step:?}");
        assert_eq!(checkpoint(&mapping), None);
    }
}

#[tokio::test]
async fn without_the_setting_a_response_is_not_read() {
    let mut mapping = mapping(settings(), &stream(3));
    let step = mapping.step(at(0), async |_| Ok(failed([2]))).await.unwrap();
    assert_eq!(outcomes(step), [DeliveryOutcome::Succeeded]);
}

#[tokio::test]
async fn bisecting_isolates_a_poison_record() {
    let settings =
        StreamSettings { bisect_batch_on_function_error: true, maximum_retry_attempts: Some(1), ..settings() };
    let (settings, failures) = with_destination(settings);
    let mut mapping = mapping(settings, &stream(7));
    let log = Log::default();
    let function = async |event: Value| {
        if log.note(&event).contains(&4) { Err("boom".to_owned()) } else { Ok(Value::Null) }
    };
    mapping.drain(at(0), 99, function).await.unwrap();
    let whole = (1..=7).collect();
    let halves = [vec![1, 2, 3, 4], vec![1, 2], vec![3, 4], vec![3], vec![4], vec![4], vec![5, 6, 7]];
    assert_eq!(log.take(), [vec![whole], halves.to_vec()].concat());
    assert_eq!(lost(&failures), [exhausted(4, 4, 1, 2)]);
    assert_eq!(checkpoint(&mapping), Some(7.into()));
}

/// A mapping of six records that is retried twice, and halves batches or takes partial responses; where it tells of lost ones; a log.
fn halving() -> (StreamMapping, Queue, Log) {
    let settings = StreamSettings {
        bisect_batch_on_function_error: true,
        report_batch_item_failures: true,
        maximum_retry_attempts: Some(2),
        ..settings()
    };
    let (settings, failures) = with_destination(settings);
    (mapping(settings, &stream(6)), failures, Log::default())
}

#[tokio::test]
async fn a_partial_response_splits_a_batch_at_its_record_and_halves_nothing() {
    let (mut mapping, failures, log) = halving();
    let function = async |event: Value| Ok(failed(log.note(&event).into_iter().filter(|number| *number == 3)));
    mapping.drain(at(0), 99, function).await.unwrap();
    // The guide promises halves only "if your invocation fails".
    assert_eq!(log.take(), [vec![1, 2, 3, 4, 5, 6], vec![3, 4, 5, 6], vec![3, 4, 5, 6], vec![3, 4, 5, 6]]);
    assert_eq!(lost(&failures), [exhausted(3, 6, 4, 3)]);
}

#[tokio::test]
async fn a_function_that_fails_on_poison_at_the_front_has_it_isolated() {
    let (mut mapping, failures, log) = halving();
    let function = async |event: Value| match log.note(&event)[..] {
        [3, _, ..] => Err("the first is poison".to_owned()),
        ref numbers => Ok(failed(numbers.iter().copied().filter(|number| *number == 3))),
    };
    mapping.drain(at(0), 99, function).await.unwrap();
    let rest = [vec![3, 4, 5, 6], vec![3, 4], vec![3], vec![3], vec![3], vec![4], vec![5, 6]];
    assert_eq!(log.take(), [vec![(1..=6).collect()], rest.to_vec()].concat());
    assert_eq!(lost(&failures), [exhausted(3, 3, 1, 3)]);
}

#[tokio::test]
async fn without_a_destination_the_shard_moves_on() {
    let settings = StreamSettings { batch_size: 1, maximum_retry_attempts: Some(0), ..settings() };
    let mut mapping = mapping(settings, &stream(3));
    let done = mapping.drain(at(0), 99, async |_| Err("boom".to_owned())).await.unwrap();
    assert_eq!(done.len(), 3);
    assert_eq!(checkpoint(&mapping), Some(3.into()));
}
