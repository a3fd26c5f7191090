//! One alarm, evaluated minute after minute as its periods slide. It is judged when one of its data points changes.

use std::collections::VecDeque;

use anyhow::{Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};

use crate::alarm::{Alarm, Comparison, TreatMissingData};
use crate::evaluation::{AlarmState, Change};
use crate::metric::{Minute, Samples, minute_of};

/// An alarm that is evaluated at the end of each minute.
#[derive(Debug, Clone)]
pub struct Watch {
    alarm: Alarm,
    /// The data points beyond the evaluation periods that are read if some are missing.
    extra: usize,
    /// One for each series.
    windows: Vec<Window>,
    /// The data points over time: from which minute on each holds. The newest is the last.
    runs: VecDeque<(i64, Option<bool>)>,
    /// The state; none before the first evaluation.
    state: Option<AlarmState>,
}

/// The samples of a series within the last period.
#[derive(Debug, Clone, Default)]
struct Window {
    minutes: VecDeque<(i64, Minute)>,
    /// All of them, as one.
    whole: Option<Minute>,
}

impl Window {
    /// Moves the window to the minutes from `from` on, of which `minute` is the newest.
    fn slide(&mut self, from: i64, minute: i64, sample: Option<Minute>) {
        let before = self.minutes.len();
        while self.minutes.front().is_some_and(|(at, _)| *at < from) {
            self.minutes.pop_front();
        }
        if self.minutes.len() < before || sample.is_some() {
            self.minutes.extend(sample.map(|sample| (minute, sample)));
            self.whole = self.minutes.iter().map(|(_, minute)| *minute).reduce(Minute::with);
        }
    }
}

impl Watch {
    /// Creates the watch of an alarm that has seen nothing yet. `extra` is how many data points more CloudWatch looks at if
    /// some are missing.
    pub fn new(alarm: Alarm, extra: usize) -> Self {
        let windows = vec![Window::default(); alarm.series().len()];
        Self { alarm, extra, windows, runs: VecDeque::new(), state: None }
    }

    /// The alarm.
    pub fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// The state.
    pub fn state(&self) -> AlarmState {
        self.state.unwrap_or(AlarmState::InsufficientData)
    }

    /// Pretends that all was well until `at`: metrics had data if missing data counts as breaching.
    pub fn after_healthy_time(mut self, at: DateTime<Utc>) -> Self {
        let value = match self.alarm.comparison {
            Comparison::Greater | Comparison::GreaterOrEqual => self.alarm.threshold.min(0),
            Comparison::Less | Comparison::LessOrEqual => self.alarm.threshold.saturating_add(1),
        };
        let healthy = Minute { count: 1, sum: value, minimum: value, maximum: value };
        let sample = (self.alarm.treat_missing_data() == TreatMissingData::Breaching).then_some(healthy);
        let end = minute_of(at);
        for minute in end - self.looks_back() + 1..=end {
            self.see(minute, |_| sample);
        }
        self.judge(end);
        self
    }

    /// Evaluates the alarm at the end of a minute, with the samples of that minute. No minute may be left out.
    pub fn step(&mut self, at: DateTime<Utc>, samples: &Samples) -> AlarmState {
        let [state] = Self::step_each(std::array::from_mut(self), at, samples);
        state
    }

    /// As [`step`](Self::step), for watches of the same alarm: its samples are looked up once.
    pub fn step_each<const N: usize>(watches: &mut [Self; N], at: DateTime<Utc>, samples: &Samples) -> [AlarmState; N] {
        let end = minute_of(at);
        let metrics = watches.first().map(|watch| watch.alarm.series()).unwrap_or_default();
        let series: Vec<_> = metrics.iter().map(|series| samples.minute(&series.metric, end - 1)).collect();
        watches.each_mut().map(|watch| watch.minute(end, |place| series.get(place).copied().flatten()))
    }

    /// The minutes that the alarm looks back.
    pub(crate) fn looks_back(&self) -> i64 {
        let periods = i64::try_from(self.alarm.evaluation_periods + self.extra).unwrap_or(i64::MAX);
        periods.saturating_mul(self.alarm.period.num_minutes())
    }

    /// Evaluates the alarm at the end of a minute. `of` has each series' samples of that minute.
    pub(crate) fn minute(&mut self, end: i64, of: impl Fn(usize) -> Option<Minute>) -> AlarmState {
        self.see(end, of);
        if self.state.is_none() || self.has_changed(end) { self.judge(end) } else { self.state() }
    }

