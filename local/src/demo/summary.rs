//! The summary of a demo, as JSON or as a table, and its checks.

use std::time::Duration;

use anyhow::{Result, bail};
use payments_machine::transaction_service::ServiceCounts;
use payments_machine::triggers::{Counts, Took};
use payments_model::{BusinessDate, BusinessZone, Status, UtcSecond};
use serde_json::{Map, Number, Value, json};

use super::audit::Audit;
use super::closed_days::ClosedDays;
use super::ingest::Amended;
use super::night::Night;
use super::receiver::Received;
use super::sealed::Sealed;
use super::write_units::{PHASES, WriteUnits, hundredths_each, number};

/// The promises of the bank.
const PROMISES: [&str; 4] =
    ["no payment is created twice", "no payment is lost", "each is settled once", "every retry is safe"];

/// The fault of fewer or more settled payments than there are.
const UNSETTLED: &str = "payments are not exactly once PROCESSED or FAILED";

/// The promise of everything else.
const RECORDS: &str = "reports, counters, webhooks and dates agree";

/// The summary of a day and the night after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Payments that were created.
    pub payments: u64,
    /// The seed of the day.
    pub seed: u64,
    /// The day.
    pub day: BusinessDate,
    /// The bank's time zone.
    pub zone: BusinessZone,
    /// The settlement time of the last payment.
    pub settled_by: UtcSecond,
    /// The metrics of the functions.
    pub counts: Counts,
    /// The messages that the transaction service received and sent.
    pub service: ServiceCounts,
    /// The time to create the payments, on this machine.
    pub ingest: Duration,
    /// The time of the triggers, on this machine.
    pub took: Took,
    /// Messages and batches that could not be processed.
    pub dead_letters: u64,
    /// Failures that a retry corrected.
    pub troubles: u64,
    pub(super) amended: Amended,
    pub(super) units: WriteUnits,
    pub(super) audit: Audit,
    pub(super) night: Night,
    pub(super) received: Received,
    pub(super) closed_days: ClosedDays,
    pub(super) sealed: Sealed,
}

impl Summary {
    /// Returns the summary as one JSON object. Write units are those of one payment, to the hundredth. `perPayment` is
    /// without the counters, which all payments share. `writeUnitTotals` are exact.
    pub fn json(&self) -> Value {
        let each = |units: u64| number(hundredths_each(units, self.payments));
        let named = || PHASES.iter().zip(self.units.0).map(|((phase, ..), units)| ((*phase).to_owned(), units));
        let mut units: Map<String, Value> = named().map(|(phase, units)| (phase, each(units).into())).collect();
        units.insert("perPayment".to_owned(), each(self.units.total()).into());
        let totals: Map<String, Value> = named().map(|(phase, units)| (phase, units.into())).collect();
        let took = &self.took;
        json!({
            "payments": self.payments,
            "seed": self.seed,
            "day": self.day.to_string(),
            "settledBy": self.settled_by.to_string(),
            "byStatus": self.audit.by_status,
            "amended": self.amended.payments,
            "moved": self.amended.moved,
            "amendmentWriteUnits": self.amended.units,
            "transactionIds": self.audit.transaction_ids,
            "requestsSent": self.counts.sent,
            "otherContents": self.service.other_contents,
            "results": self.service.results,
            "repeatedResults": self.service.repeated_results,
            "duplicateOutcomes": self.duplicate_outcomes(),
            "countersEqualRecount": self.night.counters_equal_recount,
            "archived": self.night.archived,
            "leftInHotTable": self.night.left_in_hot,
            "reported": self.night.reported,
            "reports": self.night.reports,
            "reportFiles": self.night.files,
            "altered": self.audit.altered,
            "webhookMessages": self.received.messages,
            "webhookEvents": self.received.events,
            "movedOffWeekend": self.closed_days.weekend,
            "movedOffHoliday": self.closed_days.moved,
            "sealed": self.sealed.payments,
            "writeUnits": units,
            "writeUnitTotals": totals,
            "seconds": {
                "ingest": seconds(self.ingest),
                "sweep": seconds(took.sweep),
                "dispatch": seconds(took.dispatch),
                "settle": seconds(took.settle),
                "count": seconds(took.aggregate),
                "report": seconds(took.report),
            },
        })
    }

    /// Returns how many payments have a second settlement or another payment's transaction id.
    pub fn duplicate_outcomes(&self) -> u64 {
        self.audit.second_settlements + self.audit.shared_transaction_ids
    }

    /// Checks the summary.
    pub fn check(&self) -> Result<()> {
        let faults = self.faults();
        if faults.is_empty() {
            return Ok(());
        }
        let faults: Vec<String> = faults.into_iter().map(|(_, count, fault)| format!("{count} {fault}")).collect();
        bail!("the day failed its checks:\n  {}", faults.join("\n  "))
    }

