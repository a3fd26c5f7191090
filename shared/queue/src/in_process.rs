//! A standard SQS queue in memory, for one machine and for tests.
//!
//! What SQS documents and this does (*Amazon SQS Developer Guide* and *API Reference*):
//! - a received message is invisible until its visibility timeout ends (*Amazon SQS visibility
//!   timeout*) and then comes again, with a new receipt handle and its count raised;
//! - only the handle of the latest receive deletes a message; an older one succeeds and changes
//!   nothing, and the latest one works also after its timeout (*DeleteMessage*);
//! - a message received more than `maxReceiveCount` times moves to the dead-letter queue instead,
//!   with its id, content and sending time (*Using dead-letter queues in Amazon SQS*). The move
//!   happens at the receive that would have been one too many.
//!
//! What SQS has and this has not: delays, retention, attributes, long polling, the limit of 120,000
//! in flight, and disorder: messages come in the order in which they became visible. Time is always
//! an argument.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

/// The most messages that one receive returns.
pub const MAX_RECEIVED: usize = 10;

/// The largest message, in bytes of UTF-8.
pub const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// The longest visibility timeout.
pub const MAX_VISIBILITY_TIMEOUT: TimeDelta = TimeDelta::hours(12);

/// SQS's visibility timeout where none is set.
pub const DEFAULT_VISIBILITY_TIMEOUT: TimeDelta = TimeDelta::seconds(30);

/// How a queue behaves.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// The queue's name, the last part of its ARN.
    pub name: String,
    /// How long a received message is hidden: 0 to [`MAX_VISIBILITY_TIMEOUT`].
    pub visibility_timeout: TimeDelta,
    /// Where messages go that are received too often; without it they come again for ever.
    pub redrive_policy: Option<RedrivePolicy>,
}

impl QueueSettings {
    /// SQS's defaults: 30 seconds, no dead letters.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), visibility_timeout: DEFAULT_VISIBILITY_TIMEOUT, redrive_policy: None }
    }
}

/// When a message is given up, and where it goes.
#[derive(Debug, Clone)]
pub struct RedrivePolicy {
    /// How often a message is received at most, at least 1.
    pub max_receive_count: u32,
    /// The dead-letter queue.
    pub dead_letter_queue: Queue,
}

/// A message's id: a UUID, the same for as long as the message exists.
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

/// A message as it is received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Its id.
    pub message_id: MessageId,
    /// The handle of this receive.
    pub receipt_handle: ReceiptHandle,
    /// Its text.
    pub body: String,
    /// How often it has been received, this time included.
    pub receive_count: u32,
    /// When it was sent.
    pub sent_at: DateTime<Utc>,
    /// When it was received for the first time.
    pub first_received_at: DateTime<Utc>,
}

/// How many messages a queue holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that a receive may return (SQS: `ApproximateNumberOfMessages`).
    pub visible: usize,
    /// Those that were received and neither deleted nor visible again
    /// (SQS: `ApproximateNumberOfMessagesNotVisible`).
    pub in_flight: usize,
}

/// A message that the queue does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// SQS takes at least one character.
    #[error("a message has at least 1 character")]
    Empty,
    /// Longer than [`MAX_MESSAGE_BYTES`].
    #[error("a message has at most {MAX_MESSAGE_BYTES} bytes, this one has {0}")]
    TooLong(usize),
}

/// A visibility timeout that cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VisibilityError {
    /// The message is deleted, visible again, or received by somebody else since.
    #[error("the message is not in flight under this receipt handle")]
    MessageNotInflight,
    /// Less than 0 or more than [`MAX_VISIBILITY_TIMEOUT`].
    #[error("a visibility timeout is 0 to 12 hours")]
    Timeout,
}

/// A queue; clones share it.
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
    /// By the time at which they become visible again, then by the order of receiving.
    in_flight: BTreeMap<(DateTime<Utc>, u64), MessageId>,
}

#[derive(Debug)]
struct Message {
    body: String,
    sent_at: DateTime<Utc>,
    first_received_at: Option<DateTime<Utc>>,
    receive_count: u32,
    /// The number of the latest receive, and when it ends.
    latest: Option<(u64, DateTime<Utc>)>,
}

