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

/// The metrics that an alarm or the dashboard reads. CloudWatch charges $0.30 a month for each, so the other numbers are only
/// in the lines. A test compares this list with the template.
pub const READ_METRICS: [&str; 58] = [
    "Archived",
    "BusEvents",
    "BusMissed",
    "BusRejections",
    "BusSegmentsBehind",
    "CalendarDaysShort",
    "CancelledPaymentsProcessed",
    "ChangesIrregular",
    "ChangesUnparsed",
    "Claimed",
    "ConflictingResults",
    "DaysHeld",
    "DeliveredEvents",
    "DriftedDates",
    "Failed",
    "FailedDeliveries",
    "FeedMissing",
    "FourEyesBypassed",
    "HeldSeconds",
    "JournalMissed",
    "JournalSegmentsBehind",
    "LeftOnClosedDate",
    "LogGaps",
    "LogMoves",
    "LoggedEvents",
    "OldestOverdueSeconds",
    "OldestUnreportedSeconds",
    "OverdueRemaining",
    "OverdueUnmovable",
    "OverdueWaitingForReport",
    "PaymentsUnreadable",
    "Processed",
    "RecountDatesLeft",
    "RedateUnfinished",
    "RedriveFailed",
    "RedriveShardsUnfinished",
    "ReportFailed",
    "ReportFileAltered",
    "Reported",
    "RequestsDisagreeing",
    "ResultsOfOtherTransfers",
    "SealBehind",
    "SealDiffers",
    "Sent",
    "SharedTransactionIds",
    "StillHeld",
    "Stopped",
    "StuckPending",
    "SweepFailed",
    "SwitchUnreadable",
    "UndoUnfinished",
    "UnknownPayments",
    "UnreadableDates",
    "WaitingForRedate",
    "WebhookEndpointsChanged",
    "WebhookSegmentsBehind",
    "WebhooksDisabled",
    "WebhooksMissed",
];

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
        line = with_read_metrics(line, self.monitoring);
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

/// The line with a header that names the metrics that somebody reads, or without a header if there are none.
fn with_read_metrics(line: Vec<u8>, monitoring: Monitoring) -> Vec<u8> {
    let Ok(mut fields) = serde_json::from_slice::<Map<String, Value>>(&line) else { return line };
    let metrics = fields.get_mut(HEADER).and_then(|header| header.pointer_mut("/CloudWatchMetrics/0/Metrics"));
    let is_read = |metric: &Value| metric["Name"].as_str().is_some_and(|name| READ_METRICS.contains(&name));
    let has_metrics = metrics.and_then(Value::as_array_mut).is_some_and(|metrics| {
        metrics.retain(is_read);
        !metrics.is_empty()
    });
    if !has_metrics || monitoring == Monitoring::Off {
        fields.remove(HEADER);
    }
    format!("{}\n", Value::Object(fields)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Entry)]
    #[entry(rename_all = "PascalCase")]
    struct Example {
        claimed: u64,
        already_claimed: u64,
        oldest_overdue_seconds: Option<u64>,
    }

    #[test]
    fn a_line_is_in_the_embedded_metric_format_and_names_what_somebody_reads() {
        let metrics = Metrics::captured();
        metrics.emit(DateTime::UNIX_EPOCH, &Example { claimed: 3, already_claimed: 1, oldest_overdue_seconds: None });
        metrics
            .for_function("sweeper")
            .emit(DateTime::UNIX_EPOCH, &Example { claimed: 3, already_claimed: 1, oldest_overdue_seconds: Some(9) });
        let lines = metrics.take();
        assert!(lines[1].contains(r#"{"Name":"OldestOverdueSeconds"}"#), "{}", lines[1]);
        insta::assert_snapshot!(lines[0], @r#"{"AlreadyClaimed":1,"Claimed":3,"Function":"captured","_aws":{"CloudWatchMetrics":[{"Dimensions":[["Function"]],"Metrics":[{"Name":"Claimed"}],"Namespace":"ScheduledPayments"}],"Timestamp":0}}"#);
    }

    #[test]
    fn without_monitoring_a_line_has_its_numbers_and_makes_no_metrics() {
        let metrics = Metrics { monitoring: Monitoring::Off, ..Metrics::captured() };
        let example = Example { claimed: 3, already_claimed: 1, oldest_overdue_seconds: None };
        metrics.emit(DateTime::UNIX_EPOCH, &example);
        metrics.for_function("sweeper").emit(DateTime::UNIX_EPOCH, &example);
        assert_eq!(
            metrics.take(),
            [
                r#"{"AlreadyClaimed":1,"Claimed":3,"Function":"captured"}"#,
                r#"{"AlreadyClaimed":1,"Claimed":3,"Function":"sweeper"}"#
            ]
        );
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
