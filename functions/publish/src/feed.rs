//! Puts each event of the log on the event bus, at least once and in no order.
//!
//! The bus's place in the log moves over events that the bus has accepted. Two kinds of events never
//! reach the bus, and are logged as errors: events that the bus can never accept, and events that
//! expired from the log before they were put. The first run for a bus starts at the log's end.
//!
//! There is no lease. If two runs overlap, both put the same events, until one run finds that the
//! other has moved the place, and ends. At most 160 events are put twice in this way. Receivers
//! recognise a repeated event by its id, as they do for webhooks.
//!
//! If the bus rejects events or does not exist, the invocation still succeeds, because the journal
//! and the webhooks do not depend on the bus. The metrics show the failure.

use std::collections::HashSet;
use std::time::Duration;

use futures::StreamExt as _;
use payments_boot::Deadline;
use payments_model::causes;
use payments_store::{LogEntry, LogHead, LogPosition, LogRead};
use payments_work::Waits;

use crate::bus::{BusError, BusEvent, EventBus, MAX_BUS_EVENTS, Put};
use crate::error::PublishError;
use crate::function::Publish;
use crate::outcome::BusOutcome;
use crate::run::beyond;

/// The prefix of a bus's name among the log's consumers. Each bus has its own place, so a bus that
/// replaces another one begins at the log's end.
const BUS: &str = "bus#";

/// The most calls to the bus at once.
const CALLS: usize = 16;

/// Number of events that are put before the place moves: as many as fit into [`CALLS`] calls. If the
/// place moved after each call, no two calls could run at once.
const STRETCH: usize = CALLS * MAX_BUS_EVENTS;

/// The waits before events that the bus did not accept are put again. With two waits, a run puts an
/// event at most three times.
const WAITS: Waits = Waits { first: Duration::from_millis(200), doublings: 1, most: 2 };

/// The most segments that one read of the log asks DynamoDB for: at most 4 MB of events.
const SEGMENTS: u8 = 12;

/// A run that puts events on a bus.
struct Feed<'f> {
    publish: &'f Publish,
    bus: &'f dyn EventBus,
    consumer: String,
    head: LogHead,
    at: LogPosition,
    /// Number of events that are put before the place moves: at first one call's ten events, and then [`STRETCH`]. So if
    /// the bus rejects one event in every run, each run repeats at most the other nine events of that call.
    stretch: usize,
    deadline: &'f Deadline,
    outcome: &'f mut BusOutcome,
}

impl Publish {
    /// Puts the events that the bus lacks, up to the log's end when the run begins, or until the
    /// deadline. The first run for a bus puts nothing, and stores the log's end as the bus's place:
    /// events that are older than the configuration of the bus are not put.
    pub(crate) async fn feed(&self, deadline: &Deadline, outcome: &mut Option<BusOutcome>) -> Result<(), PublishError> {
        let Some(bus) = self.bus.as_deref() else { return Ok(()) };
        let outcome = outcome.insert(BusOutcome::default());
        let consumer = format!("{BUS}{}", bus.name());
        // The place is read before the log's head. In the other order, another run could move the place
        // beyond the head that this run has read.
        let stored = self.store.log_consumer(&consumer).await?;
        let head = self.store.log_head().await?;
        let (head, at) = match (head, stored) {
            (Some(head), Some(at)) => (head, at),
            (None, Some(_)) => return Ok(()),
            // The bus has no place yet. If the log has no head either, all of the log's events are still to
            // come, and the bus gets them from the beginning.
            (head, None) => {
                let now = self.clock.now();
                let begin = head.map_or(LogPosition::BEGINNING, |head| head.start_of_news(now));
                return Ok(self.store.move_log_consumer(&consumer, None, begin).await.map(drop)?);
            }
        };
        outcome.bus_segments_behind = head.segments_after(at);
        let stretch = MAX_BUS_EVENTS;
        Feed { publish: self, bus, consumer, head, at, stretch, deadline, outcome }.run().await
    }
}

