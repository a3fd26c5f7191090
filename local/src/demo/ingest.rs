//! Creates and amends the payments of the day, as their clients do: the feed in batches, the others one by one.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use payments_model::PaymentId;
use scheduled_payments::{Bank, BatchEntry};

use super::script::Order;

/// The most payments of one batch.
const BATCH: usize = 100;

/// The number of batches at once.
const BATCHES_AT_ONCE: usize = 4;

/// The version of a payment that was created, and nothing else.
const FIRST_VERSION: u64 = 1;

/// The number of single payments at once.
const SINGLES_AT_ONCE: usize = 32;

/// The amendments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amended {
    /// Amended payments.
    pub(super) payments: u64,
    /// Payments that are due at another time since then.
    pub(super) moved: u64,
    /// The write units of the amendments.
    pub(super) units: u64,
    /// The time that they took.
    pub(super) took: Duration,
}

impl Amended {
    /// Amends payments: each is the first order, and shall be the second.
    pub(super) async fn make(&mut self, bank: &Bank, orders: impl Iterator<Item = (Order, Order)>) -> Result<()> {
        let started = Instant::now();
        for (first, last) in amend(bank, orders).await? {
            self.payments += 1;
            self.moved += u64::from(first.payment.scheduled_for != last.payment.scheduled_for);
        }
        self.took += started.elapsed();
        Ok(())
    }
}

/// Creates payments by batches, and returns their ids.
pub(super) async fn feed(bank: &Bank, orders: impl Iterator<Item = Order>) -> Result<Vec<String>> {
    let mut orders = orders.peekable();
    let batches = std::iter::from_fn(move || {
        orders.peek()?;
        Some(orders.by_ref().take(BATCH).collect::<Vec<_>>())
    });
    let batches = futures::stream::iter(batches).map(|batch| create_batch(bank, batch));
    let ids: Vec<Vec<String>> = batches.buffer_unordered(BATCHES_AT_ONCE).try_collect().await?;
    Ok(ids.concat())
}

/// Creates payments one by one, and returns their ids.
pub(super) async fn create(bank: &Bank, orders: impl Iterator<Item = Order>) -> Result<Vec<String>> {
    let orders = futures::stream::iter(orders).map(|order| create_one(bank, order));
    orders.buffer_unordered(SINGLES_AT_ONCE).try_collect().await
}

/// Amends payments one by one, each of which nobody amended before. Returns the orders.
async fn amend(bank: &Bank, orders: impl Iterator<Item = (Order, Order)>) -> Result<Vec<(Order, Order)>> {
    let orders = futures::stream::iter(orders).map(async |(first, last): (Order, Order)| {
        let id = PaymentId::derive(&first.account.parse()?, &first.key.parse()?).to_string();
        let amended = bank.amend(&last.account, &id, &last.key, &last.payment, FIRST_VERSION).await?;
        ensure!(!amended.replayed, "the payment {id} was amended before");
        Ok((first, last))
    });
    orders.buffer_unordered(SINGLES_AT_ONCE).try_collect().await
}

async fn create_one(bank: &Bank, order: Order) -> Result<String> {
    Ok(bank.create(&order.account, &order.key, &order.payment).await?.payment.payment_id)
}

async fn create_batch(bank: &Bank, orders: Vec<Order>) -> Result<Vec<String>> {
    let entry =
        |order: Order| BatchEntry { account_id: order.account, idempotency_key: order.key, order: order.payment };
    let entries: Vec<BatchEntry> = orders.into_iter().map(entry).collect();
    let results = bank.create_batch(&entries).await?;
    let ids = results.into_iter().map(|result| Ok(result.outcome?.payment.payment_id));
    let ids: Vec<String> = ids.collect::<Result<_>>()?;
    ensure!(ids.len() == entries.len(), "{} payments of the feed got {} results", entries.len(), ids.len());
    Ok(ids)
}
