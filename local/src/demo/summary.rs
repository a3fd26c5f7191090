//! What happened, for a person or as JSON, and whether it is what has to happen.

use std::time::Duration;

use anyhow::{Result, bail};
use payments_model::{BusinessDate, BusinessZone, Status, UtcSecond};
use serde_json::{Number, Value, json};

use super::audit::Audit;
use super::night::Night;
use super::spend::{BUDGET, WriteUnits, hundredths_each, number};
use crate::transaction_service::Saw;
use crate::triggers::Counts;

/// What happened in a day and the night after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Payments that were put in.
    pub payments: u64,
    /// The seed of the day.
    pub seed: u64,
    /// The day.
    pub day: BusinessDate,
    /// The bank's time zone.
    pub zone: BusinessZone,
    /// When the last payment was settled.
    pub settled_by: UtcSecond,
    /// What the functions counted.
    pub counts: Counts,
    /// What the transaction service saw.
    pub saw: Saw,
    /// Write units spent.
    pub units: WriteUnits,
    /// How long the phases took on this machine.
    pub seconds: Seconds,
    /// Messages and records that were put aside.
    pub put_aside: u64,
    /// What went wrong on the way, and was mended by a retry.
    pub troubles: u64,
    pub(super) audit: Audit,
    pub(super) night: Night,
}

/// How long the phases took on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seconds {
    /// Putting payments in.
    pub ingest: Duration,
    /// Making them pending.
    pub sweep: Duration,
    /// Handing them over.
    pub dispatch: Duration,
    /// Settling them.
    pub settle: Duration,
    /// Counting them.
    pub count: Duration,
    /// Reporting them.
    pub report: Duration,
    /// Moving them to history.
    pub archive: Duration,
}

impl Summary {
    /// The whole as one JSON object. Write units are those of one payment, to the hundredth;
    /// `perPayment` is without the counters, which all payments share. `writeUnitTotals` are exact.
    #[must_use]
    pub fn json(&self) -> Value {
        let each = |units: u64| number(hundredths_each(units, self.payments));
        let mut units: serde_json::Map<String, Value> = BUDGET
            .iter()
            .zip(self.units.phases())
            .map(|((phase, _), spent)| ((*phase).to_owned(), json!(each(spent))))
            .collect();
        units.insert("counters".to_owned(), each(self.units.counters).into());
        units.insert("perPayment".to_owned(), each(self.units.total()).into());
        let Seconds { ingest, sweep, dispatch, settle, count, report, archive } = self.seconds;
        json!({
            "payments": self.payments,
            "seed": self.seed,
            "day": self.day.to_string(),
            "settledBy": self.settled_by.to_string(),
            "byStatus": self.audit.by_status,
            "transactionIds": self.audit.transaction_ids,
            "requestsSent": self.counts.sent,
            "otherContents": self.saw.other_contents,
            "results": self.saw.results,
            "repeatedResults": self.saw.repeated_results,
            "duplicateOutcomes": self.duplicate_outcomes(),
            "countersEqualRecount": self.night.counters_equal_recount,
            "archived": self.night.archived,
            "leftInHotTable": self.night.left_in_hot,
            "reported": self.night.reported,
            "reports": self.night.reports,
            "reportFiles": self.night.files,
            "altered": self.audit.altered,
            "writeUnits": units,
            "writeUnitTotals": self.units,
            "seconds": {
                "ingest": seconds(ingest),
                "sweep": seconds(sweep),
                "dispatch": seconds(dispatch),
                "settle": seconds(settle),
                "count": seconds(count),
                "report": seconds(report),
                "archive": seconds(archive),
            },
        })
    }

    /// Payments that ended twice: with a second outcome, or with another payment's transaction id.
    #[must_use]
    pub fn duplicate_outcomes(&self) -> u64 {
        self.audit.second_outcomes + self.audit.shared_transaction_ids
    }

