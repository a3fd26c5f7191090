//! A test's tools beside the API of its world: run the sweeper, change items, and read units and metrics.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context as _, Result, bail, ensure};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use lambda_runtime::Context;
use payments_machine::layers::record::is_of_runs;
use payments_store::{AuditEntry, AuditMonth, Item};
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::world::World;

/// A Lambda deadline that no test reaches: in the year 2100, in milliseconds.
pub const NO_DEADLINE: u64 = 4_102_444_800_000;

/// The most entries that a test's audit trail has.
const MAX_TRAIL: u16 = 500;

/// Capacity units by operation and by table or index.
pub type Units = BTreeMap<(String, String), u64>;

/// The context of an invocation that ends at `deadline`, in milliseconds.
pub fn context(deadline: u64) -> Context {
    let mut context = Context::default();
    context.deadline = deadline;
    context
}

/// A string attribute.
pub fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

/// A number attribute.
pub fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// An item in DynamoDB's JSON.
pub fn json_of_item(item: &Item) -> Value {
    Value::Object(item.iter().map(|(name, value)| (name.clone(), json_of(value))).collect())
}

/// A value in DynamoDB's JSON; null if no item of ours has its type. Sets, which have no order, are sorted.
pub fn json_of(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(number) => json!({ "N": number }),
        AttributeValue::Bool(truth) => json!({ "BOOL": truth }),
        AttributeValue::B(bytes) => json!({ "B": STANDARD.encode(bytes) }),
        AttributeValue::Ss(texts) => json!({ "SS": texts.iter().collect::<BTreeSet<_>>() }),
        AttributeValue::Ns(numbers) => json!({ "NS": numbers.iter().collect::<BTreeSet<_>>() }),
        AttributeValue::L(list) => json!({ "L": list.iter().map(json_of).collect::<Vec<_>>() }),
        AttributeValue::M(map) => json!({ "M": json_of_item(map) }),
        _ => Value::Null,
    }
}

/// An item from DynamoDB's JSON.
pub fn item_of(json: &Value) -> Result<Item> {
    let attributes = json.as_object().context("an item is an object")?;
    attributes.iter().map(|(name, value)| Ok((name.clone(), value_of(value)?))).collect()
}

/// A value from DynamoDB's JSON.
fn value_of(json: &Value) -> Result<AttributeValue> {
    let value = json.as_object().and_then(|it| it.iter().next()).map(|(kind, value)| (kind.as_str(), value));
    Ok(match value {
        Some(("S", Value::String(text))) => AttributeValue::S(text.clone()),
        Some(("N", Value::String(number))) => AttributeValue::N(number.clone()),
        Some(("BOOL", Value::Bool(truth))) => AttributeValue::Bool(*truth),
        Some(("B", Value::String(text))) => AttributeValue::B(Blob::new(STANDARD.decode(text)?)),
        Some(("NS", numbers)) => AttributeValue::Ns(serde_json::from_value(numbers.clone())?),
        Some(("SS", texts)) => AttributeValue::Ss(serde_json::from_value(texts.clone())?),
        Some(("L", Value::Array(list))) => AttributeValue::L(list.iter().map(value_of).collect::<Result<_>>()?),
        Some(("M", map @ Value::Object(_))) => AttributeValue::M(item_of(map)?),
        _ => bail!("no item here has {json}"),
    })
}

