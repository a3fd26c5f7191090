//! Actions on a webhook endpoint: test or enable it, replay events, or skip the event that it does not accept.
//!
//! As in the function `webhooks`, nothing is sent here: the next run of `publish` sends it, within a minute. A confirmation
//! names the version that its preview showed, and the write requires it: events go to no URL that the operator did not see.

use std::fmt::Display;
use std::str::FromStr;

use chrono::NaiveTime;
use futures::future::try_join;
use maud::{Markup, html};
use payments_http::{EndpointsChanged, Form, Problem, ProblemKind, bounded, invalid_field};
use payments_model::webhook::EndpointId;
use payments_model::{Actor, BusinessDate, UtcSecond};
use payments_store::{
    EnableWebhook, LogHead, LogPosition, LogRead, SkippedEvent, WebhookEndpoint, WebhookState, first_lease,
};

use crate::actions::dialog::{CLOSE, title};
use crate::actions::preview::{Buttons, Preview};
use crate::function::Console;
use crate::guides::WEBHOOKS_MISSED;
use crate::html::{fact, grouped};
use crate::panel::hidden;
use crate::told::{answer, took};
use crate::views::endpoints::standing;

/// The longest id of an endpoint or event, cursor or version, in bytes. Ids of payments' events have 60.
const MAX_FIELD_BYTES: usize = 200;

/// The bytes of a URL that a refusal names.
const MAX_URL_BYTES: usize = 300;

/// The endpoint of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    id: EndpointId,
    /// Its version in the preview.
    seen: Option<u64>,
}

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

