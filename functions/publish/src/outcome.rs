//! The outcome of an invocation of `publish`.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use metrique_writer::Entry;
use payments_store::{DisabledBy, LogHead, WebhookEndpoint, WebhookState};
use serde::Serialize;

/// The outcome of an invocation, which it returns and emits as metrics.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Entry)]
#[serde(rename_all = "camelCase")]
#[entry(rename_all = "PascalCase")]
pub struct PublishOutcome {
    /// Events that were written to the journal.
    pub journaled_events: u64,
    /// Files that were written.
    pub journal_files: u64,
    /// Segments that the log had when the run began, and that the journal still lacks; at least 1 if the run failed.
    pub journal_segments_behind: u64,
    /// The number of times that the log no longer had events that the journal lacks.
    pub journal_missed: u64,
    /// The outcome for webhook endpoints, if there are any.
    #[serde(flatten)]
    #[entry(flatten)]
    pub webhooks: Option<WebhookOutcome>,
    /// The outcome for the event bus, if there is one.
    #[serde(flatten)]
    #[entry(flatten)]
    pub bus: Option<BusOutcome>,
}

/// The outcome of an invocation for the event bus.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Entry)]
#[serde(rename_all = "camelCase")]
#[entry(rename_all = "PascalCase")]
pub struct BusOutcome {
    /// Events that the bus accepted.
    pub bus_events: u64,
    /// The number of times that the bus did not accept an event. Such an event is put again, unless the bus
    /// can never accept it.
    pub bus_rejections: u64,
    /// Events that the bus never accepts, and the number of times that the log no longer had events that the bus lacks.
    pub bus_missed: u64,
    /// Segments that the log had when the run began, and that the bus still lacks; at least 1 if the bus
    /// does not accept events, or the run failed.
    pub bus_segments_behind: u64,
}

/// The outcome of an invocation for webhook endpoints.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Entry)]
#[serde(rename_all = "camelCase")]
#[entry(rename_all = "PascalCase")]
pub struct WebhookOutcome {
    /// Events that were accepted, up to the first that was not.
    pub delivered_events: u64,
    /// Bodies that were accepted.
    pub delivered_bodies: u64,
    /// Rounds in which a body was not accepted.
    pub failed_deliveries: u64,
    /// The number of times that the log no longer had events that an endpoint lacks.
    pub webhooks_missed: u64,
    /// The most segments that an endpoint lacks at the end; at least 1 if an endpoint cannot be read, or the run failed.
    pub webhook_segments_behind: u64,
    /// Endpoints that get no more events because they are gone or failed too long.
    pub webhooks_disabled: u64,
    /// Endpoints that get no events because their item cannot be read.
    pub webhooks_unreadable: u64,
    /// The time of the next event of each endpoint that is behind, by the endpoint's id. An endpoint's filter may reject
    /// the event. Only the stored outcome of a run has the times.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[entry(ignore)]
    pub waiting: BTreeMap<String, String>,
}

impl AddAssign for WebhookOutcome {
    fn add_assign(&mut self, other: Self) {
        self.delivered_events += other.delivered_events;
        self.delivered_bodies += other.delivered_bodies;
        self.failed_deliveries += other.failed_deliveries;
        self.webhooks_missed += other.webhooks_missed;
    }
}

impl BusOutcome {
    /// Notes that the bus lacks at least one segment.
    pub(crate) fn fall_behind(&mut self) {
        self.bus_segments_behind = self.bus_segments_behind.max(1);
    }
}

impl WebhookOutcome {
    /// Notes that an endpoint lacks at least one segment.
    pub(crate) fn fall_behind(&mut self) {
        self.webhook_segments_behind = self.webhook_segments_behind.max(1);
    }

    /// Adds the states of the endpoints at the end of the run, and the number of unreadable endpoints.
    /// Unreadable endpoints count as behind, because their places are unknown.
    pub(crate) fn judge<'s>(
        &mut self,
        head: Option<&LogHead>,
        endpoints: impl Iterator<Item = (&'s WebhookEndpoint, &'s WebhookState)>,
        unreadable: u64,
    ) {
        self.webhooks_unreadable = unreadable;
        self.webhook_segments_behind = unreadable.min(1);
        for (endpoint, state) in endpoints {
            match endpoint.disabled(state).map(|(by, _)| by) {
                None => {
                    let behind = head.map_or(0, |head| head.segments_after(state.position));
                    self.webhook_segments_behind = self.webhook_segments_behind.max(behind);
                }
                Some(DisabledBy::Operator) => {}
                Some(DisabledBy::Gone | DisabledBy::Failing) => self.webhooks_disabled += 1,
            }
        }
    }
}
