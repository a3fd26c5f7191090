//! Tumbling windows, and the events of invocations.
//!
//! Source: *AWS Lambda Developer Guide*, "Implementing stateful DynamoDB stream processing in Lambda". Windows are cut
//! by the records' creation times. The guide does not say where they begin,
//! so they are aligned to the epoch here. A window ends with one final invocation, without records. It is over when a
//! record of a later window follows, when its end has passed and nothing is left to read, or when the shard ends. In
//! Lambda a state larger than 1 MB ends its window early; here it is a failure, since no function keeps a state.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::page::ShardId;
use crate::record::Record;

/// The largest state, in bytes of JSON.
pub(crate) const MAX_STATE_BYTES: usize = 1024 * 1024;

/// The reason for which a function is invoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invocation {
    /// A batch of records is ready.
    Batch,
    /// A window has ended.
    WindowEnd,
}

/// A window that records fall into.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Window {
    pub(crate) start: DateTime<Utc>,
    pub(crate) end: DateTime<Utc>,
    /// The state that the function returned last.
    pub(crate) state: Value,
}

/// Returns the start of the window that holds `instant`.
pub(crate) fn start(instant: DateTime<Utc>, length: TimeDelta) -> DateTime<Utc> {
    let seconds = instant.timestamp().rem_euclid(length.num_seconds().max(1));
    instant - TimeDelta::seconds(seconds)
}

impl Window {
    /// Creates the window of `length` that holds `instant`, with an empty state.
    pub(crate) fn holding(instant: DateTime<Utc>, length: TimeDelta) -> Self {
        let start = start(instant, length);
        Self { start, end: start + length, state: json!({}) }
    }
}

/// Returns the event of one invocation.
pub(crate) fn event<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    window: Option<&Window>,
    shard: &ShardId,
    arn: &str,
    invocation: Invocation,
) -> Value {
    let records: Vec<Value> = records.into_iter().map(|record| record.event().clone()).collect();
    let mut event = json!({ "Records": records });
    if let Some(window) = window {
        let written = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
        event["window"] = json!({"start": written(window.start), "end": written(window.end)});
        event["state"] = window.state.clone();
        event["shardId"] = shard.as_str().into();
        event["eventSourceARN"] = arn.into();
        event["isFinalInvokeForWindow"] = (invocation == Invocation::WindowEnd).into();
        event["isWindowTerminatedEarly"] = false.into();
    }
    event
}

#[cfg(test)]
mod tests {
    use aws_lambda_events::event::dynamodb::{Event, TimeWindowEvent};

    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn windows_are_aligned_and_half_open() {
        for (instant, length, want) in [(0, 60, 0), (59, 60, 0), (60, 60, 60), (905, 900, 900), (-1, 60, -60)] {
            assert_eq!(start(at(instant), TimeDelta::seconds(length)), at(want), "{instant} in {length}");
        }
        let window = Window::holding(at(119), TimeDelta::seconds(60));
        assert_eq!((window.start, window.end), (at(60), at(120)));
    }

    #[test]
    fn an_event_with_a_window_has_the_shape_of_lambda_s() {
        let mut window = Window::holding(at(1_796_000_000), TimeDelta::seconds(300));
        window.state = json!({"batches": "2"});
        let event = event([], Some(&window), &"shardId-1".into(), "arn:aws:dynamodb:x", Invocation::WindowEnd);
        let read: TimeWindowEvent = serde_json::from_value(event.clone()).unwrap();
        assert_eq!(read.time_window_properties.shard_id.as_deref(), Some("shardId-1"));
        assert_eq!(read.time_window_properties.state["batches"], "2");
        insta::assert_json_snapshot!(event, @r#"
        {
          "Records": [],
          "eventSourceARN": "arn:aws:dynamodb:x",
          "isFinalInvokeForWindow": true,
          "isWindowTerminatedEarly": false,
          "shardId": "shardId-1",
          "state": {
            "batches": "2"
          },
          "window": {
            "end": "2026-11-30T00:55:00Z",
            "start": "2026-11-30T00:50:00Z"
          }
        }
        "#);
    }

    #[test]
    fn an_event_without_a_window_has_records_only() {
        let event = event([], None, &"shardId-1".into(), "arn", Invocation::Batch);
        assert_eq!(event, json!({"Records": []}));
        assert!(serde_json::from_value::<Event>(event).is_ok());
    }
}
