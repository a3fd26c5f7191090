//! What a tick did, in numbers and in one line. The functions' own numbers are their metrics, read
//! as CloudWatch would read them.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

/// What a tick did, or several together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tick {
    /// What the functions counted.
    pub counts: Counts,
    /// Requests that the transaction service took.
    pub taken: u64,
    /// Results that the transaction service sent.
    pub answered: u64,
    /// Today's counts, where they moved.
    pub today: Option<String>,
    /// What went wrong, one line each.
    pub troubles: Vec<String>,
    /// How long it took.
    pub took: Took,
}

/// How long the parts of a tick took on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Took {
    /// The schedules: claims, for the most part.
    pub sweep: Duration,
    /// Reading the stream and dispatching.
    pub dispatch: Duration,
    /// Settling.
    pub settle: Duration,
    /// Counting.
    pub aggregate: Duration,
    /// Reporting.
    pub report: Duration,
    /// Moving to history.
    pub archive: Duration,
    /// Recounting.
    pub recount: Duration,
}

/// Makes the struct of counts, so that none is forgotten when they are added up.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What the functions counted, under the names of their metrics.
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
    /// Payments that became pending.
    claimed,
    /// Payments that had moved on before they were claimed.
    already_claimed,
    /// Payments that a sweep left for the next one.
    remaining,
    /// Shards that a sweep gave up for the time being.
    shards_given_up,
    /// Payments that are handed over again.
    redriven,
    /// Payments that were handed over too often.
    stuck_pending,
    /// Requests that were sent.
    sent,
    /// Requests that were not, and come again.
    send_failed,
    /// Payments that were processed.
    processed,
    /// Payments that failed.
    failed,
    /// Results that were known.
    repeated_outcomes,
    /// Results that contradict a known one.
    conflicting_outcomes,
    /// Results of payments that were not pending yet.
    early_outcomes,
    /// Results of payments that nobody knows.
    unknown_payments,
    /// Stream records that cannot be read.
    poison_records,
    /// Results that cannot be read.
    poison_messages,
    /// Results that could not be settled because DynamoDB did not answer.
    settle_outages,
    /// Transaction ids that more than one payment carries.
    shared_transaction_ids,
    /// Changes that were counted.
    counted,
    /// Changes that could not be read.
    unparsed,
    /// Settlements that were reported.
    reported,
    /// Payments that moved to history.
    archived,
    /// Dates whose counters are not what a recount finds.
    drifted_dates,
}

impl Counts {
    /// The sum of metric lines. A line that is none counts nothing.
    #[must_use]
    pub fn of(lines: &[String]) -> Self {
        let mut sum = Self::default();
        lines.iter().filter_map(|line| serde_json::from_str::<Self>(line).ok()).for_each(|counts| sum += counts);
        sum
    }

    /// Payments that were settled, either way.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.processed + self.failed
    }
}

impl AddAssign for Tick {
    fn add_assign(&mut self, other: Self) {
        self.counts += other.counts;
        self.taken += other.taken;
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
        self.archive += other.archive;
        self.recount += other.recount;
    }
}

/// One date of the API's counts, in words.
pub(super) fn told(counts: &Value) -> Option<String> {
    let by_status = counts["byStatus"].as_object()?.iter();
    let some =
        by_status.filter(|(_, count)| count.as_i64() != Some(0)).map(|(status, count)| format!("{count} {status}"));
    let archived = (counts["archived"] != 0).then(|| format!("{} archived", counts["archived"]));
    let numbers: Vec<String> = some.chain(archived).collect();
    Some(format!("counts of {}: {}", counts["date"].as_str()?, numbers.join(", ")))
}

/// One readable line; nothing for a tick that did nothing.
impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        let mut parts: Vec<String> = Vec::new();
        if counts.claimed + counts.already_claimed + counts.remaining > 0 {
            parts.push(format!("sweep: {} claimed, {} left", counts.claimed, counts.remaining));
        }
        if counts.redriven + counts.stuck_pending > 0 {
            parts.push(format!("redrive: {} once more, {} stuck", counts.redriven, counts.stuck_pending));
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
            (counts.unparsed, "changes that cannot be counted"),
            (counts.drifted_dates, "dates whose counters are wrong"),
        ] {
            if count > 0 {
                parts.push(format!("{what}: {count}"));
            }
        }
        for (count, what) in [
            (counts.repeated_outcomes, "repeated"),
            (counts.conflicting_outcomes, "CONFLICTING"),
            (counts.early_outcomes, "too early"),
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
    fn metrics_become_one_line() {
        let lines = [
            r#"{"_aws":{"Timestamp":0},"Claimed":3,"AlreadyClaimed":0,"Remaining":0,"Function":"captured"}"#,
            r#"{"Sent":3,"MovedOn":1}"#,
            r#"{"Processed":2,"Failed":1,"RepeatedOutcomes":1}"#,
            r#"{"Processed":4}"#,
            "no metric",
        ];
        let mut tick = Tick { counts: Counts::of(&lines.map(str::to_owned)), ..Tick::default() };
        let counts =
            serde_json::json!({ "date": "2026-11-20", "byStatus": { "PENDING": 0, "PROCESSED": 6 }, "archived": 2 });
        tick.today = told(&counts);
        tick += Tick { taken: 3, answered: 7, troubles: vec!["dispatch: no stream".to_owned()], ..Tick::default() };
        let line = "sweep: 3 claimed, 0 left · dispatch: 3 sent · transaction service: 7 answered · \
                    settle: 6 processed, 1 failed · counts of 2026-11-20: 6 PROCESSED, 2 archived · results repeated: 1 · dispatch: no stream";
        assert_eq!(tick.to_string(), line);
        assert_eq!(Tick::default().to_string(), "");
    }
}
