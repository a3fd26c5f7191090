//! The delivery of the hot table's stream to `stream-aggregator`.

use anyhow::{Result, bail, ensure};
use chrono::{DateTime, Utc};
use payments_bank::Functions;
use payments_delivery::{Delivery, DeliveryOutcome, StreamMapping};
use payments_machine::Handlers as _;
use payments_machine::triggers::stream_settings;
use payments_model::UtcSecond;
use serde_json::{Value, json};

use crate::world::World;

/// The most steps that empty a stream; no stream here has as many batches.
const MOST_STEPS: usize = 2_000;

/// The mapping's first time. It is independent of the records' times: the windows do not matter to the function.
const BEGINNING: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// The stream mapping of `stream-aggregator`.
pub struct Counting {
    mapping: StreamMapping,
}

impl Counting {
    /// A mapping at the oldest record.
    pub async fn start(world: &World) -> Result<Self> {
        Ok(Self { mapping: StreamMapping::new(stream_settings("stream-aggregator", None)?, world.stream().await?)? })
    }

    /// Counts the whole stream with these functions. Returns the number of records.
    pub async fn count(&mut self, functions: &Functions) -> Result<usize> {
        self.drain(|event| aggregate(functions, event)).await
    }

    /// Counts the whole stream with these functions, as if its records were made at `made_at`.
    pub async fn count_made_at(&mut self, functions: &Functions, made_at: UtcSecond) -> Result<usize> {
        let count = |mut event: Value| {
            for record in event["Records"].as_array_mut().into_iter().flatten() {
                record["dynamodb"]["ApproximateCreationDateTime"] = made_at.as_chrono().timestamp().into();
            }
            aggregate(functions, event)
        };
        self.drain(count).await
    }

    /// Passes the whole stream uncounted. Returns the number of records.
    pub async fn skip(&mut self) -> Result<usize> {
        self.drain(|_| async { Ok(json!({ "state": {} })) }).await
    }

    async fn drain<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        function: impl Fn(Value) -> Answer,
    ) -> Result<usize> {
        let mut records = 0;
        loop {
            let deliveries = next_batch(&mut self.mapping, BEGINNING, &function).await?;
            if deliveries.is_empty() {
                return Ok(records);
            }
            // A batch that fails would come again and again.
            let failed = deliveries.iter().find(|delivery| delivery.outcome != DeliveryOutcome::Succeeded);
            ensure!(failed.is_none(), "{failed:?}");
            records += deliveries.iter().map(|delivery| delivery.records).sum::<usize>();
        }
    }
}

/// The function of the stream mapping.
pub async fn aggregate(functions: &Functions, event: Value) -> Result<Value, String> {
    functions.deliver("stream-aggregator", event).await
}

/// Steps a mapping until it has delivered a batch or has none left. Returns all deliveries. The mapping waits for a
/// full batch, so its time passes here, and only its time.
pub async fn next_batch<Answer: Future<Output = Result<Value, String>>>(
    mapping: &mut StreamMapping,
    mut now: DateTime<Utc>,
    function: impl Fn(Value) -> Answer,
) -> Result<Vec<Delivery>> {
    let (mut all, mut idle) = (Vec::new(), 0);
    while idle < 2 {
        let deliveries = mapping.step(now, &function).await?;
        idle = if deliveries.is_empty() { idle + 1 } else { 0 };
        let batch = deliveries.iter().any(|delivery| delivery.records > 0);
        all.extend(deliveries);
        if batch {
            break;
        }
        now += mapping.settings().maximum_batching_window;
    }
    Ok(all)
}

/// Delivers until the stream is empty and its windows have ended.
pub async fn drain<Answer: Future<Output = Result<Value, String>>>(
    mapping: &mut StreamMapping,
    now: DateTime<Utc>,
    function: impl Fn(Value) -> Answer,
) -> Result<Vec<Delivery>> {
    let mut all = Vec::new();
    for _ in 0..MOST_STEPS {
        let deliveries = next_batch(mapping, now, &function).await?;
        if deliveries.is_empty() {
            return Ok(all);
        }
        all.extend(deliveries);
    }
    bail!("the stream does not end")
}

impl World {
    /// Counts the whole stream with `stream-aggregator`. Returns the number of records. The mapping
    /// is new and reads from the oldest record, so counted records come again.
    pub async fn count_all(&self) -> Result<usize> {
        Counting::start(self).await?.count(self.functions()).await
    }
}
