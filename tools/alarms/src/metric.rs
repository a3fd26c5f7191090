//! Metrics and their samples, in minutes as CloudWatch keeps them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

/// A metric: a name in a namespace, with dimensions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric {
    /// The namespace, such as `AWS/Lambda`.
    pub namespace: String,
    /// The name, such as `Errors`.
    pub name: String,
    /// The values of the dimensions, by their names.
    pub dimensions: BTreeMap<String, String>,
}

/// A value of a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The metric.
    pub metric: Metric,
    /// The time of the sample.
    pub at: DateTime<Utc>,
    /// The value. Metrics of payments are whole numbers.
    pub value: i64,
}

/// The samples of a metric in one minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minute {
    /// The number of samples.
    pub count: i64,
    /// Their sum.
    pub sum: i64,
    /// The smallest.
    pub minimum: i64,
    /// The largest.
    pub maximum: i64,
}

/// The samples of several metrics.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    minutes: BTreeMap<Metric, BTreeMap<i64, Minute>>,
}

impl Metric {
    /// Creates a metric with one dimension.
    pub fn new(namespace: &str, name: &str, dimension: &str, value: &str) -> Self {
        let dimensions = BTreeMap::from([(dimension.to_owned(), value.to_owned())]);
        Self { namespace: namespace.to_owned(), name: name.to_owned(), dimensions }
    }
}

impl Sample {
    /// Reads the samples of one line in the embedded metric format.
    ///
    /// # Errors
    /// If the line is not in that format, or has a value that is not a whole number.
    pub fn parse_line(line: &str) -> Result<Vec<Self>> {
        let line: Value = serde_json::from_str(line).context("not a line of metrics")?;
        let header = &line["_aws"];
        let millis = header["Timestamp"].as_i64().context("the line has no time")?;
        let at = DateTime::from_timestamp_millis(millis).context("a time out of range")?;
        let mut samples = Vec::new();
        for directive in header["CloudWatchMetrics"].as_array().context("the line names no metrics")? {
            let namespace = text(&directive["Namespace"])?;
            for set in directive["Dimensions"].as_array().context("the line names no dimensions")? {
                let names = set.as_array().context("a set of dimensions is a list")?;
                let named = names.iter().map(|name| Ok((text(name)?, text(&line[text(name)?])?)));
                let dimensions = named.collect::<Result<BTreeMap<_, _>>>()?;
                for metric in directive["Metrics"].as_array().context("the line names no metrics")? {
                    let name = text(&metric["Name"])?;
                    let value = line[&name].as_i64().with_context(|| format!("{name} is not a whole number"))?;
                    let (namespace, dimensions) = (namespace.clone(), dimensions.clone());
                    samples.push(Self { metric: Metric { namespace, name, dimensions }, at, value });
                }
            }
        }
        ensure!(!samples.is_empty(), "the line has no metrics");
        Ok(samples)
    }
}

impl Samples {
    /// Adds a sample.
    pub fn add(&mut self, sample: Sample) {
        let Sample { metric, at, value } = sample;
        let minutes = self.minutes.entry(metric).or_default();
        let one = Minute { count: 1, sum: value, minimum: value, maximum: value };
        let minute = minutes.entry(minute_of(at));
        minute.and_modify(|known| *known = known.with(one)).or_insert(one);
    }

    /// Returns the same samples at other times.
    pub fn later(&self, by: TimeDelta) -> Self {
        let minutes =
            |known: &BTreeMap<i64, Minute>| known.iter().map(|(at, it)| (at + by.num_minutes(), *it)).collect();
        Self { minutes: self.minutes.iter().map(|(metric, known)| (metric.clone(), minutes(known))).collect() }
    }

    /// Adds all of some samples.
    pub fn add_all(&mut self, more: &Self) {
        for (metric, minutes) in &more.minutes {
            let known = self.minutes.entry(metric.clone()).or_default();
            for (at, one) in minutes {
                known.entry(*at).and_modify(|minute| *minute = minute.with(*one)).or_insert(*one);
            }
        }
    }

    /// Removes the samples of a metric.
    pub fn remove(&mut self, metric: &Metric) {
        self.minutes.remove(metric);
    }

    /// Returns the samples before an instant.
    pub fn before(mut self, end: DateTime<Utc>) -> Self {
        self.minutes.values_mut().for_each(|known| drop(known.split_off(&minute_of(end))));
        self
    }

