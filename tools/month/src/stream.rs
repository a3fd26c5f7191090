//! The modelled stream of the hot table: partitions have shards of their own, which end every few hours.
//!
//! The engine's stream has one shard for good. On AWS a shard belongs to a partition and ends after about four hours,
//! whatever the load, and an account's items can lie in two partitions.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use fastrand::Rng;
use payments_delivery::{InMemoryStream, Record, ShardId};
use tokio::sync::Notify;

use crate::attributes::key_of;
use crate::random::Seed;

/// How many partitions the hot table has.
const PARTITIONS: usize = 3;

/// The stream. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) shards: InMemoryStream,
    seed: Seed,
    open: Arc<Mutex<Vec<Lineage>>>,
    arrived: Arc<[Notify; 2]>,
}

/// The shards of a partition, one after another.
#[derive(Debug)]
struct Lineage {
    partition: usize,
    generation: u32,
}

impl Lineage {
    fn id(&self) -> ShardId {
        ShardId::from(format!("shard-{}-{:03}", self.partition, self.generation).as_str())
    }
}

impl Stream {
    /// Creates the stream with one open shard for each partition.
    pub(crate) fn new(seed: Seed) -> Result<Self> {
        let shards = InMemoryStream::new("arn:aws:dynamodb:month:000000000000:table/payments/stream/month");
        let open: Vec<_> = (0..PARTITIONS).map(|partition| Lineage { partition, generation: 0 }).collect();
        for lineage in &open {
            shards.add_shard(lineage.id(), None)?;
        }
        Ok(Self { shards, seed, open: Arc::new(Mutex::new(open)), arrived: Arc::default() })
    }

    /// Deals a record to the shard of its item's partition.
    pub(crate) fn deal(&self, record: Record) -> Result<()> {
        let (pk, sk) = key_of(&record.event()["dynamodb"]["Keys"]);
        // Every fourth account's items lie in two partitions.
        let two = self.source(&format!("split {pk}")).u8(0..4) == 0;
        let place = if two && self.source(&format!("half {pk}/{sk}")).bool() { format!("{pk}/2") } else { pk };
        let partition = self.source(&format!("partition {place}")).usize(0..PARTITIONS);
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.shards.push(&open[partition].id(), record)?;
        self.arrived.iter().for_each(Notify::notify_one);
        Ok(())
    }

    fn source(&self, what: &str) -> Rng {
        self.seed.source(what)
    }

    /// Ends a partition's shard; a child goes on.
    pub(crate) fn roll(&self, partition: usize) -> Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let lineage = &mut open[partition % PARTITIONS];
        let parent = lineage.id();
        lineage.generation += 1;
        self.shards.split(&parent, &[lineage.id()])?;
        self.arrived.iter().for_each(Notify::notify_one);
        Ok(())
    }

    /// Waits until there is something new for a consumer.
    pub(crate) async fn news(&self, consumer: usize) {
        self.arrived[consumer % 2].notified().await;
    }
}
