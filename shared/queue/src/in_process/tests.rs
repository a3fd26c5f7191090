//! The rules of a standard SQS queue, one per test.

use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_000 + seconds, 0).unwrap()
}

fn queue(seconds: i64) -> Queue {
    Queue::new(QueueSettings { visibility_timeout: TimeDelta::seconds(seconds), ..QueueSettings::named("work") })
}

fn bodies(received: &[Received]) -> Vec<&str> {
    received.iter().map(|message| message.body.as_str()).collect()
}

fn counts(visible: usize, in_flight: usize) -> Counts {
    Counts { visible, in_flight }
}

#[test]
fn a_received_message_is_hidden_until_its_timeout_ends() {
    let queue = queue(30);
    let id = queue.send("a", at(0)).unwrap();
    let first = queue.receive(10, at(1));
    assert_eq!(bodies(&first), ["a"]);
    assert_eq!((first[0].receive_count, first[0].sent_at, first[0].first_received_at), (1, at(0), at(1)));
    assert_eq!(queue.counts(at(30)), counts(0, 1));
    assert!(queue.receive(10, at(30)).is_empty());
    let second = queue.receive(10, at(31));
    assert_eq!((second[0].receive_count, second[0].message_id), (2, id));
    assert_eq!((second[0].sent_at, second[0].first_received_at), (at(0), at(1)));
    assert_ne!(first[0].receipt_handle, second[0].receipt_handle);
}

#[test]
fn the_oldest_message_is_one_that_was_not_received_often() {
    let queue = queue(30);
    assert_eq!(queue.oldest_sent_at(), None);
    queue.send("a", at(0)).unwrap();
    for receive in 1..=3 {
        assert_eq!(bodies(&queue.receive(1, at(receive * 60))), ["a"]);
        assert_eq!(queue.oldest_sent_at(), Some(at(0)), "{receive}");
    }
    queue.send("b", at(200)).unwrap();
    assert_eq!(queue.receive(2, at(300)).len(), 2);
    assert_eq!(queue.oldest_sent_at(), Some(at(200)), "the other was received four times");
}

#[test]
fn a_receive_returns_ten_at_most() {
    let queue = queue(30);
    for number in 0..25 {
        queue.send(number.to_string(), at(0)).unwrap();
    }
    assert_eq!(bodies(&queue.receive(3, at(0))), ["0", "1", "2"]);
    assert_eq!(queue.receive(100, at(0)).len(), MAX_RECEIVED);
    assert!(queue.receive(0, at(0)).is_empty());
    assert_eq!(queue.counts(at(0)), counts(12, 13));
}

#[test]
fn the_latest_handle_deletes_even_after_its_timeout() {
    let queue = queue(30);
    queue.send("a", at(0)).unwrap();
    queue.send("b", at(0)).unwrap();
    let received = queue.receive(10, at(0));
    assert!(queue.delete(&received[0].receipt_handle));
    assert!(!queue.delete(&received[0].receipt_handle), "already deleted");
    // The timeout has ended, and the message was not received again.
    assert_eq!(queue.counts(at(40)), counts(1, 0));
    assert!(queue.delete(&received[1].receipt_handle));
    assert_eq!(queue.counts(at(40)), counts(0, 0));
}

#[test]
fn an_older_handle_deletes_nothing() {
    let queue = queue(30);
    queue.send("a", at(0)).unwrap();
    let first = queue.receive(1, at(0)).remove(0);
    let second = queue.receive(1, at(30)).remove(0);
    assert!(!queue.delete(&first.receipt_handle));
    assert_eq!(queue.counts(at(30)), counts(0, 1));
    assert!(queue.delete(&second.receipt_handle));
    assert_eq!(queue.counts(at(99)), counts(0, 0));
}

#[test]
fn a_message_received_too_often_moves_with_its_content() {
    let dead_letter_queue = Queue::new(QueueSettings::named("work-dead"));
    let redrive_policy = RedrivePolicy { max_receive_count: 2, dead_letter_queue: dead_letter_queue.clone() };
    let queue = Queue::new(QueueSettings { redrive_policy: Some(redrive_policy), ..QueueSettings::named("work") });
    let id = queue.send("poison", at(0)).unwrap();
    queue.send("good", at(5)).unwrap();
    assert_eq!(bodies(&queue.receive(10, at(10))), ["poison", "good"]);
    assert_eq!(bodies(&queue.receive(10, at(40))), ["poison", "good"]);
    assert_eq!(dead_letter_queue.counts(at(70)), counts(0, 0), "it moves at the next receive");
    assert!(queue.receive(10, at(70)).is_empty());
    assert_eq!(queue.counts(at(70)), counts(0, 0));
    let dead = dead_letter_queue.receive(10, at(71));
    assert_eq!(bodies(&dead), ["poison", "good"]);
    assert_eq!((dead[0].message_id, dead[0].sent_at, dead[0].receive_count), (id, at(0), 1));
}

