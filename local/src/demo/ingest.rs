//! Creates the payments of the day, as their clients do: the feed in batches, the others one by one.

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use super::script::Order;
use crate::client::{Client, Reply, Request};

/// The most payments of one batch.
const BATCH: usize = 100;

/// How many batches are under way at once.
const BATCHES_AT_ONCE: usize = 4;

/// How many single payments are under way at once.
const SINGLES_AT_ONCE: usize = 32;

/// Creates payments by batches, and returns their ids.
pub(super) async fn feed(client: &Client, orders: impl Iterator<Item = Order>) -> Result<Vec<String>> {
    let mut orders = orders.peekable();
    let batches = std::iter::from_fn(move || {
        orders.peek()?;
        Some(orders.by_ref().take(BATCH).collect::<Vec<_>>())
    });
    let batches = futures::stream::iter(batches).map(|batch| create_batch(client, batch));
    let ids: Vec<Vec<String>> = batches.buffer_unordered(BATCHES_AT_ONCE).try_collect().await?;
    Ok(ids.concat())
}

/// Creates payments one by one, and returns their ids.
pub(super) async fn create(client: &Client, orders: impl Iterator<Item = Order>) -> Result<Vec<String>> {
    let orders = futures::stream::iter(orders).map(|order| create_one(client, order));
    orders.buffer_unordered(SINGLES_AT_ONCE).try_collect().await
}

async fn create_one(client: &Client, order: Order) -> Result<String> {
    let request = Request::create(&order.account, &order.key, &order.body);
    let reply = client.send_until(&request, |reply| !reply.is_for_later()).await?;
    id_of(&reply.json()?)
}

async fn create_batch(client: &Client, orders: Vec<Order>) -> Result<Vec<String>> {
    let entry = |order: Order| {
        let mut entry = order.body;
        entry["accountId"] = order.account.into();
        entry["idempotencyKey"] = order.key.into();
        entry
    };
    let entries: Vec<Value> = orders.into_iter().map(entry).collect();
    let request = Request::post("/payment-batches").json(&json!({ "payments": entries }));
    let is_for_later = |result: &Value| result["status"].as_u64().is_some_and(|status| status >= 500);
    let done = |reply: &Reply| !reply.is_for_later() && !results(reply).iter().any(is_for_later);
    let reply = client.send_until(&request, done).await?;
    let id = |result: &Value| id_of(&result["payment"]).with_context(|| result.to_string());
    let ids: Vec<String> = results(&reply).iter().map(id).collect::<Result<_>>()?;
    ensure!(
        ids.len() == entries.len(),
        "{} payments of the feed got {} results: {}",
        entries.len(),
        ids.len(),
        reply.text
    );
    Ok(ids)
}

fn results(reply: &Reply) -> Vec<Value> {
    let body = reply.json().unwrap_or_default();
    body["results"].as_array().cloned().unwrap_or_default()
}

fn id_of(payment: &Value) -> Result<String> {
    let id = payment["paymentId"].as_str().map(str::to_owned);
    id.with_context(|| format!("a payment was rejected: {payment}"))
}
