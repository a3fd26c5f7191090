//! The webhook endpoints: those in trouble first, with what waits for them, and until when.

use std::collections::{BTreeMap, HashMap};

use maud::{Markup, html};
use payments_http::{Problem, Request};
use payments_model::UtcSecond;
use payments_model::event_filter::event_type;
use payments_store::{Delivery, DisabledBy, Job, LogHead, StoreError, WebhookEndpoint, WebhookState};

use crate::function::Console;
use crate::guides::{PUT_ENDPOINT_BACK, WEBHOOK_DISABLED, WEBHOOKS_BEHIND, WEBHOOKS_MISSED};
use crate::html::{fact, foreign, grouped, heading, link, live_top, top};
use crate::panel::{ACTIONS, cards, empty, opens, panel};
use crate::runs::Runs;
use crate::times::{Times, span};
use crate::told::{answer, took};

/// The endpoints and their states, by id, as far as each can be read.
pub(crate) type Endpoints =
    (BTreeMap<String, Result<WebhookEndpoint, StoreError>>, HashMap<String, Result<WebhookState, StoreError>>);

/// An endpoint, its place, and what the log has after it.
struct Shown {
    endpoint: WebhookEndpoint,
    state: WebhookState,
    behind: Behind,
}

/// The events after an endpoint's place.
pub(crate) struct Behind {
    /// The segments, each with at least one event.
    pub(crate) segments: u64,
    /// The time of the first of these events, or of its day.
    oldest: Option<Oldest>,
    /// The end of the time for which the log keeps that event.
    pub(crate) kept_until: Option<UtcSecond>,
}

/// The time of the oldest event that waits.
enum Oldest {
    At(UtcSecond),
    /// Only its day is known, by the day's first instant in UTC.
    OnDay(UtcSecond),
}

impl Console {
    /// The view of all endpoints, or of one. It reads them, their states, the head of the log, and the last runs.
    pub(crate) async fn endpoints(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let query = request.query(&["id"])?;
        let (only, times) = (query.text("id")?, self.times());
        let (endpoints, mut states) = self.endpoints_and_states().await?;
        let (log, runs) = (self.store.log_head().await?, self.last_runs().await?);
        let lost = || WebhookState::after_loss(log.as_ref(), self.clock.now());
        let number = endpoints.len();
        let (mut shown, mut unreadable) = (Vec::new(), Vec::new());
        for (id, endpoint) in endpoints.into_iter().filter(|(id, _)| only.is_none_or(|only| only == id)) {
            match (endpoint, states.remove(&id).unwrap_or_else(|| Ok(lost()))) {
                (Ok(endpoint), Ok(state)) => {
                    let behind = Behind::new(&id, &state, log.as_ref(), &runs);
                    shown.push(Shown { endpoint, state, behind });
                }
                _ => unreadable.push(id),
            }
        }
        if let Some(only) = only {
            return Ok(one(only, shown.first(), &unreadable, times));
        }
        let (troubles, others): (Vec<_>, Vec<_>) = shown.iter().partition(|shown| shown.needs_somebody());
        let counted = if number == 1 { "1 endpoint".to_owned() } else { format!("{number} endpoints") };
        Ok(html! {
            div class="stack" data-live data-hx-get="/console/views/endpoints" data-hx-trigger="every 15s" data-hx-target="#main" data-hx-swap="innerMorph" {
                (live_top(&html! { h1 tabindex="-1" { "Webhooks " span class="quiet" { (counted) } } }, times))
                @if number == 0 { section class="panel" { (empty(&html! { b { "No endpoint is registered." } })) } }
                @for id in &unreadable { (damaged(id)) }
                @for shown in &troubles { (shown.panel(times)) }
                @if !others.is_empty() { (table(&others, !troubles.is_empty() || !unreadable.is_empty(), times)) }
            }
        })
    }

    /// Reads the endpoints, and then their states.
    pub(crate) async fn endpoints_and_states(&self) -> Result<Endpoints, StoreError> {
        Ok((self.store.webhook_endpoints().await?, self.store.webhook_states().await?))
    }
}