    /// Takes the samples of the minute that ends at `end`, and does not judge.
    pub(crate) fn see(&mut self, end: i64, of: impl Fn(usize) -> Option<Minute>) {
        let period = self.alarm.period.num_minutes();
        for (place, window) in self.windows.iter_mut().enumerate() {
            window.slide(end - period, end - 1, of(place));
        }
        let value = self.alarm.expression.value(|place| self.windows.get(place)?.whole);
        let point = value.map(|value| self.alarm.is_breaching(value));
        if self.runs.back().is_none_or(|(_, before)| *before != point) {
            self.runs.push_back((end, point));
        }
        let oldest = end - self.looks_back();
        while self.runs.get(1).is_some_and(|(from, _)| *from <= oldest) {
            self.runs.pop_front();
        }
    }

    /// Whether one of the data points differs from the one that was looked at a minute ago.
    fn has_changed(&self, end: i64) -> bool {
        let period = self.alarm.period.num_minutes();
        self.runs.iter().any(|(from, _)| (end - from) % period == 0)
    }

    fn judge(&mut self, end: i64) -> AlarmState {
        let period = self.alarm.period.num_minutes();
        let range = self.alarm.evaluation_periods + self.extra;
        let mut points = Vec::with_capacity(range);
        let mut runs = self.runs.iter().rev().peekable();
        let mut at = end;
        for _ in 0..range {
            while runs.peek().is_some_and(|(from, _)| *from > at) {
                runs.next();
            }
            points.push(runs.peek().and_then(|(_, point)| *point));
            at -= period;
        }
        let state = self.alarm.judge(&points, self.state());
        self.state = Some(state);
        state
    }
}

