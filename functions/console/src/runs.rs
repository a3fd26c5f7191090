//! The last runs of the scheduled functions, and their outcomes in words.

use std::collections::BTreeSet;

use maud::{Markup, PreEscaped, html};
use payments_model::BusinessDate;
use payments_store::{Job, LastRun, StoreError};
use serde_json::Value;

use crate::function::Console;
use crate::html::{foreign, grouped};
use crate::times::{Times, span};

/// The last run of each job, as far as it can be read.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    known: Vec<LastRun>,
    unreadable: usize,
}

impl Console {
    /// Reads the last run of each job: one query.
    pub(crate) async fn last_runs(&self) -> Result<Runs, StoreError> {
        let mut runs = Runs::default();
        for run in self.store.last_runs().await? {
            match run {
                Ok(run) => runs.known.push(run),
                Err(error) => {
                    tracing::error!(%error, "the last run of a job cannot be read");
                    runs.unreadable += 1;
                }
            }
        }
        Ok(runs)
    }
}

impl Runs {
    /// The last run of a job, if one ever ended.
    pub(crate) fn job(&self, job: Job) -> Option<&LastRun> {
        self.known.iter().find(|run| run.job == job)
    }

    /// The last runs that could be read.
    pub(crate) fn all(&self) -> impl Iterator<Item = &LastRun> {
        self.known.iter()
    }

    /// Whether every last run could be read.
    pub(crate) fn is_complete(&self) -> bool {
        self.unreadable == 0
    }

    /// Whether a job's last run is missing because it cannot be read.
    pub(crate) fn may_be_unreadable(&self, job: Job) -> bool {
        self.unreadable > 0 && self.job(job).is_none()
    }
}

/// The closed dates on which payments wait for a redate, as the last look found them.
pub(crate) fn waiting_dates(runs: &Runs) -> BTreeSet<BusinessDate> {
    let dates = runs.job(Job::Look).and_then(|run| run.outcome.as_ref()?["waitingDates"].as_array());
    dates.into_iter().flatten().filter_map(|waiting| waiting["date"].as_str()?.parse().ok()).collect()
}

/// The mark of a date on which payments wait for a redate.
pub(crate) const WAITS: PreEscaped<&str> = PreEscaped(r#" <span class="pill warn">wait for a redate</span>"#);

/// A job, in a word.
pub(crate) fn name(job: Job) -> &'static str {
    match job {
        Job::Sweep => "Sweep",
        Job::Redrive => "Redrive",
        Job::Report => "Report",
        Job::Archive => "Archive",
        Job::Recount => "Recount",
        Job::Look => "Count for a redate",
        Job::Move => "Redate",
        Job::Seal => "Sealing",
        Job::Publish => "Delivery of events",
    }
}

/// The purpose of a job.
pub(crate) fn purpose(job: Job) -> &'static str {
    match job {
        Job::Sweep => "claims what is due",
        Job::Redrive => "sends requests again",
        Job::Report => "writes the billing file",
        Job::Archive => "archives finished payments",
        Job::Recount => "compares counters with payments",
        Job::Look => "counts payments on closed dates",
        Job::Move => "moves payments of closed dates",
        Job::Seal => "seals past dates",
        Job::Publish => "writes the journal, delivers events",
    }
}

/// The number in a field of an outcome; 0 if it has none.
pub(crate) fn number(outcome: &Value, field: &str) -> u64 {
    outcome[field].as_u64().unwrap_or(0)
}

/// The end of a run in words: its result, or why it failed.
pub(crate) fn end(run: &LastRun) -> Markup {
    let lasted = (run.ended_at.as_chrono() - run.began_at.as_chrono()).num_seconds();
    html! {
        @match &run.failed {
            Some(why) => { span class="pill stop" { "Failed" } " " (foreign(why)) },
            None => (run.outcome.as_ref().map_or_else(String::new, |outcome| in_words(run.job, outcome))),
        }
        " " span class="quiet n" { "in " (span(lasted)) }
    }
}

/// The last run of a job, for a sentence: `Last sweep 03:05: claimed 0 in 2 s.`
pub(crate) fn last(runs: &Runs, job: Job, times: Times) -> Markup {
    let word = name(job).to_lowercase();
    html! {
        @match runs.job(job) {
            Some(run) => { "Last " (word) " " (times.brief(run.ended_at)) ": " (end(run)) "." },
            None if runs.may_be_unreadable(job) => { "The last " (word) " cannot be read; the function’s log says why." },
            None => { "No " (word) " has ended yet." },
        }
    }
}