impl Behind {
    pub(crate) fn new(id: &str, state: &WebhookState, log: Option<&LogHead>, runs: &Runs) -> Self {
        let segments = log.map_or(0, |log| log.segments_after(state.position));
        let kept = log.and_then(|log| log.kept_at(state.position)).filter(|_| segments > 0);
        let told = runs.job(Job::Publish).and_then(|run| run.outcome.as_ref()?["waiting"][id].as_str()?.parse().ok());
        let oldest = told.map(Oldest::At).or(kept.map(|(day, _)| Oldest::OnDay(day)));
        Self { segments, oldest: oldest.filter(|_| segments > 0), kept_until: kept.map(|(_, until)| until) }
    }

    fn number(&self) -> String {
        let events = if self.segments == 1 { "event" } else { "events" };
        format!("at least {} {events}", grouped(self.segments.into()))
    }

    /// The number of the events, and the time and the age of the oldest: `At least 3 events wait, the oldest from Thu 26 Nov, 03:00, 2 h ago`.
    pub(crate) fn waiting(&self, times: Times) -> Markup {
        html! {
            (capital(&self.number())) (if self.segments == 1 { " waits" } else { " wait" })
            @match &self.oldest {
                Some(Oldest::At(at)) => { ", the oldest from " (times.at(*at)) ", " (times.age(*at)) },
                Some(Oldest::OnDay(day)) => { ", the oldest from " (times.date(times.zone.date_of(*day))) },
                None => {},
            }
        }
    }
}

impl Shown {
    /// Whether somebody has to act. An operator who disabled an endpoint knows it.
    fn needs_somebody(&self) -> bool {
        match self.endpoint.disabled(&self.state) {
            Some((by, _)) => by != DisabledBy::Operator,
            None => self.state.progress.failures > 0 || self.state.progress.missed.is_some(),
        }
    }

    fn pill(&self) -> Markup {
        standing(&self.endpoint, &self.state)
    }

    /// The endpoint as a panel of its own.
    fn panel(&self, times: Times) -> Markup {
        let is_disabled = self.endpoint.disabled(&self.state).is_some_and(|(by, _)| by != DisabledBy::Operator);
        html! {
            section class={ "panel" @if is_disabled { " now" } } {
                div class="head" {
                    div class="row" { h2 { a href=(link("endpoints", &[("id", self.endpoint.id.as_str())])) { (self.endpoint.id) } } (self.pill()) }
                    span class="quiet" { (foreign(self.endpoint.chosen.url.to_string())) }
                }
                div class="pad" { (self.story(times)) div class="row" { (self.actions(true)) } }
                (deliveries(&self.state.progress.deliveries, is_disabled, times))
            }
        }
    }

    /// The endpoint's story: its troubles, and what waits for it.
    fn story(&self, times: Times) -> Markup {
        let progress = &self.state.progress;
        let last = progress.last_error.as_ref().map(|error| answer(&error.outcome));
        html! {
            @match self.endpoint.disabled(&self.state) {
                Some((by, at)) => {
                    p {
                        b { "Disabled by " (if by == DisabledBy::Operator { "an operator" } else { "the bank" }) " on " (times.at(at)) } " "
                        span class="quiet" { (times.age(at)) }
                        @match by {
                            DisabledBy::Operator => {},
                            DisabledBy::Gone => { ": it answered 410, which says that it wants nothing more. See " (WEBHOOK_DISABLED) },
                            DisabledBy::Failing => {
                                ": five days without a success." @if let Some(last) = &last { " The last try: " (last) "." }
                                " See " (WEBHOOK_DISABLED)
                            },
                        }
                    }
                }
                None if progress.failures > 0 => {
                    p {
                        b { "Failing" @if let Some(since) = progress.failing_since { " since " (times.at(since)) } }
                        ": " (tries(progress.failures)) @if let Some(next) = progress.next_try_at { ", next " (times.brief(next)) } "."
                        @if let Some(last) = &last { " The last try: " (last) "." }
                        " See " (WEBHOOKS_BEHIND)
                    }
                }
                None => {}
            }
            @if let Some(blocking) = &progress.blocking { p { "It does not accept the event " a class="id any" href=(link("find", &[("text", blocking.event_id.as_str())])) { (blocking.event_id) } "." } }
            @if let Some(missed) = &progress.missed {
                p {
                    b { "It missed events" } ", because the log no longer had them on " (times.at(missed.at)) ": those after "
                    span class="id" { (missed.from) } " up to " span class="id" { (missed.to) } ". See " (WEBHOOKS_MISSED)
                }
            }
            (self.waiting(times))
            @for skipped in &self.state.skipped {
                p class="quiet" { "Skipped " (times.at(skipped.at)) " by " (skipped.by.name()) ": " span class="id any" { (skipped.event_id) } }
            }
        }
    }

