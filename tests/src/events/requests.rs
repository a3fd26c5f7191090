//! The cases of the HTTP functions: rows of requests, and the events that API Gateway makes of them.
//!
//! A case is a row in `tests/journeys/requests/<function>.yaml`. Its answer is `snapshots/<function>/<case>.snap` beside
//! that folder.
//!
//! | field | holds |
//! |---|---|
//! | `like` | a case of the same function: this request is that one, but for the fields of the row; null takes away |
//! | `given` | the [steps](crate::given) that come before the request. Without them the function must not read |
//! | `request` | the method and the URL, as the client sends them |
//! | `claims` | the claims of the access token; none for a request without a token |
//! | `headers` | the headers that the functions know |
//! | `body` | the body as text |
//! | `replace` | texts that occur once in the body, and what stands there instead |
//! | `event` | what differs in the event from what API Gateway makes of such a request |

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow, ensure};
use chrono::DateTime;
use payments_http::routes;
use payments_machine::event;
use payments_machine::yaml::from_str;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::files::{answer, event_path, event_text, in_repository};

/// The arrival of the requests.
pub const NOW: &str = "2026-11-20T09:00:00Z";

/// The request of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    given: Option<Vec<String>>,
    request: String,
    claims: Option<Map<String, Value>>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    #[serde(default)]
    event: Map<String, Value>,
}

/// The replacement of a text in the body.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Replacement {
    Text(String),
    Long { repeat: String, times: usize },
}

static CASES: LazyLock<Result<BTreeMap<String, Case>, String>> =
    LazyLock::new(|| read().map_err(|error| format!("{error:#}")));

/// All cases by their names, `<function>/<case>`.
fn cases() -> Result<&'static BTreeMap<String, Case>> {
    CASES.as_ref().map_err(|error| anyhow!("{error}"))
}

fn case(name: &str) -> Result<&'static Case> {
    cases()?.get(name).with_context(|| format!("no case {name}"))
}

fn read() -> Result<BTreeMap<String, Case>> {
    let mut cases = BTreeMap::new();
    for function in functions() {
        let path = in_repository(&format!("journeys/requests/{function}.yaml"));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let rows = from_str(&text).with_context(|| path.display().to_string())?;
        for name in Map::keys(&rows) {
            let case = whole(&rows, name).and_then(|row| Ok(serde_json::from_value(row)?));
            cases.insert(format!("{function}/{name}"), case.with_context(|| format!("{function}/{name}"))?);
        }
    }
    Ok(cases)
}

/// A row with all that the row has that it is like.
fn whole(rows: &Map<String, Value>, name: &str) -> Result<Value> {
    let own = rows.get(name).with_context(|| format!("no row {name}"))?;
    let mut row = match own["like"].as_str() {
        Some(like) => whole(rows, like)?,
        None => json!({}),
    };
    row["given"] = Value::Null;
    merge(&mut row, own);
    let fields = row.as_object_mut().context("a row is a mapping")?;
    fields.remove("like");
    let replaced = serde_json::from_value(fields.remove("replace").unwrap_or_else(|| json!({})))?;
    for (from, to) in BTreeMap::<String, Replacement>::into_iter(replaced) {
        let body = fields.get("body").and_then(Value::as_str).context("no body")?;
        ensure!(body.matches(&from).count() == 1, "{from} is not in the body, or twice: {body}");
        let to = match to {
            Replacement::Text(text) => text,
            Replacement::Long { repeat, times } => repeat.repeat(times),
        };
        let body = body.replace(&from, &to).into();
        fields.insert("body".to_owned(), body);
    }
    Ok(row)
}

/// Changes a value by a patch (RFC 7396): objects field by field, where null takes a field away.
fn merge(value: &mut Value, patch: &Value) {
    match (value, patch) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (name, change) in changes {
                if change.is_null() {
                    fields.remove(name);
                } else {
                    merge(fields.entry(name.clone()).or_insert_with(|| json!({})), change);
                }
            }
        }
        (value, patch) => *value = patch.clone(),
    }
}

/// The names of the functions that answer HTTP.
fn functions() -> BTreeSet<&'static str> {
    routes::all().map(|spec| spec.function.name()).collect()
}

/// The names of all cases.
pub fn http_events() -> Result<BTreeSet<String>> {
    Ok(cases()?.keys().cloned().collect())
}

/// The steps that come before a case, if it may read.
pub fn given(name: &str) -> Result<Option<Vec<&'static str>>> {
    Ok(case(name)?.given.as_ref().map(|steps| steps.iter().map(String::as_str).collect()))
}

/// The text of a case's event: the recorded one in `events`, or that of its row.
pub fn request_text(name: &str) -> Result<String> {
    if event_path(name).is_file() { event_text(name) } else { Ok(event_of(name)?.to_string()) }
}

/// The event of a case, as API Gateway makes it.
pub fn event_of(name: &str) -> Result<Value> {
    let case = case(name)?;
    let (method, url) = case.request.split_once(' ').context("a request is a method and a URL")?;
    let request = http::Request::builder().method(method).uri(url);
    let request = case.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
    let (parts, ()) = request.body(()).with_context(|| case.request.clone())?.into_parts();
    let authorizer = case.claims.as_ref().map_or(Value::Null, |claims| {
        let mut claims = claims.clone();
        // A token that a client gets for itself has it as its subject.
        let client = claims.get("client_id").cloned().unwrap_or_default();
        claims.entry("sub").or_insert(client);
        event::jwt(&claims.into())
    });
    let now = DateTime::parse_from_rfc3339(NOW)?.to_utc();
    let body = case.body.as_deref().unwrap_or_default().as_bytes();
    let (_, event) = event::from_parts(&parts, body, &request_id(name, case), now, &authorizer)?;
    let mut event = serde_json::to_value(event)?;
    // The struct writes a method of REST APIs, which HTTP APIs do not name.
    merge(&mut event, &json!({ "httpMethod": null }));
    merge(&mut event, &case.event.clone().into());
    Ok(event)
}

/// The id that API Gateway gave the request: the one that the stored answer names. A new case has its name, and so has
/// one whose answer names the id that the caller chose.
fn request_id(name: &str, case: &Case) -> String {
    let stored = answer(name).ok().filter(|_| !case.headers.contains_key("x-request-id"));
    let named = |stored: String| stored.lines().find_map(|line| line.strip_prefix("x-request-id: ").map(str::to_owned));
    stored.and_then(named).unwrap_or_else(|| name.to_owned())
}
