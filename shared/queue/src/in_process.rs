//! A standard SQS queue in memory, for one machine and for tests.
//!
//! The queue implements these parts of the *Amazon SQS Developer Guide* and *API Reference*:
//! - A received message is invisible until its visibility timeout ends (*Amazon SQS visibility
//!   timeout*). Then it can be received again, with a new receipt handle and a higher count.
//! - Only the handle of the latest receive deletes a message, even after its timeout. An older handle
//!   succeeds and changes nothing (*DeleteMessage*).
//! - A message that was received `maxReceiveCount` times moves to the dead-letter queue at the next
//!   receive, with its id, content and sending time (*Using dead-letter queues in Amazon SQS*).
//!
//! The queue leaves out delays, retention, attributes, message groups, long polling, changes of the
//! visibility timeout and the limit of 120,000 messages in flight. Messages are received in the
//! order in which they became visible. Time is always an argument.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

/// The most messages of one receive.
pub const MAX_RECEIVED: usize = 10;

/// The largest message, in bytes of UTF-8.
pub const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// The most receives of a message that still counts as the oldest one.
const MOST_RECEIVES_OF_THE_OLDEST: u32 = 3;

/// SQS's default visibility timeout.
pub const DEFAULT_VISIBILITY_TIMEOUT: TimeDelta = TimeDelta::seconds(30);

/// A queue's settings.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// The queue's name, the last part of its ARN.
    pub name: String,
    /// Time for which a received message is hidden.
    pub visibility_timeout: TimeDelta,
    /// The limit of receives. Without it, an undeleted message is received again for ever.
    pub redrive_policy: Option<RedrivePolicy>,
}

impl QueueSettings {
    /// SQS's defaults: 30 seconds, no dead-letter queue.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), visibility_timeout: DEFAULT_VISIBILITY_TIMEOUT, redrive_policy: None }
    }
}

/// The limit of receives, and the queue for messages beyond it.
#[derive(Debug, Clone)]
pub struct RedrivePolicy {
    /// The most receives of a message: at least 1.
    pub max_receive_count: u32,
    /// The dead-letter queue.
    pub dead_letter_queue: Queue,
}

/// A message's id: a UUID that never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(Uuid);

impl std::fmt::Display for MessageId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// The handle of one receive of one message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReceiptHandle {
    message: MessageId,
    receive: u64,
}

impl std::fmt::Display for ReceiptHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.message, self.receive)
    }
}

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Its id.
    pub message_id: MessageId,
    /// The handle of this receive.
    pub receipt_handle: ReceiptHandle,
    /// Its text.
    pub body: String,
    /// The number of its receives, including this one.
    pub receive_count: u32,
    /// The time at which it was sent.
    pub sent_at: DateTime<Utc>,
    /// The time of its first receive.
    pub first_received_at: DateTime<Utc>,
}

/// The numbers of messages in a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that a receive may return (SQS: `ApproximateNumberOfMessages`).
    pub visible: usize,
    /// Received messages that are neither deleted nor visible again (SQS: `ApproximateNumberOfMessagesNotVisible`).
    pub in_flight: usize,
}

/// The reason why a queue rejects a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The message is empty.
    #[error("a message has at least 1 character")]
    Empty,
    /// The message is longer than [`MAX_MESSAGE_BYTES`].
    #[error("a message has at most {MAX_MESSAGE_BYTES} bytes, but this one has {0}")]
    TooLong(usize),
}

/// A queue. Its clones share its messages.
#[derive(Debug, Clone)]
pub struct Queue {
    settings: Arc<QueueSettings>,
    contents: Arc<Mutex<Contents>>,
}

#[derive(Debug, Default)]
struct Contents {
    sent: u64,
    receives: u64,
    messages: HashMap<MessageId, Message>,
    visible: VecDeque<MessageId>,
    /// By the time at which they become visible again, then by the order of receives.
    in_flight: BTreeMap<(DateTime<Utc>, u64), MessageId>,
}

#[derive(Debug)]
struct Message {
    body: String,
    sent_at: DateTime<Utc>,
    first_received_at: Option<DateTime<Utc>>,
    receive_count: u32,
    /// The number of the latest receive, and the end of its timeout.
    latest: Option<(u64, DateTime<Utc>)>,
}

/// The namespace of message ids.
const NAMESPACE: Uuid = Uuid::from_u128(0x0c4f_5a2e_77d1_4a0f_9b35_52a8_e6c3_1d90);

impl Queue {
    /// Creates an empty queue.
    pub fn new(settings: QueueSettings) -> Self {
        Self { settings: Arc::new(settings), contents: Arc::default() }
    }

    /// The queue's settings.
    pub fn settings(&self) -> &QueueSettings {
        &self.settings
    }

    /// Adds a message, which is visible at once.
    pub fn send(&self, body: impl Into<String>, now: DateTime<Utc>) -> Result<MessageId, SendError> {
        let body = body.into();
        match body.len() {
            0 => return Err(SendError::Empty),
            1..=MAX_MESSAGE_BYTES => {}
            bytes => return Err(SendError::TooLong(bytes)),
        }
        Ok(self.put_new(body, now))
    }

