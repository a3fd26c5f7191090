//! The modelled stream of the hot table: partitions have shards of their own, which end every few hours.
//!
//! The engine's stream has one shard for good. On AWS a shard belongs to a partition and ends after about four hours,
//! whatever the load, and an account's items can lie in two partitions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use fastrand::Rng;
use payments_delivery::{InMemoryStream, Record, ShardId};
use payments_machine::layers::attributes::key_of;
use payments_machine::layers::random::Seed;
use payments_machine::layers::throttle::Throttle;
use tokio::sync::Notify;

use crate::facts::heads::HOT;
use crate::plans::faults::{FaultKind, Faults};

/// The ARN that records are read under.
const ARN: &str = "arn:aws:dynamodb:month:000000000000:table/payments/stream/month";

/// The stream. Clones share it.
#[derive(Clone)]
pub(crate) struct Stream {
    current: Arc<Mutex<Current>>,
    seed: Seed,
    throttle: Throttle,
    faults: Faults,
    open: Arc<Mutex<Vec<Open>>>,
    arrived: Arc<[Notify; 2]>,
}

/// The stream that the table has now.
struct Current {
    shards: InMemoryStream,
    /// The number of streams that the table had before.
    number: u32,
    /// Whether it has ended: the table is gone, and the restored one has none yet.
    is_over: bool,
}

/// The open shard of a partition, which is a part of the hash space.
#[derive(Debug, Clone)]
struct Open {
    first: u32,
    last: u32,
    id: ShardId,
}

impl Stream {
    /// Creates the stream with one open shard for each partition of the hot table.
    pub(crate) fn new(seed: Seed, faults: &Faults, throttle: &Throttle) -> Result<Self> {
        let stream = Self {
            current: Arc::new(Mutex::new(Current { shards: InMemoryStream::new(ARN), number: 0, is_over: false })),
            seed,
            throttle: throttle.clone(),
            faults: faults.clone(),
            open: Arc::default(),
            arrived: Arc::default(),
        };
        stream.begin()?;
        Ok(stream)
    }

    /// Opens one shard for each partition.
    fn begin(&self) -> Result<()> {
        self.open().clear();
        for (first, last) in self.ranges() {
            let id = self.name(first, 0);
            self.shards().add_shard(id.clone(), None)?;
            self.open().push(Open { first, last, id });
        }
        Ok(())
    }

    /// Ends the stream, because its table is gone. Later changes are in no stream.
    pub(crate) fn end(&self) {
        self.current().is_over = true;
    }

    /// Begins another stream, with other shards. Returns its ARN.
    pub(crate) fn renew(&self) -> Result<String> {
        let arn = {
            let mut current = self.current();
            let number = current.number + 1;
            let arn = format!("{ARN}-{number}");
            *current = Current { shards: InMemoryStream::new(&arn), number, is_over: false };
            arn
        };
        self.begin()?;
        self.arrived.iter().for_each(Notify::notify_one);
        Ok(arn)
    }

    /// The shards of the stream that the table has now.
    pub(crate) fn shards(&self) -> InMemoryStream {
        self.current().shards.clone()
    }

    /// The number of streams that the table had before.
    pub(crate) fn number(&self) -> u32 {
        self.current().number
    }

    /// Deals a record to the shard of its item's partition.
    pub(crate) fn deal(&self, record: Record, now: DateTime<Utc>) -> Result<()> {
        if self.current().is_over {
            return Ok(());
        }
        self.split(now)?;
        let (pk, sk) = key_of(&record.event()["dynamodb"]["Keys"]);
        // Every fourth account's items lie in two partitions.
        let two = self.source(&format!("split {pk}")).u8(0..4) == 0;
        let place = if two && self.source(&format!("half {pk}/{sk}")).bool() { format!("{pk}/2") } else { pk };
        let position = self.throttle.position(HOT, &place);
        let shard = self.open().iter().find(|open| position <= open.last).map(|open| open.id.clone());
        self.shards().push(&shard.context("the shards cover the hash space")?, record)?;
        self.arrived.iter().for_each(Notify::notify_one);
        Ok(())
    }

    /// Ends a shard; a child begins.
    pub(crate) fn roll(&self, random: &mut Rng, now: DateTime<Utc>) -> Result<()> {
        let mut open = self.open();
        let number = random.usize(0..open.len());
        let parent = &mut open[number];
        let child = self.after(&parent.id, parent.first);
        self.shards().split(&parent.id, std::slice::from_ref(&child), now)?;
        parent.id = child;
        self.arrived.iter().for_each(Notify::notify_one);
        Ok(())
    }

    /// Trims the records of before an instant.
    pub(crate) fn trim(&self, before: DateTime<Utc>) {
        if self.shards().trim_before(before) > 0 {
            self.faults.count(FaultKind::RecordsTrimmed);
        }
    }

    /// Ends the shards of partitions that have split; two children begin.
    fn split(&self, now: DateTime<Utc>) -> Result<()> {
        let ranges = self.ranges();
        let mut open = self.open();
        if ranges.len() == open.len() {
            return Ok(());
        }
        for parent in std::mem::take(&mut *open) {
            let within: Vec<_> =
                ranges.iter().filter(|(first, _)| (parent.first..=parent.last).contains(first)).collect();
            if within.len() == 1 {
                open.push(parent);
                continue;
            }
            let child = |&&(first, last): &&(u32, u32)| Open { first, last, id: self.after(&parent.id, first) };
            let children: Vec<Open> = within.iter().map(child).collect();
            let ids: Vec<ShardId> = children.iter().map(|child| child.id.clone()).collect();
            self.shards().split(&parent.id, &ids, now)?;
            self.faults.count(FaultKind::PartitionSplit);
            open.extend(children);
        }
        Ok(())
    }

    fn ranges(&self) -> Vec<(u32, u32)> {
        let (mut first, mut ranges) = (0, Vec::new());
        let partitions = self.throttle.partitions(HOT);
        for width in partitions.iter().flat_map(|all| (0..all.count()).map(|number| all.width(number))) {
            let width = u32::try_from(width).unwrap_or(0);
            ranges.push((first, first + width - 1));
            first += width;
        }
        ranges
    }

    /// Names the shard that follows another one.
    fn after(&self, parent: &ShardId, first: u32) -> ShardId {
        let generation = parent.as_str().rsplit('-').next().and_then(|number| number.parse::<u32>().ok()).unwrap_or(0);
        self.name(first, generation + 1)
    }

    fn name(&self, first: u32, generation: u32) -> ShardId {
        let stream = match self.number() {
            0 => String::new(),
            number => format!("{number}-"),
        };
        ShardId::from(format!("shard-{stream}{first:07}-{generation:04}").as_str())
    }

    fn source(&self, what: &str) -> Rng {
        self.seed.source(what)
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, Vec<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something new for a consumer.
    pub(crate) async fn news(&self, consumer: usize) {
        self.arrived[consumer % 2].notified().await;
    }
}