#[test]
fn a_receive_passes_over_dead_messages() {
    let dead_letter_queue = Queue::new(QueueSettings::named("work-dead"));
    let redrive_policy = Some(RedrivePolicy { max_receive_count: 1, dead_letter_queue });
    let queue = Queue::new(QueueSettings { redrive_policy, ..QueueSettings::named("work") });
    queue.send("poison", at(0)).unwrap();
    assert_eq!(queue.receive(1, at(0)).len(), 1);
    assert_eq!(queue.counts(at(30)), counts(1, 0));
    queue.send("good", at(30)).unwrap();
    assert_eq!(bodies(&queue.receive(1, at(30))), ["good"]);
}

#[test]
fn empty_and_long_messages_are_rejected() {
    let queue = queue(30);
    assert_eq!(queue.send("", at(0)), Err(SendError::Empty));
    let long = "x".repeat(MAX_MESSAGE_BYTES + 1);
    assert_eq!(queue.send(long, at(0)), Err(SendError::TooLong(MAX_MESSAGE_BYTES + 1)));
}

#[test]
fn clones_share_messages_and_ids_are_unique() {
    let queue = queue(30);
    let clone = queue.clone();
    let ids: std::collections::BTreeSet<_> = (0..100).map(|_| clone.send("same", at(0)).unwrap()).collect();
    assert_eq!(ids.len(), 100);
    assert_eq!(queue.counts(at(0)), counts(100, 0));
}

proptest::proptest! {
    /// After any steps, every message is exactly once deleted, in the queue or dead.
    #[test]
    fn every_message_is_in_one_place(steps in proptest::collection::vec((0_u8..4, 0_usize..4, 0_i64..20), 1..80)) {
        let dead_letter_queue = Queue::new(QueueSettings::named("dead"));
        let policy = RedrivePolicy { max_receive_count: 3, dead_letter_queue: dead_letter_queue.clone() };
        let queue = Queue::new(QueueSettings {
            name: "work".to_owned(),
            visibility_timeout: TimeDelta::seconds(7),
            redrive_policy: Some(policy),
        });
        let mut now = 0;
        let mut sent = 0_usize;
        let mut deleted = 0_usize;
        let mut handles = Vec::new();
        for (what, index, seconds) in steps {
            now += seconds;
            match what {
                0 | 1 => { queue.send("m", at(now))?; sent += 1; }
                2 => handles.extend(queue.receive(index, at(now)).into_iter().map(|m| m.receipt_handle)),
                _ => if let Some(handle) = handles.get(index) { deleted += usize::from(queue.delete(handle)); },
            }
            let (here, dead) = (queue.counts(at(now)), dead_letter_queue.counts(at(now)));
            proptest::prop_assert_eq!(here.visible + here.in_flight + dead.visible + deleted, sent);
        }
    }
}

#[test]
fn a_sample_leaves_messages_where_they_are() {
    let queue = queue(30);
    for number in 0..12 {
        queue.send(number.to_string(), at(0)).unwrap();
    }
    let first = queue.sample(at(1));
    assert_eq!((first.len(), first[0].receive_count, first[0].sent_at), (10, 1, at(0)));
    assert_eq!(queue.counts(at(1)), counts(12, 0));
    // Messages that were not sampled come first.
    assert_eq!(bodies(&queue.sample(at(1)))[..2], ["10", "11"]);
    assert_eq!(queue.receive(10, at(1)).len(), 10);
}

#[test]
fn what_is_visible_moves_to_another_queue_as_new_messages() {
    let (from, to) = (queue(30), Queue::new(QueueSettings::named("source")));
    let old = ["a", "b", "c"].map(|body| from.send(body, at(0)).unwrap());
    assert_eq!(bodies(&from.receive(1, at(1))), ["a"]);
    from.move_all_to(&to, at(2));
    assert_eq!((from.counts(at(2)), to.counts(at(2))), (counts(0, 1), counts(2, 0)));
    let moved = to.receive(10, at(3));
    assert_eq!(bodies(&moved), ["b", "c"]);
    assert!(moved.iter().all(|message| message.sent_at == at(2) && message.receive_count == 1));
    assert!(moved.iter().all(|message| !old.contains(&message.message_id)));
}
