//! The workload of a bank, and its day: the quantities of parts that are played, scaled.

use anyhow::{Result, anyhow};
use chrono::TimeDelta;
use clap::Args;
use payments_machine::payload::DataKind;

use crate::days::{idle_day, whole_day};
use crate::play::{Content, Kind, Part, part};
use crate::quantities::{Quantities, scaled};

/// The largest data of a payment of 8 KB, whatever its accounts are called.
const LARGEST: usize = 7_400;

/// The payments that the feed creates in a second: a million in half an hour.
const FEED_PER_SECOND: u64 = 556;

/// The seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// The most payments of a part that are played, of the feed and of the others: as dense as in a day, so that batches are
/// as full.
const FED: u64 = 2_000;
const SINGLES: u64 = 1_000;

/// The most seconds of a part, so that its payments are due on the same day.
const LONGEST: u64 = 8 * 60 * 60;

/// The traffic of a day.
#[derive(Debug, Clone, Copy, Args)]
pub struct Workload {
    /// Payments a day; 0 for an idle stack.
    #[arg(long, default_value_t = 2_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(..=100_000_000))]
    pub payments: u64,

    /// The share of payments that the feed creates in batches of a hundred, in percent. The others come one by one.
    #[arg(long, default_value_t = 50, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(..=100))]
    pub feed: u64,

    /// The share of the single payments that are amended, in percent.
    #[arg(long, default_value_t = 0, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(..=100))]
    pub amended: u64,

    /// The share of the single payments that are cancelled, in percent.
    #[arg(long, default_value_t = 0, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(..=100))]
    pub cancelled: u64,

    /// The kind of the payments' data. The cost depends on how well it compresses.
    #[arg(long, value_enum, default_value_t, value_name = "KIND")]
    pub data_kind: DataKind,

    /// The bytes of each payment's data.
    #[arg(long, default_value_t = LARGEST, value_name = "BYTES", value_parser = data_bytes)]
    pub bytes: usize,

    /// Endpoints of webhooks that are told of each change.
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u64).range(..=16))]
    pub webhooks: u64,
}

fn data_bytes(text: &str) -> Result<usize> {
    let bytes = text.parse().ok().filter(|bytes| (2..=LARGEST).contains(bytes));
    bytes.ok_or_else(|| anyhow!("give a number of bytes from 2 to {LARGEST}"))
}

impl Workload {
    /// The traffic of a stack that nobody uses.
    #[must_use]
    pub fn idle() -> Self {
        Self { payments: 0, feed: 0, amended: 0, cancelled: 0, data_kind: DataKind::default(), bytes: 2, webhooks: 0 }
    }

    /// Returns the payments of each kind.
    #[must_use]
    pub fn by_kind(&self) -> [(Kind, u64); 4] {
        let fed = self.payments * self.feed / 100;
        let singles = self.payments - fed;
        let (amended, cancelled) = (singles * self.amended / 100, singles * self.cancelled / 100);
        let plain = singles.saturating_sub(amended + cancelled);
        [(Kind::Feed, fed), (Kind::Single, plain), (Kind::Amended, amended), (Kind::Cancelled, cancelled)]
    }

    /// Returns the content of its payments.
    #[must_use]
    pub fn content(&self) -> Content {
        Content { kind: self.data_kind, bytes: self.bytes, endpoints: self.webhooks }
    }

    /// Returns the parts of a day that stand for all of it, each with the payments of the day that it stands for: the
    /// feed, and the single payments, which come as densely as in the day.
    fn parts(&self) -> Result<Vec<(Part, u64)>> {
        let [fed, singles @ ..] = self.by_kind();
        let mut parts = Vec::new();
        if fed.1 > 0 {
            let payments = fed.1.min(FED);
            let within = TimeDelta::milliseconds((payments * 1_000 / FEED_PER_SECOND).try_into()?);
            parts.push((Part { kinds: vec![(Kind::Feed, payments)], within }, fed.1));
        }
        let payments: u64 = singles.iter().map(|(_, payments)| payments).sum();
        if payments > 0 {
            let count = (payments * LONGEST / DAY).clamp(1, SINGLES);
            let within = TimeDelta::milliseconds((count * DAY * 1_000 / payments).min(LONGEST * 1_000).try_into()?);
            let kinds = singles.map(|(kind, of_day)| (kind, scaled(of_day, count, payments)));
            parts.push((Part { kinds: kinds.to_vec(), within }, payments));
        }
        Ok(parts)
    }

    /// Plays whole days of the workload, each payment of it, and returns what the last day takes.
    ///
    /// # Errors
    /// If a function fails.
    pub fn whole_day(&self) -> Result<Quantities> {
        let mut day = blocking(whole_day(&self.by_kind(), self.content()))?;
        let [here, deployed] = [false, true].map(|is_deployed| blocking(idle_day(self.webhooks, is_deployed)));
        day.add_scaled(&deployed?.without(&here?), 1, 1);
        Ok(day)
    }

    /// Plays the parts of the workload, and returns the quantities of its day.
    ///
    /// # Errors
    /// If a function fails.
    pub fn day(&self) -> Result<Quantities> {
        let content = self.content();
        let parts = self.parts()?;
        std::thread::scope(|threads| {
            let idle = threads.spawn(move || blocking(idle_day(content.endpoints, true)));
            let empty = threads.spawn(move || blocking(part(None, content)));
            let play = |played| threads.spawn(move || blocking(part(Some(played), content)));
            let played: Vec<_> = parts.iter().map(|(played, _)| play(played)).collect();
            let idle = joined(idle)?;
            let (mut day, empty) = (idle.clone(), joined(empty)?);
            for (thread, (part, payments)) in played.into_iter().zip(&parts) {
                day.add_scaled(&joined(thread)?.without(&empty), *payments, part.payments());
            }
            Ok(day.with_metrics_all_day(&idle))
        })
    }
}

/// Runs on this thread, which the functions do not leave, so that their log is recorded.
fn blocking(run: impl Future<Output = Result<Quantities>>) -> Result<Quantities> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run)
}

fn joined(thread: std::thread::ScopedJoinHandle<'_, Result<Quantities>>) -> Result<Quantities> {
    thread.join().map_err(|_| anyhow!("a part of the day panicked"))?
}
