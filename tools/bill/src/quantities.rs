//! Quantities that AWS charges for, by line of the bill: the value that is recorded, scaled and priced.

use std::collections::{BTreeMap, BTreeSet};

/// The parts of the names of lines that only sealing has.
const SEALING: [&str; 5] = ["of the clear", "of the seal", "parts", "payments cleared", "seal, "];

/// Thousandths of what is charged, by line: `payments, writes`, `ingest, invocations`. A part of a payment's batch is
/// less than one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quantities {
    /// The amounts, in thousandths.
    pub amounts: BTreeMap<String, u64>,
    /// The custom metrics, with their function, and the hours of the day in which they were sent.
    pub metrics: BTreeMap<(String, String), BTreeSet<u32>>,
}

impl Quantities {
    /// Adds whole ones to a line.
    pub fn add(&mut self, line: impl Into<String>, amount: u64) {
        *self.amounts.entry(line.into()).or_default() += 1_000 * amount;
    }

    /// Returns the whole ones of a line.
    #[must_use]
    pub fn get(&self, line: &str) -> u64 {
        self.amounts.get(line).map_or(0, |amount| (amount + 500) / 1_000)
    }

    /// Adds `times` parts out of `of` of others.
    pub fn add_scaled(&mut self, others: &Self, times: u64, of: u64) {
        for (line, amount) in &others.amounts {
            *self.amounts.entry(line.clone()).or_default() += scaled(*amount, times, of);
        }
        for (metric, hours) in &others.metrics {
            self.metrics.entry(metric.clone()).or_default().extend(hours);
        }
    }

    /// Returns these with the metrics that an idle stack does not have in every hour: payments come all day.
    pub(crate) fn with_metrics_all_day(mut self, idle: &Self) -> Self {
        let new = self.metrics.iter_mut().filter(|(metric, _)| !idle.metrics.contains_key(*metric));
        new.for_each(|(_, hours)| hours.extend(0..24));
        self
    }

    /// Returns these of a bank that seals nothing.
    #[must_use]
    pub fn unsealed(mut self) -> Self {
        self.amounts.retain(|line, _| !SEALING.iter().any(|of| line.contains(of)));
        for kind in ["bytes", "bytes backed up"] {
            let bytes = self.amounts.get(&format!("payment-history, {kind}")).copied().unwrap_or(0);
            self.amounts.insert(format!("payment-history, {kind} once cleared"), bytes);
        }
        self
    }

    /// Returns these without others, which are part of them.
    #[must_use]
    pub fn without(mut self, others: &Self) -> Self {
        for (line, amount) in &mut self.amounts {
            *amount = amount.saturating_sub(others.amounts.get(line).copied().unwrap_or(0));
        }
        self
    }
}

/// Returns `times` parts out of `of`, to the nearest.
pub(crate) fn scaled(amount: u64, times: u64, of: u64) -> u64 {
    let of = u128::from(of.max(1));
    u64::try_from((u128::from(amount) * u128::from(times) + of / 2) / of).unwrap_or(u64::MAX)
}