/// Reads what a preview showed, if there was one.
fn previewed<T: FromStr<Err: Display>>(form: &mut Form, name: &'static str) -> Result<Option<T>, Problem> {
    let text = form.take(name, MAX_FIELD_BYTES)?;
    let parsed = (!text.is_empty()).then(|| text.parse()).transpose();
    parsed.map_err(|error: T::Err| invalid_field(name, &error))
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
pub(super) fn asked(target: &Target) -> Markup {
    html! { form data-action=(REPLAY) {
        (title(&Deed::Ask.title(target)))
        div class="body" {
            label { "Since, in the bank’s time" input type="datetime-local" name="since" required; }
            (hidden("endpoint", target.id.as_str()))
            (hidden("step", "preview"))
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
    pub(super) fn read(name: &str, form: &mut Form) -> Option<Result<(Target, Self), Problem>> {
        let deed = match name {
            "test-endpoint" => Ok(Self::Test),
            ENABLE => previewed(form, "place").map(Self::Enable),
            REPLAY => replayed(form),
            "skip-event" => form.get("event", MAX_FIELD_BYTES).map(Self::Skip),
            _ => return None,
        };
        Some(deed.and_then(|deed| {
            let target = Target { id: form.get("endpoint", MAX_FIELD_BYTES)?, seen: previewed(form, "version")? };
            Ok((target, deed))
        }))
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Test => "test-endpoint",
            Self::Enable(_) => ENABLE,
            Self::Replay(_) | Self::Since(_) | Self::Ask => REPLAY,
            Self::Skip(_) => "skip-event",
        }
    }

    pub(super) fn title(&self, Target { id, .. }: &Target) -> String {
        match self {
            Self::Test => format!("Test the endpoint {id}"),
            Self::Enable(_) => format!("Enable the endpoint {id}"),
            Self::Replay(_) | Self::Since(_) | Self::Ask => format!("Replay events to the endpoint {id}"),
            Self::Skip(_) => format!("Skip an event of the endpoint {id}"),
        }
    }

    pub(super) fn fields(&self, target: &Target) -> Vec<(&'static str, String)> {
        let own = match self {
            Self::Test | Self::Enable(None) | Self::Since(_) | Self::Ask => None,
            Self::Enable(Some(place)) => Some(("place", place.to_string())),
            Self::Replay(cursor) => Some(("cursor", cursor.to_string())),
            Self::Skip(event) => Some(("event", event.clone())),
        };
        let seen = target.seen.map(|seen| ("version", seen.to_string()));
        [("endpoint", target.id.to_string())].into_iter().chain(own).chain(seen).collect()
    }

    /// An event is skipped once, because the endpoint then fails at another one, and an enabled endpoint is enabled. A test and a
    /// replay happen again.
    pub(super) fn can_be_repeated(&self) -> bool {
        matches!(self, Self::Skip(_) | Self::Enable(_))
    }

    /// Whether a preview has shown the endpoint, and the place.
    pub(super) fn is_previewed(&self, target: &Target) -> bool {
        target.seen.is_some() && !matches!(self, Self::Enable(None) | Self::Since(_) | Self::Ask)
    }
}

impl Console {
    /// Shows the endpoint and the effect of the action: three reads, and one of the log for a replay.
    pub(super) async fn preview_endpoint(
        &self,
        Target { id, .. }: &Target,
        deed: &Deed,
    ) -> Result<(Preview, Target, Deed), Problem> {
        let found = self.found(id).await?;
        let since = if let Deed::Since(since) = deed { Some(self.instant(*since)) } else { None };
        let deed = match deed {
            Deed::Since(since) => Deed::Replay(self.place_since(&found, *since).await?),
            Deed::Enable(_) => Deed::Enable(Some(found.state.position)),
            known => known.clone(),
        };
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
            Deed::Skip(event) if found.state.blocked_by(event).is_some() => (
                html! { "It never gets the event " span class="id any" { (event) } ", and goes on with the next one." },
                Some("Skip the event".to_owned()),
            ),
            Deed::Skip(event) => (html! { "It does not fail at the event " span class="id any" { (event) } "." }, None),
            Deed::Since(_) | Deed::Ask => (html! {}, None),
        };
        let shown = html! { p { (what) } (self.seen(&found)) };
        let is_final = matches!(deed, Deed::Skip(_));
        let keep = if matches!(deed, Deed::Enable(_)) { "Keep it disabled" } else { "Change nothing" };
        let buttons = button.map(|act| Buttons { act, keep, is_final });
        let seen = Some(found.state.version);
        Ok((Preview { shown, buttons }, Target { id: id.clone(), seen }, deed))
    }

    /// The endpoint of a preview.
    fn seen(&self, Found { endpoint, state, .. }: &Found) -> Markup {
        let (times, chosen) = (self.times(), &endpoint.chosen);
        html! { section class="panel" { dl class="facts" {
            (fact("Endpoint", &html! { (endpoint.id) " " (standing(endpoint, state)) }))
            (fact("URL", &html! { span class="any" { (chosen.url) } }))
            @if !chosen.description.is_empty() { (fact("Description", &html! { span class="any" { (chosen.description) } })) }
            @if let Some(last) = state.progress.deliveries.first() {
                (fact("Last delivery", &html! { (times.aged(last.at)) ", " (answer(&last.outcome)) " in " (took(last.took_ms)) }))
            }
            (fact("Has got", &html! { "the events up to " span class="id" { (state.position) } }))
        } } }
    }

    /// Performs the action, if the endpoint is as its preview showed it.
    pub(super) async fn do_to_endpoint(&self, target: &Target, deed: &Deed, by: &Actor) -> Result<String, Problem> {
        let (id, found) = (&target.id, self.found(&target.id).await?);
        // The same confirmation came again, or at the same time.
        if matches!(deed, Deed::Skip(event) if found.state.has_skipped(event)) {
            return Ok(done(id, deed));
        }
        let Some(seen) = target.seen.filter(|seen| *seen == found.state.version) else {
            return Err(self.changed(&found.endpoint, &found.state, target));
        };
        let now = self.clock.now();
        let is_done = match deed {
            Deed::Test => self.store.ask_webhook_test(id, now, Some(seen)).await?,
            Deed::Replay(after) => {
                self.require_replayable(&found, *after).await?;
                self.store.replay_webhook(id, *after, Some(seen)).await?
            }
            Deed::Skip(event) => {
                let blocking = found.state.blocked_by(event).ok_or_else(not_blocking)?;
                let skipped = SkippedEvent { at: now, event_id: event.clone(), by: by.clone() };
                self.store.skip_webhook_event(id, &found.state, blocking, skipped, Some(seen)).await?
            }
            // An enabled endpoint stays so.
            Deed::Enable(_) if found.endpoint.disabled(&found.state).is_none() => true,
            Deed::Enable(Some(place)) => {
                self.metrics.emit(self.clock.instant(), &EndpointsChanged::ONE);
                self.store.enable_webhook(id, (*place, seen), now).await? == EnableWebhook::Done
            }
            Deed::Enable(None) | Deed::Since(_) | Deed::Ask => false,
        };
        if is_done {
            return Ok(done(id, deed));
        }
        let (endpoint, state) = try_join(self.store.webhook_endpoint(id), self.store.webhook_state(id)).await?;
        let (endpoint, state) = (endpoint.ok_or_else(no_such_endpoint)?, state.ok_or_else(without_place)?);
        match deed {
            Deed::Skip(event) if state.has_skipped(event) => Ok(done(id, deed)),
            _ => Err(self.changed(&endpoint, &state, target)),
        }
    }

    /// The refusal of a confirmation, because the endpoint is not as its preview showed it.
    fn changed(&self, endpoint: &WebhookEndpoint, state: &WebhookState, target: &Target) -> Problem {
        let seen = target.seen.unwrap_or_default();
        let detail = if state.version == seen {
            "The endpoint's place changed since the preview; preview the action again.".to_owned()
        } else {
            let is_another = first_lease(endpoint.created_at.as_chrono()) > seen;
            let what = if is_another { "was deleted and created again" } else { "was changed" };
            let at = self.config.business_days.zone().local(endpoint.updated_at).format("%a %-d %b, %H:%M:%S");
            let url = bounded(endpoint.chosen.url.as_str(), MAX_URL_BYTES);
            format!(
                "The endpoint {what} since the preview, on {at}, and its URL is now {url}; preview the action again."
            )
        };
        Problem::new(ProblemKind::InvalidShape, detail)
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

    async fn found(&self, id: &EndpointId) -> Result<Found, Problem> {
        // The state first: a change in between makes a preview of the old version, which cannot be confirmed.
        let state = self.store.webhook_state(id).await?;
        let (endpoint, head) = try_join(self.store.webhook_endpoint(id), self.store.log_head()).await?;
        let endpoint = endpoint.ok_or_else(no_such_endpoint)?;
        Ok(Found { endpoint, state: state.ok_or_else(without_place)?, head })
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

/// The outcome of an action that is done.
fn done(id: &EndpointId, deed: &Deed) -> String {
    match deed {
        Deed::Test => format!("{id}: a test is sent within a minute"),
        Deed::Replay(after) => format!("{id}: it gets the events after {after} again"),
        Deed::Skip(event) => format!("{id}: the event {event} is skipped"),
        Deed::Enable(_) | Deed::Since(_) | Deed::Ask => format!("{id}: enabled, it gets every event since its place"),
    }
}

fn not_blocking() -> Problem {
    let detail = "The endpoint does not fail at this event; look at the endpoint again.";
    Problem::new(ProblemKind::NotBlocking, detail).at("event")
}

fn without_place() -> Problem {
    let detail = "A restore took the endpoint's place in the log; it gets a new one within a minute.";
    Problem::new(ProblemKind::Unavailable, detail)
}

fn no_such_endpoint() -> Problem {
    Problem::new(ProblemKind::NoSuchEndpoint, "There is no endpoint with this id; look at the endpoints again.")
}
