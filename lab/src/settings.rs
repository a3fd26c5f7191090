//! The settings of a month.

use std::collections::BTreeSet;

use payments_machine::Environment;
use payments_machine::event::DEVELOPMENT_CLIENT;
use payments_machine::layers::random::{Seed, happens};
use payments_machine::layers::weaken::Weakness;
use payments_model::BusinessZone;

use crate::plans::faults::FaultKind;
use crate::plans::outages::Outage;

/// The client that cancels and amends payments by mistake.
pub(crate) const FAULTY: &str = "faulty";

/// Shorter months seal no date: each other month of so many days does.
const LEAST_DAYS_TO_SEAL: u32 = 8;

/// Months of so many days seal and clear at the ages of a deployed stack.
const LEAST_DAYS_OF_REAL_AGES: u32 = 100;

/// The days after which a deployed stack seals a date, and then clears its data.
const REAL_AGES: (u32, u32) = (50, 36);

/// The settings of a month.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The seed of everything that is random.
    pub seed: u64,
    /// The number of days with payments.
    pub days: u32,
    /// The number of payments a day.
    pub payments: usize,
    /// The kinds of faults that do not happen.
    pub without: BTreeSet<FaultKind>,
    /// The defect in the functions' calls.
    pub weakness: Option<Weakness>,
    /// The planned outages.
    pub outages: &'static [Outage],
}

impl Settings {
    /// Returns a month with faults of every kind.
    pub fn new(seed: u64, days: u32, payments: usize) -> Self {
        Self { seed, days, payments, without: BTreeSet::new(), weakness: None, outages: &[] }
    }

    /// Returns the same month without faults.
    pub fn healthy(self) -> Self {
        Self { without: FaultKind::all().iter().copied().collect(), ..self }
    }

    /// Returns the most dispatch attempts of a payment: few, so that an absence of the transaction service can use them up.
    /// An outage has those of the template, so that it can last until its alarm.
    pub(crate) fn dispatch_attempts(&self) -> u32 {
        if self.outages.is_empty() { 5 } else { 8 }
    }

    /// Whether no fault happens.
    pub fn is_healthy(&self) -> bool {
        self.without.len() == FaultKind::all().len()
    }

    /// Returns the same month with a weakness.
    pub fn with(self, weakness: Weakness) -> Self {
        Self { weakness: Some(weakness), ..self }
    }

    /// Returns the days after which dates are sealed, and after which their data is then cleared, in a month that seals dates. A restore
    /// takes back less than a day.
    pub(crate) fn seal_ages(&self) -> Option<(u32, u32)> {
        if self.days < LEAST_DAYS_TO_SEAL || !self.outages.is_empty() {
            return None;
        }
        if self.days >= LEAST_DAYS_OF_REAL_AGES {
            return Some(REAL_AGES);
        }
        let mut random = Seed(self.seed).source("seals in the month");
        let clears_after = Seed(self.seed).source("clears in the month").u32(1..3);
        happens(&mut random, 500).then(|| (random.u32(1..4), clears_after))
    }

    /// Tells the functions what this month has.
    pub(crate) fn tell(&self, environment: &mut Environment, zone: BusinessZone) {
        environment.time_zone = zone.to_string();
        // Each shard costs thousands of calls a night.
        environment.shards = match self.outages {
            [] => 2,
            some if some.contains(&Outage::WritesThrottled) => 4,
            _ => 1,
        };
        // Reports of a few rows have several runs.
        if self.outages.is_empty() {
            environment.max_report_rows = [2, 7, 100_000][usize::from(self.seed.to_le_bytes()[0]) % 3];
        }
        if let Some((seals_after, clears_after)) = self.seal_ages() {
            (environment.seal_after_days, environment.max_part_rows) = (seals_after, 3);
            let is_early = self.weakness == Some(Weakness::EarlyClear);
            environment.clear_after_days = if is_early { 0 } else { clears_after };
        }
        environment.dispatch_attempts = self.dispatch_attempts();
        environment.machine_clients = [DEVELOPMENT_CLIENT, FAULTY].join(",");
        if self.weakness == Some(Weakness::EndlessRedrive) {
            environment.dispatch_attempts = 16;
        }
    }
}
