//! The deliveries to one endpoint: take its lease, send the events after its place, move the place, end the lease.
//!
//! The place moves over events that the endpoint has accepted or its filter rejects. So after a
//! crash, events are repeated, and none is lost. Only the holder of the lease sends, so two runs never
//! send at the same time, and the events of a payment are sent in order.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use payments_boot::{Clock, Deadline};
use payments_model::EVENT_FORM;
use payments_model::webhook::{EndpointSecret, MasterSecret};
use payments_store::{
    CALL_TIMEOUT, Delivery, DeliveryEnd, DeliveryError, DisabledBy, LogHead, LogPosition, MissedEvents, Progress,
    Store, WebhookCommit, WebhookEndpoint, WebhookState,
};

use crate::backoff;
use crate::error::PublishError;
use crate::outcome::WebhookOutcome;
use crate::round::{Body, Next, Round, message_id};
use crate::run::beyond;
use crate::webhook::{Answer, REPLY_TIMEOUT, REQUEST_TIMEOUT, SendError, Sender};

/// The longest time of a request with its answer.
pub(crate) const LONGEST_REQUEST: Duration = REQUEST_TIMEOUT.saturating_add(REPLY_TIMEOUT);

/// The length of a lease. Each commit renews the lease. The length is more than the function's timeout and 5 s for
/// clocks that differ. So a run ends before its leases do, even if the run is killed while it sends.
pub const LEASE: TimeDelta = TimeDelta::seconds(60);

/// The state that the deliveries to all endpoints share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'r> {
    pub(crate) store: &'r Store,
    pub(crate) sender: &'r Sender,
    pub(crate) master: &'r MasterSecret,
    pub(crate) clock: &'r Clock,
    /// The clock that gives signatures their time.
    pub(crate) signed_by: &'r Clock,
    pub(crate) deadline: &'r Deadline,
}

/// The result of a run for an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// The outcome that the run returns.
    pub(crate) outcome: WebhookOutcome,
    /// The duration of the longest round or test in this invocation, including earlier runs for the same endpoint.
    pub(crate) longest: Duration,
}

/// The answers to the bodies of a round.
struct Answers {
    accepted: Vec<bool>,
    /// The first failure: its message, its kind, and the wait that the endpoint asks for.
    failure: Option<(String, DeliveryEnd, Option<Duration>)>,
}

/// The result that is written after a round.
struct Written {
    to: LogPosition,
    progress: Progress,
    disabled: Option<DisabledBy>,
}

impl Served {
    /// Notes the duration of a round or a test.
    fn took(&mut self, time: TimeDelta) {
        self.longest = self.longest.max(time.to_std().unwrap_or_default());
    }
}