    /// Whether everything is as it has to be.
    ///
    /// # Errors
    /// Everything that is not.
    pub fn check(&self) -> Result<()> {
        let (audit, saw, night) = (&self.audit, &self.saw, &self.night);
        let settled = audit.of(Status::Processed) + audit.of(Status::Failed);
        let faults: Vec<String> = [
            (self.payments.abs_diff(settled), "payments are not exactly once PROCESSED or FAILED"),
            (audit.misplaced, "payments are missing, listed twice, or listed differently by date and by account"),
            (audit.of(Status::Processed).abs_diff(audit.transaction_ids), "transaction ids are not unique"),
            (self.duplicate_outcomes(), "payments have more than one outcome"),
            (audit.other_outcomes, "payments have another outcome than the transaction service reported"),
            (self.payments.abs_diff(saw.payments), "payments were not seen by the transaction service"),
            (saw.other_contents, "requests had another content than the first of their payment"),
            (saw.unreadable + self.put_aside, "messages could not be handled"),
            (audit.altered, "payments are not what was put in"),
            (self.payments.abs_diff(night.reported), "settlements are not in the reports"),
            (night.reported_twice, "settlements are in the reports more than once"),
            (night.left_in_hot, "payments are still in the hot table"),
            (self.payments.abs_diff(night.archived), "payments did not move to history"),
            (u64::from(!night.counters_equal_recount), "dates have counters that are not what a recount finds"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if faults.is_empty() {
            return Ok(());
        }
        bail!("the day went wrong:\n  {}", faults.join("\n  "))
    }
}

/// Seconds to the millisecond.
fn seconds(time: Duration) -> Number {
    format!("{}.{:03}", time.as_secs(), time.subsec_millis()).parse().unwrap_or_else(|_| Number::from(time.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A day of three payments that went well.
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
            saw: Saw { requests: 3, payments: 3, results: 4, repeated_results: 1, ..Saw::default() },
            units: WriteUnits { insert: 13, pending: 9, settled: 14, reported: 6, archive: 16, counters: 12 },
            seconds: Seconds { ingest: Duration::from_millis(1_207), ..Seconds::default() },
            put_aside: 0,
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
        }
    }

    #[test]
    fn json_tells_what_happened() {
        let units = json!({ "insert": 4.33, "pending": 3, "settled": 4.67, "reported": 2, "archive": 5.33, "counters": 4, "perPayment": 19.33 });
        let totals = json!({ "insert": 13, "pending": 9, "settled": 14, "reported": 6, "archive": 16, "counters": 12 });
        let want = json!({
            "payments": 3, "seed": 1, "day": "2026-11-20", "settledBy": "2026-11-20T18:02:00Z",
            "byStatus": { "SCHEDULED": 0, "PENDING": 0, "PROCESSED": 2, "FAILED": 1, "CANCELLED": 0 },
            "transactionIds": 2, "requestsSent": 3, "otherContents": 0, "results": 4, "repeatedResults": 1,
            "duplicateOutcomes": 0, "countersEqualRecount": true, "archived": 3, "leftInHotTable": 0,
            "reported": 3, "reports": "reports", "reportFiles": 1, "altered": 0,
            "writeUnits": units, "writeUnitTotals": totals,
            "seconds": { "ingest": 1.207, "sweep": 0.0, "dispatch": 0.0, "settle": 0.0, "count": 0.0, "report": 0.0, "archive": 0.0 },
        });
        assert_eq!(summary().json(), want);
        summary().check().unwrap();
    }

    #[test]
    fn a_day_that_went_wrong_says_how() {
        type Change = fn(&mut Summary);
        let changes: [(Change, &str); 12] = [
            (|day| day.payments = 4, "1 payments are not exactly once PROCESSED or FAILED"),
            (|day| day.audit.misplaced = 2, "2 payments are missing"),
            (|day| day.audit.transaction_ids = 1, "1 transaction ids are not unique"),
            (|day| day.audit.second_outcomes = 1, "1 payments have more than one outcome"),
            (|day| day.saw.payments = 2, "1 payments were not seen by the transaction service"),
            (|day| day.saw.other_contents = 4, "4 requests had another content"),
            (|day| day.put_aside = 5, "5 messages could not be handled"),
            (|day| day.audit.altered = 6, "6 payments are not what was put in"),
            (|day| day.night.reported_twice = 1, "1 settlements are in the reports more than once"),
            (|day| day.night.reported = 2, "1 settlements are not in the reports"),
            (|day| day.night.left_in_hot = 7, "7 payments are still in the hot table"),
            (|day| day.night.counters_equal_recount = false, "1 dates have counters"),
        ];
        for (change, want) in changes {
            let mut day = summary();
            change(&mut day);
            let error = day.check().unwrap_err().to_string();
            assert!(error.contains(want), "{want}: {error}");
        }
    }
}
