//! The demo's receiver of webhooks: it verifies each message, and compares what it was told with the tables.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use bytes::Bytes;
use chrono::NaiveDate;
use http::{HeaderMap, StatusCode};
use payments_boot::Clock;
use scheduled_payments::{Bank, DueFilter, EndpointOrder, Status, TOLERANCE, verify};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The id of its endpoint.
const ENDPOINT: &str = "demo";

/// The most payments of a page.
const PAGE: u16 = 1_000;

/// A receiver, at a port of this machine.
pub(super) struct Receiver {
    told: Arc<Mutex<Told>>,
    server: JoinHandle<()>,
}

/// The receiver's counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Received {
    /// Messages.
    pub(super) messages: u64,
    /// Different events.
    pub(super) events: u64,
    /// Events that came again.
    pub(super) repeated: u64,
    /// Messages that were rejected, because their signature or their time is not right, or they cannot be read.
    pub(super) rejected: u64,
    /// Payments of which the events say something else than the tables.
    pub(super) differing: u64,
}

/// The receiver's knowledge.
struct Told {
    clock: Clock,
    /// None until the endpoint is created.
    secret: Option<String>,
    ids: HashSet<String>,
    payments: HashMap<String, Payment>,
    received: Received,
}

/// A payment by its events.
#[derive(Debug, Default)]
struct Payment {
    /// Its versions.
    versions: BTreeSet<u64>,
    /// The status of the highest epoch and version.
    last: Option<(u64, u64, Option<Status>)>,
}