impl Feed<'_> {
    async fn run(mut self) -> Result<(), PublishError> {
        while self.at != self.head.end() && !self.deadline.has_come() {
            let (entries, next) = self.follow().await?;
            let goes_on = match self.put_page(&entries).await? {
                Ok(goes_on) => goes_on,
                Err(why) => {
                    tracing::error!(causes = ?causes(&why), at = %self.at, "the event bus lacks events of the log");
                    self.outcome.fall_behind();
                    false
                }
            };
            if !goes_on || !self.move_to(next).await? {
                break;
            }
        }
        Ok(())
    }

    /// Reads events from the place on. Returns the events, and the place after the last of them. If the
    /// log no longer has these events, returns no events, and the place where the log continues.
    async fn follow(&mut self) -> Result<(Vec<LogEntry>, LogPosition), PublishError> {
        let store = &self.publish.store;
        let head = &self.head;
        let at = self.at;
        let now = self.publish.clock.now();
        let (next, missed) = match store.log_page(head, at, usize::MAX, SEGMENTS, now).await? {
            LogRead::Page(page) => return Ok((page.entries, page.after)),
            LogRead::Expired(oldest) => (oldest, true),
            LogRead::Beyond(_) => beyond(head, &reader(self.bus), at, now)?,
        };
        if missed {
            tracing::error!(bus = %at, log = %next, "the log no longer has events that the event bus lacks");
            self.outcome.bus_missed += 1;
        }
        Ok((Vec::new(), next))
    }

    /// Puts the events of a page, and moves the place over them. Returns `Ok(Ok(true))` if the bus is
    /// done with all events of the page, and `Ok(Ok(false))` if the deadline has come or another run
    /// has moved the place. `Ok(Err(_))` is the reason why this run puts no more events.
    ///
    /// # Errors
    /// A [`PublishError`] if the place cannot be moved.
    async fn put_page(&mut self, entries: &[LogEntry]) -> Result<Result<bool, BusError>, PublishError> {
        if !entries.is_empty()
            && let Err(why) = self.bus.check().await
        {
            return Ok(Err(why));
        }
        let mut rest = entries;
        while !rest.is_empty() {
            if self.deadline.has_come() {
                return Ok(Ok(false));
            }
            let (stretch, others) = rest.split_at(self.stretch.min(rest.len()));
            let (done, why) = self.put_all(stretch).await;
            let last = done.checked_sub(1).and_then(|last| stretch.get(last));
            if let Some(last) = last
                && !self.move_to(last.after).await?
            {
                return Ok(Ok(false));
            }
            if let Some(why) = why {
                return Ok(Err(why));
            }
            (rest, self.stretch) = (others, STRETCH);
        }
        Ok(Ok(true))
    }

    /// Puts events until the bus has accepted or finally rejected each of them, all waits are used, or
    /// the deadline comes. Returns the number of events before the first undecided one, and the bus's
    /// last error for it. If all are decided, returns the number of all events, and no error.
    async fn put_all(&mut self, entries: &[LogEntry]) -> (usize, Option<BusError>) {
        let mut left = Vec::new();
        let mut ids = Vec::new();
        for entry in entries {
            match BusEvent::from_entry(entry) {
                Ok(event) => {
                    ids.push(Some(event.id.clone()));
                    left.push(event);
                }
                Err(why) => {
                    ids.push(None);
                    self.pass_over(&why, Some(entry.after));
                }
            }
        }
        let mut retries = WAITS.begin();
        while let Some(why) = self.put_once(&mut left).await {
            let Some(wait) = retries.next_wait().filter(|_| !self.deadline.has_come()) else {
                let left: HashSet<&str> = left.iter().map(|event| event.id.as_str()).collect();
                let is_left = |id: &Option<String>| id.as_deref().is_some_and(|id| left.contains(id));
                return (ids.iter().position(is_left).unwrap_or(0), Some(why));
            };
            tracing::warn!(error = %why, left = left.len(), "the event bus did not accept all events");
            self.deadline.sleep(wait).await;
        }
        (entries.len(), None)
    }

    /// Puts the events in `left` once. Afterwards, `left` has the events that the bus may accept later.
    /// Returns the reason why the bus did not accept the first of these events.
    async fn put_once(&mut self, left: &mut Vec<BusEvent>) -> Option<BusError> {
        let (count, bus) = (left.len(), self.bus);
        let calls: Vec<Vec<BusEvent>> = left.chunks(MAX_BUS_EVENTS).map(<[BusEvent]>::to_vec).collect();
        let calls = futures::stream::iter(calls).map(|events| bus.put(events)).buffered(CALLS);
        let answers: Vec<Put> = calls.collect().await;
        let (mut why, mut never) = (None, 0);
        left.clear();
        for answer in answers {
            why = why.or(answer.why);
            left.extend(answer.left);
            never += answer.never.len();
            answer.never.iter().for_each(|why| self.pass_over(why, None));
        }
        let rejected = left.len() + never;
        self.outcome.bus_events += u64::try_from(count.saturating_sub(rejected)).unwrap_or(u64::MAX);
        self.outcome.bus_rejections += u64::try_from(rejected).unwrap_or(u64::MAX);
        why
    }

    /// Logs and counts an event that the bus never gets, because the event is malformed or too large.
    /// Such an event would block all later events. `after` is the place after the event, if known.
    fn pass_over(&mut self, why: &BusError, after: Option<LogPosition>) {
        let after = after.map(|after| after.to_string());
        tracing::error!(causes = ?causes(why), after, "the event bus never gets an event of the log");
        self.outcome.bus_missed += 1;
    }

    /// Moves the place. Returns false if another run has moved the place: then this run ends, and the
    /// other run continues.
    async fn move_to(&mut self, to: LogPosition) -> Result<bool, PublishError> {
        if self.at == to {
            return Ok(true);
        }
        let is_moved = self.publish.store.move_log_consumer(&self.consumer, Some(self.at), to).await?;
        if is_moved {
            self.at = to;
            self.outcome.bus_segments_behind = self.head.segments_after(to);
        }
        Ok(is_moved)
    }
}

/// The name of the bus in errors and log lines.
fn reader(bus: &dyn EventBus) -> String {
    format!("the event bus {}", bus.name())
}
