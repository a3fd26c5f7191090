//! DynamoDB's own work: it deletes expired items of the payments' tables. An embedded engine does not.

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use payments_store::schema::{HISTORY, PAYMENTS};

use crate::stack::Stack;

/// The interval of the search for expired items, which reads both tables. DynamoDB takes days at the most.
const EVERY: TimeDelta = TimeDelta::hours(6);

/// The expiry of the items of the hot table and of the long-term table.
#[derive(Debug)]
pub(super) struct Expiry {
    client: Client,
    /// The tables, each with the attribute that says when an item expires.
    tables: [(String, Option<&'static str>); 2],
    next: Option<DateTime<Utc>>,
}

impl Expiry {
    pub(super) fn new(stack: &Stack) -> Self {
        let names = &stack.environment.tables;
        let tables = [(names.payments.clone(), PAYMENTS.time_to_live), (names.history.clone(), HISTORY.time_to_live)];
        Self { client: stack.client(), tables, next: None }
    }

    /// Deletes what has expired, if it is time to look.
    pub(super) async fn run(&mut self, now: DateTime<Utc>) -> Result<()> {
        if self.next.is_some_and(|next| now < next) {
            return Ok(());
        }
        self.next = Some(now + EVERY);
        for (table, attribute) in &self.tables {
            if let Some(attribute) = attribute {
                self.delete_expired(table, attribute, now).await?;
            }
        }
        Ok(())
    }

    async fn delete_expired(&self, table: &str, attribute: &str, now: DateTime<Utc>) -> Result<()> {
        let instant = AttributeValue::N(now.timestamp().to_string());
        let mut after = None;
        loop {
            let scan = self.client.scan().table_name(table).filter_expression(format!("{attribute} < :now"));
            let scan = scan.expression_attribute_values(":now", instant.clone()).projection_expression("pk, sk");
            let page = scan.set_exclusive_start_key(after).send().await?;
            for key in page.items.unwrap_or_default() {
                self.client.delete_item().table_name(table).set_key(Some(key)).send().await?;
            }
            after = page.last_evaluated_key;
            if after.is_none() {
                return Ok(());
            }
        }
    }
}
