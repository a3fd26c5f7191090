//! Actions on a webhook endpoint: test or enable it, replay events, or skip the event that it does not accept.
//!
//! As in the function `webhooks`, nothing is sent here: the next run of `publish` sends it, within a minute.

use std::str::FromStr;

use chrono::NaiveTime;
use maud::{Markup, html};
use payments_http::{Form, Problem, ProblemKind, invalid_field};
use payments_model::webhook::EndpointId;
use payments_model::{Actor, BusinessDate, UtcSecond};
use payments_store::{
    EnableWebhook, LogHead, LogPosition, LogPositionError, LogRead, SkippedEvent, WebhookEndpoint, WebhookState,
};

use crate::actions::dialog::{CLOSE, title};
use crate::actions::preview::{Buttons, Preview};
use crate::function::Console;
use crate::guides::WEBHOOKS_MISSED;
use crate::html::{fact, grouped};
use crate::told::{answer, took};
use crate::views::endpoints::standing;

/// The longest id of an endpoint or event, or cursor, in bytes. Ids of payments' events have 60.
const MAX_FIELD_BYTES: usize = 200;

/// An action on an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    /// Send a test.
    Test,
    /// Enable it at this place, which its preview showed.
    Enable(Option<LogPosition>),
    /// Deliver the events after a place again.
    Replay(LogPosition),
    /// Deliver the events since a time again: a preview, which finds the place.
    Since(Since),
    /// Ask for that time.
    Ask,
    /// Skip the event of this id.
    Skip(String),
}

/// The names of the actions with a place.
const ENABLE: &str = "enable-endpoint";
const REPLAY: &str = "replay-endpoint";

/// A time from which events are replayed: an instant, or a time in the bank's zone, as a page's field has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    Instant(UtcSecond),
    Local(BusinessDate, NaiveTime),
}

impl FromStr for Since {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let local = || {
            let (date, time) = text.split_once('T')?;
            let time = ["%H:%M", "%H:%M:%S"].into_iter().find_map(|form| NaiveTime::parse_from_str(time, form).ok());
            Some(Self::Local(date.parse().ok()?, time?))
        };
        let since = text.parse().map(Self::Instant).ok().or_else(local);
        since.ok_or(
            "it has to be a time in the bank's zone, such as 2026-11-26T14:00, or in UTC, such as 2026-11-26T14:00:00Z",
        )
    }
}

/// Reads the place that a preview showed, if there was one.
fn place(form: &mut Form) -> Result<Option<LogPosition>, Problem> {
    const FIELD: &str = "place";
    let text = form.take(FIELD, MAX_FIELD_BYTES)?;
    let parsed = (!text.is_empty()).then(|| text.parse()).transpose();
    parsed.map_err(|error: LogPositionError| invalid_field(FIELD, &error))
}

/// Reads the beginning of a replay: a place, a time, or nothing to be asked for a time.
fn replayed(form: &mut Form) -> Result<Deed, Problem> {
    const SINCE: &str = "since";
    let since = form.take(SINCE, MAX_FIELD_BYTES)?;
    let cursor = form.take("cursor", MAX_FIELD_BYTES)?;
    match (since.as_str(), cursor.as_str()) {
        ("", "") => Ok(Deed::Ask),
        ("", cursor) => cursor.parse().map(Deed::Replay).map_err(|error| invalid_field("cursor", &error)),
        (since, "") => since.parse().map(Deed::Since).map_err(|why: &str| invalid_field(SINCE, &why)),
        _ => Err(invalid_field(SINCE, &"a replay begins at a time or at a cursor; send one of them")),
    }
}

/// The form that asks from which time on events are replayed.
pub(super) fn asked(id: &EndpointId) -> Markup {
    html! { form data-action=(REPLAY) {
        (title(&Deed::Ask.title(id)))
        div class="body" {
            label { "Since, in the bank’s time" input type="datetime-local" name="since" required; }
            input type="hidden" name="endpoint" value=(id);
            input type="hidden" name="step" value="preview";
        }
        div class="foot" { (CLOSE) button class="primary" { "Preview" } }
    } }
}