    fn put_new(&self, body: String, now: DateTime<Utc>) -> MessageId {
        let mut contents = self.contents();
        contents.sent += 1;
        let name = format!("{}/{}", self.settings.name, contents.sent);
        let id = MessageId(Uuid::new_v5(&NAMESPACE, name.as_bytes()));
        contents.put(id, body, now);
        id
    }

    /// Receives up to `max` messages, at most [`MAX_RECEIVED`], and hides them until the visibility timeout ends.
    #[must_use = "received messages are hidden until their visibility timeout ends"]
    pub fn receive(&self, max: usize, now: DateTime<Utc>) -> Vec<Received> {
        let mut dead = Vec::new();
        let mut received = Vec::new();
        {
            let mut contents = self.contents();
            contents.surface(now);
            while received.len() < max.min(MAX_RECEIVED)
                && let Some(id) = contents.visible.pop_front()
            {
                let limit = self.settings.redrive_policy.as_ref().map(|policy| policy.max_receive_count);
                let is_dead = |message: &Message| limit.is_some_and(|limit| message.receive_count >= limit);
                if contents.messages.get(&id).is_some_and(is_dead) {
                    dead.extend(contents.messages.remove(&id).map(|message| (id, message)));
                } else {
                    received.extend(contents.receive(id, now, self.settings.visibility_timeout));
                }
            }
        }
        // Only after this queue's lock is dropped: a dead-letter queue may be read at the same time.
        if let Some(policy) = &self.settings.redrive_policy {
            let mut contents = policy.dead_letter_queue.contents();
            dead.into_iter().for_each(|(id, message)| contents.put(id, message.body, message.sent_at));
        }
        received
    }

    /// Receives up to [`MAX_RECEIVED`] messages that are visible again at once, as with a visibility timeout of zero.
    pub fn sample(&self, now: DateTime<Utc>) -> Vec<Received> {
        let mut contents = self.contents();
        contents.surface(now);
        let most = contents.visible.len().min(MAX_RECEIVED);
        let ids: Vec<_> = contents.visible.drain(..most).collect();
        ids.into_iter().filter_map(|id| contents.receive(id, now, TimeDelta::zero())).collect()
    }

    /// Moves all visible messages to another queue, where each is a new one
    /// (*StartMessageMoveTask*). SQS does so in the background.
    pub fn move_all_to(&self, other: &Self, now: DateTime<Utc>) {
        let bodies: Vec<_> = {
            let mut contents = self.contents();
            contents.surface(now);
            let ids: Vec<_> = contents.visible.drain(..).collect();
            ids.iter().filter_map(|id| contents.messages.remove(id)).map(|message| message.body).collect()
        };
        for body in bodies {
            other.put_new(body, now);
        }
    }

    /// Deletes a message by the handle of its latest receive. As in SQS, any other handle is accepted
    /// and changes nothing. Returns whether the message was deleted.
    pub fn delete(&self, receipt: &ReceiptHandle) -> bool {
        let mut contents = self.contents();
        let latest = contents.messages.get(&receipt.message).and_then(|message| message.latest);
        let Some((receive, until)) = latest.filter(|(receive, _)| *receive == receipt.receive) else { return false };
        contents.messages.remove(&receipt.message);
        if contents.in_flight.remove(&(until, receive)).is_none() {
            contents.visible.retain(|id| *id != receipt.message);
        }
        true
    }

    /// Returns the numbers of messages in the queue.
    pub fn counts(&self, now: DateTime<Utc>) -> Counts {
        let mut contents = self.contents();
        contents.surface(now);
        Counts { visible: contents.visible.len(), in_flight: contents.in_flight.len() }
    }

    /// Returns the time at which the oldest message was sent (SQS: `ApproximateAgeOfOldestMessage`). A message that was
    /// received more than three times is not counted: SQS moves it to the back of the queue (*Available CloudWatch
    /// metrics for Amazon SQS*).
    pub fn oldest_sent_at(&self) -> Option<DateTime<Utc>> {
        let contents = self.contents();
        let counted = contents.messages.values().filter(|message| message.receive_count <= MOST_RECEIVES_OF_THE_OLDEST);
        counted.map(|message| message.sent_at).min()
    }

    /// The contents. A panic in a method leaves them whole, so a poisoned lock does no harm.
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn put(&mut self, id: MessageId, body: String, sent_at: DateTime<Utc>) {
        let message = Message { body, sent_at, first_received_at: None, receive_count: 0, latest: None };
        self.messages.insert(id, message);
        self.visible.push_back(id);
    }

    /// Makes messages visible whose timeout has ended.
    fn surface(&mut self, now: DateTime<Utc>) {
        while let Some(entry) = self.in_flight.first_entry()
            && entry.key().0 <= now
        {
            self.visible.push_back(entry.remove());
        }
    }

    fn receive(&mut self, id: MessageId, now: DateTime<Utc>, timeout: TimeDelta) -> Option<Received> {
        let message = self.messages.get_mut(&id)?;
        self.receives += 1;
        message.receive_count += 1;
        message.latest = Some((self.receives, now + timeout));
        self.in_flight.insert((now + timeout, self.receives), id);
        Some(Received {
            message_id: id,
            receipt_handle: ReceiptHandle { message: id, receive: self.receives },
            body: message.body.clone(),
            receive_count: message.receive_count,
            sent_at: message.sent_at,
            first_received_at: *message.first_received_at.get_or_insert(now),
        })
    }
}

#[cfg(test)]
mod tests;
