//! From the log to the event bus: each event is put at least once, without an order.
//!
//! The place moves over events that the bus has accepted. Two runs at once put the same events, and one of them ends there. So there is no
//! lease: receivers know an event by its id, as they do for webhooks.

use std::time::Duration;

use futures::StreamExt as _;
use payments_boot::Deadline;
use payments_store::{LogEntry, LogHead, LogPosition, LogRead};

use crate::bus::{BusEvent, EventBus, MAX_BUS_EVENTS, Put};
use crate::run::beyond;
use crate::{BusOutcome, Publish, PublishError};

/// The name of the bus among the log's consumers.
const BUS: &str = "bus";

/// The most calls at once.
const CALLS: usize = 16;

/// How many events are put before the place moves: one call after another would wait for each answer.
const STRETCH: usize = CALLS * MAX_BUS_EVENTS;

/// How often events are put that the bus does not accept, and how long a run waits before the second time. It waits twice as long before
/// the third.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);

/// How many segments a call to DynamoDB asks for: at most 4 MB of events.
const SEGMENTS: u8 = 12;

impl Publish {
    /// Puts what the log had at the beginning and the bus has not, until the deadline. The first run only notes where the log ends: what
    /// happened before the bus was chosen is not put.
    pub(crate) async fn feed(&self, deadline: &Deadline, outcome: &mut Option<BusOutcome>) -> Result<(), PublishError> {
        let Some(bus) = &self.bus else { return Ok(()) };
        let outcome = outcome.insert(BusOutcome::default());
        // The place first: another run may move it on to what is behind a head that was read before.
        let stored = self.store.log_consumer(BUS).await?;
        let Some(head) = self.store.log_head().await? else { return Ok(()) };
        let Some(mut at) = stored else {
            return Ok(self.store.move_log_consumer(BUS, None, head.end()).await.map(drop)?);
        };
        outcome.bus_segments_behind = head.segments_after(at);
        if at > head.end() && at.epoch == head.epoch {
            return Err(PublishError::shorter(&head, "the event bus".to_owned(), at));
        }
        while at != head.end() && !deadline.has_come() {
            let (entries, next) = self.follow(&head, at, outcome).await?;
            for stretch in entries.chunks(STRETCH) {
                if deadline.has_come() {
                    return Ok(());
                }
                put_all(bus.as_ref(), stretch, deadline, outcome).await?;
                let to = stretch.last().map_or(next, |last| last.after);
                if !self.move_bus(&head, &mut at, to, outcome).await? {
                    return Ok(());
                }
            }
            if !self.move_bus(&head, &mut at, next, outcome).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads the events that follow a place, and the place after them.
    async fn follow(
        &self,
        head: &LogHead,
        at: LogPosition,
        outcome: &mut BusOutcome,
    ) -> Result<(Vec<LogEntry>, LogPosition), PublishError> {
        let (next, missed) = match self.store.log_page(head, at, usize::MAX, SEGMENTS, self.clock.now()).await? {
            LogRead::Page(page) => return Ok((page.entries, page.after)),
            LogRead::Expired(oldest) => (oldest, true),
            LogRead::Beyond(_) => beyond(head, at, self.clock.now()),
        };
        if missed {
            tracing::error!(bus = %at, log = %next, "the log no longer has events that the event bus lacks");
            outcome.bus_missed += 1;
        }
        Ok((Vec::new(), next))
    }

    /// Moves the place. Returns false if another run has moved it elsewhere, and goes on there.
    async fn move_bus(
        &self,
        head: &LogHead,
        at: &mut LogPosition,
        to: LogPosition,
        outcome: &mut BusOutcome,
    ) -> Result<bool, PublishError> {
        if *at == to {
            return Ok(true);
        }
        let is_moved = self.store.move_log_consumer(BUS, Some(*at), to).await?;
        *at = to;
        outcome.bus_segments_behind = head.segments_after(to);
        Ok(is_moved)
    }
}

/// Puts events until all are accepted.
async fn put_all(
    bus: &dyn EventBus,
    entries: &[LogEntry],
    deadline: &Deadline,
    outcome: &mut BusOutcome,
) -> Result<(), PublishError> {
    let mut left = entries.iter().map(BusEvent::of).collect::<Result<Vec<_>, _>>()?;
    let mut pause = PAUSE;
    for attempt in 1.. {
        let count = left.len();
        let calls: Vec<Vec<BusEvent>> = left.chunks(MAX_BUS_EVENTS).map(<[BusEvent]>::to_vec).collect();
        let calls = futures::stream::iter(calls).map(|events| bus.put(events)).buffered(CALLS);
        let answers: Vec<Put> = calls.collect().await;
        let mut why = None;
        left.clear();
        for answer in answers {
            why = why.or(answer.why);
            left.extend(answer.left);
        }
        outcome.bus_events += u64::try_from(count - left.len()).unwrap_or(u64::MAX);
        outcome.bus_rejections += u64::try_from(left.len()).unwrap_or(u64::MAX);
        match why {
            None => return Ok(()),
            Some(why) if attempt == TRIES || deadline.has_come() => return Err(why.into()),
            Some(why) => tracing::warn!(error = %why, left = left.len(), "the event bus did not accept all events"),
        }
        deadline.sleep(pause).await;
        pause *= 2;
    }
    Ok(())
}