    /// Returns the last line of the table: whether the bank kept its promises, and which it broke.
    pub fn promises(&self) -> String {
        let faults = self.faults();
        if faults.is_empty() {
            return format!("All promises kept: {}.", PROMISES.join(", "));
        }
        let broken = PROMISES.iter().chain([&RECORDS]).filter_map(|promise| {
            let of_it = faults.iter().filter(|(of, ..)| of == promise);
            let found: Vec<String> = of_it.map(|(_, count, fault)| format!("{count} {fault}")).collect();
            (!found.is_empty()).then(|| format!("{promise} ({})", found.join("; ")))
        });
        format!("NOT kept: {}.", broken.collect::<Vec<_>>().join(", "))
    }

    /// Returns the faults of the day: the promise that each breaks, a number, and its name.
    fn faults(&self) -> Vec<(&'static str, u64, &'static str)> {
        let [never_twice, never_lost, settled_once, safe_retries] = PROMISES;
        let (audit, service) = (&self.audit, &self.service);
        let (night, received) = (&self.night, &self.received);
        let settled = audit.with_status(Status::Processed) + audit.with_status(Status::Failed);
        let ids = audit.with_status(Status::Processed).abs_diff(audit.transaction_ids);
        let unequal_counters = u64::from(!night.counters_equal_recount);
        let not_sent = self.payments.abs_diff(service.payments);
        let all = [
            (never_lost, self.payments.saturating_sub(settled), UNSETTLED),
            (never_twice, settled.saturating_sub(self.payments), UNSETTLED),
            (
                never_lost,
                audit.misplaced,
                "payments are missing, listed twice, or listed differently by date and by account",
            ),
            (settled_once, ids, "transaction ids are not unique"),
            (settled_once, self.duplicate_outcomes(), "payments have more than one settlement"),
            (
                settled_once,
                audit.other_settlements,
                "payments have another settlement than the transaction service sent",
            ),
            (never_lost, not_sent, "payments did not reach the transaction service"),
            (safe_retries, service.other_contents, "requests differed from the first of their payment"),
            (never_lost, service.unreadable + self.dead_letters, "messages could not be processed"),
            (safe_retries, audit.altered, "payments differ from the request that created or amended them"),
            (RECORDS, self.payments.abs_diff(night.reported), "settlements are not in the reports"),
            (RECORDS, night.reported_twice, "settlements are in the reports more than once"),
            (RECORDS, night.left_in_hot, "payments are still in the hot table"),
            (RECORDS, self.payments.abs_diff(night.archived), "payments are not in the long-term table alone"),
            (RECORDS, unequal_counters, "dates have counters that differ from a recount"),
            (RECORDS, received.rejected, "webhook messages could not be verified"),
            (RECORDS, received.differing, "payments differ from what the webhooks told of them"),
            (RECORDS, self.payments.abs_diff(self.sealed.payments), "payments are not in the sealed parts"),
            (RECORDS, self.closed_days.wrong, "payments of closed dates are due on another date than they should"),
        ];
        all.into_iter().filter(|(_, count, _)| *count > 0).collect()
    }
}

