//! The work of a tick, in numbers and in one line. The functions' numbers are read from their metrics.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

/// The work of one or several ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tick {
    /// The metrics of the functions.
    pub counts: Counts,
    /// Requests that the transaction service received.
    pub received: u64,
    /// Settlement results that the transaction service sent.
    pub answered: u64,
    /// Today's counts, if they changed.
    pub today: Option<String>,
    /// Failures, one line each.
    pub troubles: Vec<String>,
    /// The lines of the functions' metrics. A sum of ticks has those of none.
    pub metrics: Vec<String>,
    /// The time that the tick took.
    pub took: Took,
}

/// The times that the parts of a tick took on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Took {
    /// Claiming and redriving.
    pub sweep: Duration,
    /// Reading the stream and dispatching.
    pub dispatch: Duration,
    /// Settling.
    pub settle: Duration,
    /// Counting.
    pub aggregate: Duration,
    /// Reporting.
    pub report: Duration,
}

/// Defines the struct of counts and its sum.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The metrics of the functions, under their names.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "PascalCase", default)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl AddAssign for Counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counts! {
    /// Payments that were claimed.
    claimed,
    /// Payments that were no longer scheduled when they were to be claimed.
    already_claimed,
    /// Payments that a sweep left for the next one.
    remaining,
    /// Shards that a sweep did not finish, because DynamoDB throttled them or did not answer.
    shards_given_up,
    /// Payments that were redriven.
    redriven,
    /// Payments that were redriven too often.
    stuck_pending,
    /// Requests that were sent.
    sent,
    /// Requests that could not be sent and are retried.
    send_failed,
    /// Payments that were processed.
    processed,
    /// Payments that failed.
    failed,
    /// Settlement results that were repeated.
    repeated_results,
    /// Settlement results that contradict a settlement, or fail a cancelled payment.
    conflicting_results,
    /// Settlement results that processed a cancelled payment.
    cancelled_payments_processed,
    /// Settlement results of another amount than the payment's.
    results_of_other_transfers,
    /// Settlement results of payments that were not pending yet.
    early_results,
    /// Settlement results of unknown payments.
    unknown_payments,
    /// Stream records that cannot be read.
    poison_records,
    /// Settlement results that cannot be read.
    poison_messages,
    /// Settlement results that were not applied, because a call to DynamoDB failed or a head cannot be read.
    settle_outages,
    /// Transaction ids that several payments have.
    shared_transaction_ids,
    /// Changes that were counted.
    counted,
    /// Changes that cannot be read.
    unparsed,
    /// Settlements that were reported.
    reported,
    /// Payments that were archived.
    archived,
    /// Dates whose counters differ from a recount.
    drifted_dates,
    /// Events that were written to the journal.
    journaled_events,
}

impl Counts {
    /// Returns the sum of metric lines. Other lines are ignored.
    pub fn from_lines(lines: &[String]) -> Self {
        let mut sum = Self::default();
        lines.iter().filter_map(|line| serde_json::from_str::<Self>(line).ok()).for_each(|counts| sum += counts);
        sum
    }

    /// Returns how many payments were processed or failed.
    pub fn settled(&self) -> u64 {
        self.processed + self.failed
    }
}

impl AddAssign for Tick {
    fn add_assign(&mut self, other: Self) {
        self.counts += other.counts;
        self.received += other.received;
        self.answered += other.answered;
        self.today = other.today.or(self.today.take());
        self.troubles.extend(other.troubles);
        self.took += other.took;
    }
}

impl AddAssign for Took {
    fn add_assign(&mut self, other: Self) {
        self.sweep += other.sweep;
        self.dispatch += other.dispatch;
        self.settle += other.settle;
        self.aggregate += other.aggregate;
        self.report += other.report;
    }
}

/// Returns one date of the API's counts, in words.
pub(super) fn in_words(counts: &Value) -> Option<String> {
    let by_status = counts["byStatus"].as_object()?.iter();
    let some =
        by_status.filter(|(_, count)| count.as_i64() != Some(0)).map(|(status, count)| format!("{count} {status}"));
    let archived = (counts["archived"] != 0).then(|| format!("{} archived", counts["archived"]));
    let numbers: Vec<String> = some.chain(archived).collect();
    Some(format!("counts of {}: {}", counts["date"].as_str()?, numbers.join(", ")))
}

/// Writes one line, or nothing for a tick that did nothing.
impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        let mut parts: Vec<String> = Vec::new();
        if counts.claimed + counts.already_claimed + counts.remaining > 0 {
            parts.push(format!("sweep: {} claimed, {} left", counts.claimed, counts.remaining));
        }
        if counts.redriven + counts.stuck_pending > 0 {
            parts.push(format!("redrive: {} sent again, {} stuck", counts.redriven, counts.stuck_pending));
        }
        if counts.sent > 0 {
            parts.push(format!("dispatch: {} sent", counts.sent));
        }
        if self.answered > 0 {
            parts.push(format!("transaction service: {} answered", self.answered));
        }
        if counts.settled() > 0 {
            parts.push(format!("settle: {} processed, {} failed", counts.processed, counts.failed));
        }
        for (count, what) in [(counts.reported, "report"), (counts.archived, "archive")] {
            if count > 0 {
                parts.push(format!("{what}: {count} payments"));
            }
        }
        parts.extend(self.today.clone());
        for (count, what) in [
            (counts.unparsed, "changes that cannot be read"),
            (counts.drifted_dates, "dates whose counters differ from a recount"),
        ] {
            if count > 0 {
                parts.push(format!("{what}: {count}"));
            }
        }
        for (count, what) in [
            (counts.repeated_results, "repeated"),
            (counts.conflicting_results, "CONFLICTING"),
            (counts.cancelled_payments_processed, "OF CANCELLED PAYMENTS"),
            (counts.results_of_other_transfers, "OF OTHER TRANSFERS"),
            (counts.early_results, "too early"),
            (counts.unknown_payments, "of unknown payments"),
            (counts.poison_messages, "unreadable"),
        ] {
            if count > 0 {
                parts.push(format!("results {what}: {count}"));
            }
        }
        parts.extend(self.troubles.iter().cloned());
        f.write_str(&parts.join(" · "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_one_line_of_its_metrics() {
        let lines = [
            r#"{"_aws":{"Timestamp":0},"Claimed":3,"AlreadyClaimed":0,"Remaining":0,"Function":"captured"}"#,
            r#"{"Sent":3,"MovedOn":1}"#,
            r#"{"Processed":2,"Failed":1,"RepeatedResults":1}"#,
            r#"{"Processed":4}"#,
            "no metric",
        ];
        let mut tick = Tick { counts: Counts::from_lines(&lines.map(str::to_owned)), ..Tick::default() };
        let counts =
            serde_json::json!({ "date": "2026-11-20", "byStatus": { "PENDING": 0, "PROCESSED": 6 }, "archived": 2 });
        tick.today = in_words(&counts);
        tick += Tick { received: 3, answered: 7, troubles: vec!["dispatch: no stream".to_owned()], ..Tick::default() };
        let line = "sweep: 3 claimed, 0 left · dispatch: 3 sent · transaction service: 7 answered · \
                    settle: 6 processed, 1 failed · counts of 2026-11-20: 6 PROCESSED, 2 archived · results repeated: 1 · dispatch: no stream";
        assert_eq!(tick.to_string(), line);
        assert_eq!(Tick::default().to_string(), "");
    }
}