/// An item of these attributes.
pub fn item<const N: usize>(attributes: [(&str, AttributeValue); N]) -> Item {
    attributes.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The units of one operation, by table or index.
pub fn units<const N: usize>(operation: &str, places: [(&str, u64); N]) -> Units {
    places.map(|(place, units)| ((operation.to_owned(), place.to_owned()), units)).into()
}

/// A primary key.
pub fn key(pk: impl Into<String>, sk: impl Into<String>) -> Item {
    item([("pk", text(pk)), ("sk", text(sk))])
}

/// The primary key of a payment's details.
pub fn details_key(payment_id: &str) -> Item {
    key(format!("PAY#{payment_id}"), "DETAILS")
}

/// The outcome of an audited action, by the trail.
pub fn audited(entry: &AuditEntry) -> &str {
    entry.outcome.as_ref().map_or("unknown", |outcome| &outcome.result)
}

/// The primary key of an item.
pub fn key_of(item: &Item) -> Item {
    ["pk", "sk"].map(|name| (name.to_owned(), item[name].clone())).into()
}

impl World {
    /// Creates a payment. Returns its id.
    pub async fn create(&self, account: &str, key: &str, body: &Value) -> Result<String> {
        let reply = self.send(Ask::create(account, key, body)).await?.with_status(201)?;
        Ok(reply.field("paymentId").to_owned())
    }

    /// Creates payments, a hundred to a batch. Returns their ids in this order.
    pub async fn create_all(&self, entries: impl IntoIterator<Item = Value>) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for batch in entries.into_iter().collect::<Vec<_>>().chunks(100) {
            let reply = self.send(Ask::post("/payment-batches").json(&json!({ "payments": batch }))).await?;
            for result in reply.body["results"].as_array().with_context(|| reply.to_string())? {
                ensure!(result["statusCode"] == 201, "{result}");
                ids.push(result["payment"]["paymentId"].as_str().with_context(|| result.to_string())?.to_owned());
            }
        }
        Ok(ids)
    }

    /// Cancels a payment.
    pub async fn cancel(&self, account: &str, payment_id: &str) -> Result<()> {
        self.send(Ask::cancel(account, payment_id)).await?.with_status(200).map(drop)
    }

    /// A payment's details as stored: the first, and then its amendments.
    pub async fn details(&self, payment_id: &str) -> Result<Vec<Item>> {
        let query = self.client().await.query().table_name(&self.environment.tables.history);
        let query = query.key_condition_expression("pk = :pk AND begins_with(sk, :sk)");
        let query = query.expression_attribute_values(":pk", text(format!("PAY#{payment_id}")));
        let found = query.expression_attribute_values(":sk", text("DETAILS")).send().await?;
        Ok(found.items.unwrap_or_default())
    }

    /// All items of the hot table and of history, without the outcomes of runs.
    pub async fn items(&self) -> Result<Vec<Item>> {
        let tables = &self.environment.tables;
        let mut items = [self.items_of(&tables.payments).await?, self.items_of(&tables.history).await?].concat();
        items.retain(|item| item["pk"].as_s().is_ok_and(|partition| !partition.starts_with("RUNS#")));
        Ok(items)
    }

    /// All items of a table.
    pub async fn items_of(&self, table: &str) -> Result<Vec<Item>> {
        Ok(self.client().await.scan().table_name(table).send().await?.items.unwrap_or_default())
    }

    /// The audit trail of the month, the newest entry first.
    pub async fn audit_trail(&self) -> Result<Vec<AuditEntry>> {
        let page = self.store().await.audit_page(&AuditMonth::from_second(self.now()), None, MAX_TRAIL).await?;
        Ok(page.entries.into_iter().collect::<Result<_, _>>()?)
    }

    /// Deletes an item of a table.
    pub async fn delete(&self, table: &str, item: &Item) -> Result<()> {
        self.client().await.delete_item().table_name(table).set_key(Some(key_of(item))).send().await?;
        Ok(())
    }

    /// The head of a payment, as stored.
    pub async fn head_of(&self, account: &str, payment_id: &str) -> Result<Item> {
        let is_its = |head: &Item| head["sk"].as_s().is_ok_and(|sk| sk.ends_with(payment_id));
        self.heads(account).await?.into_iter().find(is_its).with_context(|| format!("{payment_id} has no head"))
    }

    /// The numbers of an account's heads in the hot table, and in history.
    pub async fn places(&self, account: &str) -> Result<(usize, usize)> {
        Ok((self.heads(account).await?.len(), self.archived_heads(account).await?.len()))
    }

    /// Forgets the calls, the units and the metrics until now.
    pub fn forget(&self) {
        drop((self.recorder.take_operations(), self.recorder.take_capacity_use(), self.outside.metrics.take()));
    }

    /// Puts items into a table.
    pub async fn put_items(&self, table: &str, items: impl IntoIterator<Item = Item>) -> Result<()> {
        let client = self.client().await;
        for item in items {
            client.put_item().table_name(table).set_item(Some(item)).send().await?;
        }
        Ok(())
    }

    /// Archives an account's heads.
    pub async fn archive_all(&self, account: &str) -> Result<()> {
        let (client, tables) = (self.client().await, &self.environment.tables);
        for item in self.heads(account).await? {
            let key = Some(key_of(&item));
            client.put_item().table_name(&tables.history).set_item(Some(item)).send().await?;
            client.delete_item().table_name(&tables.payments).set_key(key).send().await?;
        }
        Ok(())
    }

    /// Sets an attribute of an item, or removes it.
    pub async fn set(&self, table: &str, key: &Item, name: &str, value: Option<AttributeValue>) -> Result<()> {
        let update = self.client().await.update_item().table_name(table).set_key(Some(key_of(key)));
        let update = update.expression_attribute_names("#name", name);
        match value {
            Some(value) => update.update_expression("SET #name = :value").expression_attribute_values(":value", value),
            None => update.update_expression("REMOVE #name"),
        }
        .send()
        .await?;
        Ok(())
    }

    /// Updates an item of the hot table.
    pub async fn update(&self, item: &Item, expression: &str, values: &[(&str, AttributeValue)]) -> Result<()> {
        self.update_in(&self.environment.tables.payments, key_of(item), expression, values).await
    }

    /// Updates a payment's details. A name that is one of DynamoDB's reserved words has a `#` before it.
    pub async fn update_details(
        &self,
        payment_id: &str,
        expression: &str,
        values: &[(&str, AttributeValue)],
    ) -> Result<()> {
        self.update_in(&self.environment.tables.history, details_key(payment_id), expression, values).await
    }

    /// Updates an item of a table.
    pub async fn update_in(
        &self,
        table: &str,
        key: Item,
        expression: &str,
        values: &[(&str, AttributeValue)],
    ) -> Result<()> {
        let update = self.client().await.update_item().table_name(table);
        let update = update.set_key(Some(key)).update_expression(expression);
        let names =
            expression.split(' ').filter_map(|word| Some((word.to_owned(), word.strip_prefix('#')?.to_owned())));
        let names: HashMap<_, _> = names.collect();
        let update = update.set_expression_attribute_names(Some(names).filter(|names| !names.is_empty()));
        let values: HashMap<_, _> = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        update.set_expression_attribute_values(Some(values).filter(|values| !values.is_empty())).send().await?;
        Ok(())
    }

    /// A metric of the latest invocation.
    pub fn metric(&self, name: &str) -> Result<u64> {
        let lines = self.outside.metrics.take();
        let line: Value = serde_json::from_str(lines.last().context("no metrics were emitted")?)?;
        line[name].as_u64().with_context(|| format!("no {name} in {line}"))
    }

    /// The units consumed since the last time. The tables are called `payments`, `history` and `payments-log` here.
    pub fn take_units(&self) -> Units {
        let tables = &self.environment.tables;
        let plain = |place: String| {
            let place = place.replace(&tables.log, "payments-log").replace(&tables.history, "history");
            place.replace(&tables.payments, "payments")
        };
        let used = self.recorder.take_capacity_use().into_iter();
        used.map(|((operation, place), halves)| ((operation, plain(place)), halves / 2)).collect()
    }

    /// The write units of payments among them, without rows of zero. `journeys/runs.rs` has those of last runs and figures.
    pub fn take_write_units(&self) -> Units {
        let mut units = self.take_units();
        let is_read = |operation: &str| matches!(operation, "Query" | "GetItem" | "BatchGetItem");
        units.retain(|(operation, place), units| *units > 0 && !is_read(operation) && !is_of_runs(place));
        units
    }
}
