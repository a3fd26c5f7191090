//! Records that are trimmed while a mapping stands still, and mappings that continue from their checkpoints.

use super::*;

fn one_by_one() -> StreamSettings {
    StreamSettings { batch_size: 1, ..settings() }
}

/// Steps until nothing is left, and returns the numbers that were delivered.
async fn delivered(mapping: &mut StreamMapping) -> Vec<u64> {
    let log = Log::default();
    let function = async |event: Value| {
        log.note(&event);
        Ok(Value::Null)
    };
    mapping.drain(at(0), 99, function).await.unwrap();
    log.take().concat()
}

#[tokio::test]
async fn a_mapping_goes_on_with_the_oldest_record_that_is_left() {
    let stream = InMemoryStream::new(ARN);
    stream.add_shard(shard(), None).unwrap();
    for number in 1..=4 {
        stream.push(&shard(), record(number, i64::try_from(number).unwrap(), "head")).unwrap();
    }
    let mut mapping = mapping(one_by_one(), &stream);
    mapping.step(at(0), async |_| Ok(Value::Null)).await.unwrap();
    mapping.resume_from_checkpoints();
    stream.trim_before(at(3));
    assert_eq!(delivered(&mut mapping).await, [3, 4]);
    stream.trim_before(at(9));
    mapping.resume_from_checkpoints();
    assert_eq!(delivered(&mut mapping).await, [0; 0]);
    stream.push(&shard(), record(5, 9, "head")).unwrap();
    assert_eq!(delivered(&mut mapping).await, [5]);
}

#[tokio::test]
async fn what_was_read_and_not_processed_is_read_again() {
    let stream = stream(3);
    let mut mapping = mapping(one_by_one(), &stream);
    let fails_at_two =
        async |event: Value| if numbers(&event) == [2] { Err("boom".to_owned()) } else { Ok(Value::Null) };
    mapping.drain(at(0), 3, fails_at_two).await.unwrap();
    mapping.resume_from_checkpoints();
    assert_eq!(checkpoint(&mapping), Some(1.into()));
    assert_eq!(delivered(&mut mapping).await, [2, 3]);
    // Before the first checkpoint, it begins with the oldest record.
    let mut other = StreamMapping::new(one_by_one(), stream).unwrap();
    other.step(at(0), async |_| Err("boom".to_owned())).await.unwrap();
    other.resume_from_checkpoints();
    assert_eq!(delivered(&mut other).await, [1, 2, 3]);
}

#[tokio::test]
async fn a_shard_that_the_stream_no_longer_has_is_forgotten_and_its_children_go_on() {
    let stream = stream(2);
    let mut mapping = mapping(one_by_one(), &stream);
    mapping.step(at(0), async |_| Ok(Value::Null)).await.unwrap();
    stream.split(&shard(), &["child".into()], at(0)).unwrap();
    stream.push(&"child".into(), record(9, 5, "head")).unwrap();
    stream.trim_before(at(1));
    // The records that the mapping has in hand are delivered first.
    assert_eq!(delivered(&mut mapping).await, [2, 9]);
    mapping.ready().await.unwrap();
    assert_eq!(mapping.checkpoints().into_keys().collect::<Vec<_>>(), ["child".into()]);
    // A mapping that continues from its checkpoints has nothing in hand.
    let mut late = StreamMapping::new(one_by_one(), stream).unwrap();
    assert_eq!(delivered(&mut late).await, [9]);
}
