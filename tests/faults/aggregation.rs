//! The stream's delivery to `stream-aggregator`, and the check that the counters are exact.

use anyhow::{Result, ensure};
use aws_sdk_dynamodb::types::{DeleteRequest, WriteRequest};
use payments_delivery::Delivery;
use payments_tests::counting::{aggregate, drain, next_batch};
use payments_tests::tables::key_of;

use crate::kit::fixture::Fixture;
use crate::recount;

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
                let delete = DeleteRequest::builder().set_key(Some(key_of(&item))).build()?;
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
