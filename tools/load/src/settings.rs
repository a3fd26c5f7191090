//! The settings of a load, which are options of `cargo load`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use payments_machine::payload::DataKind;
use payments_model::{BusinessDate, BusinessZone};
use payments_store::{MAX_DETAILS_BYTES, OWN_DETAILS_BYTES};

/// The largest size of a payment: the bytes that a client may choose.
pub const LARGEST: usize = MAX_DETAILS_BYTES - OWN_DETAILS_BYTES;

/// The most payments of one batch.
pub const MAX_BATCH: u64 = 100;

/// The number of batches in flight by default. `ingest` works on sixteen payments of each at a time.
const BATCHES: u64 = 4;

/// The number of single creates in flight by default.
pub(crate) const SINGLES: u64 = 32;

/// The most payments of one load: two days of them.
const MAX_PAYMENTS: u64 = 4_000_000;

/// The seconds to wait for counters that do not change. They follow within about six seconds if there is little other
/// work: `stream-aggregator` collects a batch for up to five.
const WAIT: u64 = 30;

/// The settings of a load.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// The number of payments to create.
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_PAYMENTS))]
    pub payments: u64,

    /// The seed. The same seed makes the same payments.
    #[arg(long, default_value_t = 1, value_name = "S")]
    pub seed: u64,

    /// The size of a payment: 8k for the largest, a number of bytes that its client chooses, or mixed.
    #[arg(long, default_value = "8k", value_name = "SIZE")]
    pub size: Size,

    /// The kind of the payments' data. The cost of a payment depends on how well its data compresses.
    #[arg(long, value_enum, default_value_t, value_name = "KIND")]
    pub data_kind: DataKind,

    /// The number of accounts that pay.
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99_999))]
    pub accounts: u32,

    /// The share of payments from the busiest hundredth of the accounts, in percent. 0 makes all accounts alike.
    #[arg(long, default_value_t = 20, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub busiest: u8,

    /// Create payments one by one, not in batches of a hundred.
    #[arg(long)]
    pub single: bool,

    /// The number of requests in flight at once. The default is 4 batches or 32 single creates.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub concurrency: Option<u64>,

    /// The number of payments to create per second. The default is as many as possible, or 556 with
    /// --mixed. With a rate, the latency of a request counts from the time at which it was due.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,

    /// Run a whole day's traffic: the feed, single creates, lists, counts and look-ups. The payments are due today, so
    /// they are swept, dispatched and settled during the load.
    #[arg(long)]
    pub mixed: bool,

    /// The date on which the payments are due. The default is tomorrow, or today with --mixed.
    #[arg(long, value_name = "DATE")]
    pub due: Option<BusinessDate>,

    /// The bank's time zone, which decides what "today" is.
    #[arg(long, default_value = "Europe/London", value_name = "ZONE")]
    pub time_zone: BusinessZone,

    /// The seconds to wait for counters that do not change.
    #[arg(long, default_value_t = WAIT, value_name = "SECONDS")]
    pub wait: u64,
}

impl Settings {
    /// Returns the defaults for so many payments.
    pub fn new(payments: u64, time_zone: BusinessZone) -> Self {
        Self {
            payments,
            seed: 1,
            size: Size::Bytes(LARGEST),
            data_kind: DataKind::default(),
            accounts: 10_000,
            busiest: 20,
            single: false,
            concurrency: None,
            rate: None,
            mixed: false,
            due: None,
            time_zone,
            wait: WAIT,
        }
    }

    /// The number of payments that one request creates.
    pub(crate) fn batch(&self) -> u64 {
        if self.single { 1 } else { MAX_BATCH }
    }

    pub(crate) fn concurrency(&self) -> u64 {
        self.concurrency.unwrap_or(if self.single { SINGLES } else { BATCHES })
    }

    pub(crate) fn wait(&self) -> Duration {
        Duration::from_secs(self.wait)
    }
}

/// The size of the payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// In all, the client chooses this many bytes. The fields besides the data take 29 of them.
    Bytes(usize),
    /// Most are small, some have up to 8 KB.
    Mixed,
}

impl FromStr for Size {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "8k" => Ok(Self::Bytes(LARGEST)),
            "mixed" => Ok(Self::Mixed),
            _ => {
                let bytes = text.parse().ok().filter(|bytes| (1..=LARGEST).contains(bytes)).map(Self::Bytes);
                bytes.with_context(|| format!("give 8k, mixed, or a number of bytes up to {LARGEST}"))
            }
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(LARGEST) => f.write_str("8k"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Mixed => f.write_str("mixed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_8k_mixed_or_a_number_of_bytes_up_to_7552() {
        let valid = [("8k", Size::Bytes(7_552)), ("mixed", Size::Mixed), ("1000", Size::Bytes(1_000))];
        for (text, size) in valid {
            assert_eq!(text.parse::<Size>().ok(), Some(size), "{text}");
        }
        for text in ["0", "7553", "large"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
