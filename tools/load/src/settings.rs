//! What the load is to be like.

use std::str::FromStr;
use std::time::Duration;

use payments_model::{BusinessDate, BusinessZone};

/// The size of a payment as it is stored, in bytes, at its largest.
pub const LARGEST: usize = 8_192;

/// How many seconds are waited for counters that do not move before they are taken as they are. They
/// follow within some six where little is going on: `stream-aggregator` waits five for company.
pub const PATIENCE: u32 = 30;

/// What the load is to be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many payments are put in.
    pub payments: u64,
    /// What everything random follows from.
    pub seed: u64,
    /// How large payments are.
    pub size: Size,
    /// How many accounts pay.
    pub accounts: u32,
    /// How many of a hundred payments the busiest hundredth of the accounts makes.
    pub busiest: u8,
    /// How many payments one request carries; one goes to the route of single payments.
    pub batch: u64,
    /// How many requests are under way at once.
    pub concurrency: u64,
    /// How many payments a second; without it as many as there can be.
    pub rate: Option<u32>,
    /// Whether payments fall due at once, and are asked for while they are put in.
    pub mixed: bool,
    /// The business date on which payments are due; tomorrow without it, in mixed mode today.
    pub due: Option<BusinessDate>,
    /// The bank's time zone.
    pub zone: BusinessZone,
    /// How long is waited for counters that do not move.
    pub patience: Duration,
}

impl Settings {
    /// Payments of 8 KB, in full batches, as fast as can be.
    #[must_use]
    pub fn of(payments: u64, zone: BusinessZone) -> Self {
        Self {
            payments,
            seed: 1,
            size: Size::Bytes(LARGEST),
            accounts: 10_000,
            busiest: 20,
            batch: MAX_BATCH,
            concurrency: BATCHES,
            rate: None,
            mixed: false,
            due: None,
            zone,
            patience: Duration::from_secs(PATIENCE.into()),
        }
    }
}

/// The most payments of one request.
pub const MAX_BATCH: u64 = 100;

/// How many batches are under way at once unless somebody says otherwise. `ingest` works on sixteen
/// payments of each.
pub const BATCHES: u64 = 4;

/// How many single payments are under way at once unless somebody says otherwise.
pub const SINGLES: u64 = 32;

/// How large payments are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// All of them about this large, as stored and in bytes: never larger, and smaller only by what their
    /// client's name is shorter than a name can be. What every payment has takes 285.
    Bytes(usize),
    /// Most of them small, some up to 8 KB.
    Mixed,
}

/// Why a text is no size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeError;

impl std::error::Error for SizeError {}

impl std::fmt::Display for SizeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "give 8k, mixed, or a number of bytes up to {LARGEST}")
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        match text {
            "8k" => Ok(Self::Bytes(LARGEST)),
            "mixed" => Ok(Self::Mixed),
            _ => text.parse().ok().filter(|bytes| (1..=LARGEST).contains(bytes)).map(Self::Bytes).ok_or(SizeError),
        }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
    fn sizes_are_read() {
        for (text, size) in [
            ("8k", Ok(Size::Bytes(8_192))),
            ("mixed", Ok(Size::Mixed)),
            ("1000", Ok(Size::Bytes(1_000))),
            ("0", Err(SizeError)),
            ("8193", Err(SizeError)),
            ("large", Err(SizeError)),
        ] {
            assert_eq!(text.parse(), size, "{text}");
        }
    }
}
