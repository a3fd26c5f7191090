//! A payment's events, and whether each webhook endpoint has them.
//!
//! Deliveries are not stored: an event is delivered if the endpoint's place in the log is past it.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use futures::stream::{StreamExt as _, iter};
use payments_model::{AccountId, Details, EventFields, EventKind, Head, PaymentId, PreviousFields, UtcSecond};
use payments_store::{LogHead, LogPosition, LogRead, MAX_ENDPOINTS, StoreError, WebhookEndpoint, WebhookState};
use serde::Deserialize;

use crate::function::Console;

/// Events that are further apart are in the log in the order of their times.
const APART: TimeDelta = TimeDelta::minutes(1);

/// The most events of a segment that are looked at.
const LOOKED_AT: usize = 2_000;

/// An event of a payment.
#[derive(Debug, Clone)]
pub(super) struct OwnEvent {
    pub(super) version: u32,
    pub(super) kind: EventKind,
    pub(super) at: UtcSecond,
    fields: EventFields,
}

/// The state of an event at an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    Delivered,
    Waits,
}

/// An endpoint, and the events around its place.
pub(super) struct Seen {
    pub(super) endpoint: WebhookEndpoint,
    pub(super) state: WebhookState,
    /// The events next to the place, whose side is known; `None` if the log does not say.
    near: Option<Near>,
}

/// Events next to a place of the log.
#[derive(Debug)]
struct Near {
    /// Whether they are before the place, or after it.
    are_before: bool,
    ids: BTreeSet<String>,
    /// The first time if they are after the place, the last one if they are before.
    at: UtcSecond,
}

/// The part of an event by which it is found.
#[derive(Deserialize)]
struct Stamp {
    id: String,
    at: String,
}

impl OwnEvent {
    fn new(head: &Head, payee: &AccountId, version: u32, kind: EventKind, at: UtcSecond) -> Self {
        let fields = EventFields {
            id: format!("-{}-{version}", head.payment_id),
            kind: kind.as_str().to_owned(),
            account_id: Some(head.account.to_string()),
            payee_account_id: Some(payee.to_string()),
            previous: None,
            payment_id: Some(head.payment_id.to_string()),
        };
        Self { version, kind, at, fields }
    }

    /// Whether an event's id is that of this event, in whatever epoch.
    fn is(&self, id: &str) -> bool {
        id.ends_with(&self.fields.id)
    }
}

/// The events of a payment, by its head and its amendments, the latest first.
pub(super) fn of_payment(head: &Head, first: Option<&Details>, chain: &[Details]) -> Vec<OwnEvent> {
    let payee = first.map_or(&head.payee, |first| &first.instruction.payee);
    let mut events = vec![OwnEvent::new(head, payee, 1, EventKind::Scheduled, head.created_at())];
    let before = chain.iter().skip(1).map(Some).chain([first]);
    for (details, before) in chain.iter().zip(before) {
        let (payee, at) = (&details.instruction.payee, details.created_at);
        let version = details.amendment.map_or(1, |amendment| amendment.name.version);
        let mut event = OwnEvent::new(head, payee, version, EventKind::Amended, at);
        let previous = before.map(|before| before.instruction.payee.to_string());
        event.fields.previous = Some(PreviousFields { payee_account_id: previous });
        events.push(event);
    }
    for (place, entry) in head.moved.iter().rev().enumerate() {
        let version = head.version.saturating_sub(u32::try_from(place).unwrap_or(u32::MAX));
        events.push(OwnEvent::new(head, &head.payee, version, EventKind::from_status(entry.status), entry.at));
    }
    events
}

