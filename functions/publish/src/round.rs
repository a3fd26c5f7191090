//! A round of deliveries: an endpoint's next events, divided by payment into bodies that are sent at once.

use std::collections::HashMap;
use std::fmt::Write as _;

use bytes::Bytes;
use payments_model::webhook::{EndpointId, MessageId};
use payments_model::{EventFields, EventFilter, UtcSecond};
use payments_store::{BlockingEvent, LogEntry, LogHead, LogPosition, LogRead, Store, StoreError};
use sha2::{Digest as _, Sha256};

/// The most bodies in flight to one endpoint.
pub const MAX_BODIES: usize = 8;

/// The most bytes of the events of a body. Most receivers take a megabyte, and some take only 256 KB.
pub const MAX_BODY_BYTES: usize = 250 * 1024;

/// The most events of a round: eight bodies of about 45 KB.
pub const MAX_EVENTS: u16 = 1_000;

/// Number of events that a body gets before another body is begun.
const EVENTS_PER_BODY: usize = 16;

/// The most segments that one read of the log asks DynamoDB for. A segment has from one to a thousand events.
const SEGMENTS: u8 = 12;

/// The most reads of the log in one round. If the filter rejects all events, the place still moves after
/// this many reads.
const MAX_CALLS: usize = 4;

/// An event of a round.
#[derive(Debug)]
struct Picked {
    event_id: String,
    before: LogPosition,
    after: LogPosition,
    body: usize,
}

/// A body.
#[derive(Debug, Default)]
struct Draft {
    events: Vec<String>,
    ids: Vec<String>,
    bytes: usize,
}

/// A body to send.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) message: MessageId,
    pub(crate) json: Bytes,
}

/// The next events of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Round {
    picked: Vec<Picked>,
    drafts: Vec<Draft>,
    of_payment: HashMap<String, usize>,
}

/// The events after a place.
#[derive(Debug)]
pub(crate) enum Next {
    /// The round, which may have no events, the place after it, and whether the log ends there.
    Round(Round, LogPosition, bool),
    /// The events at the place have expired. The log begins at the given place.
    Expired(LogPosition),
    /// The log does not have the place.
    Beyond,
}

/// The part of a round that was accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// The place before the first event that was not accepted.
    pub(crate) to: LogPosition,
    /// The number of events before that place.
    pub(crate) events: usize,
    /// The first event that was not accepted.
    pub(crate) blocking: BlockingEvent,
}

impl Round {
    /// Reads the next events of an endpoint, at most `at_once` that pass its filter.
    pub(crate) async fn read(
        store: &Store,
        head: &LogHead,
        from: LogPosition,
        filter: &EventFilter,
        at_once: usize,
        now: UtcSecond,
    ) -> Result<Next, StoreError> {
        let (mut round, mut at) = (Self::default(), from);
        for _ in 0..MAX_CALLS {
            // A probe needs one event, and reads no more than the segment that has it.
            let segments = if at_once < EVENTS_PER_BODY { 1 } else { SEGMENTS };
            let page = match store.log_page(head, at, usize::MAX, segments, now).await {
                Ok(LogRead::Page(page)) => page,
                // The events read so far are sent; the next round finds the same result.
                _ if at > from => break,
                Ok(LogRead::Expired(oldest)) => return Ok(Next::Expired(oldest)),
                Ok(LogRead::Beyond(_)) => return Ok(Next::Beyond),
                Err(error) => return Err(error),
            };
            for entry in page.entries {
                let after = entry.after;
                if !round.take(entry, at, filter, at_once) {
                    return Ok(Next::Round(round, at, false));
                }
                at = after;
            }
            at = page.after;
            if page.is_end {
                return Ok(Next::Round(round, at, true));
            }
        }
        Ok(Next::Round(round, at, false))
    }

