//! From the log to the event bus: each event is put at least once, without an order.
//!
//! The place moves over events that the bus has accepted, or never accepts. Two runs at once put
//! the same events, until one of them finds that the other has moved the place, and ends: at most
//! 160 events are put twice. So there is no lease: receivers recognise an event by its id, as they
//! do for webhooks.
//!
//! A bus that rejects events, or does not exist, fails no invocation: journal and webhooks still
//! work. The metrics show it.

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

/// The prefix of buses among the names of the log's consumers. Each bus has its own place, so
/// another bus begins at the log's end.
const BUS: &str = "bus#";

/// The most calls at once.
const CALLS: usize = 16;

/// The events that are put before the place moves: one call after another would wait for each
/// answer.
const STRETCH: usize = CALLS * MAX_BUS_EVENTS;

/// The waits before rejected events are put again: they are put three times at most.
const WAITS: Waits = Waits { first: Duration::from_millis(200), doublings: 1, most: 2 };

/// The segments that a call to DynamoDB asks for: at most 4 MB of events.
const SEGMENTS: u8 = 12;

/// A run along the log.
struct Feed<'f> {
    publish: &'f Publish,
    bus: &'f dyn EventBus,
    consumer: String,
    head: LogHead,
    at: LogPosition,
    /// The events that are put before the place moves. The first events of a run fit in one call,
    /// so a bus that rejects one event in each run gets at most nine others again.
    stretch: usize,
    deadline: &'f Deadline,
    outcome: &'f mut BusOutcome,
}

impl Publish {
    /// Puts the events that the log had at the beginning and the bus lacks, until the deadline. The
    /// first run only notes the end of the log: events from before the bus was chosen are not put.
    pub(crate) async fn feed(&self, deadline: &Deadline, outcome: &mut Option<BusOutcome>) -> Result<(), PublishError> {
        let Some(bus) = self.bus.as_deref() else { return Ok(()) };
        let outcome = outcome.insert(BusOutcome::default());
        let consumer = format!("{BUS}{}", bus.name());
        // The place is read first: another run may move it beyond a head that was read before.
        let stored = self.store.log_consumer(&consumer).await?;
        let head = self.store.log_head().await?;
        let (head, at) = match (head, stored) {
            (Some(head), Some(at)) => (head, at),
            (None, Some(_)) => return Ok(()),
            // The log has not begun: all its events come after the bus was chosen.
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

    /// Reads the events that follow the place, and the place after them.
    async fn follow(&mut self) -> Result<(Vec<LogEntry>, LogPosition), PublishError> {
        let (store, head, at, now) = (&self.publish.store, &self.head, self.at, self.publish.clock.now());
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

    /// Puts the events of a page, and moves the place over them. Returns false if the run ends: the
    /// deadline has come, or another run has moved the place. The inner error is the reason why the
    /// bus gets no more events.
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

    /// Puts events until the bus has accepted or finally rejected each. Returns the number of
    /// events before the first one that is still open, and the reason why it is.
    async fn put_all(&mut self, entries: &[LogEntry]) -> (usize, Option<BusError>) {
        let mut left = Vec::new();
        let mut ids = Vec::new();
        for entry in entries {
            match BusEvent::of(entry) {
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

    /// Puts events once. Events that the bus may accept later stay in `left`. Returns the reason
    /// for the first of them.
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

    /// Notes an event that the bus never gets: it is malformed or too large, and would block all
    /// others.
    fn pass_over(&mut self, why: &BusError, before: Option<LogPosition>) {
        let before = before.map(|before| before.to_string());
        tracing::error!(causes = ?causes(why), before, "the event bus never gets an event of the log");
        self.outcome.bus_missed += 1;
    }

    /// Moves the place. Returns false if another run has moved it, and continues there.
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

/// The name of the bus in messages.
fn reader(bus: &dyn EventBus) -> String {
    format!("the event bus {}", bus.name())
}