impl Seen {
    /// The state of an event at the endpoint; `None` if the endpoint does not get it, or if that cannot be known.
    pub(super) fn delivery(&self, event: &OwnEvent) -> Option<Delivery> {
        let Self { endpoint, near, .. } = self;
        if event.at < endpoint.created_at || !endpoint.chosen.filter.passes(&event.fields) {
            return None;
        }
        // The place is past events that the log had lost, and past those that an operator skipped.
        let is_lost = self.state.progress.missed.as_ref().is_some_and(|missed| event.at <= missed.at);
        if is_lost || self.state.skipped.iter().any(|skipped| event.is(&skipped.event_id)) {
            return None;
        }
        let near = near.as_ref()?;
        let is_near = near.ids.iter().any(|id| event.is(id));
        match (near.are_before, is_near) {
            (true, true) => Some(Delivery::Delivered),
            (false, true) => Some(Delivery::Waits),
            _ if event.at.saturating_add(APART) < near.at => Some(Delivery::Delivered),
            (false, false) if event.at > near.at.saturating_add(APART) => Some(Delivery::Waits),
            _ => None,
        }
    }

    /// Whether the endpoint has refused an event, which is next.
    pub(super) fn refuses(&self, event: &OwnEvent) -> bool {
        self.state.progress.blocking.as_ref().is_some_and(|blocking| event.is(&blocking.event_id))
    }

    /// The skipping of an event by an operator.
    pub(super) fn skipped(&self, payment: PaymentId) -> impl Iterator<Item = &payments_store::SkippedEvent> {
        let part = format!("-{payment}-");
        self.state.skipped.iter().filter(move |skipped| skipped.event_id.contains(&part))
    }
}

impl Console {
    /// The endpoints with the events around their places: two queries, the log's head, and a segment for each place. An endpoint
    /// that cannot be read is left out.
    pub(super) async fn seen_by_endpoints(&self) -> Result<Vec<Seen>, StoreError> {
        let (endpoints, states, log) =
            tokio::join!(self.store.webhook_endpoints(), self.store.webhook_states(), self.store.log_head());
        let (endpoints, mut states) = (endpoints?, states?);
        let Some(log) = log?.filter(|_| !endpoints.is_empty()) else { return Ok(Vec::new()) };
        let readable: Vec<_> = endpoints
            .into_iter()
            .filter_map(|(id, endpoint)| Some((endpoint.ok()?, states.remove(&id)?.ok()?)))
            .collect();
        let mut places: Vec<LogPosition> = readable.iter().map(|(_, state)| state.position).collect();
        places.sort_unstable();
        places.dedup();
        let log = &log;
        let looks =
            iter(places.clone()).map(|place| async move { self.near(log, place).await }).buffered(MAX_ENDPOINTS);
        let looks: Vec<Option<Near>> = looks.collect().await;
        let near = |place: LogPosition| {
            let found = places.iter().position(|known| *known == place).and_then(|found| looks[found].as_ref());
            found.map(|near| Near { are_before: near.are_before, ids: near.ids.clone(), at: near.at })
        };
        let seen = |(endpoint, state): (WebhookEndpoint, WebhookState)| {
            let near = near(state.position);
            Seen { endpoint, state, near }
        };
        Ok(readable.into_iter().map(seen).collect())
    }

    /// The events after a place, or at the log's end those before it: one segment.
    async fn near(&self, log: &LogHead, place: LogPosition) -> Option<Near> {
        let end = log.end();
        let are_before = place >= end;
        let from =
            if are_before { LogPosition { number: end.number.checked_sub(1)?, offset: 0, ..end } } else { place };
        let read = self.store.log_page(log, from, LOOKED_AT, 1, self.clock.now()).await;
        let page = match read {
            Ok(LogRead::Page(page)) => page,
            Ok(LogRead::Expired(_) | LogRead::Beyond(_)) => return None,
            Err(error) => {
                tracing::error!(%error, "a segment of the log cannot be read, so a payment's deliveries are unknown");
                return None;
            }
        };
        let stamps = page.entries.iter().filter_map(|entry| serde_json::from_str::<Stamp>(&entry.json).ok());
        let (mut ids, mut at) = (BTreeSet::new(), None);
        for stamp in stamps {
            if are_before || at.is_none() {
                at = stamp.at.parse().ok().or(at);
            }
            ids.insert(stamp.id);
        }
        Some(Near { are_before, ids, at: at? })
    }
}

