//! The alarms of a template.

use anyhow::{Context as _, Result, bail, ensure};
use chrono::TimeDelta;
use serde_json::Value;

use crate::expression::{Expression, Series};
use crate::metric::text;

/// The comparison of a data point with the threshold. If the comparison is true, the data point is breaching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
}

/// The meaning of a missing data point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreatMissingData {
    /// Missing: without any data point the state is `INSUFFICIENT_DATA`.
    Missing,
    /// The state stays as it is.
    Ignore,
    /// A breaching one.
    Breaching,
    /// One that is not breaching.
    NotBreaching,
}

/// An alarm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    /// Its logical id.
    pub name: String,
    pub(crate) expression: Expression,
    pub(crate) period: TimeDelta,
    pub(crate) evaluation_periods: usize,
    pub(crate) datapoints_to_alarm: usize,
    pub(crate) comparison: Comparison,
    pub(crate) threshold: i64,
    pub(crate) treat_missing_data: TreatMissingData,
}

/// The properties that this crate knows. Properties of actions and texts do not change the state.
const KNOWN: [&str; 15] = [
    "AlarmActions",
    "AlarmDescription",
    "ComparisonOperator",
    "DatapointsToAlarm",
    "Dimensions",
    "EvaluationPeriods",
    "MetricName",
    "Metrics",
    "Namespace",
    "OKActions",
    "Period",
    "Statistic",
    "Tags",
    "Threshold",
    "TreatMissingData",
];

impl Alarm {
    /// Reads the alarms of a template, in which `!Ref Name` is `{"!Ref": "Name"}`, by their names.
    ///
    /// # Errors
    /// If an alarm has anything that this crate does not know: it is evaluated as CloudWatch would, or not at all.
    pub fn all(template: &Value) -> Result<Vec<Self>> {
        let mut alarms = Vec::new();
        for (name, resource) in template["Resources"].as_object().context("a template has resources")? {
            match resource["Type"].as_str() {
                Some("AWS::CloudWatch::Alarm") => {
                    alarms.push(Self::parse(name, &resource["Properties"]).with_context(|| name.clone())?);
                }
                Some(other @ ("AWS::CloudWatch::CompositeAlarm" | "AWS::CloudWatch::AnomalyDetector")) => {
                    bail!("{name}: {other} is not supported");
                }
                _ => {}
            }
        }
        Ok(alarms)
    }

    fn parse(name: &str, properties: &Value) -> Result<Self> {
        let fields = properties.as_object().context("an alarm has properties")?;
        let unknown = fields.keys().find(|field| !KNOWN.contains(&field.as_str()));
        ensure!(unknown.is_none(), "what does {unknown:?} mean?");
        let (expression, period) = Expression::parse(properties)?;
        let number = |name: &str| properties[name].as_u64().and_then(|number| usize::try_from(number).ok());
        let evaluation_periods = number("EvaluationPeriods").context("no EvaluationPeriods")?;
        let datapoints_to_alarm = match &properties["DatapointsToAlarm"] {
            Value::Null => evaluation_periods,
            _ => number("DatapointsToAlarm").context("DatapointsToAlarm is a number")?,
        };
        ensure!((1..=evaluation_periods).contains(&datapoints_to_alarm), "more data points than periods, or none");
        let (whole, limit) = (evaluation_periods.saturating_mul(usize::try_from(period.num_seconds())?), 86_400);
        // CloudWatch allows a day, and seven days if a period has at least an hour.
        let limit = if period < TimeDelta::hours(1) { limit } else { 7 * limit };
        ensure!(whole <= limit, "{whole} s are more than an alarm can look back");
        Ok(Self {
            name: name.to_owned(),
            expression,
            period,
            evaluation_periods,
            datapoints_to_alarm,
            comparison: comparison_of(&properties["ComparisonOperator"])?,
            threshold: properties["Threshold"].as_i64().context("a threshold is a whole number here")?,
            treat_missing_data: treatment_of(&properties["TreatMissingData"])?,
        })
    }

    /// The metrics that it looks at.
    pub fn series(&self) -> &[Series] {
        self.expression.series()
    }

    /// Returns the meaning of a missing data point. Alarms on DynamoDB's metrics ignore them, whatever the template
    /// says. (Another page of the guide says that a template can override it. The evaluation takes the worse.)
    pub fn treat_missing_data(&self) -> TreatMissingData {
        let is_of_dynamodb = |series: &Series| series.metric.namespace == "AWS/DynamoDB";
        let ignores = self.series().iter().any(is_of_dynamodb);
        if ignores { TreatMissingData::Ignore } else { self.treat_missing_data }
    }

    /// Whether a data point is outside of the threshold.
    pub(crate) fn is_breaching(&self, value: i64) -> bool {
        match self.comparison {
            Comparison::Greater => value > self.threshold,
            Comparison::GreaterOrEqual => value >= self.threshold,
            Comparison::Less => value < self.threshold,
            Comparison::LessOrEqual => value <= self.threshold,
        }
    }
}

