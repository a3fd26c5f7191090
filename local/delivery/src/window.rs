//! Tumbling windows, and the events they travel in.
//!
//! Source: *AWS Lambda Developer Guide*, "Implementing stateful DynamoDB stream processing in
//! Lambda". Windows are cut by the records' creation times; the guide does not say where they begin,
//! and this aligns them to the epoch. A window ends with one final invocation, without records; it
//! is over when a record of a later window follows, when its end has passed and nothing is left to
//! read, or when the shard ends. A state that outgrows 1 MB ends it early: an invocation that says
//! so, and the same window goes on with an empty state.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::record::Record;
use crate::source::ShardId;

/// The largest state, in bytes of JSON.
pub(crate) const MAX_STATE_BYTES: usize = 1024 * 1024;

/// Why a function is invoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invocation {
    /// With a batch of records.
    Batch,
    /// For the end of a window.
    WindowEnd,
    /// For a window whose state has become too large.
    WindowTerminatedEarly,
}

/// A window that records fall into.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Window {
    pub(crate) start: DateTime<Utc>,
    pub(crate) end: DateTime<Utc>,
    state: Value,
    /// Whether the state is too large, which the next invocation says.
    pub(crate) overflowing: bool,
}

/// Where the window that holds `instant` starts.
pub(crate) fn start(instant: DateTime<Utc>, length: TimeDelta) -> DateTime<Utc> {
    let seconds = instant.timestamp().rem_euclid(length.num_seconds().max(1));
    instant - TimeDelta::seconds(seconds)
}

impl Window {
    /// The window of `length` that holds `instant`, with an empty state.
    pub(crate) fn holding(instant: DateTime<Utc>, length: TimeDelta) -> Self {
        let start = start(instant, length);
        Self { start, end: start + length, state: json!({}), overflowing: false }
    }

    /// Takes the state that a function returned.
    pub(crate) fn carry(&mut self, state: Value) {
        self.overflowing = state.to_string().len() > MAX_STATE_BYTES;
        self.state = state;
    }

    /// Starts again with nothing, within the same time.
    pub(crate) fn reset(&mut self) {
        self.overflowing = false;
        self.state = json!({});
    }
}

/// The event of one invocation.
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
        event["isWindowTerminatedEarly"] = (invocation == Invocation::WindowTerminatedEarly).into();
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
    fn an_event_with_a_window_is_lambdas() {
        let mut window = Window::holding(at(1_796_000_000), TimeDelta::seconds(300));
        window.carry(json!({"batches": "2"}));
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

    #[test]
    fn a_state_overflows_beyond_1_mb() {
        let mut window = Window::holding(at(0), TimeDelta::seconds(60));
        window.carry(json!("x".repeat(MAX_STATE_BYTES - 2)));
        assert!(!window.overflowing);
        window.carry(json!("x".repeat(MAX_STATE_BYTES - 1)));
        assert!(window.overflowing);
        window.reset();
        assert_eq!(window, Window::holding(at(0), TimeDelta::seconds(60)));
    }
}