/// An endpoint, and the log that it reads.
struct Found {
    endpoint: WebhookEndpoint,
    state: WebhookState,
    head: Option<LogHead>,
}

impl Deed {
    /// Reads the fields of the action with this name; `None` if it is another one.
    pub(super) fn read(name: &str, form: &mut Form) -> Option<Result<(EndpointId, Self), Problem>> {
        let deed = match name {
            "test-endpoint" => Ok(Self::Test),
            ENABLE => place(form).map(Self::Enable),
            REPLAY => replayed(form),
            "skip-event" => form.get("event", MAX_FIELD_BYTES).map(Self::Skip),
            _ => return None,
        };
        Some(deed.and_then(|deed| Ok((form.get("endpoint", MAX_FIELD_BYTES)?, deed))))
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Test => "test-endpoint",
            Self::Enable(_) => ENABLE,
            Self::Replay(_) | Self::Since(_) | Self::Ask => REPLAY,
            Self::Skip(_) => "skip-event",
        }
    }

    pub(super) fn title(&self, id: &EndpointId) -> String {
        match self {
            Self::Test => format!("Test the endpoint {id}"),
            Self::Enable(_) => format!("Enable the endpoint {id}"),
            Self::Replay(_) | Self::Since(_) | Self::Ask => format!("Replay events to the endpoint {id}"),
            Self::Skip(_) => format!("Skip an event of the endpoint {id}"),
        }
    }

    pub(super) fn fields(&self, id: &EndpointId) -> Vec<(&'static str, String)> {
        let endpoint = ("endpoint", id.to_string());
        match self {
            Self::Test | Self::Enable(None) | Self::Since(_) | Self::Ask => vec![endpoint],
            Self::Enable(Some(place)) => vec![endpoint, ("place", place.to_string())],
            Self::Replay(cursor) => vec![endpoint, ("cursor", cursor.to_string())],
            Self::Skip(event) => vec![endpoint, ("event", event.clone())],
        }
    }

    /// An event is skipped once, because the endpoint then fails at another one, and an enabled endpoint is enabled. A test and a
    /// replay happen again.
    pub(super) fn can_be_repeated(&self) -> bool {
        matches!(self, Self::Skip(_) | Self::Enable(_))
    }

    /// Whether a preview has shown the place.
    pub(super) fn is_previewed(&self) -> bool {
        !matches!(self, Self::Enable(None) | Self::Since(_) | Self::Ask)
    }
}