fn comparison_of(value: &Value) -> Result<Comparison> {
    Ok(match text(value)?.as_str() {
        "GreaterThanThreshold" => Comparison::Greater,
        "GreaterThanOrEqualToThreshold" => Comparison::GreaterOrEqual,
        "LessThanThreshold" => Comparison::Less,
        "LessThanOrEqualToThreshold" => Comparison::LessOrEqual,
        other => bail!("the comparison {other} is not supported"),
    })
}

fn treatment_of(value: &Value) -> Result<TreatMissingData> {
    Ok(match value {
        Value::Null => TreatMissingData::Missing,
        value => match text(value)?.as_str() {
            "missing" => TreatMissingData::Missing,
            "ignore" => TreatMissingData::Ignore,
            "breaching" => TreatMissingData::Breaching,
            "notBreaching" => TreatMissingData::NotBreaching,
            other => bail!("the treatment {other} is not supported"),
        },
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    fn properties() -> Value {
        json!({
            "AlarmDescription": "x", "Namespace": "N", "MetricName": "m", "Statistic": "Sum", "Period": 300,
            "Dimensions": [{ "Name": "QueueName", "Value": { "!GetAtt": "Queue.QueueName" } }],
            "EvaluationPeriods": 3, "ComparisonOperator": "GreaterThanThreshold", "Threshold": 5,
            "TreatMissingData": "notBreaching",
        })
    }

    fn template(properties: &Value) -> Value {
        json!({ "Resources": { "A": { "Type": "AWS::CloudWatch::Alarm", "Properties": properties } } })
    }

    /// Returns the alarm with these properties.
    pub(crate) fn with(properties: &Value) -> Alarm {
        let [alarm] = Alarm::all(&template(properties)).unwrap().try_into().unwrap();
        alarm
    }

    #[test]
    fn an_alarm_is_read() {
        let alarm = with(&properties());
        assert_eq!((alarm.evaluation_periods, alarm.datapoints_to_alarm, alarm.threshold), (3, 3, 5));
        assert_eq!(alarm.series()[0].metric.dimensions["QueueName"], "Queue");
        assert!(alarm.is_breaching(6) && !alarm.is_breaching(5));
        assert_eq!(alarm.treat_missing_data(), TreatMissingData::NotBreaching);
        let mut dynamodb = properties();
        dynamodb["Namespace"] = json!("AWS/DynamoDB");
        assert_eq!(with(&dynamodb).treat_missing_data(), TreatMissingData::Ignore);
    }

    #[test]
    fn an_alarm_that_is_not_understood_is_an_error() {
        for (name, value) in [
            ("Statistic", json!("Average")),
            ("Statistic", json!(null)),
            ("ExtendedStatistic", json!("p99")),
            ("Period", json!(30)),
            ("Period", json!(100_000)),
            ("Dimensions", json!([{ "Name": "QueueName", "Value": { "!Sub": "${Queue}" } }])),
            ("EvaluationPeriods", json!(0)),
            ("EvaluationPeriods", json!(289)),
            ("DatapointsToAlarm", json!(4)),
            ("ComparisonOperator", json!("GreaterThanUpperThreshold")),
            ("Threshold", json!(0.5)),
            ("TreatMissingData", json!("fill")),
            ("Unit", json!("Count")),
            ("EvaluateLowSampleCountPercentile", json!("ignore")),
            ("Metrics", json!([])),
        ] {
            let mut properties = properties();
            properties[name] = value.clone();
            assert!(Alarm::all(&template(&properties)).is_err(), "{name}: {value}");
        }
        let composite = json!({ "Resources": { "A": { "Type": "AWS::CloudWatch::CompositeAlarm" } } });
        assert!(Alarm::all(&composite).is_err());
    }

    #[test]
    fn only_sums_are_known_expressions() {
        let query = |period: i64| {
            json!({ "Id": "m", "ReturnData": false, "MetricStat": { "Period": period, "Stat": "Sum", "Metric": {
                "Namespace": "N", "MetricName": "m", "Dimensions": [{ "Name": "D", "Value": "d" }] } } })
        };
        let with = |metrics: Value| {
            let mut properties = properties();
            for name in ["Namespace", "MetricName", "Statistic", "Period", "Dimensions"] {
                properties.as_object_mut().unwrap().remove(name);
            }
            properties["Metrics"] = metrics;
            Alarm::all(&template(&properties))
        };
        let expression = |text: &str| json!({ "Id": "e", "Expression": text });
        for known in ["SUM(METRICS())", "SUM(FILL(METRICS(), 0))"] {
            assert_eq!(with(json!([expression(known), query(60), query(60)])).unwrap()[0].series().len(), 2);
        }
        for metrics in [
            json!([expression("m1 / m2"), query(60)]),
            json!([expression("SUM(METRICS())")]),
            json!([expression("SUM(METRICS())"), query(60), query(300)]),
            json!([expression("SUM(METRICS())"), expression("SUM(METRICS())"), query(60)]),
            json!([query(60)]),
        ] {
            assert!(with(metrics.clone()).is_err(), "{metrics}");
        }
    }
}
