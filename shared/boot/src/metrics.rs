//! Metrics: one line of CloudWatch's embedded metric format per invocation, on standard output.

use std::io::Write as _;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use metrique_writer::Entry;
use metrique_writer::format::Format as _;
use metrique_writer_format_emf::Emf;

use serde_json::{Map, Value};

use crate::config::{ConfigError, Lookup};

/// The namespace of every metric.
const NAMESPACE: &str = "ScheduledPayments";

/// The only dimension: the function's name, which includes the stack's.
const DIMENSION: &str = "Function";

/// The field that makes metrics of a line's numbers. Without it, CloudWatch only keeps the line,
/// and charges for no metric.
const HEADER: &str = "_aws";

/// The place where metrics are written. Clones share captured lines.
#[derive(Debug, Clone)]
pub struct Metrics {
    function: Arc<str>,
    monitoring: Monitoring,
    captured: Option<Arc<Mutex<Vec<String>>>>,
}

/// Whether the numbers of lines become metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Monitoring {
    #[default]
    On,
    Off,
}

impl FromStr for Monitoring {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err("it has to be on or off"),
        }
    }
}

/// An entry with its time and dimension.
#[derive(Entry)]
struct Line<'e, E: Entry> {
    #[entry(timestamp)]
    at: SystemTime,
    #[entry(name = "Function")]
    function: &'e str,
    #[entry(flatten)]
    entry: &'e E,
}

impl Metrics {
    /// Writes the metrics of the function that Lambda runs to standard output. Reads `MONITORING`:
    /// if it is `off`, the lines have the numbers, and CloudWatch makes no metrics of them.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn stdout(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let function = lookup.text("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_else(|| "local".to_owned());
        let monitoring = lookup.optional("MONITORING")?.unwrap_or_default();
        Ok(Self { function: function.into(), monitoring, captured: None })
    }

    /// Captures metrics for [`take`](Self::take).
    pub fn captured() -> Self {
        Self { function: "captured".into(), monitoring: Monitoring::On, captured: Some(Arc::default()) }
    }

    /// The metrics of another function, captured in the same place.
    pub fn for_function(&self, function: &str) -> Self {
        Self { function: function.into(), ..self.clone() }
    }

    /// Takes the lines captured so far.
    pub fn take(&self) -> Vec<String> {
        let lines = self.captured.as_ref().map(|lines| lines.lock().unwrap_or_else(PoisonError::into_inner));
        lines.map(|mut lines| std::mem::take(&mut *lines)).unwrap_or_default()
    }

    /// Writes one entry. A failure is only logged: metrics never fail an invocation.
    pub fn emit(&self, at: DateTime<Utc>, entry: &impl Entry) {
        let mut line = Vec::new();
        let mut format = Emf::all_validations(NAMESPACE.to_owned(), vec![vec![DIMENSION.to_owned()]]);
        let entry = Line { at: at.into(), function: &self.function, entry };
        if let Err(error) = format.format(&entry, &mut line) {
            tracing::error!(%error, "a metrics line could not be written");
            return;
        }
        if self.monitoring == Monitoring::Off {
            line = without_header(line);
        }
        match &self.captured {
            Some(lines) => {
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
            None => {
                if let Err(error) = std::io::stdout().write_all(&line) {
                    tracing::error!(%error, "a metrics line could not be written");
                }
            }
        }
    }
}

/// The line without the field that makes metrics of its numbers.
fn without_header(line: Vec<u8>) -> Vec<u8> {
    let Ok(mut fields) = serde_json::from_slice::<Map<String, Value>>(&line) else { return line };
    fields.remove(HEADER);
    format!("{}\n", Value::Object(fields)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Entry)]
    #[entry(rename_all = "PascalCase")]
    struct Example {
        claimed: u64,
        oldest_overdue_seconds: Option<u64>,
    }

    #[test]
    fn a_line_is_in_the_embedded_metric_format() {
        let metrics = Metrics::captured();
        metrics.emit(DateTime::UNIX_EPOCH, &Example { claimed: 3, oldest_overdue_seconds: None });
        metrics
            .for_function("sweeper")
            .emit(DateTime::UNIX_EPOCH, &Example { claimed: 3, oldest_overdue_seconds: Some(9) });
        let lines = metrics.take();
        assert!(lines[1].contains(r#""OldestOverdueSeconds":9,"Function":"sweeper""#), "{}", lines[1]);
        insta::assert_snapshot!(lines[0], @r#"{"_aws":{"CloudWatchMetrics":[{"Namespace":"ScheduledPayments","Dimensions":[["Function"]],"Metrics":[{"Name":"Claimed"}]}],"Timestamp":0},"Claimed":3,"Function":"captured"}"#);
    }

    #[test]
    fn without_monitoring_a_line_has_its_numbers_and_makes_no_metrics() {
        let metrics = Metrics { monitoring: Monitoring::Off, ..Metrics::captured() };
        let example = Example { claimed: 3, oldest_overdue_seconds: None };
        metrics.emit(DateTime::UNIX_EPOCH, &example);
        metrics.for_function("sweeper").emit(DateTime::UNIX_EPOCH, &example);
        assert_eq!(metrics.take(), [r#"{"Claimed":3,"Function":"captured"}"#, r#"{"Claimed":3,"Function":"sweeper"}"#]);
    }

    #[test]
    fn monitoring_is_on_unless_it_is_off() {
        let read = |value: Option<&str>| {
            let variable = |name: &str| value.filter(|_| name == "MONITORING").map(str::to_owned);
            Metrics::stdout(&Lookup::new(&variable)).map(|metrics| metrics.monitoring)
        };
        assert_eq!(
            [None, Some("on"), Some("off")].map(read),
            [Monitoring::On, Monitoring::On, Monitoring::Off].map(Ok)
        );
        let refused = read(Some("false")).unwrap_err().to_string();
        assert_eq!(refused, r#"the environment variable MONITORING is "false": it has to be on or off"#);
    }
}
