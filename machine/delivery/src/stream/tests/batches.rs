//! The batches that a function is invoked with.

use super::*;

#[tokio::test]
async fn batches_are_full_until_the_stream_is_read() {
    let mut mapping = mapping(settings(), &stream(250));
    let log = Log::default();
    let done = mapping.drain(at(0), 9, async |event| Ok(json!(log.note(&event).len()))).await.unwrap();
    assert_eq!(done.iter().map(|delivery| delivery.records).collect::<Vec<_>>(), [100, 100, 50]);
    assert_eq!(log.take().concat(), (1..=250).collect::<Vec<u64>>());
    assert_eq!(checkpoint(&mapping), Some(250.into()));
}

#[tokio::test]
async fn records_that_do_not_match_the_filter_are_skipped() {
    let stream = stream(0);
    let filter = Filter::parse(r#"{"dynamodb":{"NewImage":{"kind":{"S":["head"]}}}}"#).ok();
    let mut mapping = mapping(StreamSettings { filter, batch_size: 2, ..settings() }, &stream);
    let kinds = ["counts", "head", "counts", "head", "counts", "head", "counts"];
    for (number, kind) in (1..).zip(kinds) {
        stream.push(&shard(), record(number, 0, kind)).unwrap();
    }
    let log = Log::default();
    let function = async |event: Value| Ok(json!(log.note(&event).len()));
    mapping.step(at(0), function).await.unwrap();
    assert_eq!(checkpoint(&mapping), Some(4.into()));
    mapping.step(at(0), function).await.unwrap();
    assert_eq!(log.take(), [vec![2, 4], vec![6]]);
    assert_eq!(checkpoint(&mapping), Some(7.into()));
    stream.push(&shard(), record(8, 0, "counts")).unwrap();
    assert_eq!(mapping.step(at(0), function).await.unwrap(), [], "nothing to deliver");
    assert_eq!(checkpoint(&mapping), Some(8.into()));
}

#[tokio::test]
async fn a_batching_window_waits_for_a_full_batch() {
    let stream = stream(2);
    let maximum_batching_window = TimeDelta::seconds(5);
    let mut mapping = mapping(StreamSettings { batch_size: 3, maximum_batching_window, ..settings() }, &stream);
    let log = Log::default();
    let function = async |event: Value| Ok(json!(log.note(&event).len()));
    for seconds in [0, 4] {
        assert_eq!(mapping.step(at(seconds), function).await.unwrap(), []);
    }
    mapping.step(at(5), function).await.unwrap();
    assert_eq!(log.take(), [vec![1, 2]], "the window has ended");
    for number in 3..=6 {
        stream.push(&shard(), record(number, 6, "head")).unwrap();
    }
    mapping.step(at(6), function).await.unwrap();
    assert_eq!(log.take(), [vec![3, 4, 5]], "the batch is full");
    assert_eq!(mapping.step(at(7), function).await.unwrap(), [], "the next window has begun");
    assert_eq!(mapping.step(at(11), function).await.unwrap(), []);
    mapping.step(at(12), function).await.unwrap();
    assert_eq!(log.take(), [vec![6]]);
}

#[tokio::test]
async fn a_payload_has_at_most_6_mb() {
    let stream = stream(0);
    for number in 1..=20 {
        stream.push(&shard(), record(number, 0, &"x".repeat(400 * 1024))).unwrap();
    }
    let log = Log::default();
    let function = async |event: Value| Ok(json!(log.note(&event).len()));
    mapping(settings(), &stream).drain(at(0), 9, function).await.unwrap();
    // 6 MB / 400 KB = 15.4, with the frame of each record.
    assert_eq!(log.take().iter().map(Vec::len).collect::<Vec<_>>(), [15, 5]);
}

#[tokio::test]
async fn a_caller_can_cut_batches_and_failed_ones_are_cut_anew() {
    let mut cuts = [3, 0, 99, 2].into_iter().cycle();
    let mut mapping = mapping(StreamSettings { batch_size: 5, ..settings() }, &stream(12))
        .with_batch_cuts(move |_| cuts.next().unwrap_or(1));
    let log = Log::default();
    let function = async |event: Value| match log.note(&event).as_slice() {
        [4] => Err("boom".to_owned()),
        _ => Ok(Value::Null),
    };
    mapping.drain(at(0), 99, function).await.unwrap();
    let want = [vec![1, 2, 3], vec![4], vec![4, 5, 6, 7, 8], vec![9, 10], vec![11, 12]];
    assert_eq!(log.take(), want);
}