#[cfg(test)]
mod tests {
    use payments_model::{EventFilter, Status};
    use payments_store::EndpointChoice;

    use super::*;

    const ID: &str = "0b5e7a2c-9d1f-5b3a-8c4d-1e2f3a4b5c6d";

    fn at(time: &str) -> UtcSecond {
        format!("2026-12-01T{time}Z").parse().unwrap()
    }

    fn event(time: &str, version: u32) -> OwnEvent {
        let fields = EventFields {
            id: format!("-{ID}-{version}"),
            kind: "payment.pending".to_owned(),
            account_id: Some("tenant".to_owned()),
            payee_account_id: Some("shop".to_owned()),
            previous: None,
            payment_id: Some(ID.to_owned()),
        };
        OwnEvent { version, kind: EventKind::Pending, at: at(time), fields }
    }

    fn seen(filter: EventFilter, near: Option<(bool, &str, &[&str])>) -> Seen {
        let endpoint = WebhookEndpoint {
            id: "shop".parse().unwrap(),
            chosen: EndpointChoice {
                url: "https://hooks.example.com/x".parse().unwrap(),
                description: String::new(),
                filter,
            },
            generation: payments_model::webhook::SecretGeneration::FIRST,
            previous_until: None,
            created_at: at("08:00:00"),
            updated_at: at("08:00:00"),
            disabled_at: None,
        };
        let near = near.map(|(are_before, time, ids)| Near {
            are_before,
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            at: at(time),
        });
        Seen { endpoint, state: WebhookState::new(LogPosition::BEGINNING), near }
    }

    #[test]
    fn an_event_is_delivered_if_the_endpoints_place_is_past_it() {
        use Delivery::{Delivered, Waits};
        let own = format!("7-{ID}-2");
        let (own, other): (&[&str], &[&str]) = (&[&own], &["7-another-2"]);
        for (near, time, want) in [
            // At the end of the log, whose last event is later, this one, or another one of the same minute.
            (Some((true, "10:05:00", other)), "10:00:00", Some(Delivered)),
            (Some((true, "10:00:00", own)), "10:00:00", Some(Delivered)),
            (Some((true, "10:00:00", other)), "10:00:00", None),
            // The last event is older: this one may not be in the log yet.
            (Some((true, "09:00:00", other)), "10:00:00", None),
            // The place is before events: this one, later ones, or earlier ones.
            (Some((false, "10:00:00", own)), "10:00:00", Some(Waits)),
            (Some((false, "10:05:00", other)), "10:00:00", Some(Delivered)),
            (Some((false, "09:00:00", other)), "10:00:00", Some(Waits)),
            (Some((false, "10:00:30", other)), "10:00:00", None),
            (None, "10:00:00", None),
            // Before the endpoint.
            (Some((true, "10:05:00", other)), "07:59:59", None),
        ] {
            assert_eq!(seen(EventFilter::default(), near).delivery(&event(time, 2)), want, "{near:?} {time}");
        }
        assert_eq!(seen(EventFilter::default(), Some((true, "10:00:00", own))).delivery(&event("10:00:00", 12)), None);
    }

    #[test]
    fn an_endpoint_gets_what_its_filter_passes() {
        let near = Some((true, "10:05:00", &[][..]));
        let others: [AccountId; 1] = ["another".parse().unwrap()];
        for (filter, want) in [
            (EventFilter { statuses: [Status::Pending].into(), ..EventFilter::default() }, true),
            (EventFilter { statuses: [Status::Failed].into(), ..EventFilter::default() }, false),
            (EventFilter { accounts: others.into(), ..EventFilter::default() }, false),
        ] {
            assert_eq!(seen(filter, near).delivery(&event("10:00:00", 2)).is_some(), want);
        }
    }
}
