//! The JSON of an endpoint and of its secrets.

use payments_model::event_filter::event_type;
use payments_model::webhook::{EndpointSecret, MasterSecret};
use payments_model::{AccountId, PublicActor, UtcSecond};
use payments_store::{Delivery, LogHead, SkippedEvent, WebhookEndpoint, WebhookState};
use serde::Serialize;

/// An endpoint.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointView {
    id: String,
    url: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    types: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    accounts: Vec<String>,
    created_at: String,
    updated_at: String,
    secret_generation: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_until: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_at: Option<String>,
    cursor: String,
    segments_behind: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_asked_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failing: Option<FailingView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<ErrorView>,
    deliveries: Vec<DeliveryView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<SkippedView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<MissedView>,
}

/// The reason why the events after the cursor are not delivered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FailingView {
    since: String,
    failures: u32,
    next_try_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<String>,
}

#[derive(Debug, Serialize)]
struct ErrorView {
    at: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryView {
    at: String,
    message_id: String,
    bodies: u32,
    events: u32,
    outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SkippedView {
    at: String,
    event_id: String,
    by: PublicActor,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MissedView {
    at: String,
    cursor: String,
    end_cursor: String,
}

/// All endpoints.
#[derive(Debug, Serialize)]
pub(crate) struct EndpointsView {
    pub(crate) endpoints: Vec<EndpointView>,
}

/// An endpoint that was deleted, and could not be read.
#[derive(Debug, Serialize)]
pub(crate) struct DeletedView<'i> {
    pub(crate) id: &'i str,
}

/// The secrets that sign.
#[derive(Debug, Serialize)]
pub(crate) struct SecretsView {
    secrets: Vec<SecretView>,
}

#[derive(Debug, Serialize)]
struct SecretView {
    generation: u32,
    secret: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

impl EndpointView {
    pub(crate) fn new(
        endpoint: &WebhookEndpoint,
        state: &WebhookState,
        head: Option<&LogHead>,
        now: UtcSecond,
    ) -> Self {
        let text = |instant: Option<UtcSecond>| instant.map(|instant| instant.to_string());
        let WebhookEndpoint { id, chosen, generation, previous_until, created_at, updated_at, .. } = endpoint;
        let disabled = endpoint.disabled(state);
        let progress = &state.progress;
        let failing = progress.failing_since.zip(progress.next_try_at);
        let status = match (disabled, progress.failures) {
            (Some(_), _) => "disabled",
            (None, 0) => "enabled",
            (None, _) => "failing",
        };
        Self {
            id: id.to_string(),
            url: chosen.url.to_string(),
            description: chosen.description.clone(),
            types: chosen.filter.statuses.iter().map(|status| event_type(*status)).collect(),
            accounts: chosen.filter.accounts.iter().map(AccountId::to_string).collect(),
            created_at: created_at.to_string(),
            updated_at: updated_at.to_string(),
            secret_generation: generation.get(),
            previous_secret_until: text(previous_until.filter(|until| *until > now)),
            status,
            disabled_by: disabled.map(|(by, _)| by.as_str()),
            disabled_at: text(disabled.map(|(_, at)| at)),
            cursor: state.position.to_string(),
            segments_behind: head.map_or(0, |head| head.segments_after(state.position)),
            test_asked_at: text(state.test_at),
            failing: failing.map(|(since, next)| FailingView {
                since: since.to_string(),
                failures: progress.failures,
                next_try_at: next.to_string(),
                event_id: progress.blocking.as_ref().map(|blocking| blocking.event_id.clone()),
            }),
            last_error: progress.last_error.as_ref().map(|error| ErrorView {
                at: error.at.to_string(),
                kind: error.outcome.kind.clone(),
                status: error.outcome.status,
            }),
            deliveries: progress.deliveries.iter().map(DeliveryView::new).collect(),
            skipped: state.skipped.iter().map(SkippedView::new).collect(),
            missed: progress.missed.as_ref().map(|missed| MissedView {
                at: missed.at.to_string(),
                cursor: missed.from.to_string(),
                end_cursor: missed.to.to_string(),
            }),
        }
    }
}

impl DeliveryView {
    fn new(delivery: &Delivery) -> Self {
        let Delivery { at, message_id, events, bodies, outcome, .. } = delivery;
        Self {
            at: at.to_string(),
            message_id: message_id.clone(),
            bodies: *bodies,
            events: *events,
            outcome: outcome.kind.clone(),
            status: outcome.status,
        }
    }
}

impl SkippedView {
    fn new(skipped: &SkippedEvent) -> Self {
        let SkippedEvent { at, event_id, by } = skipped;
        Self { at: at.to_string(), event_id: event_id.clone(), by: PublicActor::from(by) }
    }
}

impl SecretsView {
    pub(crate) fn new(endpoint: &WebhookEndpoint, master: &MasterSecret, now: UtcSecond) -> Self {
        let secret = |generation| SecretView {
            generation: payments_model::webhook::SecretGeneration::get(generation),
            secret: EndpointSecret::derive(master, &endpoint.id, generation).reveal(),
            until: endpoint.previous_until.filter(|_| generation != endpoint.generation).map(|until| until.to_string()),
        };
        Self { secrets: endpoint.signing(now).map(secret).collect() }
    }
}
