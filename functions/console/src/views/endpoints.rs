//! The webhook endpoints: their positions, and the outcomes of their last deliveries.

use std::collections::{BTreeMap, HashMap};

use maud::{Markup, html};
use payments_http::{Problem, Request};
use payments_store::{LogHead, StoreError, WebhookEndpoint, WebhookState};

use crate::function::Console;
use crate::guides::{PUT_ENDPOINT_BACK, WEBHOOK_DISABLED, WEBHOOKS_BEHIND, WEBHOOKS_MISSED};
use crate::html::{fact, grouped, heading, instant, live_top};

impl Console {
    /// The view of all endpoints. It reads them, their states, and the head of the log.
    pub(crate) async fn endpoints(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        request.query(&[])?;
        let (endpoints, mut states) = self.endpoints_and_states().await?;
        let head = self.store.log_head().await?;
        let lost = || WebhookState::after_loss(head.as_ref(), self.clock.now());
        Ok(html! {
            div data-live data-hx-get="/console/views/endpoints" data-hx-trigger="every 15s" data-hx-target="#main" data-hx-swap="innerMorph" {
                (live_top(&heading("Webhook endpoints"), self.times()))
                @if endpoints.is_empty() { p { "None." } }
                @for (id, endpoint) in endpoints {
                    h2 { (id) }
                    @match (endpoint, states.remove(&id).unwrap_or_else(|| Ok(lost()))) {
                        (Ok(endpoint), Ok(state)) => (shown(&endpoint, &state, head.as_ref())),
                        _ => p class="warn" { "It cannot be read. A PUT of the endpoint writes it anew. See " (PUT_ENDPOINT_BACK) "." },
                    }
                }
            }
        })
    }
}

/// The endpoints and their states, by id, as far as each can be read.
type Endpoints =
    (BTreeMap<String, Result<WebhookEndpoint, StoreError>>, HashMap<String, Result<WebhookState, StoreError>>);

impl Console {
    /// Reads the endpoints, and then their states.
    pub(crate) async fn endpoints_and_states(&self) -> Result<Endpoints, StoreError> {
        Ok((self.store.webhook_endpoints().await?, self.store.webhook_states().await?))
    }
}

fn shown(endpoint: &WebhookEndpoint, state: &WebhookState, head: Option<&LogHead>) -> Markup {
    let progress = &state.progress;
    let behind = head.map_or(0, |head| head.segments_after(state.position));
    html! {
        dl {
            (fact("URL", &html! { (endpoint.chosen.url) }))
            @if !endpoint.chosen.description.is_empty() { (fact("Description", &html! { (endpoint.chosen.description) })) }
            (fact("State", &standing(endpoint, state)))
            (fact("Behind", &html! { (grouped(behind.into())) " segments of the log, after " code { (state.position) } }))
            @if let Some(error) = &progress.last_error {
                (fact("Last error", &html! { (instant(error.at)) ": " (error.outcome.kind) " " @if let Some(status) = error.outcome.status { (status) } }))
            }
            @if let Some(blocking) = &progress.blocking { (fact("Not accepted", &html! { code { (blocking.event_id) } })) }
            @if let Some(missed) = &progress.missed {
                (fact("Missed", &html! { span class="warn" { "events after " code { (missed.from) } " up to " code { (missed.to) } ", because the log no longer had them" } ". See " (WEBHOOKS_MISSED) }))
            }
            @for skipped in &state.skipped {
                (fact("Skipped", &html! { (instant(skipped.at)) ": " code { (skipped.event_id) } ", by " (skipped.by) }))
            }
        }
        (actions(endpoint, state))
        @if !progress.deliveries.is_empty() {
            div class="scroll" tabindex="0" { table {
                caption { "Last deliveries" }
                thead { tr { th scope="col" { "At" } th scope="col" class="number" { "Events" } th scope="col" { "Result" } } }
                tbody { @for delivery in &progress.deliveries { tr {
                    td { (instant(delivery.at)) }
                    td class="number" { (delivery.events) }
                    td class="text" { (delivery.outcome.kind) " " @if let Some(status) = delivery.outcome.status { (status) } }
                } } }
            } }
        }
    }
}

/// The forms that preview the actions on an endpoint.
fn actions(endpoint: &WebhookEndpoint, state: &WebhookState) -> Markup {
    let id = &endpoint.id;
    let named = html! {
        input type="hidden" name="endpoint" value=(id);
        input type="hidden" name="step" value="preview";
    };
    html! {
        form data-action="test-endpoint" { (named) button { "Test…" } }
        form data-action="replay-endpoint" {
            (named)
            label for={ "cursor-" (id) } { "Events after" }
            input id={ "cursor-" (id) } name="cursor" maxlength="200" required placeholder="3637440.17.0";
            button { "Replay…" }
        }
        @if let Some(blocking) = &state.progress.blocking {
            form data-action="skip-event" {
                (named)
                input type="hidden" name="event" value=(blocking.event_id);
                button { "Skip the event…" }
            }
        }
    }
}

/// Whether an endpoint gets events.
pub(crate) fn standing(endpoint: &WebhookEndpoint, state: &WebhookState) -> Markup {
    let progress = &state.progress;
    html! {
        @if let Some((by, at)) = endpoint.disabled(state) {
            span class="warn" { "disabled" } " since " (instant(at)) ", by " (by.as_str()) ". See " (WEBHOOK_DISABLED)
        } @else if progress.failures > 0 {
            span class="warn" { "failing" } ", " (progress.failures) " tries"
            @if let Some(since) = progress.failing_since { " since " (instant(since)) }
            @if let Some(next) = progress.next_try_at { "; next try at " (instant(next)) }
            ". See " (WEBHOOKS_BEHIND)
        } @else { "enabled" }
    }
}