/// An outcome in words: the number that matters, and then those that should be zero.
pub(crate) fn in_words(job: Job, outcome: &Value) -> String {
    let always = |(field, words): (&str, &str)| words.replace('#', &grouped(number(outcome, field).into()));
    let (first, others) = parts(job);
    let mut words: Vec<String> = first.iter().copied().map(always).collect();
    words.extend(others.iter().copied().filter(|(field, _)| number(outcome, field) > 0).map(always));
    let left = &outcome["left"];
    let stay = number(left, "none") + number(left, "refuse") + number(left, "uncovered");
    if stay > 0 {
        words.push(format!("{} would not, by their rule or their calendar", grouped(stay.into())));
    }
    if outcome["isComplete"] == Value::Bool(false) {
        words.push("not complete: start it again".to_owned());
    }
    words.extend(outcome["ticket"].as_str().map(|ticket| format!("without a second person, {ticket}")));
    words.join(", ")
}

/// Fields of an outcome, each with its words.
type Fields = &'static [(&'static str, &'static str)];

/// The fields of a job's outcome that are always said, and those that are said if they are not zero.
fn parts(job: Job) -> (Fields, Fields) {
    match job {
        Job::Sweep => (
            &[("claimed", "claimed #")],
            &[
                ("remaining", "# left for the next"),
                ("failed", "# could not be read or claimed"),
                ("feedMissing", "today’s feed is missing"),
                ("shardsGivenUp", "# shards given up"),
                ("stopped", "stopped by the switch"),
                ("switchUnreadable", "stopped, because the switch cannot be read"),
            ],
        ),
        Job::Redrive => (
            &[("redriven", "sent # again")],
            &[
                ("waiting", "# wait for a result"),
                ("stuck", "# stuck"),
                ("failed", "# could not be read"),
                ("shardsUnfinished", "# shards not finished"),
                ("stopped", "stopped by the switch"),
                ("switchUnreadable", "stopped, because the switch cannot be read"),
            ],
        ),
        Job::Report => (&[("reported", "reported # settlements")], &[("failed", "# could not be read")]),
        Job::Archive => (
            &[("archived", "archived #")],
            &[
                ("waitingForReport", "# wait for a report"),
                ("failed", "# could not be archived"),
                ("remaining", "# left for the next"),
                ("shardsGivenUp", "# shards given up"),
            ],
        ),
        Job::Recount => (
            &[("exact", "# dates are exact")],
            &[("drifted", "# miscounted"), ("repaired", "# repaired"), ("datesLeft", "# left for the next")],
        ),
        Job::Look => (
            &[("waiting", "# would move")],
            &[("changedMeanwhile", "# changed meanwhile"), ("unreadable", "# could not be read")],
        ),
        Job::Move => (
            &[("moved", "moved #")],
            &[
                ("waiting", "# still wait"),
                ("changedMeanwhile", "# changed meanwhile"),
                ("unreadable", "# could not be read"),
            ],
        ),
        Job::Seal => (
            &[("sealed", "sealed #")],
            &[
                ("waiting", "# are not finished"),
                ("unreadable", "# could not be read"),
                ("datesLeft", "# dates left for the next"),
            ],
        ),
        Job::Publish => (
            &[("journaledEvents", "# events to the journal")],
            &[
                ("deliveredEvents", "# delivered to endpoints"),
                ("busEvents", "# to the bus"),
                ("failedDeliveries", "# deliveries failed"),
            ],
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_outcome_says_what_matters_and_what_should_not_be() {
        for (job, outcome, want) in [
            (Job::Sweep, json!({"claimed": 0, "remaining": 0}), "claimed 0"),
            (
                Job::Sweep,
                json!({"claimed": 1_234, "remaining": 5, "failed": 1}),
                "claimed 1,234, 5 left for the next, 1 could not be read or claimed",
            ),
            (
                Job::Redrive,
                json!({"redriven": 2, "waiting": 7, "stuck": 1}),
                "sent 2 again, 7 wait for a result, 1 stuck",
            ),
            (
                Job::Look,
                json!({"waiting": 1_204, "left": {"none": 6, "refuse": 1, "uncovered": 0}, "isComplete": true}),
                "1,204 would move, 7 would not, by their rule or their calendar",
            ),
            (Job::Move, json!({"moved": 3, "isComplete": false}), "moved 3, not complete: start it again"),
            (
                Job::Publish,
                json!({"journaledEvents": 4, "deliveredEvents": 3}),
                "4 events to the journal, 3 delivered to endpoints",
            ),
            // An outcome of another version, or a damaged one.
            (Job::Report, json!({"reported": "<b>"}), "reported 0 settlements"),
        ] {
            assert_eq!(in_words(job, &outcome), want);
        }
    }
}