    /// Takes an event if the round has room for it, or passes over an event that the filter rejects. Returns
    /// false if the round has no room.
    fn take(&mut self, entry: LogEntry, before: LogPosition, filter: &EventFilter, at_once: usize) -> bool {
        // An unreadable event is sent as it is: the receiver may be able to read it.
        let fields = serde_json::from_str::<EventFields>(&entry.json).ok();
        if fields.as_ref().is_some_and(|fields| !filter.passes(fields)) {
            return true;
        }
        if self.picked.len() >= at_once {
            return false;
        }
        let payment = fields.as_ref().and_then(|fields| fields.payment_id.clone()).unwrap_or_default();
        let body = self.of_payment.get(&payment).copied().unwrap_or_else(|| self.body_with_room());
        if self.drafts.len() <= body {
            self.drafts.push(Draft::default());
        }
        let draft = &mut self.drafts[body];
        if !draft.events.is_empty() && draft.bytes + entry.json.len() > MAX_BODY_BYTES {
            return false;
        }
        self.of_payment.insert(payment, body);
        let event_id = fields.map_or_else(|| before.to_string(), |fields| fields.id);
        draft.bytes += entry.json.len();
        draft.ids.push(event_id.clone());
        draft.events.push(entry.json);
        self.picked.push(Picked { event_id, before, after: entry.after, body });
        true
    }

    /// The number of the body for a payment that has no body yet: the body with the fewest events, or a new
    /// body if all bodies have enough events.
    fn body_with_room(&self) -> usize {
        let shortest = (0..self.drafts.len()).min_by_key(|&body| self.drafts[body].events.len());
        match shortest {
            Some(body) if self.drafts.len() == MAX_BODIES || self.drafts[body].events.len() < EVENTS_PER_BODY => body,
            _ => self.drafts.len(),
        }
    }

    /// The number of events in the round.
    pub(crate) fn events(&self) -> usize {
        self.picked.len()
    }

    /// The bodies. The same events for the same endpoint make the same body, with the same message id.
    pub(crate) fn bodies(&mut self, endpoint: &EndpointId) -> Vec<Body> {
        let drafts = std::mem::take(&mut self.drafts).into_iter();
        let body = |draft: Draft| Body {
            message: message_id(endpoint, &draft.ids),
            json: format!(r#"{{"events":[{}]}}"#, draft.events.join(",")).into(),
        };
        drafts.map(body).collect()
    }

    /// The accepted part of the round's events, given whether each body was accepted; `None` if all events
    /// were accepted.
    pub(crate) fn accepted(&self, bodies: &[bool]) -> Option<Accepted> {
        let is_accepted = |picked: &&Picked| bodies.get(picked.body).copied().unwrap_or(false);
        let events = self.picked.iter().take_while(is_accepted).count();
        let Picked { event_id, before, after, .. } = self.picked.get(events)?;
        let blocking = BlockingEvent { event_id: event_id.clone(), after: *after };
        Some(Accepted { to: *before, events, blocking })
    }
}

/// The id of a message with these events.
#[expect(clippy::expect_used, reason = "letters and digits are the id of a message")]
pub(crate) fn message_id(endpoint: &EndpointId, events: &[String]) -> MessageId {
    let mut hash = Sha256::new();
    hash.update(endpoint.as_str());
    for event in events {
        hash.update([0]);
        hash.update(event);
    }
    let digest = hash.finalize();
    let text = digest.iter().take(16).fold("msg_".to_owned(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    text.parse().expect("letters and digits are the id of a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u32, json: String) -> LogEntry {
        LogEntry {
            json,
            after: LogPosition { epoch: "7.1.0".parse::<LogPosition>().unwrap().epoch, number: 1, offset: number },
        }
    }

    fn take_all(entries: impl IntoIterator<Item = String>) -> Round {
        let (mut round, mut before) = (Round::default(), "7.1.0".parse().unwrap());
        for (json, number) in entries.into_iter().zip(1..) {
            let entry = entry(number, json);
            let after = entry.after;
            assert!(round.take(entry, before, &EventFilter::default(), usize::from(MAX_EVENTS)), "{after}");
            before = after;
        }
        round
    }

    #[test]
    fn a_thousand_payments_fill_eight_bodies() {
        let event = |n| format!(r#"{{"id":"7-{n}-1","type":"payment.scheduled","accountId":"a","paymentId":"{n}"}}"#);
        let mut round = take_all((0..MAX_EVENTS).map(event));
        assert_eq!((round.events(), round.of_payment.len()), (1_000, 1_000));
        assert_eq!(round.bodies(&"erp".parse().unwrap()).len(), MAX_BODIES);
    }

    #[test]
    fn an_event_that_is_larger_than_a_body_is_sent_alone() {
        let mut round = take_all(["x".repeat(MAX_BODY_BYTES + 1)]);
        let next = entry(2, "x".to_owned());
        assert!(!round.take(next, "7.1.1".parse().unwrap(), &EventFilter::default(), 2), "it has company");
        assert_eq!((round.events(), round.bodies(&"erp".parse().unwrap()).len()), (1, 1));
    }
}
