//! The schedules: what is invoked with which input, and how often.

use chrono::{DateTime, TimeDelta, Utc};
use serde::de::DeserializeOwned;

/// One schedule as the template has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleSpec {
    /// Its name.
    pub name: &'static str,
    /// The function that it invokes.
    pub function: &'static str,
    /// How often.
    pub period: TimeDelta,
    /// The event that the function gets, in JSON.
    pub input: &'static str,
}

/// Every schedule.
pub const SCHEDULES: [ScheduleSpec; 2] = [
    ScheduleSpec {
        name: "sweep",
        function: "daily-due-sweeper",
        period: TimeDelta::minutes(5),
        input: r#"{"action":"sweep"}"#,
    },
    ScheduleSpec {
        name: "redrive",
        function: "daily-due-sweeper",
        period: TimeDelta::hours(1),
        input: r#"{"action":"redrive"}"#,
    },
];

/// A schedule at work: due at once, and then whenever another period of the clock begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    spec: ScheduleSpec,
    next: Option<DateTime<Utc>>,
}

impl Schedule {
    /// A schedule that has not run yet.
    #[must_use]
    pub fn new(spec: &ScheduleSpec) -> Self {
        Self { spec: *spec, next: None }
    }

    /// The same with another period.
    #[must_use]
    pub fn every(self, period: TimeDelta) -> Self {
        Self { spec: ScheduleSpec { period, ..self.spec }, next: None }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.spec.name
    }

    /// Whether it is due; then it is not, until its next period.
    pub fn falls_due(&mut self, now: DateTime<Utc>) -> bool {
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        let period = self.spec.period.num_milliseconds().max(1);
        let into = now.timestamp_millis().rem_euclid(period);
        self.next = Some(now + TimeDelta::milliseconds(period - into));
        true
    }

    /// Its input, as the function reads it.
    ///
    /// # Errors
    /// Where the function does not know such an event.
    pub fn event<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.spec.input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_due_at_once_and_then_with_the_clock() {
        let mut sweep = Schedule::new(&SCHEDULES[0]);
        for (now, due) in [
            ("2026-11-20T09:02:10Z", true),
            ("2026-11-20T09:02:11Z", false),
            ("2026-11-20T09:04:59Z", false),
            ("2026-11-20T09:05:00Z", true),
            ("2026-11-20T09:05:00Z", false),
            ("2026-11-20T09:21:00Z", true),
            ("2026-11-20T09:24:59Z", false),
            ("2026-11-20T09:25:01Z", true),
        ] {
            assert_eq!(sweep.falls_due(now.parse().unwrap()), due, "{now}");
        }
    }

    #[test]
    fn every_input_is_an_event_of_its_function() {
        for spec in &SCHEDULES {
            assert_eq!(spec.function, "daily-due-sweeper");
            let event: daily_due_sweeper::Request = Schedule::new(spec).event().unwrap();
            assert_eq!(serde_json::to_string(&event).unwrap(), spec.input);
        }
    }
}
