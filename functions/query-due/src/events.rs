//! The event log: the events after a place in it.

use payments_http::{Answer, PageLimit, Problem, ProblemKind, Request};
use payments_store::{LogPage, LogPosition, LogRead};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::function::QueryDue;

/// The query parameters of the events.
pub const PARAMETERS: &[&str] = &["cursor", "limit"];

/// The segments that each call to DynamoDB asks for, of the calls that a request makes until its
/// page is full: a segment has one event or a thousand.
const SEGMENTS: [u8; 3] = [2, 10, 100];

/// The place from which a client reads.
#[derive(Debug, Clone, Copy)]
enum Cursor {
    /// At the end of the log, for events that are written from now on.
    Now,
    Position(LogPosition),
}

/// The answer's JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Events {
    /// The events as they were written, with fields that later releases add.
    events: Vec<Box<RawValue>>,
    next_cursor: String,
    has_more: bool,
}

impl Cursor {
    fn parse(text: &str) -> Result<Self, Problem> {
        if text == "now" {
            return Ok(Self::Now);
        }
        text.parse().map(Self::Position).map_err(|error| {
            let detail = format!("The cursor is invalid: it is neither \"now\" nor a nextCursor: {error}.");
            Problem::new(ProblemKind::InvalidCursor, detail).at("cursor")
        })
    }
}

impl QueryDue {
    /// Answers with the events after a place, in the order of the log. It costs one read unit, and one for each 4 KB of segments that
    /// are read, which is up to 1 MB more than is returned.
    pub(crate) async fn events(&self, request: &Request<'_>) -> Result<Answer, Problem> {
        let query = request.query(PARAMETERS)?;
        let cursor = query.text("cursor")?.map(Cursor::parse).transpose()?;
        let limit = query.get("limit")?.unwrap_or(PageLimit::MOST).get();
        let Some(head) = self.store.log_head().await? else { return before_the_log(cursor) };
        let now = self.clock.now();
        let after = match cursor {
            Some(Cursor::Now) => head.end(),
            Some(Cursor::Position(position)) => position,
            None => head.start(now),
        };
        let mut page = LogPage { entries: Vec::new(), after, is_end: false };
        for segments in SEGMENTS {
            let room = usize::from(limit) - page.entries.len();
            match self.store.log_page(&head, page.after, room, segments, now).await {
                Ok(LogRead::Page(more)) => {
                    page.entries.extend(more.entries);
                    (page.after, page.is_end) = (more.after, more.is_end);
                }
                // The client gets the events read so far, and the next request gets the failure.
                _ if !page.entries.is_empty() => break,
                Ok(LogRead::Expired(oldest)) => {
                    return Err(gone("The events after this cursor are no longer kept", oldest));
                }
                Ok(LogRead::Beyond(_)) => return Err(gone("The log has no such place", head.start(now))),
                Err(error) => return Err(error.into()),
            }
            if page.is_end || page.entries.len() == usize::from(limit) {
                break;
            }
        }
        Answer::json(200, &Events::from_page(page)?)
    }
}

/// Answers before the log has begun.
fn before_the_log(cursor: Option<Cursor>) -> Result<Answer, Problem> {
    match cursor {
        None | Some(Cursor::Now | Cursor::Position(LogPosition::BEGINNING)) => Answer::json(
            200,
            &Events::from_page(LogPage { entries: Vec::new(), after: LogPosition::BEGINNING, is_end: true })?,
        ),
        Some(Cursor::Position(_)) => Err(gone("The log has no such place", LogPosition::BEGINNING)),
    }
}

impl Events {
    fn from_page(page: LogPage) -> Result<Self, Problem> {
        let raw = |json| RawValue::from_string(json).map_err(Problem::internal);
        let events = page.entries.into_iter().map(|entry| raw(entry.json)).collect::<Result<_, _>>()?;
        Ok(Self { events, next_cursor: page.after.to_string(), has_more: !page.is_end })
    }
}

fn gone(why: &str, oldest: LogPosition) -> Problem {
    let detail = format!("{why}; read on with oldestCursor, and compare with what you know.");
    Problem::new(ProblemKind::CursorGone, detail).at("cursor").oldest_cursor(oldest.to_string())
}
