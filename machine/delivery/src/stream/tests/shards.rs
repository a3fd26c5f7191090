//! Several shards are independent of each other, and children come after their parents.

use super::*;

/// Shards `a` and `b` with records 1 and 2 in each.
fn two_shards() -> InMemoryStream {
    let stream = InMemoryStream::new(ARN);
    for id in ["a", "b"] {
        stream.add_shard(id.into(), None).unwrap();
        for number in [1, 2] {
            stream.push(&id.into(), record(number, 0, id)).unwrap();
        }
    }
    stream
}

/// Returns the kind of an event's records, which is their shard.
fn kind(event: &Value) -> String {
    event["Records"][0]["dynamodb"]["NewImage"]["kind"]["S"].as_str().unwrap_or("end").to_owned()
}

fn one_by_one() -> StreamSettings {
    StreamSettings { batch_size: 1, ..settings() }
}

#[tokio::test]
async fn a_failing_shard_blocks_no_other() {
    let mut mapping = mapping(one_by_one(), &two_shards());
    let function = async |event: Value| if kind(&event) == "a" { Err("boom".to_owned()) } else { Ok(Value::Null) };
    for _ in 0..3 {
        mapping.step(at(0), function).await.unwrap();
    }
    let checkpoints = mapping.checkpoints();
    assert_eq!(checkpoints[&"a".into()], None);
    assert_eq!(checkpoints[&"b".into()], Some(2.into()));
}

#[tokio::test]
async fn parents_are_finished_before_their_children() {
    let stream = two_shards();
    stream.split(&"a".into(), &["a1".into(), "a2".into()], at(0)).unwrap();
    for id in ["a1", "a2"] {
        stream.push(&id.into(), record(9, 0, id)).unwrap();
    }
    let mut mapping = mapping(one_by_one(), &stream);
    let log = RefCell::new(Vec::new());
    let failing = async |event: Value| {
        log.borrow_mut().push(kind(&event));
        if kind(&event) == "a" { Err("boom".to_owned()) } else { Ok(Value::Null) }
    };
    mapping.drain(at(0), 5, failing).await.unwrap();
    assert_eq!(log.take(), ["a", "b", "a", "b", "a", "a", "a"]);
    let working = async |event: Value| {
        log.borrow_mut().push(kind(&event));
        Ok(Value::Null)
    };
    mapping.drain(at(0), 9, working).await.unwrap();
    assert_eq!(log.take(), ["a", "a", "a1", "a2"]);
    assert_eq!(mapping.ready().await.unwrap(), ["b".into(), "a1".into(), "a2".into()], "a is finished");
}

#[tokio::test]
async fn a_child_whose_parent_is_trimmed_is_read_at_once() {
    let stream = InMemoryStream::new(ARN);
    stream.add_shard("child".into(), Some("long-gone".into())).unwrap();
    stream.push(&"child".into(), record(1, 0, "child")).unwrap();
    let done = mapping(settings(), &stream).drain(at(0), 9, async |_| Ok(Value::Null)).await.unwrap();
    assert_eq!(outcomes(done), [DeliveryOutcome::Succeeded]);
}

#[tokio::test]
async fn the_end_of_a_shard_ends_its_window_before_the_children_begin() {
    let stream = two_shards();
    stream.split(&"a".into(), &["a1".into()], at(0)).unwrap();
    stream.push(&"a1".into(), record(9, 0, "a1")).unwrap();
    let settings = StreamSettings { tumbling_window: Some(TimeDelta::seconds(300)), ..settings() };
    let mut mapping = mapping(settings, &stream);
    let log = RefCell::new(Vec::new());
    let function = async |event: Value| {
        let shard = event["shardId"].as_str().unwrap().to_owned();
        log.borrow_mut().push((shard, kind(&event), event["state"].clone()));
        Ok(json!({"state": {"seen": kind(&event)}}))
    };
    mapping.drain(at(0), 9, function).await.unwrap();
    let seen = |shard: &str, kind: &str, state: Value| (shard.to_owned(), kind.to_owned(), state);
    let want = [
        seen("a", "a", json!({})),
        seen("b", "b", json!({})),
        seen("a", "end", json!({"seen": "a"})),
        seen("a1", "a1", json!({})),
    ];
    assert_eq!(log.take(), want);
}

#[tokio::test]
async fn a_caller_can_step_shards_in_any_order() {
    let mut mapping = mapping(one_by_one(), &two_shards());
    let (a, b): (ShardId, ShardId) = ("a".into(), "b".into());
    let unknown = mapping.step_shard(&a, at(0), async |_| Ok(Value::Null)).await;
    assert!(matches!(unknown, Err(SourceError::NoShard(_))), "not found yet");
    assert_eq!(mapping.ready().await.unwrap(), [a.clone(), b.clone()]);
    let log = RefCell::new(Vec::new());
    let function = async |event: Value| {
        log.borrow_mut().push(kind(&event));
        Ok(Value::Null)
    };
    for shard in [&b, &b, &a, &b] {
        mapping.step_shard(shard, at(0), function).await.unwrap();
    }
    assert_eq!(log.take(), ["b", "b", "a"]);
}
