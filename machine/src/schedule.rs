//! The times at which schedules are due, by EventBridge's expressions.

use std::str::FromStr;

use anyhow::{Context as _, Result, bail};
use chrono::{DateTime, TimeDelta, Utc};
use payments_model::{BusinessZone, UtcSecond};
use serde::Deserialize;

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct ScheduleSpec {
    /// The name of the schedule's event, in words: `archive-begins` for `ArchiveBegins`.
    #[serde(skip)]
    pub name: String,
    /// The package that it invokes.
    #[serde(skip)]
    pub package: String,
    /// The times of the schedule: a rate, or a cron expression.
    #[serde(rename = "ScheduleExpression")]
    pub expression: String,
    /// The input of the function, in JSON.
    pub input: String,
    #[serde(default)]
    state: State,
}

/// Whether a schedule runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum State {
    #[default]
    Enabled,
    Disabled,
}

impl ScheduleSpec {
    /// Returns it with the name of its event, for the package that it invokes.
    pub(crate) fn named(self, event: &str, package: String) -> Self {
        Self { name: in_words(event), package, ..self }
    }

    /// Whether it runs.
    pub(crate) fn is_enabled(&self) -> bool {
        self.state == State::Enabled
    }
}

/// Returns a name of CloudFormation as one machine writes it.
fn in_words(name: &str) -> String {
    let letters = name.chars().flat_map(|letter| {
        let gap = letter.is_uppercase().then_some('-');
        gap.into_iter().chain(letter.to_lowercase())
    });
    letters.skip(1).collect()
}

/// The times at which a schedule is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timing {
    /// At once, and then at the start of each period of the clock.
    Rate(TimeDelta),
    /// Whenever the bank's clocks show one of these minutes of one of these hours. Each is a bit.
    Cron { minutes: u64, hours: u64 },
}

impl FromStr for Timing {
    type Err = anyhow::Error;

    fn from_str(expression: &str) -> Result<Self> {
        let inside = |kind: &str| expression.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')');
        if let Some(rate) = inside("rate") {
            let (count, unit) = rate.split_once(' ').context("a rate needs a number and a unit")?;
            let count: i32 = count.parse().context("a rate needs a whole number")?;
            return Ok(Self::Rate(match unit.trim_end_matches('s') {
                "minute" => TimeDelta::minutes(1) * count,
                "hour" => TimeDelta::hours(1) * count,
                "day" => TimeDelta::days(1) * count,
                _ => bail!("{unit} is not a unit of a rate"),
            }));
        }
        let fields: Vec<&str> =
            inside("cron").context("the expression is neither a rate nor a cron expression")?.split(' ').collect();
        let [minutes, hours, "*", "*", "?", "*"] = fields.as_slice() else {
            bail!("the cron expression is not daily: {expression}")
        };
        Ok(Self::Cron { minutes: bits(minutes, 60)?, hours: bits(hours, 24)? })
    }
}

/// Returns the numbers below `end` that a field of a cron expression names, each as a bit.
fn bits(field: &str, end: u32) -> Result<u64> {
    let mut bits = 0;
    for part in field.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (from.parse()?, to.parse()?),
            None if range == "*" => (0, end - 1),
            None if part.contains('/') => (range.parse()?, end - 1),
            None => (range.parse()?, range.parse()?),
        };
        if to >= end || from > to {
            bail!("{part} is out of range");
        }
        (from..=to).step_by(step.parse()?).for_each(|number: u32| bits |= 1 << number);
    }
    Ok(bits)
}

/// A schedule with its next time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    spec: &'static ScheduleSpec,
    timing: Timing,
    zone: BusinessZone,
    next: Option<DateTime<Utc>>,
}

impl Schedule {
    /// Creates a schedule that has not run yet.
    pub fn new(spec: &'static ScheduleSpec, zone: BusinessZone) -> Result<Self> {
        let timing = spec.expression.parse().with_context(|| format!("the schedule {}", spec.name))?;
        Ok(Self { spec, timing, zone, next: None })
    }

    /// Changes the schedule to a rate.
    pub fn every(self, period: TimeDelta) -> Self {
        Self { timing: Timing::Rate(period), next: None, ..self }
    }

