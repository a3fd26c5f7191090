//! The stream of a bank's hot table on its way to `stream-aggregator`, as Lambda delivers it.

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use payments_delivery::{Delivery, DeliveryOutcome, StreamMapping};
use payments_local::Functions;
use payments_local::triggers::{AGGREGATOR_BATCHING_WINDOW, aggregator_settings};
use serde_json::{Value, json};

use crate::World;

/// The most steps that it takes to empty the stream of a test.
const MAX_STEPS: usize = 1_000;

/// When the mapping begins. Its time is its own: records carry the machine's, and the windows that
/// are cut by it do not matter to the function.
const BEGINNING: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// The stream mapping of `stream-aggregator`.
pub struct Counting {
    mapping: StreamMapping,
    now: DateTime<Utc>,
}

impl Counting {
    /// A mapping that has read nothing yet, from the oldest record.
    ///
    /// # Errors
    /// Where the table has no stream.
    pub async fn of(world: &World) -> Result<Self> {
        let mapping = StreamMapping::new(aggregator_settings()?, world.environment.stream().await?)?;
        Ok(Self { mapping, now: BEGINNING })
    }

    /// Has these functions count all that the stream holds, and says how many records that was.
    ///
    /// # Errors
    /// Where a batch is not counted.
    pub async fn count(&mut self, functions: &Functions) -> Result<usize> {
        let count = |event: Value| async move {
            let event = serde_json::from_value(event).map_err(|error| error.to_string())?;
            let answer = functions.aggregator.handle(event).await.map_err(|error| error.to_string())?;
            serde_json::to_value(answer).map_err(|error| error.to_string())
        };
        self.drain(count).await
    }

    /// Lets all that the stream holds pass without being counted, and says how many records that was.
    ///
    /// # Errors
    /// Where the stream cannot be read.
    pub async fn skip(&mut self) -> Result<usize> {
        self.drain(|_| async { Ok(json!({ "state": {} })) }).await
    }

    async fn drain<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        function: impl Fn(Value) -> Answer,
    ) -> Result<usize> {
        let mut records = 0;
        for _ in 0..MAX_STEPS {
            // One step begins to wait for a full batch; the next one waits no longer.
            let mut deliveries: Vec<Delivery> = Vec::new();
            for wait in [TimeDelta::zero(), AGGREGATOR_BATCHING_WINDOW] {
                self.now += wait;
                deliveries.extend(self.mapping.step(self.now, &function).await.context("the stream cannot be read")?);
            }
            if deliveries.is_empty() {
                return Ok(records);
            }
            for delivery in deliveries {
                ensure!(delivery.outcome == DeliveryOutcome::Succeeded, "{delivery:?}");
                records += delivery.records;
            }
        }
        anyhow::bail!("the stream is not empty after {MAX_STEPS} steps")
    }
}

impl World {
    /// Has the bank's `stream-aggregator` count all that happened, and says how many records the
    /// stream has. Each time it is a new mapping, which reads from the oldest record: what was
    /// counted before comes again.
    ///
    /// # Errors
    /// Where a batch is not counted.
    pub async fn count_all(&self) -> Result<usize> {
        Counting::of(self).await?.count(self.functions()).await
    }
}