impl Receiver {
    /// Starts a receiver, and creates its endpoint at the bank.
    pub(super) async fn start(bank: &Bank, clock: &Clock) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("a port for the receiver of webhooks")?;
        let url = format!("http://{}/hook", listener.local_addr()?);
        let (ids, payments) = (HashSet::new(), HashMap::new());
        let told = Told { clock: clock.clone(), secret: None, ids, payments, received: Received::default() };
        let told = Arc::new(Mutex::new(told));
        let router = Router::new().route("/hook", post(receive)).with_state(Arc::clone(&told));
        let server = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        let receiver = Self { told, server };
        bank.put_webhook_endpoint(ENDPOINT, &EndpointOrder { url, ..EndpointOrder::default() }).await?;
        let secrets = bank.webhook_secrets(ENDPOINT).await?;
        let secret = secrets.into_iter().next().context("the endpoint has no secret")?.secret;
        lock(&receiver.told).secret = Some(secret);
        Ok(receiver)
    }

    /// Returns what was received, compared with the list of the date, which reads both tables.
    pub(super) async fn judge(&self, bank: &Bank, date: NaiveDate) -> Result<Received> {
        let mut payments = bank.due(date, &DueFilter { page_size: PAGE, ..DueFilter::default() });
        let (mut differing, mut listed) = (0, 0);
        while let Some(payment) = payments.try_next().await? {
            let told = lock(&self.told);
            let known = told.payments.get(&payment.payment_id);
            let agrees = known.is_some_and(|known| known.agrees(payment.version, payment.status));
            differing += u64::from(!agrees);
            listed += usize::from(known.is_some());
        }
        let told = lock(&self.told);
        differing += u64::try_from(told.payments.len() - listed)?;
        Ok(Received { differing, ..told.received })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Payment {
    /// Whether each version up to this one was told, and no other, and the last one has this status.
    fn agrees(&self, version: u64, status: Status) -> bool {
        let told = self.last.is_some_and(|(_, last, to)| (last, to) == (version, Some(status)));
        told && self.versions.iter().copied().eq(1..=version)
    }
}

impl Told {
    /// Takes a message, and returns the answer.
    fn take(&mut self, headers: &HeaderMap, body: &[u8]) -> StatusCode {
        self.received.messages += 1;
        let now = self.clock.instant();
        let verified = self.secret.as_ref().map(|secret| verify(&[secret], headers, body, now, TOLERANCE));
        let Some(Ok(events)) = verified else {
            self.received.rejected += 1;
            return StatusCode::BAD_REQUEST;
        };
        for event in events {
            if !self.ids.insert(event.id.clone()) {
                self.received.repeated += 1;
                continue;
            }
            self.received.events += 1;
            let (Some(payment), Some(version)) = (event.payment_id, event.version) else { continue };
            let payment = self.payments.entry(payment).or_default();
            payment.versions.insert(version);
            let told = (event.epoch, version, event.status);
            if payment.last.is_none_or(|(epoch, version, _)| (epoch, version) < (told.0, told.1)) {
                payment.last = Some(told);
            }
        }
        StatusCode::NO_CONTENT
    }
}

async fn receive(State(told): State<Arc<Mutex<Told>>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    lock(&told).take(&headers, &body)
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use standardwebhooks::Webhook;

    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn told(now: i64) -> Told {
        let now = chrono::DateTime::from_timestamp(now, 0).unwrap();
        let clock = Clock::simulated(move || now, |_| {});
        let secret = Some(SECRET.to_owned());
        Told { clock, secret, ids: HashSet::new(), payments: HashMap::new(), received: Received::default() }
    }

    fn event(version: u64, to: &str) -> serde_json::Value {
        json!({ "id": format!("1-p-{version}"), "type": "payment.changed", "at": "2026-11-20T01:00:00Z", "epoch": 1, "v": 1,
                "paymentId": "p", "version": version, "status": to })
    }

    fn headers(time: i64, body: &str) -> HeaderMap {
        let signed = Webhook::new(SECRET).unwrap().sign("msg_1", time, body.as_bytes()).unwrap();
        let values = [
            ("webhook-id", "msg_1".to_owned()),
            ("webhook-timestamp", time.to_string()),
            ("webhook-signature", format!("v1,AAAA {signed}")),
        ];
        values.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_messages_that_are_signed_and_new_are_accepted() {
        let body = json!({ "events": [event(1, "SCHEDULED")] }).to_string();
        let (mut genuine, other) = (headers(1_000, &body), headers(1_000, "{}"));
        for (headers, body, now, accepted) in [
            (&genuine, body.as_str(), 1_000, true),
            (&genuine, body.as_str(), 1_300, true),
            (&genuine, body.as_str(), 1_301, false),
            (&genuine, body.as_str(), 699, false),
            (&genuine, "{\"events\":[]}", 1_000, false),
            (&other, body.as_str(), 1_000, false),
        ] {
            let mut told = told(now);
            assert_eq!(told.take(headers, body.as_bytes()).is_success(), accepted, "{now}: {body}");
            assert_eq!(told.received.rejected, u64::from(!accepted));
        }
        genuine.remove("webhook-signature");
        assert_eq!(told(1_000).take(&genuine, body.as_bytes()), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_payment_agrees_if_each_version_was_told_and_the_last_has_the_status() {
        let rows = [
            (vec![(1, "SCHEDULED"), (2, "PENDING"), (3, "PROCESSED")], true),
            (vec![(3, "PROCESSED"), (1, "SCHEDULED"), (2, "PENDING"), (2, "PENDING")], true),
            (vec![(1, "SCHEDULED"), (3, "PROCESSED")], false),
            (vec![(1, "SCHEDULED"), (2, "PENDING")], false),
            (vec![(1, "SCHEDULED"), (2, "PENDING"), (3, "FAILED")], false),
            (vec![(1, "SCHEDULED"), (2, "PENDING"), (3, "PROCESSED"), (4, "PROCESSED")], false),
        ];
        for (events, agrees) in rows {
            let mut told = told(1_000);
            let body = json!({ "events": events.iter().map(|(version, to)| event(*version, to)).collect::<Vec<_>>() });
            let body = body.to_string();
            assert!(told.take(&headers(1_000, &body), body.as_bytes()).is_success());
            assert_eq!(told.payments["p"].agrees(3, Status::Processed), agrees, "{events:?}");
            assert_eq!(told.received.events + told.received.repeated, events.len() as u64);
        }
    }
}
