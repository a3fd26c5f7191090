//! The event log: what happened to payments, after a place in it.

use std::str::FromStr;

use payments_http::{Answer, PageLimit, Problem, ProblemKind, Request};
use payments_store::{LogHead, LogPage, LogPosition, LogPositionError, LogRead};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::QueryDue;

/// The query parameters of the events.
pub const PARAMETERS: &[&str] = &["after", "limit"];

/// The most segments that a request reads: one call to DynamoDB, of 1 MB at most.
const MAX_SEGMENTS: u8 = 100;

/// Where a client reads on.
#[derive(Debug, Clone, Copy)]
enum After {
    /// At what is written from now on.
    Now,
    Position(LogPosition),
}

/// The answer's JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Events {
    /// As they were written, with what later releases add.
    events: Vec<Box<RawValue>>,
    next_cursor: String,
    has_more: bool,
}

impl FromStr for After {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "now" {
            return Ok(Self::Now);
        }
        let position = text.parse().map(Self::Position);
        position.map_err(|error: LogPositionError| format!("it is neither \"now\" nor a nextCursor: {error}"))
    }
}

impl QueryDue {
    /// Answers with the events after a place, in the order of the log. It costs one read unit, and one for each 4 KB of segments.
    pub(crate) async fn events(&self, request: &Request<'_>) -> Result<Answer, Problem> {
        let query = request.query(PARAMETERS)?;
        let after = query.get::<After>("after")?;
        let limit = query.get("limit")?.unwrap_or(PageLimit::MOST).get();
        if !self.config.event_log {
            let detail = "This bank keeps no event log; its operator can switch it on with the parameter EventLog.";
            return Err(Problem::new(ProblemKind::NoEventLog, detail));
        }
        // A log is as good as begun: its first segment has the first number.
        let head = self.store.log_head().await?.unwrap_or_else(|| LogHead::first(""));
        let now = self.clock.now();
        let after = match after {
            Some(After::Now) => head.end(),
            Some(After::Position(position)) => position,
            None => head.start(now),
        };
        let segments = u8::try_from(limit).unwrap_or(MAX_SEGMENTS).min(MAX_SEGMENTS);
        match self.store.log_page(&head, after, limit.into(), segments, now).await? {
            LogRead::Page(page) => Answer::json(200, &Events::of(page)?),
            LogRead::Expired(oldest) => Err(gone("The events after this cursor are no longer kept", oldest)),
            LogRead::Beyond(_) => Err(gone("The log has no such place: a restore ended it before", head.start(now))),
        }
    }
}

impl Events {
    fn of(page: LogPage) -> Result<Self, Problem> {
        let raw = |json| RawValue::from_string(json).map_err(Problem::internal);
        let events = page.entries.into_iter().map(|entry| raw(entry.json)).collect::<Result<_, _>>()?;
        Ok(Self { events, next_cursor: page.after.to_string(), has_more: !page.is_end })
    }
}

fn gone(why: &str, oldest: LogPosition) -> Problem {
    let detail = format!("{why}; read on with oldestCursor, and compare with what you know.");
    Problem::new(ProblemKind::CursorGone, detail).at("after").oldest_cursor(oldest.to_string())
}
