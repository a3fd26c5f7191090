//! Plays the months of all seeds.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use payments_lab::{Act, FaultCounts, FaultKind, Month, Settings, play_watched};
use payments_machine::progress::Progress;

use crate::arguments::Arguments;
use crate::each::each;
use crate::show::tell;

/// Plays all seeds, several at once, and shows each month when it is over. Returns them in the order of their seeds.
pub(crate) fn play_all(arguments: &Arguments) -> Result<Vec<Month>> {
    let settings: Vec<Settings> = arguments.seeds().into_iter().map(|seed| arguments.settings(seed)).collect();
    let days = settings.iter().map(|month| u64::from(month.days)).sum();
    let (progress, over) = (Progress::on_stderr(days, &["days"])?, AtomicU64::new(0));
    let mut months = each(settings.len(), arguments.threads(), |place| {
        let settings = &settings[place];
        let month = play_watched(settings, || progress.show(&[over.fetch_add(1, Ordering::Relaxed) + 1]))?;
        tell(arguments.json, &month, settings)?;
        Ok(month)
    })?;
    progress.clear();
    months.sort_by_key(|month| month.seed);
    Ok(months)
}

/// Returns the kinds of faults and amendments that never happened in these months.
pub(crate) fn missing(arguments: &Arguments, months: &[Month]) -> Vec<String> {
    if !arguments.every_kind {
        return Vec::new();
    }
    let mut counts = FaultCounts::new();
    for (kind, count) in months.iter().flat_map(|month| &month.faults) {
        *counts.entry(*kind).or_default() += count;
    }
    let never = FaultKind::all().iter().filter(|kind| !arguments.without.contains(kind) && counts[kind] == 0);
    let done = |act: &&Act| months.iter().any(|month| month.amendments[act] > 0);
    let undone = Act::all().iter().filter(|act| !done(act));
    never.map(|kind| kind.name()).chain(undone.map(|act| format!("amendments {}", act.name()))).collect()
}
