//! The state of an alarm at an instant.

use chrono::{DateTime, Utc};

use crate::alarm::{Alarm, TreatMissingData};
use crate::metric::Samples;

/// The data points beyond its evaluation periods for which CloudWatch looks back, if some are missing. The guide's
/// example has 2 for 3 periods, and says that the number depends on the period. Judge an alarm with 0 and with this.
pub const EXTRA_DATAPOINTS: usize = 2;

/// The state of an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlarmState {
    /// Within the threshold.
    Ok,
    /// Outside of the threshold.
    Alarm,
    /// Not known. Every alarm begins so.
    InsufficientData,
}

/// A change of an alarm's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The time of the change.
    pub at: DateTime<Utc>,
    /// The state from then on.
    pub state: AlarmState,
}

impl Alarm {
    /// Returns the state at the end of a minute. `before` is the state until then, and `extra` how many data points more
    /// are looked at if some are missing.
    pub fn state(&self, samples: &Samples, at: DateTime<Utc>, extra: usize, before: AlarmState) -> AlarmState {
        let range = self.evaluation_periods + extra;
        let ends = std::iter::successors(Some(at), |end| Some(*end - self.period)).take(range);
        let points: Vec<Option<bool>> = ends
            .map(|end| self.expression.datapoint(samples, end, self.period).map(|value| self.is_breaching(value)))
            .collect();
        self.judge(&points, before)
    }

    /// Judges data points, the newest first: whether each is breaching, or missing.
    pub(crate) fn judge(&self, points: &[Option<bool>], before: AlarmState) -> AlarmState {
        let real: Vec<bool> = points.iter().copied().flatten().take(self.evaluation_periods).collect();
        let breaching = real.iter().filter(|breaching| **breaching).count();
        let missing = self.evaluation_periods - real.len();
        let at_least =
            |count: usize| if count >= self.datapoints_to_alarm { AlarmState::Alarm } else { AlarmState::Ok };
        if missing == 0 {
            return at_least(breaching);
        }
        match self.treat_missing_data() {
            TreatMissingData::Breaching => at_least(breaching + missing),
            TreatMissingData::NotBreaching => at_least(breaching),
            // Without a data point within the threshold, nothing says that the alarm should change.
            TreatMissingData::Ignore if breaching == real.len() && breaching < self.datapoints_to_alarm => before,
            TreatMissingData::Ignore => at_least(breaching),
            TreatMissingData::Missing if real.is_empty() => AlarmState::InsufficientData,
            // A data point alone is not enough until it is as old as the number that an alarm needs.
            TreatMissingData::Missing if breaching == real.len() => {
                let oldest = points.iter().rposition(|point| *point == Some(true)).map_or(0, |place| place + 1);
                if oldest >= self.datapoints_to_alarm { AlarmState::Alarm } else { before }
            }
            TreatMissingData::Missing => at_least(breaching),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::alarm::tests::with;

    /// Returns an alarm on the maximum of five minutes.
    pub(crate) fn alarm(periods: u64, datapoints: u64, missing: &str) -> Alarm {
        with(&json!({
            "Namespace": "N", "MetricName": "m", "Dimensions": [{ "Name": "D", "Value": "d" }], "Statistic": "Maximum",
            "Period": 300, "EvaluationPeriods": periods, "DatapointsToAlarm": datapoints, "Threshold": 0,
            "ComparisonOperator": "GreaterThanThreshold", "TreatMissingData": missing }))
    }

    /// Both tables of *How alarm state is evaluated when data is missing*: `0` is within the threshold, `X` breaching and
    /// `-` missing, the newest on the right.
    #[test]
    fn missing_data_counts_as_the_guide_says() {
        use AlarmState::{Alarm, InsufficientData, Ok};
        // "Retain current state" is shown with a state that no rule gives.
        let kept = InsufficientData;
        for (datapoints, points, missing, ignore, breaching, not_breaching) in [
            (3, "0-X-X", Ok, Ok, Ok, Ok),
            (3, "----0", Ok, Ok, Ok, Ok),
            (3, "-----", InsufficientData, kept, Alarm, Ok),
            (3, "0XX-X", Alarm, Alarm, Alarm, Alarm),
            (3, "--X--", Alarm, kept, Alarm, Ok),
            (2, "0-X-X", Alarm, Alarm, Alarm, Alarm),
            (2, "00X0X", Alarm, Alarm, Alarm, Alarm),
            (2, "0-X--", Ok, Ok, Alarm, Ok),
            (2, "----0", Ok, Ok, Alarm, Ok),
            (2, "---X-", Alarm, kept, Alarm, Ok),
            // Not yet: the next data point may be within the threshold.
            (3, "----X", kept, kept, Alarm, Ok),
            (3, "---X-", kept, kept, Alarm, Ok),
        ] {
            let newest_first: Vec<Option<bool>> =
                points.chars().rev().map(|point| (point != '-').then_some(point == 'X')).collect();
            for (treatment, want) in
                [("missing", missing), ("ignore", ignore), ("breaching", breaching), ("notBreaching", not_breaching)]
            {
                let found = alarm(3, datapoints, treatment).judge(&newest_first, kept);
                assert_eq!(found, want, "{points}, {datapoints} of 3, {treatment}");
            }
        }
    }
}
