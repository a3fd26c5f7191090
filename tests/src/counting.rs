//! The delivery of the hot table's stream to `stream-aggregator`.

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use payments_bank::Functions;
use payments_delivery::{Delivery, DeliveryOutcome, StreamMapping};
use payments_machine::Handlers as _;
use payments_machine::triggers::stream_settings;
use payments_model::UtcSecond;
use serde_json::{Value, json};

use crate::world::World;

/// The most steps that empty a test's stream.
const MAX_STEPS: usize = 1_000;

/// The mapping's first time. It is independent of the records' times: the windows do not matter to the function.
const BEGINNING: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// The stream mapping of `stream-aggregator`.
pub struct Counting {
    mapping: StreamMapping,
    now: DateTime<Utc>,
}

impl Counting {
    /// A mapping at the oldest record.
    pub async fn of(world: &World) -> Result<Self> {
        let mapping = StreamMapping::new(stream_settings("stream-aggregator", None)?, world.stream().await?)?;
        Ok(Self { mapping, now: BEGINNING })
    }

    /// Lets these functions count the whole stream. Returns the number of records.
    pub async fn count(&mut self, functions: &Functions) -> Result<usize> {
        let count = |event: Value| functions.deliver("stream-aggregator", event);
        self.drain(count).await
    }

    /// Lets these functions count the whole stream, whose records were made at `made_at`.
    pub async fn count_made_at(&mut self, functions: &Functions, made_at: UtcSecond) -> Result<usize> {
        let count = |mut event: Value| {
            for record in event["Records"].as_array_mut().into_iter().flatten() {
                record["dynamodb"]["ApproximateCreationDateTime"] = made_at.as_chrono().timestamp().into();
            }
            functions.deliver("stream-aggregator", event)
        };
        self.drain(count).await
    }

    /// Lets the whole stream pass uncounted. Returns the number of records.
    pub async fn skip(&mut self) -> Result<usize> {
        self.drain(|_| async { Ok(json!({ "state": {} })) }).await
    }

    async fn drain<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        function: impl Fn(Value) -> Answer,
    ) -> Result<usize> {
        let mut records = 0;
        for _ in 0..MAX_STEPS {
            // One step begins to wait for a full batch; the next waits no longer.
            let mut deliveries: Vec<Delivery> = Vec::new();
            for wait in [TimeDelta::zero(), self.mapping.settings().maximum_batching_window] {
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
    /// Lets `stream-aggregator` count the whole stream. Returns the number of records. The mapping is a new one,
    /// which reads from the oldest record: counted records come again.
    pub async fn count_all(&self) -> Result<usize> {
        Counting::of(self).await?.count(self.functions()).await
    }
}