/// Returns seconds to the millisecond.
fn seconds(time: Duration) -> Number {
    format!("{}.{:03}", time.as_secs(), time.subsec_millis()).parse().unwrap_or_else(|_| Number::from(time.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the summary of a day of three payments without failures.
    fn summary() -> Summary {
        let by_status = Status::ALL.map(|status| (status.as_str(), 0)).into();
        let mut audit = Audit { by_status, transaction_ids: 2, ..Audit::default() };
        audit.by_status.extend([("PROCESSED", 2), ("FAILED", 1)]);
        Summary {
            payments: 3,
            seed: 1,
            day: "2026-11-20".parse().unwrap(),
            zone: "Europe/London".parse().unwrap(),
            settled_by: "2026-11-20T18:02:00Z".parse().unwrap(),
            counts: Counts { claimed: 3, sent: 3, processed: 2, failed: 1, ..Counts::default() },
            service: ServiceCounts {
                requests: 3,
                payments: 3,
                results: 4,
                repeated_results: 1,
                ..ServiceCounts::default()
            },
            amended: Amended { payments: 1, moved: 0, units: 4, took: Duration::ZERO },
            units: WriteUnits([13, 9, 20, 6, 12]),
            ingest: Duration::from_millis(1_207),
            took: Took::default(),
            dead_letters: 0,
            troubles: 0,
            audit,
            night: Night {
                reports: "reports".into(),
                files: 1,
                reported: 3,
                archived: 3,
                counters_equal_recount: true,
                ..Night::default()
            },
            received: Received { messages: 4, events: 9, ..Received::default() },
            closed_days: ClosedDays { weekend: 20, waiting: 20, moved: 20, wrong: 0 },
            sealed: Sealed { payments: 3, sql: "SELECT 1".to_owned(), answer: None },
        }
    }

    #[test]
    fn the_json_has_every_figure() {
        let units =
            json!({ "insert": 4.33, "pending": 3, "settled": 6.67, "reported": 2, "counters": 4, "perPayment": 16 });
        let totals = json!({ "insert": 13, "pending": 9, "settled": 20, "reported": 6, "counters": 12 });
        let want = json!({
            "payments": 3, "seed": 1, "day": "2026-11-20", "settledBy": "2026-11-20T18:02:00Z",
            "byStatus": { "SCHEDULED": 0, "PENDING": 0, "PROCESSED": 2, "FAILED": 1, "CANCELLED": 0 },
            "amended": 1, "moved": 0, "amendmentWriteUnits": 4, "transactionIds": 2, "requestsSent": 3, "otherContents": 0, "results": 4, "repeatedResults": 1,
            "duplicateOutcomes": 0, "countersEqualRecount": true, "archived": 3, "leftInHotTable": 0,
            "reported": 3, "reports": "reports", "reportFiles": 1, "altered": 0,
            "webhookMessages": 4, "webhookEvents": 9, "movedOffWeekend": 20, "movedOffHoliday": 20, "sealed": 3,
            "writeUnits": units, "writeUnitTotals": totals,
            "seconds": { "ingest": 1.207, "sweep": 0.0, "dispatch": 0.0, "settle": 0.0, "count": 0.0, "report": 0.0 },
        });
        assert_eq!(summary().json(), want);
        summary().check().unwrap();
    }

    #[test]
    fn the_last_line_says_which_promises_are_kept_and_columns_have_units() {
        let mut day = summary();
        day.audit.reasons.insert("insufficient funds".to_owned(), 1);
        let text = day.to_string();
        let kept = "All promises kept: no payment is created twice, no payment is lost, each is settled once, every retry is safe.";
        assert_eq!(text.lines().next_back().map(str::trim), Some(kept), "{text}");
        for unit in ["WRITE UNITS", "UNITS EACH", "BUDGET EACH", "duckdb -c \"SELECT 1\""] {
            assert!(text.contains(unit), "{unit}: {text}");
        }
        // The number of a reason stands under that of its status.
        let end = |of: &str| text.lines().find(|line| line.trim().starts_with(of)).map(|line| line.trim_end().len());
        assert_eq!((end("FAILED"), end("PROCESSED")), (end("insufficient"), end("insufficient")), "{text}");
        day.payments = 4;
        day.received.differing = 2;
        let broken = "NOT kept: no payment is lost (1 payments are not exactly once PROCESSED or FAILED; 1 payments did not reach";
        let line = day.promises();
        assert!(line.starts_with(broken) && line.contains("agree (1 settlements"), "{line}");
    }

    #[test]
    fn a_failed_check_is_in_the_error() {
        type Change = fn(&mut Summary);
        let changes: [(Change, &str); 17] = [
            (|day| day.payments = 4, "1 payments are not exactly once PROCESSED or FAILED"),
            (|day| day.payments = 2, "1 payments are not exactly once PROCESSED or FAILED"),
            (|day| day.audit.misplaced = 2, "2 payments are missing"),
            (|day| day.audit.transaction_ids = 1, "1 transaction ids are not unique"),
            (|day| day.audit.second_settlements = 1, "1 payments have more than one settlement"),
            (|day| day.service.payments = 2, "1 payments did not reach the transaction service"),
            (|day| day.service.other_contents = 4, "4 requests differed"),
            (|day| day.dead_letters = 5, "5 messages could not be processed"),
            (|day| day.audit.altered = 6, "6 payments differ from the request that created or amended them"),
            (|day| day.night.reported_twice = 1, "1 settlements are in the reports more than once"),
            (|day| day.night.reported = 2, "1 settlements are not in the reports"),
            (|day| day.night.left_in_hot = 7, "7 payments are still in the hot table"),
            (|day| day.night.counters_equal_recount = false, "1 dates have counters"),
            (|day| day.received.rejected = 1, "1 webhook messages could not be verified"),
            (|day| day.received.differing = 2, "2 payments differ from what the webhooks told"),
            (|day| day.closed_days.wrong = 3, "3 payments of closed dates"),
            (|day| day.sealed.payments = 1, "2 payments are not in the sealed parts"),
        ];
        for (change, want) in changes {
            let mut day = summary();
            change(&mut day);
            let error = day.check().unwrap_err().to_string();
            assert!(error.contains(want), "{want}: {error}");
        }
    }
}
