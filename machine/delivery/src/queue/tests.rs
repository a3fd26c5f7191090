//! Queue mappings, message by message.

use std::cell::RefCell;

use aws_lambda_events::event::sqs::SqsEvent;
use payments_queue::in_process::{Counts, QueueSettings, RedrivePolicy};

use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_000 + seconds, 0).unwrap()
}

/// A queue with bodies in it, visible again after 30 s, dead after three receives.
fn queue(bodies: &[&str]) -> (Queue, Queue) {
    let dead_letter_queue = Queue::new(QueueSettings::named("results-dead"));
    let policy = RedrivePolicy { max_receive_count: 3, dead_letter_queue: dead_letter_queue.clone() };
    let settings = QueueSettings { redrive_policy: Some(policy), ..QueueSettings::named("results") };
    let queue = Queue::new(settings);
    for body in bodies {
        queue.send(*body, at(0)).unwrap();
    }
    (queue, dead_letter_queue)
}

fn reporting(queue: &Queue) -> QueueMapping {
    let settings = QueueMappingSettings { report_batch_item_failures: true, ..Default::default() };
    QueueMapping::new(settings, queue.clone())
}

/// Returns the response of a function that fails on the bodies that start with `x`.
fn failing_on_x(event: &Value) -> Value {
    let records = event["Records"].as_array().unwrap().iter();
    let poison = records.filter(|record| record["body"].as_str().unwrap().starts_with('x'));
    json!({"batchItemFailures": poison.map(|record| json!({"itemIdentifier": record["messageId"]})).collect::<Vec<_>>()})
}

fn delivered(messages: usize, deleted: usize, error: Option<&str>) -> Option<QueueDelivery> {
    Some(QueueDelivery { messages, deleted, error: error.map(str::to_owned) })
}

#[tokio::test]
async fn the_event_has_the_shape_of_lambda_s() {
    let (queue, _) = queue(&["{\"a\": 1}"]);
    drop(queue.receive(1, at(1)));
    let seen = RefCell::new(Value::Null);
    let function = async |event| {
        *seen.borrow_mut() = event;
        Ok(json!({}))
    };
    assert_eq!(reporting(&queue).step(at(40), function).await, delivered(1, 1, None));
    let event: SqsEvent = serde_json::from_value(seen.take()).unwrap();
    let record = &event.records[0];
    assert_eq!(record.body.as_deref(), Some("{\"a\": 1}"));
    assert_eq!(record.event_source_arn.as_deref(), Some("arn:aws:sqs:local:000000000000:results"));
    let attribute = |name: &str| record.attributes[name].as_str();
    assert_eq!(attribute("ApproximateReceiveCount"), "2");
    assert_eq!(attribute("SentTimestamp"), "1796000000000");
    assert_eq!(attribute("ApproximateFirstReceiveTimestamp"), "1796000001000");
}

#[tokio::test]
async fn only_failed_messages_are_received_again_and_end_in_the_dead_letter_queue() {
    let (queue, dead) = queue(&["a", "x-poison", "b"]);
    let mapping = reporting(&queue);
    let function = async |event: Value| Ok(failing_on_x(&event));
    assert_eq!(mapping.step(at(0), function).await, delivered(3, 2, None));
    assert_eq!(mapping.step(at(29), function).await, None, "hidden until its timeout ends");
    assert_eq!(mapping.step(at(30), function).await, delivered(1, 0, None));
    assert_eq!(mapping.step(at(60), function).await, delivered(1, 0, None));
    assert_eq!(mapping.step(at(90), function).await, None);
    assert_eq!(queue.counts(at(90)), Counts::default());
    assert_eq!(dead.receive(10, at(90))[0].body, "x-poison");
}

#[tokio::test]
async fn an_error_or_an_invalid_response_fails_all() {
    let unknown = json!({"batchItemFailures": [{"itemIdentifier": "stranger"}]});
    let why = "batchItemFailures names an item that is not of the batch";
    for (answer, error) in [(Err("boom".to_owned()), "boom"), (Ok(unknown), why)] {
        let (queue, _) = queue(&["a", "b"]);
        let step = reporting(&queue).step(at(0), async |_| answer.clone()).await;
        assert_eq!(step, delivered(2, 0, Some(error)));
        assert_eq!(queue.counts(at(0)), Counts { visible: 0, in_flight: 2 });
        assert_eq!(queue.counts(at(30)), Counts { visible: 2, in_flight: 0 });
    }
}

#[tokio::test]
async fn without_the_setting_a_response_is_not_read() {
    let (queue, _) = queue(&["a", "x"]);
    let mapping = QueueMapping::new(QueueMappingSettings::default(), queue.clone());
    let step = mapping.step(at(0), async |event: Value| Ok(failing_on_x(&event))).await;
    assert_eq!(step, delivered(2, 2, None));
}

#[tokio::test]
async fn batches_are_filled_by_receives_of_ten() {
    let bodies: Vec<String> = (0..37).map(|n| n.to_string()).collect();
    let (queue, _) = queue(&bodies.iter().map(String::as_str).collect::<Vec<_>>());
    let settings = QueueMappingSettings { batch_size: 25, report_batch_item_failures: true, ..Default::default() };
    let mapping = QueueMapping::new(settings, queue);
    let function = async |_| Ok(Value::Null);
    assert_eq!(mapping.step(at(0), function).await, delivered(25, 25, None));
    assert_eq!(mapping.step(at(0), function).await, delivered(12, 12, None));
    assert_eq!(mapping.step(at(0), function).await, None);
}

#[tokio::test]
async fn a_message_that_was_received_again_is_not_deleted() {
    let (queue, _) = queue(&["a"]);
    let other = queue.clone();
    let slow = async |_| {
        assert_eq!(other.receive(1, at(31)).len(), 1, "another poller receives it");
        Ok(Value::Null)
    };
    assert_eq!(reporting(&queue).step(at(0), slow).await, delivered(1, 0, None));
    assert_eq!(queue.counts(at(31)), Counts { visible: 0, in_flight: 1 });
}

#[tokio::test]
async fn a_killed_function_leaves_its_messages_in_flight() {
    let (queue, _) = queue(&["a"]);
    let mapping = reporting(&queue);
    let killed = tokio::select! {
        biased;
        _ = mapping.step(at(0), async |_| std::future::pending().await) => false,
        () = std::future::ready(()) => true,
    };
    assert!(killed);
    assert_eq!(queue.counts(at(0)), Counts { visible: 0, in_flight: 1 });
    assert_eq!(queue.counts(at(30)), Counts { visible: 1, in_flight: 0 });
}