impl Run<'_> {
    /// Delivers to an endpoint until its place is at the log's end, a delivery fails, or the deadline
    /// comes. Returns the endpoint's state after that; `None` if another run has the lease. `lease` is
    /// the number that the endpoint's lease had before the endpoint was read.
    pub(crate) async fn serve(
        &self,
        endpoint: &WebhookEndpoint,
        lease: u64,
        served: &mut Served,
    ) -> Result<Option<WebhookState>, PublishError> {
        let now = self.clock.now();
        let taken = self.store.take_webhook(&endpoint.id, now, now.saturating_add(LEASE)).await?;
        let Some(mut state) = taken else { return Ok(None) };
        if state.lease != lease.saturating_add(1) {
            // The endpoint may have changed since this run read it. The next run reads the endpoint again.
            self.store.release_webhook(&endpoint.id, state.lease).await?;
            return Ok(Some(state));
        }
        if state.test_at.is_some() && !self.deadline.comes_within(served.longest) {
            let began = self.clock.instant();
            state = self.test(endpoint, state).await?;
            served.took(self.clock.instant() - began);
        }
        while let Some(next) = self.step(endpoint, &state, served).await? {
            let goes_on = next.lease_until.is_some();
            state = next;
            if !goes_on {
                return Ok(Some(state));
            }
        }
        // An operator moved the place, changed the endpoint or deleted the endpoint. All answers have
        // arrived, so another run may send.
        self.store.release_webhook(&endpoint.id, state.lease).await?;
        Ok(Some(state))
    }

    /// Performs one round. Returns the state after the round, in which the lease has ended if this was
    /// the last round; `None` if an operator changed the endpoint or its place during the round.
    ///
    /// A round begins only if it ends before the deadline when it takes as long as the longest round so
    /// far. A later end would hold up the other endpoints.
    async fn step(
        &self,
        endpoint: &WebhookEndpoint,
        state: &WebhookState,
        served: &mut Served,
    ) -> Result<Option<WebhookState>, PublishError> {
        let now = self.clock.now();
        let Some(head) = self.store.log_head().await? else { return self.end(endpoint, state).await };
        if endpoint.disabled_at.is_some() || !state.may_send(now) || self.deadline.comes_within(served.longest) {
            return self.end(endpoint, state).await;
        }
        let at_once = backoff::at_once(&state.progress);
        let filter = &endpoint.chosen.filter;
        let (round, after, is_end) = match Round::read(self.store, &head, state.position, filter, at_once, now).await? {
            Next::Round(round, after, is_end) => (round, after, is_end),
            Next::Expired(oldest) => return self.miss(endpoint, state, oldest, &mut served.outcome).await,
            Next::Beyond => return self.go_beyond(endpoint, state, &head, &mut served.outcome).await,
        };
        if round.events() == 0 {
            return self.pass(endpoint, state, after, is_end).await;
        }
        if self.deadline.comes_within(served.longest) {
            // After the reads, too little time is left for a round.
            return self.end(endpoint, state).await;
        }
        let began = self.clock.instant();
        let written = self.send_round(endpoint, state, round, after, &mut served.outcome).await?;
        served.took(self.clock.instant() - began);
        // The last round ends the lease with the same write.
        let failed = written.progress.failures > 0;
        let goes_on = !failed && written.disabled.is_none() && !is_end;
        self.write(endpoint, state, &written, goes_on).await
    }

    /// Sends the bodies of a round at the same time. Returns the result, which is not written yet.
    async fn send_round(
        &self,
        endpoint: &WebhookEndpoint,
        state: &WebhookState,
        mut round: Round,
        after: LogPosition,
        outcome: &mut WebhookOutcome,
    ) -> Result<Written, PublishError> {
        let bodies = round.bodies(&endpoint.id);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let first = bodies.first().map(|body| body.message.to_string()).unwrap_or_default();
        let (sent, events) = (count(bodies.len()), count(round.events()));
        let began = self.clock.instant();
        let answers = self.send(endpoint, bodies).await;
        let (now, took_ms) = (self.clock.now(), self.millis_since(began));
        let delivery = |message_id: String, end: &DeliveryEnd| Delivery {
            at: now,
            message_id,
            events,
            bodies: sent,
            took_ms,
            outcome: end.clone(),
        };
        let Some((message, end, asked)) = answers.failure else {
            let mut progress = backoff::succeeded(&state.progress);
            progress.remember(delivery(first, &DeliveryEnd { kind: "accepted".to_owned(), status: None }));
            outcome.delivered_events += u64::from(events);
            outcome.delivered_bodies += u64::from(sent);
            return Ok(Written { to: after, progress, disabled: None });
        };
        tracing::warn!(endpoint = %endpoint.id, message, kind = end.kind, status = end.status, "a webhook was not accepted");
        let accepted = round.accepted(&answers.accepted);
        let (mut progress, gives_up) = backoff::failed(&state.progress, asked, now);
        progress.remember(delivery(message, &end));
        let is_gone = end.kind == "gone";
        progress.last_error = Some(DeliveryError { at: now, outcome: end });
        outcome.failed_deliveries += 1;
        outcome.delivered_events += accepted.as_ref().map_or(0, |accepted| u64::try_from(accepted.events).unwrap_or(0));
        let to = accepted.as_ref().map_or(state.position, |accepted| accepted.to);
        progress.blocking = accepted.map(|accepted| accepted.blocking);
        Ok(Written { to, progress, disabled: if is_gone { Some(DisabledBy::Gone) } else { gives_up } })
    }

    /// Sends bodies at the same time, and waits for all answers.
    async fn send(&self, endpoint: &WebhookEndpoint, bodies: Vec<Body>) -> Answers {
        let now = self.clock.now();
        let secret = |generation| EndpointSecret::derive(self.master, &endpoint.id, generation);
        let secrets: Vec<EndpointSecret> = endpoint.signing(now).map(secret).collect();
        let one = async |body: Body| {
            let at = self.signed_by.now();
            let sent = self.sender.send(&endpoint.chosen.url, &secrets, &body.message, at, body.json).await;
            (body.message.to_string(), sent)
        };
        let sent = join_all(bodies.into_iter().map(one)).await;
        let accepted = sent.iter().map(|(_, sent)| matches!(sent, Ok(Answer::Accepted))).collect();
        // Among several failures, the endpoint's own answer that it is gone counts most.
        let mut failures = sent.into_iter().filter_map(|(message, sent)| failure(message, sent));
        let failure = failures.next().map(|first| failures.find(|(_, end, _)| end.kind == "gone").unwrap_or(first));
        Answers { accepted, failure }
    }

    /// Moves the place over events that the filter rejects. At the log's end, also ends the lease.
    async fn pass(
        &self,
        endpoint: &WebhookEndpoint,
        state: &WebhookState,
        after: LogPosition,
        is_end: bool,
    ) -> Result<Option<WebhookState>, PublishError> {
        let written = Written { to: after, progress: state.progress.clone(), disabled: None };
        self.write(endpoint, state, &written, !is_end).await
    }

    /// Continues at the beginning of the log, because the log no longer has the events at the place.
    async fn miss(
        &self,
        endpoint: &WebhookEndpoint,
        state: &WebhookState,
        to: LogPosition,
        outcome: &mut WebhookOutcome,
    ) -> Result<Option<WebhookState>, PublishError> {
        let from = state.position;
        tracing::error!(endpoint = %endpoint.id, %from, %to, "the log no longer has events that a webhook lacks");
        outcome.webhooks_missed += 1;
        let missed = Some(MissedEvents { at: self.clock.now(), from, to });
        let written = Written { to, progress: Progress { missed, ..state.progress.clone() }, disabled: None };
        self.write(endpoint, state, &written, true).await
    }

    /// Continues in the next epoch, because a restore ended the log before the place.
    async fn go_beyond(
        &self,
        endpoint: &WebhookEndpoint,
        state: &WebhookState,
        head: &LogHead,
        outcome: &mut WebhookOutcome,
    ) -> Result<Option<WebhookState>, PublishError> {
        let reader = format!("the webhook endpoint {}", endpoint.id);
        match beyond(head, &reader, state.position, self.clock.now())? {
            (to, false) => {
                let written = Written { to, progress: state.progress.clone(), disabled: None };
                self.write(endpoint, state, &written, true).await
            }
            (to, true) => self.miss(endpoint, state, to, outcome).await,
        }
    }

    /// Sends a test to the endpoint, and stores the test's outcome.
    async fn test(&self, endpoint: &WebhookEndpoint, mut state: WebhookState) -> Result<WebhookState, PublishError> {
        let now = self.clock.now();
        let id = format!("test-{}-{}", endpoint.id, now.as_chrono().timestamp());
        let epoch = state.position.epoch;
        let event = serde_json::json!({ "id": id, "type": "webhook.test", "at": now.to_string(), "epoch": epoch, "v": EVENT_FORM });
        let json = serde_json::json!({ "events": [event] });
        let message = message_id(&endpoint.id, &[id]);
        let message_id = message.to_string();
        let began = self.clock.instant();
        let answers = self.send(endpoint, vec![Body { message, json: json.to_string().into() }]).await;
        let accepted = DeliveryEnd { kind: "accepted".to_owned(), status: None };
        let outcome = answers.failure.map_or(accepted, |(_, end, _)| end);
        let (at, took_ms) = (self.clock.now(), self.millis_since(began));
        state.progress.remember(Delivery { at, message_id, events: 0, bodies: 1, took_ms, outcome });
        self.store.finish_webhook_test(&endpoint.id, &state, &state.progress).await?;
        state.test_at = None;
        Ok(state)
    }

    fn millis_since(&self, began: DateTime<Utc>) -> u64 {
        u64::try_from((self.clock.instant() - began).num_milliseconds()).unwrap_or(0)
    }

    /// Ends the lease, and changes nothing else.
    async fn end(
        &self,
        endpoint: &WebhookEndpoint,
        state: &WebhookState,
    ) -> Result<Option<WebhookState>, PublishError> {
        let written = Written { to: state.position, progress: state.progress.clone(), disabled: None };
        self.write(endpoint, state, &written, false).await
    }

    /// Writes a commit, which renews the lease or ends it.
    async fn write(
        &self,
        endpoint: &WebhookEndpoint,
        state: &WebhookState,
        written: &Written,
        goes_on: bool,
    ) -> Result<Option<WebhookState>, PublishError> {
        let now = self.clock.now();
        if let Some(by) = written.disabled {
            tracing::error!(endpoint = %endpoint.id, by = by.as_str(), "the endpoint gets nothing any more");
        }
        let commit = WebhookCommit {
            to: written.to,
            progress: &written.progress,
            lease_until: goes_on.then(|| now.saturating_add(LEASE)),
            disabled: written.disabled.map(|by| (by, now)),
        };
        Ok(self.store.commit_webhook(&endpoint.id, state, &commit).await?)
    }
}

/// The message, the kind of its failure, and the wait that the endpoint asks for; `None` if the message was accepted.
fn failure(message: String, sent: Result<Answer, SendError>) -> Option<(String, DeliveryEnd, Option<Duration>)> {
    let end = |kind: &str, status| DeliveryEnd { kind: kind.to_owned(), status };
    match sent {
        Ok(Answer::Accepted) => None,
        Ok(Answer::Gone) => Some((message, end("gone", Some(410)), None)),
        Ok(Answer::Refused { status, retry_after }) => Some((message, end("refused", Some(status)), retry_after)),
        Err(error) => Some((message, end(error.kind(), None), None)),
    }
}

/// The time that a run needs after its deadline for work in progress: a request, and the write of its result.
pub(crate) fn needed_at_the_end() -> TimeDelta {
    TimeDelta::from_std(LONGEST_REQUEST + CALL_TIMEOUT).unwrap_or_default()
}
