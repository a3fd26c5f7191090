//! What a date holds, asked from outside: its counters, and its payments page by page.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use payments_local::client::Client;
use payments_model::BusinessDate;

/// How often the counters are asked for while they follow.
const PERIOD: Duration = Duration::from_millis(250);

/// What the counters of a date say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Payments.
    pub(crate) total: u64,
    /// Those of them that are not settled yet.
    pub(crate) open: u64,
}

/// What a date holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) counts: Counts,
    /// Payments in the date's list.
    pub(crate) listed: u64,
}

impl Standing {
    /// What a date holds before the load.
    pub(crate) async fn before(client: &Client, date: BusinessDate) -> Result<Self> {
        Ok(Self { counts: counts(client, date).await?, listed: listed(client, date, |_| {}).await? })
    }
}

/// What the counters of a date say now.
pub(crate) async fn counts(client: &Client, date: BusinessDate) -> Result<Counts> {
    let answer = client.get(&format!("/counts?from={date}&to={date}")).await?;
    let counts = &answer["counts"][0];
    let number = |path: &str| {
        counts.pointer(path).and_then(serde_json::Value::as_u64).with_context(|| format!("{path} in {answer}"))
    };
    let open = number("/byStatus/SCHEDULED")? + number("/byStatus/PENDING")?;
    Ok(Counts { total: number("/total")?, open })
}

/// The counters once they are as wanted, or have not moved for as long as `patience`.
pub(crate) async fn awaited(
    client: &Client,
    date: BusinessDate,
    patience: Duration,
    is_wanted: impl Fn(Counts) -> bool,
) -> Result<Counts> {
    let (mut latest, mut since) = (counts(client, date).await?, Instant::now());
    while !is_wanted(latest) && since.elapsed() < patience {
        tokio::time::sleep(PERIOD).await;
        let now = counts(client, date).await?;
        if now != latest {
            (latest, since) = (now, Instant::now());
        }
    }
    Ok(latest)
}

/// How many payments the list of a date has, read to its end.
pub(crate) async fn listed(client: &Client, date: BusinessDate, mut show: impl FnMut(u64)) -> Result<u64> {
    let mut found = 0;
    let each_page = |payments: &[serde_json::Value]| {
        found += u64::try_from(payments.len()).unwrap_or(u64::MAX);
        show(found);
    };
    client.pages(&format!("/payments?dueDate={date}&limit=1000"), each_page).await?;
    Ok(found)
}