/// The namespace of message ids.
const NAMESPACE: Uuid = Uuid::from_u128(0x0c4f_5a2e_77d1_4a0f_9b35_52a8_e6c3_1d90);

impl Queue {
    /// An empty queue.
    #[must_use]
    pub fn new(settings: QueueSettings) -> Self {
        Self { settings: Arc::new(settings), contents: Arc::default() }
    }

    /// The queue's settings.
    #[must_use]
    pub fn settings(&self) -> &QueueSettings {
        &self.settings
    }

    /// Takes a message, visible at once.
    ///
    /// # Errors
    /// [`SendError`], as SQS's own limits.
    pub fn send(&self, body: impl Into<String>, now: DateTime<Utc>) -> Result<MessageId, SendError> {
        let body = body.into();
        match body.len() {
            0 => return Err(SendError::Empty),
            1..=MAX_MESSAGE_BYTES => {}
            bytes => return Err(SendError::TooLong(bytes)),
        }
        let mut contents = self.contents();
        contents.sent += 1;
        let name = format!("{}/{}", self.settings.name, contents.sent);
        let id = MessageId(Uuid::new_v5(&NAMESPACE, name.as_bytes()));
        contents.put(id, body, now);
        Ok(id)
    }

    /// Up to `max` messages, at most [`MAX_RECEIVED`], hidden until the visibility timeout ends.
    #[must_use = "what is received is hidden until its visibility timeout ends"]
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
                let worn = |message: &Message| limit.is_some_and(|limit| message.receive_count >= limit);
                if contents.messages.get(&id).is_some_and(worn) {
                    dead.extend(contents.messages.remove(&id).map(|message| (id, message)));
                } else {
                    received.extend(contents.take(id, now, self.settings.visibility_timeout));
                }
            }
        }
        // After this queue's lock is gone: a dead-letter queue may be read at the same time.
        if let Some(policy) = &self.settings.redrive_policy {
            let mut contents = policy.dead_letter_queue.contents();
            dead.into_iter().for_each(|(id, message)| contents.put(id, message.body, message.sent_at));
        }
        received
    }

    /// Deletes a message by the handle of its latest receive. Any other handle is accepted and
    /// changes nothing, as in SQS; the answer says which it was.
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

    /// Hides a message that is in flight for `timeout` from now; zero makes it visible at once.
    ///
    /// # Errors
    /// [`VisibilityError`].
    pub fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        timeout: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<(), VisibilityError> {
        if !(TimeDelta::zero()..=MAX_VISIBILITY_TIMEOUT).contains(&timeout) {
            return Err(VisibilityError::Timeout);
        }
        let mut contents = self.contents();
        contents.surface(now);
        let message = contents.messages.get_mut(&receipt.message).ok_or(VisibilityError::MessageNotInflight)?;
        let (receive, until) = message.latest.ok_or(VisibilityError::MessageNotInflight)?;
        if receive != receipt.receive || until <= now {
            return Err(VisibilityError::MessageNotInflight);
        }
        let later = now + timeout;
        message.latest = Some((receive, later));
        contents.in_flight.remove(&(until, receive));
        contents.in_flight.insert((later, receive), receipt.message);
        Ok(())
    }

    /// How many messages the queue holds.
    #[must_use]
    pub fn counts(&self, now: DateTime<Utc>) -> Counts {
        let mut contents = self.contents();
        contents.surface(now);
        Counts { visible: contents.visible.len(), in_flight: contents.in_flight.len() }
    }

    /// The contents; a panic elsewhere leaves them as whole as any of these methods does.
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

    /// Makes everything visible whose timeout has ended.
    fn surface(&mut self, now: DateTime<Utc>) {
        while let Some(entry) = self.in_flight.first_entry()
            && entry.key().0 <= now
        {
            self.visible.push_back(entry.remove());
        }
    }

    fn take(&mut self, id: MessageId, now: DateTime<Utc>, timeout: TimeDelta) -> Option<Received> {
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