impl Console {
    /// Shows the endpoint and the effect of the action: three reads, and one of the log for a replay.
    pub(super) async fn preview_endpoint(&self, id: &EndpointId, deed: &Deed) -> Result<(Preview, Deed), Problem> {
        let found = self.found(id).await?;
        let since = if let Deed::Since(since) = deed { Some(self.instant(*since)) } else { None };
        let deed = match deed {
            Deed::Since(since) => Deed::Replay(self.place_since(&found, *since).await?),
            Deed::Enable(_) => Deed::Enable(Some(found.state.position)),
            known => known.clone(),
        };
        let url = &found.endpoint.chosen.url;
        let (what, button) = match &deed {
            Deed::Test => (html! { "A test is sent to it within a minute." }, Some("Send a test".to_owned())),
            Deed::Enable(_) if found.endpoint.disabled(&found.state).is_none() => (html! { "It is enabled." }, None),
            Deed::Enable(_) => {
                let head = found.head.as_ref();
                let place = found.state.position;
                let behind = head.map_or(0, |head| head.segments_after(place));
                let is_gone = head.is_some_and(|head| !head.has(place, self.clock.now()));
                let what = html! {
                    "It gets every event since its place within minutes: at least " b { (grouped(behind.into())) } "."
                    @if is_gone { " " b { "The log no longer keeps the first of them" } ", and they are missed. See " (WEBHOOKS_MISSED) "." }
                };
                (what, Some(format!("Enable {id}")))
            }
            Deed::Replay(after) => {
                self.require_replayable(&found, *after).await?;
                let of = |place| found.head.as_ref().map_or(0, |head| head.segments_after(place));
                let again = of(*after).saturating_sub(of(found.state.position));
                let what = html! {
                    "It gets " b { "at least " (grouped(again.into())) " events again" }
                    @if let Some(since) = since { ": those since " (self.times().at(since)) ", and of the minute before" }
                    ". It begins after the place " span class="id" { (after) } "."
                };
                (what, Some("Replay".to_owned()))
            }
            Deed::Skip(event) if is_blocked_by(&found.state, event) => (
                html! { "It never gets the event " span class="id any" { (event) } ", and goes on with the next one." },
                Some("Skip the event".to_owned()),
            ),
            Deed::Skip(event) => (html! { "It does not fail at the event " span class="id any" { (event) } "." }, None),
            Deed::Since(_) | Deed::Ask => (html! {}, None),
        };
        let times = self.times();
        let shown: Markup = html! {
            p { (what) }
            section class="panel" { dl class="facts" {
                (fact("Endpoint", &html! { (id) " " (standing(&found.endpoint, &found.state)) }))
                (fact("URL", &html! { span class="any" { (url) } }))
                @if let Some(last) = found.state.progress.deliveries.first() {
                    (fact("Last delivery", &html! { (times.aged(last.at)) ", " (answer(&last.outcome)) " in " (took(last.took_ms)) }))
                }
                (fact("Has got", &html! { "the events up to " span class="id" { (found.state.position) } }))
            } }
        };
        let is_final = matches!(deed, Deed::Skip(_));
        let keep = if matches!(deed, Deed::Enable(_)) { "Keep it disabled" } else { "Keep it" };
        let buttons = button.map(|act| Buttons { act, keep, is_final });
        Ok((Preview { shown, buttons }, deed))
    }

    /// Performs the action.
    pub(super) async fn do_to_endpoint(&self, id: &EndpointId, deed: &Deed, by: &Actor) -> Result<String, Problem> {
        match deed {
            Deed::Test => {
                drop(self.found(id).await?);
                let is_asked = self.store.ask_webhook_test(id, self.clock.now()).await?;
                is_asked.then(|| format!("{id}: a test is sent within a minute")).ok_or_else(no_such_endpoint)
            }
            Deed::Replay(after) => {
                let found = self.found(id).await?;
                self.require_replayable(&found, *after).await?;
                let is_moved = self.store.replay_webhook(id, *after).await?;
                is_moved.then(|| format!("{id}: it gets the events after {after} again")).ok_or_else(no_such_endpoint)
            }
            Deed::Skip(event) => self.skip(id, event, by).await,
            Deed::Enable(Some(place)) => self.enable(id, *place).await,
            Deed::Enable(None) | Deed::Since(_) | Deed::Ask => Err(moved()),
        }
    }

    /// Enables an endpoint, if its place is the one that was shown. An enabled one stays so.
    async fn enable(&self, id: &EndpointId, place: LogPosition) -> Result<String, Problem> {
        let found = self.found(id).await?;
        let is_enabled = found.endpoint.disabled(&found.state).is_none();
        let enabled = if is_enabled {
            EnableWebhook::Done
        } else {
            self.store.enable_webhook(id, place, self.clock.now()).await?
        };
        match enabled {
            EnableWebhook::Done => Ok(format!("{id}: enabled, it gets every event since its place")),
            EnableWebhook::Missing => Err(no_such_endpoint()),
            EnableWebhook::Elsewhere => Err(moved()),
        }
    }

    /// The instant from which events are replayed.
    fn instant(&self, since: Since) -> UtcSecond {
        match since {
            Since::Instant(at) => at,
            Since::Local(date, time) => self.config.business_days.zone().instant_of(date, time),
        }
    }