    /// Returns the schedule of `template.yaml`.
    pub fn spec(&self) -> &'static ScheduleSpec {
        self.spec
    }

    /// Returns whether it is due, once for each of its times. A rate is due at once.
    pub fn falls_due(&mut self, now: DateTime<Utc>) -> bool {
        let due = match self.next {
            Some(next) => now >= next,
            None => matches!(self.timing, Timing::Rate(_)),
        };
        if due || self.next.is_none() {
            self.next = Some(self.after(now));
        }
        due
    }

    /// Returns the first time after `now`.
    fn after(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let begins = |period: TimeDelta| {
            let millis = period.num_milliseconds().max(1);
            now + TimeDelta::milliseconds(millis - now.timestamp_millis().rem_euclid(millis))
        };
        match self.timing {
            Timing::Rate(period) => begins(period),
            Timing::Cron { minutes, hours } => {
                // Two days, because clocks that go forward may skip a time.
                let times = (0..2 * 24 * 60).map(|minute| begins(TimeDelta::minutes(1)) + TimeDelta::minutes(minute));
                let is_due = |time: &DateTime<Utc>| {
                    let shown = UtcSecond::new(*time).map(|time| self.zone.clock_face(time));
                    shown.is_ok_and(|(hour, minute)| hours >> hour & 1 == 1 && minutes >> minute & 1 == 1)
                };
                times.into_iter().find(is_due).unwrap_or(DateTime::<Utc>::MAX_UTC)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;

    fn spec(name: &str) -> &'static ScheduleSpec {
        Template::ours().unwrap().schedules().find(|spec| spec.name == name).unwrap()
    }

    fn schedule(name: &str) -> Schedule {
        Schedule::new(spec(name), "Europe/London".parse().unwrap()).unwrap()
    }

    #[test]
    fn a_rate_is_due_at_once_and_then_at_each_period_of_the_clock() {
        let mut sweep = schedule("sweep").every(TimeDelta::minutes(5));
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
    fn the_archive_runs_from_half_past_two_to_six_by_the_banks_clocks() {
        // London's clocks show UTC in winter and an hour more in summer.
        for (date, offset) in [("2026-11-20", 0), ("2026-07-20", 1)] {
            let mut archive = [schedule("archive-begins"), schedule("archive")];
            let midnight: DateTime<Utc> = format!("{date}T00:00:00Z").parse().unwrap();
            let minutes = (0..24 * 60).map(|minute| TimeDelta::minutes(minute) - TimeDelta::hours(offset));
            let mut due = Vec::new();
            for shown in minutes {
                let now = midnight + shown;
                let fall_due = archive.iter_mut().filter_map(|schedule| schedule.falls_due(now).then_some(()));
                if fall_due.count() > 0 {
                    due.push((now + TimeDelta::hours(offset)).format("%H:%M").to_string());
                }
            }
            let (first, last) = (due.first().map(String::as_str), due.last().map(String::as_str));
            assert_eq!((first, last, due.len()), (Some("02:30"), Some("05:45"), 14), "{date}");
        }
    }

    /// One of the looks is at 02:10, which the clocks of some zones skip once a year.
    #[test]
    fn payments_of_closed_dates_are_looked_for_every_four_hours_and_not_at_midnight() {
        let spec = spec("look-for-redates");
        for (zone, date, want) in
            [("Europe/Berlin", "2026-11-20", "02 06 10 14 18 22"), ("Europe/Berlin", "2026-03-29", "06 10 14 18 22")]
        {
            let zone: BusinessZone = zone.parse().unwrap();
            let begin = zone.start_of(date.parse().unwrap()).as_chrono();
            let mut look = Schedule::new(spec, zone).unwrap();
            let minutes = (0..24 * 60 - 60).map(|minute| begin + TimeDelta::minutes(minute));
            let due = minutes.filter(|now| look.falls_due(*now));
            let hours: Vec<String> =
                due.map(|now| format!("{:02}", zone.clock_face(UtcSecond::new(now).unwrap()).0)).collect();
            assert_eq!(hours.join(" "), want, "{date}");
        }
    }

    #[test]
    fn an_unsupported_expression_is_an_error() {
        for expression in ["", "rate(5)", "rate(x minutes)", "rate(5 moons)", "cron(0 25 * * ? *)", "cron(0 2 1 * ? *)"]
        {
            assert!(expression.parse::<Timing>().is_err(), "{expression}");
        }
        assert_eq!(
            "cron(0/15 3-5 * * ? *)".parse::<Timing>().unwrap(),
            Timing::Cron { minutes: 1 | 1 << 15 | 1 << 30 | 1 << 45, hours: 0b11_1000 }
        );
    }
}