/// Evaluates an alarm at the end of each minute after `from` up to `to`, and returns the changes of its state.
///
/// # Errors
/// If `to` is before `from`.
pub fn history(
    alarm: &Alarm,
    samples: &Samples,
    (from, to): (DateTime<Utc>, DateTime<Utc>),
    extra: usize,
) -> Result<Vec<Change>> {
    ensure!(from <= to, "{to} is before {from}");
    let minutes: Vec<_> = alarm.series().iter().map(|series| samples.minutes(&series.metric)).collect();
    let of = |end: i64| {
        let minutes = &minutes;
        move |place: usize| minutes.get(place).copied().flatten()?.get(&(end - 1)).copied()
    };
    let mut watch = Watch::new(alarm.clone(), extra);
    let begin = minute_of(from);
    for end in begin - watch.looks_back()..=begin {
        watch.see(end, of(end));
    }
    let mut changes = Vec::new();
    let mut state = AlarmState::InsufficientData;
    let mut at = from;
    while at < to {
        at += TimeDelta::minutes(1);
        let now = watch.minute(minute_of(at), of(minute_of(at)));
        if now != state {
            changes.push(Change { at, state: now });
        }
        state = now;
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::alarm::tests::with;
    use crate::evaluation::EXTRA_DATAPOINTS;
    use crate::evaluation::tests::alarm;
    use crate::metric::{Metric, Sample};

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(minute * 60, 0).unwrap()
    }

    #[test]
    fn an_alarm_is_evaluated_each_minute_over_periods_that_end_there() {
        let metric = Metric::new("N", "m", "D", "d");
        let mut samples = Samples::default();
        samples.extend([(10, 1), (12, 1), (30, 0)].map(|(minute, value)| Sample {
            metric: metric.clone(),
            at: at(minute),
            value,
        }));
        let changes = |alarm: &Alarm, extra: usize| -> Vec<(i64, AlarmState)> {
            let changes = history(alarm, &samples, (at(0), at(60)), extra).unwrap();
            changes.iter().map(|change| (change.at.timestamp() / 60, change.state)).collect()
        };
        use AlarmState as S;
        // On from the end of the sample's minute until the last breaching sample leaves the period.
        assert_eq!(changes(&alarm(1, 1, "notBreaching"), 0), [(1, S::Ok), (11, S::Alarm), (18, S::Ok)]);
        // The two periods before count, as long as nothing newer is known.
        assert_eq!(changes(&alarm(1, 1, "notBreaching"), EXTRA_DATAPOINTS), [(1, S::Ok), (11, S::Alarm), (28, S::Ok)]);
        assert_eq!(changes(&alarm(1, 1, "breaching"), 0), [(1, S::Alarm), (31, S::Ok), (36, S::Alarm)]);
        assert_eq!(changes(&alarm(1, 1, "breaching"), EXTRA_DATAPOINTS), [(1, S::Alarm), (31, S::Ok), (46, S::Alarm)]);
        assert!(history(&alarm(1, 1, "ignore"), &samples, (at(1), at(0)), 0).is_err());
    }

    /// The changes, found by a whole evaluation at each minute.
    fn slowly(alarm: &Alarm, samples: &Samples, (from, to): (i64, i64), extra: usize) -> Vec<Change> {
        let (mut changes, mut state) = (Vec::new(), AlarmState::InsufficientData);
        for minute in from + 1..=to {
            let now = alarm.state(samples, at(minute), extra, state);
            if now != state {
                changes.push(Change { at: at(minute), state: now });
            }
            state = now;
        }
        changes
    }

    /// Samples of two metrics: some hours full of them, some hours without any.
    fn samples(seed: u64) -> Samples {
        let (mut samples, mut random) = (Samples::default(), seed);
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for name in ["m", "n"] {
            let mut minute = 0;
            while minute < 3_000 {
                let (length, one_in) = (1 + next(200), 1 + next(60));
                for minute in minute..minute + length {
                    if next(one_in) == 0 {
                        let (metric, value) = (Metric::new("N", name, "D", "d"), next(4));
                        let at = at(i64::try_from(minute).unwrap());
                        samples.add(Sample { metric, at, value: i64::try_from(value).unwrap() });
                    }
                }
                minute += length + next(300);
            }
        }
        samples
    }

    #[test]
    fn sliding_periods_change_the_state_as_whole_evaluations_do() {
        let metric =
            |name: &str| json!({ "Namespace": "N", "MetricName": name, "Dimensions": [{ "Name": "D", "Value": "d" }] });
        let query = |name: &str, statistic: &str| {
            let stat = json!({ "Metric": metric(name), "Period": 900, "Stat": statistic });
            json!({ "Id": name, "ReturnData": false, "MetricStat": stat })
        };
        let mut changed = 0;
        for missing in ["missing", "ignore", "breaching", "notBreaching"] {
            for expression in ["SUM(METRICS())", "SUM(FILL(METRICS(), 0))"] {
                let sum = with(&json!({
                    "Metrics": [{ "Id": "e", "Expression": expression }, query("m", "Sum"), query("n", "Maximum")],
                    "EvaluationPeriods": 3, "DatapointsToAlarm": 2, "Threshold": 4,
                    "ComparisonOperator": "GreaterThanOrEqualToThreshold", "TreatMissingData": missing }));
                for alarm in [sum, alarm(1, 1, missing), alarm(3, 3, missing), alarm(26, 20, missing)] {
                    for (seed, extra) in [(1, 0), (2, EXTRA_DATAPOINTS), (3, 1)] {
                        let samples = samples(seed);
                        let slow = slowly(&alarm, &samples, (700, 3_300), extra);
                        assert_eq!(history(&alarm, &samples, (at(700), at(3_300)), extra).unwrap(), slow, "{missing}");
                        changed += slow.len();
                    }
                }
            }
        }
        assert!(changed > 200, "{changed} changes");
    }

    #[test]
    fn a_watch_goes_on_minute_by_minute_after_a_healthy_time() {
        let samples = samples(4);
        for (alarm, healthy) in
            [(alarm(1, 1, "breaching"), AlarmState::Ok), (alarm(2, 1, "notBreaching"), AlarmState::Ok)]
        {
            let mut watch = Watch::new(alarm.clone(), 0).after_healthy_time(at(700));
            assert_eq!(watch.state(), healthy);
            let later: Vec<AlarmState> = (701..3_300).map(|minute| watch.step(at(minute), &samples)).collect();
            let mut slow = AlarmState::Ok;
            // Once the healthy time is out of sight, both see the same.
            for minute in 711..3_300_i64 {
                slow = alarm.state(&samples, at(minute), 0, slow);
                assert_eq!(later[usize::try_from(minute - 701).unwrap()], slow, "{minute}");
            }
        }
        let stopped = with(&json!({
            "Namespace": "N", "MetricName": "o", "Dimensions": [{ "Name": "D", "Value": "d" }], "Statistic": "SampleCount",
            "Period": 900, "EvaluationPeriods": 1, "Threshold": 1, "ComparisonOperator": "LessThanThreshold",
            "TreatMissingData": "breaching" }));
        let mut watch = Watch::new(stopped, EXTRA_DATAPOINTS).after_healthy_time(at(700));
        let on = (701..800).find(|minute| watch.step(at(*minute), &samples) == AlarmState::Alarm);
        assert_eq!(on, Some(745), "15 minutes without data, and 30 in which older data still counts");
    }
}
