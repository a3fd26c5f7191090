//! Decides whether a run's outcome is worth a write: `publish` runs each minute, and mostly finds what it found before.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::TimeDelta;
use payments_model::UtcSecond;

use crate::outcome::PublishOutcome;

/// The shortest time between two puts of outcomes.
const AT_MOST_EVERY: TimeDelta = TimeDelta::minutes(1);

/// The time after which the same outcome is put again, so that a reader sees that runs end: 96 puts a day.
const AT_LEAST_EVERY: TimeDelta = TimeDelta::minutes(15);

/// The last outcome that this sandbox has put. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noted(Arc<Mutex<Option<(UtcSecond, Ended)>>>);

/// The end of a run: its outcome, and its error.
type Ended = (PublishOutcome, Option<String>);

impl Noted {
    /// Whether an outcome is to be put at `now`.
    pub(crate) fn is_due(&self, now: UtcSecond, ended: &Ended) -> bool {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().is_none_or(|(at, last)| {
            let least = if last == ended { AT_LEAST_EVERY } else { AT_MOST_EVERY };
            at.saturating_add(least) <= now
        })
    }

    /// Remembers that an outcome was put.
    pub(crate) fn note(&self, now: UtcSecond, ended: Ended) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, ended));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_outcome_waits_a_quarter_of_an_hour_and_another_a_minute() {
        let at = |time: &str| format!("2026-11-20T{time}Z").parse().unwrap();
        let same: Ended = Default::default();
        let failed = (PublishOutcome::default(), Some("no table".to_owned()));
        let noted = Noted::default();
        assert!(noted.is_due(at("08:00:00"), &same), "a new sandbox");
        noted.note(at("08:00:00"), same.clone());
        for (time, is_due, other_is_due) in
            [("08:00:59", false, false), ("08:01:00", false, true), ("08:14:59", false, true), ("08:15:00", true, true)]
        {
            assert_eq!(
                (noted.is_due(at(time), &same), noted.is_due(at(time), &failed)),
                (is_due, other_is_due),
                "{time}"
            );
        }
    }
}
