//! Deliveries of a stream to the aggregator, move by move.
//! Two pollers do not know of each other, calls fail, counted records come again, and shards split.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;

use anyhow::{Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use payments_bank::Functions;
use payments_delivery::{DeliveryOutcome, Record, ShardId, StreamMapping, StreamSettings};
use payments_machine::layers::random::Seed;
use payments_machine::triggers::stream_settings;
use proptest::prelude::*;
use serde_json::Value;

use super::fault::Fault;
use super::shards::{self, Shards};
use crate::kit::fault_plan::Run;
use crate::kit::fixture::Fixture;
use payments_tests::counting::{aggregate, drain};

/// The number of pollers that read the stream.
pub(crate) const POLLERS: usize = 2;

/// The most records that are added at once.
const MOST_AT_ONCE: usize = 40;

/// The next event of the stream. Numbers are taken modulo the number of things.
#[derive(Debug, Clone)]
pub(crate) enum Move {
    /// The stream gets more records.
    Grow(usize),
    /// A shard ends, and two new shards or one replace it.
    Split { shard: usize, in_two: bool },
    /// A poller delivers its next batch of a shard, or the end of a window.
    Step { poller: usize, shard: usize, fault: Fault },
    /// Both pollers deliver at once, their calls in a random order.
    Race { shard: usize, order: u64 },
    /// Counted records come again, perhaps with some later records.
    Again { shard: usize, from: usize, records: usize, fault: Fault },
    /// A poller loses its position and begins at the oldest record.
    Restart { poller: usize },
}

impl Move {
    /// Any move.
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let (poller, shard) = (0..POLLERS, 0..8_usize);
        let step = (poller.clone(), shard.clone(), Fault::any());
        let again = (shard.clone(), 0..64_usize, 1..24_usize, Fault::any());
        prop_oneof![
            5 => (1..MOST_AT_ONCE).prop_map(Self::Grow),
            2 => (shard.clone(), any::<bool>()).prop_map(|(shard, in_two)| Self::Split { shard, in_two }),
            9 => step.prop_map(|(poller, shard, fault)| Self::Step { poller, shard, fault }),
            4 => (shard, any::<u64>()).prop_map(|(shard, order)| Self::Race { shard, order }),
            4 => again.prop_map(|(shard, from, records, fault)| Self::Again { shard, from, records, fault }),
            1 => poller.prop_map(|poller| Self::Restart { poller }),
        ]
    }
}

/// The counts of what happened, so that the test can assert that it did.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) invocations: usize,
    pub(crate) faults: usize,
    pub(crate) kills: usize,
    pub(crate) failures: usize,
    pub(crate) races: usize,
    pub(crate) again: usize,
}

impl Seen {
    fn note<T>(&mut self, run: &Run<T>) {
        self.faults += usize::from(run.failed);
        self.kills += usize::from(run.answer.is_none());
    }
}

/// A stream and its pollers.
pub(crate) struct Deliveries<'r> {
    fixture: &'r Fixture,
    sandboxes: &'r [Functions],
    shards: Shards,
    pollers: [StreamMapping; POLLERS],
    /// The number of counted records of each shard, as far as the pollers know.
    counted: BTreeMap<ShardId, usize>,
    now: DateTime<Utc>,
    seen: &'r RefCell<Seen>,
}

/// The work of one of two pollers.
type Task<'t> = Pin<Box<dyn Future<Output = ()> + 't>>;

impl<'r> Deliveries<'r> {
    pub(crate) fn begin(
        fixture: &'r Fixture,
        sandboxes: &'r [Functions],
        past: &[Record],
        seen: &'r RefCell<Seen>,
    ) -> Result<Self> {
        let shards = Shards::from_records(fixture.source.arn(), past)?;
        let poller = |seed| -> Result<StreamMapping> {
            // The moves decide whether a poller waits for a full batch.
            let settings = StreamSettings {
                maximum_batching_window: TimeDelta::zero(),
                ..stream_settings("stream-aggregator", None)?
            };
            let mut random = Seed(seed).source("cuts");
            let mapping = StreamMapping::new(settings, shards.stream.clone())?;
            Ok(mapping.with_batch_cuts(move |most| 1 + random.usize(..most)))
        };
        let pollers = [poller(1)?, poller(2)?];
        Ok(Self { fixture, sandboxes, pollers, shards, counted: BTreeMap::new(), now: shards::beginning(), seen })
    }

    pub(crate) async fn play(&mut self, moves: &[Move]) -> Result<()> {
        for this in moves {
            self.now += TimeDelta::seconds(7);
            match *this {
                Move::Grow(records) => self.shards.grow(records)?,
                Move::Split { shard, in_two } => self.shards.split(shard, in_two)?,
                Move::Step { poller, shard, fault } => self.step(poller, shard, fault).await?,
                Move::Race { shard, order } => self.race(shard, order).await?,
                Move::Again { shard, from, records, fault } => self.again(shard, from, records, fault).await?,
                Move::Restart { poller } => self.pollers[poller].restart_from_trim_horizon(),
            }
            self.note_counted();
        }
        Ok(())
    }

