//! The counters and the list of a date, read through the API.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use payments_machine::client::Client;
use payments_model::BusinessDate;
use scheduled_payments::DueFilter;
use serde_json::Value;

/// The time between two reads of counters that are waited for.
const PERIOD: Duration = Duration::from_millis(250);

/// The most payments of a page of the list.
const PAGE: u16 = 1_000;

/// The counters of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) total: u64,
    /// Payments that are not settled yet.
    pub(crate) open: u64,
}

/// Reads the counters of a date.
pub(crate) async fn counts(client: &Client, date: BusinessDate) -> Result<Counts> {
    let reply = client.get(&format!("/counts?from={date}&to={date}")).await?;
    let counts = &reply["counts"][0];
    let number = |path| counts.pointer(path).and_then(Value::as_u64).with_context(|| format!("no {path} in {reply}"));
    let open = number("/byStatus/SCHEDULED")? + number("/byStatus/PENDING")?;
    Ok(Counts { total: number("/total")?, open })
}

/// Reads the counters of a date until `is_wanted` is true or they have not changed for as long as `wait`.
pub(crate) async fn counts_until(
    client: &Client,
    date: BusinessDate,
    wait: Duration,
    is_wanted: impl Fn(Counts) -> bool,
) -> Result<Counts> {
    let (mut latest, mut since) = (counts(client, date).await?, Instant::now());
    while !is_wanted(latest) && since.elapsed() < wait {
        tokio::time::sleep(PERIOD).await;
        let now = counts(client, date).await?;
        if now != latest {
            (latest, since) = (now, Instant::now());
        }
    }
    Ok(latest)
}

/// Reads the whole list of a date and returns how many payments it has.
pub(crate) async fn listed(client: &Client, date: BusinessDate, mut show: impl FnMut(u64)) -> Result<u64> {
    let mut found = 0;
    let mut payments = client.bank().due(date.as_chrono(), &DueFilter { page_size: PAGE, ..DueFilter::default() });
    while payments.try_next().await?.is_some() {
        found += 1;
        if found % u64::from(PAGE) == 0 {
            show(found);
        }
    }
    show(found);
    Ok(found)
}
