//! The stream's delivery to `stream-aggregator`, and the check that the counters are exact.

use anyhow::{Result, ensure};
use aws_sdk_dynamodb::types::{DeleteRequest, WriteRequest};
use chrono::{DateTime, Utc};
use payments_bank::Functions;
use payments_delivery::{Delivery, StreamMapping};
use payments_machine::Handlers as _;
use serde_json::Value;

use crate::fixture::Fixture;
use crate::recount;

/// The most steps that empty a stream; no stream here has as many batches.
const MOST_STEPS: usize = 2_000;

/// The function of the stream mapping.
pub(crate) async fn aggregate(functions: &Functions, event: Value) -> Result<Value, String> {
    functions.deliver("stream-aggregator", event).await
}

/// Steps a mapping until it has delivered a batch or has none left. Returns all deliveries. The mapping waits for a
/// full batch, so its time passes here, and only its time.
pub(crate) async fn next_batch<Answer: Future<Output = Result<Value, String>>>(
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
pub(crate) async fn drain<Answer: Future<Output = Result<Value, String>>>(
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
    anyhow::bail!("the stream does not end")
}

impl Fixture {
    /// Delivers one batch of the stream to `stream-aggregator`.
    pub(crate) async fn aggregate_step(&self) -> Result<Vec<Delivery>> {
        let function = |event| aggregate(&self.functions, event);
        next_batch(&mut *self.aggregating.lock().await, self.time.now(), function).await
    }

    /// Delivers the whole stream to `stream-aggregator`.
    pub(crate) async fn aggregate_all(&self) -> Result<Vec<Delivery>> {
        let function = |event| aggregate(&self.functions, event);
        drain(&mut *self.aggregating.lock().await, self.time.now(), function).await
    }

    /// Deletes all counters and checkpoints, and the log.
    pub(crate) async fn forget_counts(&self) -> Result<()> {
        let tables = &self.world.environment.tables;
        self.delete_items(&tables.payments, |pk| !pk.starts_with("ACCT#")).await?;
        self.delete_items(&tables.log, |_| true).await
    }

    async fn delete_items(&self, table: &str, is_chosen: fn(&str) -> bool) -> Result<()> {
        let scan = self.client.scan().table_name(table).into_paginator().items().send();
        let mut deletes = Vec::new();
        for item in scan.collect::<Result<Vec<_>, _>>().await? {
            if item["pk"].as_s().is_ok_and(|pk| is_chosen(pk)) {
                let key = ["pk", "sk"].map(|name| (name.to_owned(), item[name].clone()));
                let delete = DeleteRequest::builder().set_key(Some(key.into())).build()?;
                deletes.push(WriteRequest::builder().delete_request(delete).build());
            }
        }
        for some in deletes.chunks(25) {
            self.client.batch_write_item().request_items(table, some.to_vec()).send().await?;
        }
        Ok(())
    }

    /// Delivers the rest of the stream. Returns where the counters then differ from a recount.
    pub(crate) async fn miscounted(&self) -> Result<Vec<String>> {
        self.aggregate_all().await?;
        recount::differences(self).await
    }

    /// Ends all faults, then checks that the counters of every date equal a recount.
    pub(crate) async fn assert_counters_exact(&self) -> Result<()> {
        self.faults.end();
        let miscounted = self.miscounted().await?;
        ensure!(miscounted.is_empty(), "the counters differ from a recount: {miscounted:#?}");
        Ok(())
    }
}
