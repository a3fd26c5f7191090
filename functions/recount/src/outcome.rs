//! What a run found, as it is answered and measured.

use metrique_writer::Entry;
use payments_http::CountsView;
use payments_store::Evidence;
use serde::Serialize;

use crate::look::Seen;
use crate::run::repairable_from;

/// How many dates that drifted a report names. One with ten currencies takes 3 KB, so that all of
/// them have 300 KB of the 6 MB of an answer.
const MAX_DRIFTS: usize = 100;

/// What a run found. Every date that was asked for is one of `exact`, `drifted`, `repaired`, `moving`,
/// `unreadable` or `dates_left`.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecountReport {
    /// Dates whose counters say what their payments say.
    pub exact: u64,
    /// Dates whose counters stand still and say something else.
    pub drifted: u64,
    /// Dates whose counters were corrected.
    pub repaired: u64,
    /// Dates whose counters or payments moved all the time, or just when they were to be repaired:
    /// they cannot be judged now.
    pub moving: Vec<String>,
    /// Dates that cannot be compared before their payments or counters can be read; the log says
    /// what cannot.
    pub unreadable: Vec<String>,
    /// The index entries and counters that cannot be read.
    pub unreadable_entries: u64,
    /// Changes that the counters of these dates could not take up.
    pub unparsed_changes: i64,
    /// The dates that drifted or were repaired, or the first hundred of them.
    pub drifts: Vec<DriftReport>,
    /// How many more there are.
    pub drifts_left_out: u64,
    /// Dates that were not looked at, or not to the end.
    pub dates_left: u64,
    /// The first one of them, for the run that goes on from there.
    pub next: Option<String>,
    /// Why they are left: `deadline`, or DynamoDB was `throttled` or `unavailable`.
    pub left_because: Option<&'static str>,
}

/// A date that drifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftReport {
    /// Which date.
    pub date: String,
    /// What its counters said.
    pub counters: CountsView,
    /// What its payments say.
    pub recounted: CountsView,
    /// Since when that is known.
    pub found_at: String,
    /// From when on it can be repaired, if nothing moves until then.
    pub repairable_from: String,
    /// Whether this run has repaired it.
    pub repaired: bool,
}

impl RecountReport {
    /// Notes a date that drifted, and logs it, as far as there is room.
    pub(crate) fn note_drift(&mut self, date: String, seen: &Seen, evidence: &Evidence, repaired: bool) {
        if repaired {
            self.repaired += 1;
        } else {
            self.drifted += 1;
            self.unparsed_changes += seen.counters.counts.unparsed;
        }
        if self.drifts.len() == MAX_DRIFTS {
            self.drifts_left_out += 1;
            return;
        }
        let (counters, recounted) = (&seen.counters.counts, &seen.recounted);
        let found_at = evidence.found_at;
        if repaired {
            tracing::warn!(date, ?counters, ?recounted, %found_at, "counters were repaired");
        } else {
            tracing::error!(date, ?counters, ?recounted, %found_at, "counters have drifted");
        }
        self.drifts.push(DriftReport {
            date,
            counters: CountsView::of(counters),
            recounted: CountsView::of(recounted),
            found_at: found_at.to_string(),
            repairable_from: repairable_from(evidence).to_string(),
            repaired,
        });
    }

    /// The numbers of a run.
    pub(crate) fn metrics(&self) -> RecountMetrics {
        let count = |dates: &Vec<String>| u64::try_from(dates.len()).unwrap_or(u64::MAX);
        RecountMetrics {
            dates_exact: self.exact,
            drifted_dates: self.drifted,
            moving_dates: count(&self.moving),
            unreadable_dates: count(&self.unreadable),
            unreadable_entries: self.unreadable_entries,
            dates_left: self.dates_left,
            repaired_dates: self.repaired,
            unparsed_changes: u64::try_from(self.unparsed_changes).unwrap_or(0),
        }
    }
}

/// The numbers of a run, for alarms.
#[derive(Entry)]
#[entry(rename_all = "PascalCase")]
pub(crate) struct RecountMetrics {
    dates_exact: u64,
    drifted_dates: u64,
    moving_dates: u64,
    unreadable_dates: u64,
    unreadable_entries: u64,
    dates_left: u64,
    repaired_dates: u64,
    unparsed_changes: u64,
}
