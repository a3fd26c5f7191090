//! The outcome of a run, which the function answers and emits as metrics.

use metrique_writer::{Entry, EntryWriter};
use payments_http::CountsView;
use payments_model::recount::REPAIRABLE_AFTER;
use payments_model::{UtcSecond, zone_data_number};
use payments_store::Evidence;
use serde::Serialize;

use crate::seen::Seen;

/// The most drifted dates that an outcome shows. One with ten currencies takes 3 KB: 300 KB of the 6 MB of an answer.
const MAX_DRIFTS: usize = 100;

/// The outcome of a run. Each requested date is one of `exact`, `drifted`, `repaired`, `moving`,
/// `unreadable` or `dates_left`.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecountOutcome {
    /// Dates whose counters equal their payments.
    pub exact: u64,
    /// Dates whose counters stand still and differ from their payments.
    pub drifted: u64,
    /// Dates whose counters were repaired.
    pub repaired: u64,
    /// Dates that cannot be judged now: their counters or payments moved, or did so before the repair.
    pub moving: Vec<String>,
    /// Dates whose payments or counters cannot be read. The log says which.
    pub unreadable: Vec<String>,
    /// Index entries and counters that cannot be read.
    pub unreadable_entries: u64,
    /// Changes that the counters of these dates do not include, because they cannot be read.
    pub unparsed_changes: i64,
    /// The dates that drifted or were repaired, the first hundred of them.
    pub drifts: Vec<Drift>,
    /// Further dates that drifted or were repaired.
    pub drifts_left_out: u64,
    /// Dates that were not recounted, or not to the end.
    pub dates_left: u64,
    /// The first of the dates left, at which the next run can start.
    pub next: Option<String>,
    /// The number of days missing until the calendar that ends first covers the horizon and half a
    /// year; `None` without calendars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calendar_days_short: Option<u64>,
    /// Why dates are left: `deadline`, or DynamoDB was `throttled` or `unavailable`.
    pub left_because: Option<&'static str>,
    /// The ticket of a repair without a second person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// A date that drifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// The date.
    pub date: String,
    /// Its counters before any repair.
    pub counters: CountsView,
    /// The counts of its payments.
    pub recounted: CountsView,
    /// The time at which this difference was first found.
    pub found_at: String,
    /// The time from which it can be repaired, if nothing moves until then.
    pub repairable_from: String,
    /// Whether this run repaired it.
    pub repaired: bool,
}

/// Returns the time from which the drift that `evidence` records can be repaired.
pub(crate) fn repairable_from(evidence: &Evidence) -> UtcSecond {
    evidence.found_at.saturating_add(REPAIRABLE_AFTER)
}

impl RecountOutcome {
    /// Counts a date that drifted. The first hundred are also shown and logged.
    pub(crate) fn add_drift(&mut self, date: String, seen: &Seen, evidence: &Evidence, repaired: bool) {
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
            tracing::warn!(date, ?counters, ?recounted, %found_at, "the counters of a date were repaired");
        } else {
            tracing::error!(date, ?counters, ?recounted, %found_at, "the counters of a date have drifted");
        }
        self.drifts.push(Drift {
            date,
            counters: CountsView::new(counters),
            recounted: CountsView::new(recounted),
            found_at: found_at.to_string(),
            repairable_from: repairable_from(evidence).to_string(),
            repaired,
        });
    }
}

/// Written by hand: the order of the metrics differs from that of the answer, and dates become counts.
impl Entry for RecountOutcome {
    fn write<'a>(&'a self, writer: &mut impl EntryWriter<'a>) {
        writer.value("DatesExact", &self.exact);
        writer.value("DriftedDates", &self.drifted);
        writer.value("MovingDates", &self.moving.len());
        writer.value("UnreadableDates", &self.unreadable.len());
        writer.value("UnreadableEntries", &self.unreadable_entries);
        writer.value("RecountDatesLeft", &self.dates_left);
        writer.value("RepairedDates", &self.repaired);
        if self.ticket.is_some() {
            writer.value("FourEyesBypassed", &1_u64);
        }
        if let Some(days) = &self.calendar_days_short {
            writer.value("CalendarDaysShort", days);
        }
        writer.value("TimeZoneData", &zone_data_number());
        writer.value("UnparsedChanges", &u64::try_from(self.unparsed_changes).unwrap_or(0));
    }
}
