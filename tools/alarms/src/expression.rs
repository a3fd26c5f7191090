//! The statistic that an alarm compares: of one metric, or a sum of several.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::metric::{Metric, Minute, Samples, text};

/// The most metrics of an alarm: of the Metrics of PutMetricAlarm, ten may retrieve one (API reference, MetricDataQuery).
const MAX_METRICS: usize = 10;

/// A statistic of the samples in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The number of samples.
    SampleCount,
    /// The sum of the samples.
    Sum,
    /// The smallest sample.
    Minimum,
    /// The largest sample.
    Maximum,
}

/// A statistic of a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// The metric.
    pub metric: Metric,
    /// The statistic.
    pub statistic: Statistic,
}

/// The data points that an alarm compares with its threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    /// The data points of one series.
    One(Series),
    /// `SUM(METRICS())`: the sum of the series that have a data point.
    Sum(Vec<Series>),
    /// `SUM(FILL(METRICS(), 0))`: the same, and 0 if none has one.
    SumOfFilled(Vec<Series>),
}

impl Expression {
    pub(crate) fn series(&self) -> &[Series] {
        match self {
            Self::One(series) => std::slice::from_ref(series),
            Self::Sum(several) | Self::SumOfFilled(several) => several,
        }
    }

    /// The data point of the period that ends at `end`; `None` if it is missing.
    pub(crate) fn datapoint(&self, samples: &Samples, end: DateTime<Utc>, period: TimeDelta) -> Option<i64> {
        self.value(|place| samples.in_period(&self.series().get(place)?.metric, end, period))
    }

    /// The data point of a period in which each series has these samples, as one.
    pub(crate) fn value(&self, in_period: impl Fn(usize) -> Option<Minute>) -> Option<i64> {
        let of = |(place, series): (usize, &Series)| {
            let period = in_period(place)?;
            Some(match series.statistic {
                Statistic::SampleCount => period.count,
                Statistic::Sum => period.sum,
                Statistic::Minimum => period.minimum,
                Statistic::Maximum => period.maximum,
            })
        };
        let sum = self.series().iter().enumerate().filter_map(of).reduce(i64::saturating_add);
        match self {
            Self::One(_) | Self::Sum(_) => sum,
            Self::SumOfFilled(_) => Some(sum.unwrap_or(0)),
        }
    }

    /// Reads the properties of an alarm. Returns the expression with its period.
    pub(crate) fn parse(properties: &Value) -> Result<(Self, TimeDelta)> {
        let Some(queries) = properties["Metrics"].as_array() else {
            let series = Series { metric: metric_of(properties)?, statistic: statistic_of(&properties["Statistic"])? };
            return Ok((Self::One(series), period_of(properties)?));
        };
        let mut expression = None;
        let mut series = Vec::new();
        let mut periods = Vec::new();
        for query in queries {
            let stat = &query["MetricStat"];
            if stat.is_null() {
                ensure!(
                    query["ReturnData"].is_null() || query["ReturnData"] == true,
                    "an expression that is not compared"
                );
                ensure!(expression.replace(text(&query["Expression"])?).is_none(), "two expressions");
            } else {
                ensure!(query["ReturnData"] == false, "a metric that is compared beside the expression");
                let (metric, statistic) = (metric_of(&stat["Metric"])?, statistic_of(&stat["Stat"])?);
                series.push(Series { metric, statistic });
                periods.push(period_of(stat)?);
            }
        }
        let period = *periods.first().context("an expression without metrics")?;
        ensure!(
            series.len() <= MAX_METRICS,
            "{} metrics, and CloudWatch takes {MAX_METRICS} in an alarm",
            series.len()
        );
        ensure!(periods.iter().all(|other| *other == period), "metrics of different periods");
        let expression = expression.context("metrics without an expression")?;
        match expression.as_str() {
            "SUM(METRICS())" => Ok((Self::Sum(series), period)),
            "SUM(FILL(METRICS(), 0))" => Ok((Self::SumOfFilled(series), period)),
            other => bail!("what does the expression {other} mean?"),
        }
    }
}

fn metric_of(properties: &Value) -> Result<Metric> {
    let mut dimensions = BTreeMap::new();
    for dimension in properties["Dimensions"].as_array().context("a metric without dimensions")? {
        let (name, value) = (text(&dimension["Name"])?, value_of(&dimension["Value"])?);
        ensure!(dimensions.insert(name, value).is_none(), "a dimension is there twice");
    }
    Ok(Metric { namespace: text(&properties["Namespace"])?, name: text(&properties["MetricName"])?, dimensions })
}

/// A dimension's value: a text, or the logical id of the resource that it names.
fn value_of(value: &Value) -> Result<String> {
    if let Some(attribute) = value["!GetAtt"].as_str() {
        let (resource, name) = attribute.split_once('.').with_context(|| attribute.to_owned())?;
        ensure!(name == "QueueName", "which dimension is {attribute}?");
        return Ok(resource.to_owned());
    }
    text(value).or_else(|_| text(&value["!Ref"])).with_context(|| format!("which dimension is {value}?"))
}

fn statistic_of(value: &Value) -> Result<Statistic> {
    Ok(match text(value)?.as_str() {
        "SampleCount" => Statistic::SampleCount,
        "Sum" => Statistic::Sum,
        "Minimum" => Statistic::Minimum,
        "Maximum" => Statistic::Maximum,
        other => bail!("the statistic {other} is not supported"),
    })
}

fn period_of(properties: &Value) -> Result<TimeDelta> {
    let seconds = properties["Period"].as_i64().context("no period")?;
    ensure!(seconds > 0 && seconds % 60 == 0, "a period of {seconds} s is not whole minutes");
    ensure!(seconds <= 86_400, "a period of {seconds} s is longer than a day");
    Ok(TimeDelta::seconds(seconds))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_alarm_has_ten_metrics_at_most() {
        let of = |count: usize| {
            let metric = |n: usize| {
                let metric = json!({ "Namespace": "AWS/Lambda", "MetricName": "Errors",
                    "Dimensions": [{ "Name": "FunctionName", "Value": n.to_string() }] });
                let stat = json!({ "Metric": metric, "Period": 300, "Stat": "Sum" });
                json!({ "Id": format!("e{n}"), "ReturnData": false, "MetricStat": stat })
            };
            let sum = json!({ "Id": "errors", "Expression": "SUM(METRICS())" });
            let metrics: Vec<Value> = std::iter::once(sum).chain((0..count).map(metric)).collect();
            Expression::parse(&json!({ "Metrics": metrics }))
        };
        assert!(of(10).is_ok());
        let refused = of(11).map_err(|error| error.to_string());
        assert_eq!(refused, Err("11 metrics, and CloudWatch takes 10 in an alarm".to_owned()));
    }
}
