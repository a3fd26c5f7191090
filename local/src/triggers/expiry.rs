//! What DynamoDB does by itself: it deletes items of the hot table that have expired. An embedded engine does not.

use std::collections::HashMap;

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use payments_store::EXPIRES_AT;

use crate::stack::Stack;

/// How often expired items are looked for, which reads the whole hot table. DynamoDB takes days at the most.
const EVERY: TimeDelta = TimeDelta::hours(6);

/// The expiry of the hot table's items.
#[derive(Debug)]
pub(super) struct Expiry {
    client: Client,
    table: String,
    next: Option<DateTime<Utc>>,
}

impl Expiry {
    pub(super) fn of(stack: &Stack) -> Self {
        Self { client: stack.client(), table: stack.environment.tables.payments.clone(), next: None }
    }

    /// Deletes what has expired, if it is time to look.
    pub(super) async fn run(&mut self, now: DateTime<Utc>) -> Result<()> {
        if self.next.is_some_and(|next| now < next) {
            return Ok(());
        }
        self.next = Some(now + EVERY);
        let instant = AttributeValue::N(now.timestamp().to_string());
        let mut after = None;
        loop {
            let scan = self.client.scan().table_name(&self.table).filter_expression(format!("{EXPIRES_AT} < :now"));
            let scan = scan.expression_attribute_values(":now", instant.clone()).projection_expression("pk, sk");
            let page = scan.set_exclusive_start_key(after).send().await?;
            for key in page.items.unwrap_or_default() {
                self.delete(key).await?;
            }
            after = page.last_evaluated_key;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn delete(&self, key: HashMap<String, AttributeValue>) -> Result<()> {
        self.client.delete_item().table_name(&self.table).set_key(Some(key)).send().await?;
        Ok(())
    }
}
