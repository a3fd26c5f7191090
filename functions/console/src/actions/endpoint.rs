//! Actions on a webhook endpoint: test it, replay events, or skip the event that it does not accept.
//!
//! As in the function `webhooks`, nothing is sent here: the next run of `publish` sends it, within a minute.

use maud::{Markup, html};
use payments_http::{Form, Problem, ProblemKind};
use payments_model::Actor;
use payments_model::webhook::EndpointId;
use payments_store::{LogHead, LogPosition, LogRead, SkippedEvent, WebhookEndpoint, WebhookState};

use crate::actions::preview::{Buttons, Preview};
use crate::function::Console;
use crate::html::{fact, grouped};
use crate::views::endpoints::{answer, standing};

/// The longest id of an endpoint or event, or cursor, in bytes. Ids of payments' events have 60.
const MAX_FIELD_BYTES: usize = 200;

/// An action on an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    /// Send a test.
    Test,
    /// Deliver the events after a place again.
    Replay(LogPosition),
    /// Skip the event of this id.
    Skip(String),
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
            "replay-endpoint" => form.get("cursor", MAX_FIELD_BYTES).map(Self::Replay),
            "skip-event" => form.get("event", MAX_FIELD_BYTES).map(Self::Skip),
            _ => return None,
        };
        Some(deed.and_then(|deed| Ok((form.get("endpoint", MAX_FIELD_BYTES)?, deed))))
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Test => "test-endpoint",
            Self::Replay(_) => "replay-endpoint",
            Self::Skip(_) => "skip-event",
        }
    }

    pub(super) fn title(&self, id: &EndpointId) -> String {
        match self {
            Self::Test => format!("Test the endpoint {id}"),
            Self::Replay(_) => format!("Replay events to the endpoint {id}"),
            Self::Skip(_) => format!("Skip an event of the endpoint {id}"),
        }
    }

    pub(super) fn fields(&self, id: &EndpointId) -> Vec<(&'static str, String)> {
        let endpoint = ("endpoint", id.to_string());
        match self {
            Self::Test => vec![endpoint],
            Self::Replay(cursor) => vec![endpoint, ("cursor", cursor.to_string())],
            Self::Skip(event) => vec![endpoint, ("event", event.clone())],
        }
    }

    /// An event is skipped once, because the endpoint then fails at another one. A test and a replay happen again.
    pub(super) fn can_be_repeated(&self) -> bool {
        matches!(self, Self::Skip(_))
    }
}

impl Console {
    /// Shows the endpoint and the effect of the action: three reads, and one of the log for a replay.
    pub(super) async fn preview_endpoint(&self, id: &EndpointId, deed: &Deed) -> Result<Preview, Problem> {
        let found = self.found(id).await?;
        let url = &found.endpoint.chosen.url;
        let (what, button) = match deed {
            Deed::Test => (html! { "A test is sent to it within a minute." }, Some("Send a test")),
            Deed::Replay(after) => {
                self.require_replayable(&found, *after).await?;
                let of = |place| found.head.as_ref().map_or(0, |head| head.segments_after(place));
                let again = of(*after).saturating_sub(of(found.state.position));
                let what = html! {
                    "It gets the events after " span class="id" { (after) } " again: those of " (grouped(again.into())) " segments of the log."
                };
                (what, Some("Replay"))
            }
            Deed::Skip(event) if is_blocked_by(&found.state, event) => (
                html! { "It never gets the event " span class="id any" { (event) } ", and goes on with the next one." },
                Some("Skip the event"),
            ),
            Deed::Skip(event) => (html! { "It does not fail at the event " span class="id any" { (event) } "." }, None),
        };
        let times = self.times();
        let shown: Markup = html! {
            p { (what) }
            section class="panel" { dl class="facts" {
                (fact("Endpoint", &html! { (id) " " (standing(&found.endpoint, &found.state)) }))
                (fact("URL", &html! { span class="any" { (url) } }))
                @if let Some(last) = found.state.progress.deliveries.first() {
                    (fact("Last delivery", &html! { (times.aged(last.at)) ", " (answer(&last.outcome)) }))
                }
                (fact("Has got", &html! { "the events up to " span class="id" { (found.state.position) } }))
            } }
        };
        let is_final = matches!(deed, Deed::Skip(_));
        let buttons = button.map(|act| Buttons { act: act.to_owned(), keep: "Keep it", is_final });
        Ok(Preview { shown, buttons })
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

fn without_place() -> Problem {
    let detail = "A restore took the endpoint's place in the log; it gets a new one within a minute.";
    Problem::new(ProblemKind::Unavailable, detail)
}

fn no_such_endpoint() -> Problem {
    Problem::new(ProblemKind::NoSuchEndpoint, "There is no endpoint with this id; look at the endpoints again.")
}
