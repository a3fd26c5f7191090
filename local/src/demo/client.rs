//! A client of the bank: requests become API Gateway events, and what the bank cannot do now is
//! asked for again, under the same key.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, bail};
use aws_lambda_events::encodings::Body;
use futures::{StreamExt as _, TryStreamExt as _};
use payments_boot::Clock;
use serde_json::{Value, json};

use super::script::Order;
use crate::event;
use crate::functions::Functions;

/// How often a request is made at most while the bank answers that it cannot be done now.
const TRIES: usize = 5;

/// The most payments of one batch.
pub(super) const BATCH: usize = 100;

/// How many requests are under way at once.
const CONCURRENCY: usize = 8;

/// The client.
pub(super) struct Client {
    functions: Functions,
    clock: Clock,
    requests: AtomicU64,
}

impl Client {
    /// A client of these functions.
    pub(super) fn new(functions: Functions, clock: Clock) -> Self {
        Self { functions, clock, requests: AtomicU64::new(0) }
    }

    /// Puts payments in by batches, and returns their ids.
    pub(super) async fn feed(&self, orders: impl Iterator<Item = Order>) -> Result<Vec<String>> {
        let mut orders = orders.peekable();
        let batches = std::iter::from_fn(move || {
            orders.peek()?;
            Some(orders.by_ref().take(BATCH).collect::<Vec<_>>())
        });
        let batches = futures::stream::iter(batches).map(|batch| self.create_batch(batch));
        let ids: Vec<Vec<String>> = batches.buffer_unordered(CONCURRENCY / 2).try_collect().await?;
        Ok(ids.concat())
    }

    /// Puts payments in one by one, and returns their ids.
    pub(super) async fn create(&self, orders: impl Iterator<Item = Order>) -> Result<Vec<String>> {
        let orders = futures::stream::iter(orders).map(|order| self.create_one(order));
        orders.buffer_unordered(CONCURRENCY * 4).try_collect().await
    }

    async fn create_one(&self, order: Order) -> Result<String> {
        let path = format!("/accounts/{}/payments", order.account);
        let reply = self.post(&path, &order.key, &order.body, |status, _| status < 500).await?;
        reply["paymentId"].as_str().map(str::to_owned).with_context(|| format!("a payment was refused: {reply}"))
    }

    async fn create_batch(&self, orders: Vec<Order>) -> Result<Vec<String>> {
        let entry = |order: Order| {
            let mut entry = order.body;
            entry["accountId"] = order.account.into();
            entry["idempotencyKey"] = order.key.into();
            entry
        };
        let body = json!({ "payments": orders.into_iter().map(entry).collect::<Vec<_>>() });
        let entries = |reply: &Value| reply["results"].as_array().cloned().unwrap_or_default();
        let done = |status: i64, reply: &Value| {
            let busy = |entry: &Value| entry["status"].as_i64().is_some_and(|status| status >= 500);
            status < 500 && !entries(reply).iter().any(busy)
        };
        let reply = self.post("/payment-batches", "feed", &body, done).await?;
        let id = |entry: &Value| {
            let id = entry["payment"]["paymentId"].as_str().map(str::to_owned);
            id.with_context(|| format!("a payment of the feed was refused: {entry}"))
        };
        let ids: Vec<String> = entries(&reply).iter().map(id).collect::<Result<_>>()?;
        let asked = body["payments"].as_array().map_or(0, Vec::len);
        if ids.len() != asked {
            bail!("the feed put {asked} payments in and was answered {} times: {reply}", ids.len());
        }
        Ok(ids)
    }

    async fn post(&self, path: &str, key: &str, body: &Value, done: impl Fn(i64, &Value) -> bool) -> Result<Value> {
        let body = body.to_string();
        let mut reply = Value::Null;
        for _ in 0..TRIES {
            let (status, answer) = self.send("POST", path, key, &body).await?;
            if done(status, &answer) {
                return Ok(answer);
            }
            reply = answer;
        }
        bail!("{path} was asked {TRIES} times and did not answer: {reply}")
    }

    /// What is at a path.
    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        let (status, answer) = self.send("GET", path, "", "").await?;
        if status == 200 { Ok(answer) } else { bail!("{path} answered {status}: {answer}") }
    }

    /// Shows each payment of a list, page by page.
    pub(super) async fn each(&self, path: &str, mut show: impl FnMut(&Value)) -> Result<()> {
        let mut next = path.to_owned();
        loop {
            let (status, page) = self.send("GET", &next, "", "").await?;
            let Value::Array(found) = &page["payments"] else {
                bail!("{next} answered {status}: {page}");
            };
            found.iter().for_each(&mut show);
            let Some(cursor) = page["nextCursor"].as_str() else { return Ok(()) };
            let cursor: String = form_urlencoded::byte_serialize(cursor.as_bytes()).collect();
            next = format!("{path}&cursor={cursor}");
        }
    }

    async fn send(&self, method: &str, path: &str, key: &str, body: &str) -> Result<(i64, Value)> {
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("Content-Type", "application/json").header("Idempotency-Key", key);
        let (parts, ()) = request.body(())?.into_parts();
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let request_id = format!("demo-{number}");
        let (function, event) = event::of(&parts, body.as_bytes(), &request_id, self.clock.instant())?;
        let response = self.functions.invoke(function, event).await;
        let Some(Body::Text(text)) = response.body else { bail!("{path} was answered without a text") };
        Ok((response.status_code, serde_json::from_str(&text)?))
    }
}
