//! What a date holds, asked from outside: its counters, and its payments page by page.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use payments_model::BusinessDate;

use crate::door::Door;

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
    pub(crate) async fn before(door: &Door, date: BusinessDate) -> Result<Self> {
        Ok(Self { counts: counts(door, date).await?, listed: listed(door, date, |_| {}).await? })
    }
}

/// What the counters of a date say now.
pub(crate) async fn counts(door: &Door, date: BusinessDate) -> Result<Counts> {
    let answer = door.get(&format!("/counts?from={date}&to={date}")).await?;
    let counts = &answer["counts"][0];
    let number = |path: &str| {
        counts.pointer(path).and_then(serde_json::Value::as_u64).with_context(|| format!("{path} in {answer}"))
    };
    let open = number("/byStatus/SCHEDULED")? + number("/byStatus/PENDING")?;
    Ok(Counts { total: number("/total")?, open })
}

/// The counters once they are as wanted, or have not moved for as long as `patience`.
pub(crate) async fn awaited(
    door: &Door,
    date: BusinessDate,
    patience: Duration,
    is_wanted: impl Fn(Counts) -> bool,
) -> Result<Counts> {
    let (mut latest, mut since) = (counts(door, date).await?, Instant::now());
    while !is_wanted(latest) && since.elapsed() < patience {
        tokio::time::sleep(PERIOD).await;
        let now = counts(door, date).await?;
        if now != latest {
            (latest, since) = (now, Instant::now());
        }
    }
    Ok(latest)
}

/// How many payments the list of a date has, read to its end.
pub(crate) async fn listed(door: &Door, date: BusinessDate, mut show: impl FnMut(u64)) -> Result<u64> {
    let path = format!("/payments?dueDate={date}&limit=1000");
    let (mut found, mut next) = (0, path.clone());
    loop {
        let page = door.get(&next).await?;
        let payments = page["payments"].as_array().with_context(|| format!("{next} was answered without payments"))?;
        found += u64::try_from(payments.len())?;
        show(found);
        let Some(cursor) = page["nextCursor"].as_str() else { return Ok(found) };
        let cursor: String = form_urlencoded::byte_serialize(cursor.as_bytes()).collect();
        next = format!("{path}&cursor={cursor}");
    }
}
