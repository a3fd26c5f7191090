//! The search for weaknesses: how many seeds a month needs to find each, and the smallest month that shows it.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use payments_machine::layers::weaken::Weakness;
use serde::{Deserialize, Serialize};

use crate::month::play;
use crate::plans::faults::FaultKind;
use crate::settings::Settings;
use crate::shrink::{shape, shrink};

/// The most seeds that a weakness may need.
pub const SEEDS: u64 = 20;

/// A month that shows a weakness.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// The weakness.
    pub weakness: Weakness,
    /// The first seed that shows it: so many seeds the search needed.
    pub seed: u64,
    /// The number of days with payments.
    pub days: u32,
    /// The number of payments a day.
    pub payments: usize,
    /// The kinds of faults that it needs.
    pub faults: Vec<FaultKind>,
    /// The first violation, without the particulars of a payment.
    pub sign: String,
}

impl Case {
    /// Returns the month of this case with a seed.
    pub fn settings(&self, seed: u64) -> Settings {
        let without = FaultKind::all().iter().copied().filter(|kind| !self.faults.contains(kind)).collect();
        Settings { without, ..Settings::new(seed, self.days, self.payments).with(self.weakness) }
    }

    /// Whether a month shows what this case shows.
    ///
    /// # Errors
    /// If the month cannot be played.
    pub fn is_shown_by(&self, seed: u64) -> Result<bool> {
        Ok(play(&self.settings(seed))?.violations.iter().any(|violation| shape(violation) == self.sign))
    }
}

/// Looks for a weakness in months of `days` with `payments`, and shrinks the first that shows it.
///
/// # Errors
/// If a month cannot be played.
pub fn search(
    weakness: Weakness,
    (days, payments): (u32, usize),
    watch: impl FnMut(&Settings),
) -> Result<Option<Case>> {
    for seed in 1..=SEEDS {
        let settings = Settings::new(seed, days, payments).with(weakness);
        let month = play(&settings)?;
        if month.violations.is_empty() {
            continue;
        }
        let (small, month) = shrink(&settings, month, watch)?;
        let first = month.violations.first().context("something is wrong")?;
        let needed = |kind: &FaultKind| !small.without.contains(kind) && month.faults[kind] > 0;
        let faults = FaultKind::all().iter().copied().filter(|kind| needed(kind)).collect();
        let Settings { days, payments, .. } = small;
        return Ok(Some(Case { weakness, seed, days, payments, faults, sign: shape(first) }));
    }
    Ok(None)
}

/// Returns the rows of the table of cases, in Markdown.
pub fn table(cases: &[Case]) -> String {
    let mut text = String::from(
        "| weakness | seeds | days × payments | faults that it needs | what shows it |\n|---|---|---|---|---|\n",
    );
    for case in cases {
        let faults: Vec<String> = case.faults.iter().map(|kind| kind.name()).collect();
        let faults = if faults.is_empty() { "none".to_owned() } else { faults.join(", ") };
        let (name, Case { seed, days, payments, sign, .. }) = (case.weakness.name(), case);
        // Writing to a string cannot fail.
        let _written = writeln!(text, "| {name} | {seed} | {days} × {payments} | {faults} | {sign} |");
    }
    text
}