    /// The samples of a metric in the minute before an instant; `None` if there are none.
    pub fn in_minute_before(&self, metric: &Metric, end: DateTime<Utc>) -> Option<Minute> {
        self.minute(metric, minute_of(end) - 1)
    }

    pub(crate) fn minute(&self, metric: &Metric, minute: i64) -> Option<Minute> {
        self.minutes(metric)?.get(&minute).copied()
    }

    /// The samples of a metric by minute.
    pub(crate) fn minutes(&self, metric: &Metric) -> Option<&BTreeMap<i64, Minute>> {
        self.minutes.get(metric)
    }

    /// The metrics that have samples.
    pub fn metrics(&self) -> impl Iterator<Item = &Metric> {
        self.minutes.keys()
    }

    /// The samples of a metric in the period that ends at `end`, as one; `None` if there are none.
    pub(crate) fn in_period(&self, metric: &Metric, end: DateTime<Utc>, period: TimeDelta) -> Option<Minute> {
        let (from, to) = (minute_of(end - period), minute_of(end));
        self.minutes.get(metric)?.range(from..to).map(|(_, minute)| *minute).reduce(Minute::with)
    }
}

impl Extend<Sample> for Samples {
    fn extend<Some: IntoIterator<Item = Sample>>(&mut self, samples: Some) {
        samples.into_iter().for_each(|sample| self.add(sample));
    }
}

impl Minute {
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            sum: self.sum.saturating_add(other.sum),
            minimum: self.minimum.min(other.minimum),
            maximum: self.maximum.max(other.maximum),
        }
    }
}

/// The number of the minute in which an instant is. The end of a minute is the number of the next one.
pub(crate) fn minute_of(at: DateTime<Utc>) -> i64 {
    at.timestamp().div_euclid(60)
}

pub(crate) fn text(value: &Value) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        other => bail!("not a text: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"_aws":{"CloudWatchMetrics":[{"Namespace":"ScheduledPayments","Dimensions":[["Function"]],"Metrics":[{"Name":"Claimed"},{"Name":"Left"}]}],"Timestamp":60000},"Claimed":3,"Left":0,"Function":"sweeper"}"#;

    #[test]
    fn a_line_has_a_sample_for_each_metric() {
        let samples = Sample::parse_line(LINE).unwrap();
        let of = |name: &str| Metric::new("ScheduledPayments", name, "Function", "sweeper");
        let at = DateTime::from_timestamp(60, 0).unwrap();
        let wanted = [("Claimed", 3), ("Left", 0)].map(|(name, value)| Sample { metric: of(name), at, value });
        assert_eq!(samples, wanted);
    }

    #[test]
    fn a_line_that_is_not_understood_is_an_error() {
        for (from, to) in [
            ("\"Claimed\":3", "\"Claimed\":3.5"),
            ("\"Claimed\":3", "\"Claimed\":[3,4]"),
            ("\"Claimed\":3,", ""),
            ("\"Timestamp\":60000", "\"Timestamp\":null"),
            ("{\"Name\":\"Claimed\"},{\"Name\":\"Left\"}", ""),
            ("\"Function\":\"sweeper\"", "\"Function\":7"),
        ] {
            assert!(LINE.contains(from), "{from}");
            assert!(Sample::parse_line(&LINE.replace(from, to)).is_err(), "{to}");
        }
        assert!(Sample::parse_line("swept").is_err());
    }

    #[test]
    fn a_period_ends_before_its_last_minute_begins() {
        let metric = Metric::new("N", "m", "D", "d");
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let mut samples = Samples::default();
        samples.extend([(0, 1), (59, 5), (60, 3), (120, 9)].map(|(s, value)| Sample {
            metric: metric.clone(),
            at: at(s),
            value,
        }));
        let found = samples.in_period(&metric, at(120), TimeDelta::minutes(2)).unwrap();
        assert_eq!(found, Minute { count: 3, sum: 9, minimum: 1, maximum: 5 });
        assert_eq!(samples.in_period(&metric, at(0), TimeDelta::minutes(2)), None);
        let later = samples.later(TimeDelta::hours(1)).before(at(3_660));
        assert_eq!(later.in_period(&metric, at(7_200), TimeDelta::hours(2)).unwrap().count, 2);
        assert_eq!(later.metrics().count(), 1);
        let mut none = later.clone();
        none.add_all(&later);
        assert_eq!(none.in_period(&metric, at(7_200), TimeDelta::hours(2)).unwrap().count, 4);
        none.remove(&metric);
        assert_eq!(none.metrics().count(), 0);
    }
}