    fn waiting(&self, times: Times) -> Markup {
        if self.behind.segments == 0 {
            return html! { p class="quiet" { "No event waits for it." } };
        }
        let is_of_some = self.endpoint.chosen.filter != Default::default();
        html! {
            p {
                (self.behind.waiting(times)) ". "
                @if is_of_some { "It gets those of them that its filter chooses. " }
                @if let Some(until) = self.behind.kept_until {
                    "They stay in the log until " b { (times.date(times.zone.date_of(until))) } "; after that they are lost to this endpoint."
                }
            }
        }
    }

    /// The forms that preview the actions on the endpoint. In a panel, the one that mends it comes first in rank.
    fn actions(&self, is_panel: bool) -> Markup {
        let id = [("endpoint", self.endpoint.id.as_str())];
        let (is_disabled, progress) = (self.endpoint.disabled(&self.state).is_some(), &self.state.progress);
        html! {
            (opens("test-endpoint", "Test…", "", &id))
            @if is_disabled { (opens("enable-endpoint", "Enable…", if is_panel { "primary" } else { "" }, &id)) }
            (opens("replay-endpoint", "Replay since…", "", &id))
            // An endpoint that gave no answer would not accept the next event either.
            @if let (Some(blocking), true) = (&progress.blocking, progress.last_error.as_ref().is_some_and(|last| last.outcome.kind == "refused")) {
                (opens("skip-event", "Skip the event…", "danger", &[id[0], ("event", &blocking.event_id)]))
            }
        }
    }

    fn row(&self, times: Times) -> Markup {
        let last = self.state.progress.deliveries.first();
        html! { tr {
            td class="all" {
                a class="b" href=(link("endpoints", &[("id", self.endpoint.id.as_str())])) { (self.endpoint.id) }
                small { (foreign(self.endpoint.chosen.url.to_string())) }
            }
            td class="all" { (self.pill()) @if let Some((_, at)) = self.endpoint.disabled(&self.state) { small { (times.age(at)) ", by an operator" } } }
            td class="all" data-l="Behind" { span {
                @match &self.behind {
                    Behind { segments: 0, .. } => { span class="quiet" { "up to date" } },
                    Behind { oldest: Some(Oldest::At(at)), .. } => { (since(*at, times)) ", " (self.behind.number()) },
                    behind => (behind.number()),
                }
            } }
            td class="all" data-l="Last delivery" { span {
                @match last {
                    Some(last) => { (times.brief(last.at)) " " span class="quiet" { (answer(&last.outcome)) " in " (took(last.took_ms)) } },
                    None => { span class="quiet" { "Nothing was sent yet." } },
                }
            } }
            td class="act" { span class="row" { (self.actions(false)) } }
        } }
    }