    /// The place in the log at a time.
    async fn place_since(&self, found: &Found, since: Since) -> Result<LogPosition, Problem> {
        const FIELD: &str = "since";
        let now = self.clock.now();
        let at = self.instant(since);
        if at > now {
            return Err(invalid_field(FIELD, &"it is in the future"));
        }
        let Some(head) = &found.head else { return Ok(LogPosition::BEGINNING) };
        match self.store.log_place_at(head, at, now).await? {
            // The endpoint has not got the later events yet.
            Some(place) => Ok(place.min(found.state.position)),
            None => {
                let detail = "The log no longer keeps the events of that day; the journal has them.";
                Err(Problem::new(ProblemKind::CursorGone, detail).at(FIELD))
            }
        }
    }

    async fn skip(&self, id: &EndpointId, event: &str, by: &Actor) -> Result<String, Problem> {
        let found = self.found(id).await?;
        let blocking = found.state.progress.blocking.as_ref().filter(|blocking| blocking.event_id == event);
        let skipped = SkippedEvent { at: self.clock.now(), event_id: event.to_owned(), by: by.clone() };
        let is_skipped = match blocking {
            Some(blocking) => self.store.skip_webhook_event(id, &found.state, blocking, skipped).await?,
            None => false,
        };
        // The same confirmation came again, or at the same time.
        let has_skipped = |state: &WebhookState| state.skipped.iter().any(|skipped| skipped.event_id == event);
        let now = || self.store.webhook_state(id);
        if is_skipped || now().await?.is_some_and(|state| has_skipped(&state)) {
            return Ok(format!("{id}: the event {event} is skipped"));
        }
        let detail = "The endpoint does not fail at this event; look at the endpoint again.";
        Err(Problem::new(ProblemKind::NotBlocking, detail).at("event"))
    }

    async fn found(&self, id: &EndpointId) -> Result<Found, Problem> {
        let endpoint = self.store.webhook_endpoint(id).await?.ok_or_else(no_such_endpoint)?;
        let state = self.store.webhook_state(id).await?.ok_or_else(without_place)?;
        Ok(Found { endpoint, state, head: self.store.log_head().await? })
    }

    /// Checks that a replay goes back to a place whose events the log still has.
    async fn require_replayable(&self, found: &Found, after: LogPosition) -> Result<(), Problem> {
        if after > found.state.position {
            let detail = "The cursor is ahead of the endpoint's, and a replay only goes back.";
            return Err(Problem::new(ProblemKind::InvalidCursor, detail).at("cursor"));
        }
        let gone = |why| Err(Problem::new(ProblemKind::CursorGone, why).at("cursor"));
        let Some(head) = &found.head else {
            let is_beginning = after == LogPosition::BEGINNING;
            return if is_beginning { Ok(()) } else { gone("The log has no such place.") };
        };
        match self.store.log_page(head, after, 1, 1, self.clock.now()).await? {
            LogRead::Page(_) => Ok(()),
            LogRead::Expired(_) => gone("The events after this cursor are no longer kept."),
            LogRead::Beyond(_) => gone("The log has no such place."),
        }
    }
}

fn is_blocked_by(state: &WebhookState, event: &str) -> bool {
    state.progress.blocking.as_ref().is_some_and(|blocking| blocking.event_id == event)
}

fn moved() -> Problem {
    let detail = "The endpoint's place changed since the preview; preview the action again.";
    Problem::new(ProblemKind::InvalidShape, detail)
}

fn without_place() -> Problem {
    let detail = "A restore took the endpoint's place in the log; it gets a new one within a minute.";
    Problem::new(ProblemKind::Unavailable, detail)
}

fn no_such_endpoint() -> Problem {
    Problem::new(ProblemKind::NoSuchEndpoint, "There is no endpoint with this id; look at the endpoints again.")
}
