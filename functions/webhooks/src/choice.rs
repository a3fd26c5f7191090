//! The body of a PUT, parsed, or all its faults.

use std::fmt::Display;

use payments_http::json::Fields;
use payments_http::{Pointer, Problem, ProblemKind};
use payments_model::event_filter::{MAX_FILTER_ACCOUNTS, status_of_type};
use payments_model::webhook::{EndpointUrl, endpoint_url::EndpointUrlError};
use payments_model::{AccountId, EventFilter};
use payments_store::{EndpointChoice, LogPosition};
use serde_json::value::RawValue;

/// The longest description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 200;

/// The most types of a filter: more than exist.
const MAX_FILTER_TYPES: usize = 10;

/// The place in the log at which an endpoint begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// At the log's end, for events that are logged from now on.
    Now,
    /// At a place.
    Position(LogPosition),
}

/// The settings that a PUT asks for.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) chosen: EndpointChoice,
    pub(crate) disabled: bool,
    pub(crate) start: Start,
}

/// Parses a URL. If the engine is not AWS's, the URL can also be one of this machine; a deployed
/// `publish` sends to none.
fn parse_url(text: &str, is_local: bool) -> Result<EndpointUrl, EndpointUrlError> {
    match text.parse() {
        Err(_) if is_local && text.starts_with("http:") => EndpointUrl::loopback(text),
        parsed => parsed,
    }
}

impl Wanted {
    /// Reads a body.
    ///
    /// # Errors
    /// All faults of the body.
    pub(crate) fn parse(json: &[u8], is_local: bool) -> Result<Self, Problem> {
        let mut fields = Fields::parse(json, &Pointer::body())?;
        let url = fields.text("url").and_then(|text| {
            let parsed = parse_url(&text, is_local);
            parsed.map_err(|error| fields.fault(invalid("url", ProblemKind::InvalidUrl, &error))).ok()
        });
        let description = fields.optional_text("description").unwrap_or_default();
        if description.chars().count() > MAX_DESCRIPTION_CHARS || description.chars().any(char::is_control) {
            let why = format!("it must be one line of at most {MAX_DESCRIPTION_CHARS} characters");
            fields.fault(invalid("description", ProblemKind::InvalidShape, &why));
        }
        let statuses = list(&mut fields, "types", MAX_FILTER_TYPES, status_of_type);
        let accounts = list(&mut fields, "accounts", MAX_FILTER_ACCOUNTS, str::parse::<AccountId>);
        let disabled = disabled(&mut fields);
        let start = match fields.optional_text("cursor") {
            None => Start::Now,
            Some(text) => start(&mut fields, &text),
        };
        let faults = fields.end();
        match url {
            Some(url) if faults.is_empty() => {
                let filter =
                    EventFilter { statuses: statuses.into_iter().collect(), accounts: accounts.into_iter().collect() };
                Ok(Self { chosen: EndpointChoice { url, description, filter }, disabled, start })
            }
            _ => Err(Problem::for_body(&Pointer::body(), faults)),
        }
    }
}

/// Reads `enabled`, which is true if it is left out.
fn disabled(fields: &mut Fields<'_>) -> bool {
    match fields.optional("enabled").map(RawValue::get) {
        None | Some("true") => false,
        Some("false") => true,
        Some(_) => {
            let detail = "The field \"enabled\" has the wrong type; send true or false.";
            fields.fault(Problem::new(ProblemKind::InvalidShape, detail).at("enabled"));
            false
        }
    }
}

/// Reads an optional list of texts, each parsed. An empty list is invalid: it would pass everything.
fn list<T, E: Display>(
    fields: &mut Fields<'_>,
    name: &'static str,
    most: usize,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Vec<T> {
    if !fields.has(name) {
        return Vec::new();
    }
    let Some(raw) = fields.list(name) else { return Vec::new() };
    if raw.is_empty() || raw.len() > most {
        let why = format!("it must have 1 to {most} elements; leave it out to get all");
        fields.fault(invalid(name, ProblemKind::InvalidFilter, &why));
        return Vec::new();
    }
    let mut parsed = Vec::new();
    for element in raw {
        let text: Option<String> = serde_json::from_str(element.get()).ok();
        match text.as_deref().map(&parse) {
            Some(Ok(value)) => parsed.push(value),
            Some(Err(error)) => {
                fields.fault(invalid(name, ProblemKind::InvalidFilter, &error));
                break;
            }
            None => {
                fields.fault(invalid(name, ProblemKind::InvalidFilter, &"its elements must be strings"));
                break;
            }
        }
    }
    parsed
}

/// Reads the place to begin at.
pub(crate) fn start(fields: &mut Fields<'_>, text: &str) -> Start {
    if text == "now" {
        return Start::Now;
    }
    match text.parse() {
        Ok(position) => Start::Position(position),
        Err(error) => {
            fields.fault(invalid("cursor", ProblemKind::InvalidCursor, &error));
            Start::Now
        }
    }
}

pub(crate) fn invalid(field: &str, kind: ProblemKind, why: &dyn Display) -> Problem {
    Problem::new(kind, format!("The field \"{field}\" is invalid: {why}.")).at(field)
}
