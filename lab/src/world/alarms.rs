//! The alarms of the template over a month, evaluated at the end of each minute.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use payments_alarms::{Alarm, AlarmState, EXTRA_DATAPOINTS, Samples, Watch};
use serde::Serialize;

/// One time for which an alarm was on.
///
/// CloudWatch looks back for data points beyond an alarm's periods, and does not say how far. So each alarm is evaluated
/// twice: without looking back, and looking back as far as in the guide's example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Raised {
    /// The time at which the first of both evaluations raised it.
    pub from: DateTime<Utc>,
    /// The time at which both had raised it. `None` if only one did.
    pub by_both: Option<DateTime<Utc>>,
    /// The time at which neither raised it any more; `None` if it is on.
    pub to: Option<DateTime<Utc>>,
}

/// The times for which each alarm was on.
pub type RaisedAlarms = BTreeMap<String, Vec<Raised>>;

/// The alarms. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Alarms(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    watches: Vec<[Watch; 2]>,
    raised: RaisedAlarms,
}

impl Alarms {
    /// Creates the alarms at an instant until which all was well.
    pub(crate) fn new(alarms: Vec<Alarm>, begin: DateTime<Utc>) -> Self {
        let watch = |alarm: &Alarm, extra| Watch::new(alarm.clone(), extra).after_healthy_time(begin);
        let both = |alarm: &Alarm| [0, EXTRA_DATAPOINTS].map(|extra| watch(alarm, extra));
        let watches = alarms.iter().map(both).collect();
        Self(Arc::new(Mutex::new(State { watches, raised: BTreeMap::new() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Evaluates all alarms at the end of a minute, with the samples of that minute. Returns those that both evaluations have
    /// just raised.
    pub(crate) fn step(&self, at: DateTime<Utc>, samples: &Samples) -> Vec<String> {
        let mut state = self.state();
        let State { watches, raised } = &mut *state;
        let mut new = Vec::new();
        for both in watches {
            let on = Watch::step_each(both, at, samples).map(|state| state == AlarmState::Alarm);
            let name = &both[0].alarm().name;
            let times = raised.get_mut(name);
            let last = times.and_then(|times| times.last_mut()).filter(|last| last.to.is_none());
            match (last, on) {
                (None, [false, false]) => {}
                (Some(last), [false, false]) => last.to = Some(at),
                (Some(last), [true, true]) if last.by_both.is_none() => {
                    last.by_both = Some(at);
                    new.push(name.clone());
                }
                (Some(_), _) => {}
                (None, _) => {
                    let by_both = (on == [true, true]).then_some(at);
                    new.extend(by_both.map(|_| name.clone()));
                    raised.entry(name.clone()).or_default().push(Raised { from: at, by_both, to: None });
                }
            }
        }
        new
    }

    /// Whether an alarm is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.last(name).is_some_and(|last| last.to.is_none())
    }

    /// Whether an alarm has been off for so long.
    pub(crate) fn has_been_off(&self, name: &str, time: TimeDelta, now: DateTime<Utc>) -> bool {
        self.last(name).is_none_or(|last| last.to.is_some_and(|to| to + time <= now))
    }

    fn last(&self, name: &str) -> Option<Raised> {
        self.state().raised.get(name)?.last().copied()
    }

    /// Returns the times for which alarms were on.
    pub(crate) fn raised(&self) -> RaisedAlarms {
        self.state().raised.clone()
    }
}

/// Returns the names of the template's alarms.
///
/// # Errors
/// If the template has an alarm that cannot be evaluated.
pub fn alarm_names() -> Result<Vec<String>> {
    Ok(crate::world::template::alarms()?.into_iter().map(|alarm| alarm.name).collect())
}

#[cfg(test)]
mod tests {
    use payments_alarms::{Metric, Sample};

    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_796_000_400 + minute * 60, 0).unwrap()
    }

    /// Plays minutes in which a metric has a value or none, and returns the times of an alarm.
    fn times(name: &str, metric: &Metric, value: impl Fn(i64) -> Option<i64>) -> Vec<Raised> {
        let one = crate::world::template::alarms().unwrap().into_iter().filter(|alarm| alarm.name == name).collect();
        let alarms = Alarms::new(one, at(0));
        for minute in 0..240 {
            let mut samples = Samples::default();
            samples.extend(value(minute).map(|value| Sample { metric: metric.clone(), at: at(minute), value }));
            let new = alarms.step(at(minute + 1), &samples);
            assert_eq!(new.is_empty(), alarms.last(name).is_none_or(|last| last.by_both != Some(at(minute + 1))));
        }
        assert_eq!(
            alarms.is_on(name),
            alarms.raised().get(name).is_some_and(|times| times.last().unwrap().to.is_none())
        );
        alarms.raised().remove(name).unwrap_or_default()
    }

    #[test]
    fn an_alarm_is_on_from_the_first_look_to_the_last() {
        let polled =
            Metric::new("AWS/Lambda", "PolledEventCount", "EventSourceMappingUUID", "DispatchFunctionBecamePending");
        assert_eq!(times("DispatchStopped", &polled, |_| Some(0)), []);
        let stopped = times("DispatchStopped", &polled, |minute| (!(60..120).contains(&minute)).then_some(0));
        assert_eq!(stopped, [Raised { from: at(75), by_both: Some(at(105)), to: Some(at(121)) }]);
        let short = times("DispatchStopped", &polled, |minute| (!(60..80).contains(&minute)).then_some(0));
        assert_eq!(short, [Raised { from: at(75), by_both: None, to: Some(at(81)) }]);
    }

    #[test]
    fn an_alarm_that_stays_on_has_no_end() {
        let dead = Metric::new("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", "ResultDeadLetters");
        let stays = times("ResultDeadLettersAlarm", &dead, |minute| Some(i64::from(minute >= 100)));
        assert_eq!(stays, [Raised { from: at(101), by_both: Some(at(101)), to: None }]);
    }
}