    /// The settings of the endpoint.
    fn settings(&self, times: Times) -> Markup {
        let (endpoint, filter) = (&self.endpoint, &self.endpoint.chosen.filter);
        let types: Vec<String> = filter.statuses.iter().map(|status| event_type(*status)).collect();
        let accounts: Vec<&str> = filter.accounts.iter().map(|account| account.as_str()).collect();
        let all = |texts: Vec<String>| if texts.is_empty() { "all".to_owned() } else { texts.join(", ") };
        html! {
            dl class="facts" {
                @if !endpoint.chosen.description.is_empty() { (fact("Description", &foreign(&endpoint.chosen.description))) }
                (fact("Types", &html! { (all(types)) }))
                (fact("Accounts", &html! { span class="any" { (all(accounts.into_iter().map(str::to_owned).collect())) } }))
                (fact("Secret", &html! { "generation " (endpoint.generation.get()) }))
                (fact("Created", &times.aged(endpoint.created_at)))
                (fact("Changed", &times.aged(endpoint.updated_at)))
                (fact("Place", &html! { span class="id" { (self.state.position) } }))
            }
        }
    }
}

/// The view of one endpoint.
fn one(id: &str, shown: Option<&Shown>, unreadable: &[String], times: Times) -> Markup {
    html! {
        (top(&heading("Webhooks"), times))
        @match shown {
            Some(shown) => { (shown.panel(times)) section class="panel" { (shown.settings(times)) } },
            None if !unreadable.is_empty() => (damaged(id)),
            None => { section class="panel" { (empty(&html! { b { "No endpoint has this id." } " It was deleted, or never existed." })) } },
        }
        p class="row" { a class="button" href=(link("endpoints", &[])) { "All endpoints" } }
    }
}

fn damaged(id: &str) -> Markup {
    html! {
        section class="panel now" {
            div class="head" { div class="row" { h2 { (id) } span class="pill stop" { "Unreadable" } } }
            div class="pad" { p { "It cannot be read, and gets nothing. A PUT of the endpoint writes it anew. See " (PUT_ENDPOINT_BACK) "." } }
        }
    }
}

fn table(shown: &[&Shown], are_others: bool, times: Times) -> Markup {
    let columns = [("Endpoint", ""), ("State", ""), ("Behind", ""), ("Last delivery", ""), ("Actions", ACTIONS)];
    let heading =
        html! { @if are_others { "Other endpoints " } @else { "Endpoints " } span class="quiet" { (shown.len()) } };
    panel(&heading, &html! {}, &cards("Endpoints", &columns, &html! { @for shown in shown { (shown.row(times)) } }))
}

/// Whether an endpoint gets events: a word.
pub(crate) fn standing(endpoint: &WebhookEndpoint, state: &WebhookState) -> Markup {
    let (class, word) = match endpoint.disabled(state) {
        Some((DisabledBy::Operator, _)) => ("off", "Disabled"),
        Some(_) => ("stop", "Disabled"),
        None if state.progress.failures > 0 => ("warn", "Failing"),
        None => ("ok", "Enabled"),
    };
    html! { span class={ "pill " (class) } { (word) } }
}

fn tries(number: u32) -> String {
    if number == 1 { "1 try".to_owned() } else { format!("{number} tries") }
}

/// The time since an instant, without a word.
fn since(at: UtcSecond, times: Times) -> String {
    span((times.now.as_chrono() - at.as_chrono()).num_seconds())
}

fn capital(text: &str) -> String {
    text.chars().take(1).flat_map(char::to_uppercase).chain(text.chars().skip(1)).collect()
}

/// The last deliveries, folded unless the endpoint is disabled.
fn deliveries(deliveries: &[Delivery], is_open: bool, times: Times) -> Markup {
    if deliveries.is_empty() {
        return html! { p class="empty quiet" { b { "Nothing was sent yet." } } };
    }
    let columns = [("At", ""), ("Took", "num"), ("Answer", ""), ("Sent", "num")];
    let rows = html! { @for delivery in deliveries { tr {
        td { (times.at(delivery.at)) }
        td class="num end" { (took(delivery.took_ms)) }
        td { (answer(&delivery.outcome)) }
        td class="num end" { (sent(delivery.events)) }
    } } };
    html! { details class="fold" open[is_open] { summary { "Last deliveries" } (cards("Last deliveries", &columns, &rows)) } }
}

fn sent(events: u32) -> String {
    if events == 1 { "1 event".to_owned() } else { format!("{} events", grouped(events.into())) }
}