    /// Adds the remaining records and delivers them without faults by every poller that has begun.
    pub(crate) async fn finish(&mut self) -> Result<()> {
        while self.shards.is_growing() {
            self.shards.grow(MOST_AT_ONCE)?;
        }
        for (place, (poller, functions)) in self.pollers.iter_mut().zip(self.sandboxes).enumerate() {
            if place > 0 && poller.checkpoints().is_empty() {
                continue;
            }
            let delivered = drain(poller, self.now, |event| aggregate(functions, event)).await?;
            let failed = delivered.iter().find(|delivery| delivery.outcome != DeliveryOutcome::Succeeded);
            ensure!(failed.is_none(), "{failed:?}");
        }
        Ok(())
    }

    async fn step(&mut self, poller: usize, shard: usize, fault: Fault) -> Result<()> {
        let Self { fixture, sandboxes, pollers, now, seen, .. } = self;
        let (mapping, functions) = (&mut pollers[poller], &sandboxes[poller]);
        let ready = mapping.ready().await?;
        if ready.is_empty() {
            return Ok(());
        }
        let function = |event| invoke(functions, event, fault, seen);
        let step = mapping.step_shard(&ready[shard % ready.len()], *now, function);
        let run = fault.run(&fixture.faults, step).await;
        seen.borrow_mut().note(&run);
        run.answer.transpose()?;
        Ok(())
    }

    async fn race(&mut self, shard: usize, order: u64) -> Result<()> {
        let Self { fixture, sandboxes, pollers: [one, other], now, seen, .. } = self;
        let seen: &RefCell<Seen> = seen;
        let (ready, also) = (one.ready().await?, other.ready().await?);
        let both: Vec<&ShardId> = ready.iter().filter(|shard| also.contains(shard)).collect();
        if both.is_empty() {
            return Ok(());
        }
        let (shard, trouble) = (both[shard % both.len()], RefCell::new(None));
        let tasks = [one, other].into_iter().zip(sandboxes.iter()).map(|(mapping, functions)| {
            let (now, trouble) = (*now, &trouble);
            let task: Task<'_> = Box::pin(async move {
                let step = mapping.step_shard(shard, now, |event| invoke(functions, event, Fault::None, seen)).await;
                step.map_or_else(|error| drop(trouble.replace(Some(error))), drop);
            });
            task
        });
        let mut random = Seed(order).source("interleavings");
        fixture.faults.scheduler().run(tasks.collect(), |ready| random.usize(..ready.len())).await;
        seen.borrow_mut().races += 1;
        trouble.into_inner().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Uncounted records may come with the counted ones, as from a poller that is ahead. But no
    /// poller leaves a record out, or continues after a failure.
    async fn again(&mut self, shard: usize, from: usize, records: usize, fault: Fault) -> Result<()> {
        let Self { fixture, sandboxes, pollers, shards, counted, seen, .. } = self;
        let all = shards.all();
        let shard = &all[shard % all.len()];
        let places = shards.places(shard);
        let counted = counted.get(shard).copied().unwrap_or(0);
        // Nothing of a shard comes before all of its parent.
        if counted == 0 && !pollers[0].ready().await?.contains(shard) {
            return Ok(());
        }
        let from = from % (counted + 1).min(places.len().max(1));
        let to = (from + records).min(places.len());
        let [from, .., to] = &places[from..to] else { return Ok(()) };
        let failed = Cell::new(false);
        let function = |event| async {
            if failed.get() {
                return Err("a poller stops after a failure".to_owned());
            }
            let answer = invoke(&sandboxes[0], event, fault, seen).await;
            failed.set(answer.is_err());
            answer
        };
        let run = fault.run(&fixture.faults, pollers[0].redeliver(shard, from, to, function)).await;
        seen.borrow_mut().note(&run);
        seen.borrow_mut().again += 1;
        run.answer.transpose()?;
        Ok(())
    }

    /// Notes what pollers know to be counted: everything up to their checkpoints.
    fn note_counted(&mut self) {
        for (shard, checkpoint) in self.pollers.iter().flat_map(StreamMapping::checkpoints) {
            let places = self.shards.places(&shard);
            let counted = checkpoint.map_or(0, |last| places.partition_point(|place| *place <= last));
            let known = self.counted.entry(shard).or_default();
            *known = counted.max(*known);
        }
    }
}

/// Invokes the aggregator. Lambda may not learn of its success.
async fn invoke(functions: &Functions, event: Value, fault: Fault, seen: &RefCell<Seen>) -> Result<Value, String> {
    seen.borrow_mut().invocations += 1;
    let answer = aggregate(functions, event).await;
    seen.borrow_mut().failures += usize::from(answer.is_err());
    if fault == Fault::AnswerLost { Err("the answer is lost".to_owned()) } else { answer }
}
