//! Delivers events to all endpoints at the same time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use payments_boot::Deadline;
use payments_model::UtcSecond;
use payments_model::webhook::EndpointId;
use payments_store::{LogHead, StoreError, WebhookEndpoint, WebhookState};

use crate::deliver::{Run, Served, needed_at_the_end};
use crate::error::PublishError;
use crate::function::Publish;
use crate::outcome::WebhookOutcome;

/// The interval at which a run that is still sending looks for endpoints with new events. The stream's
/// next batch waits for the end of this run, so no other run would serve them soon.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The known endpoints, and the log.
#[derive(Debug, Default)]
struct Known {
    /// The readable endpoints.
    endpoints: Vec<WebhookEndpoint>,
    /// The states of the readable endpoints in the log, by endpoint id.
    states: HashMap<String, WebhookState>,
    /// Endpoints without a place in the log: a restore lost the place, or the endpoint was created a moment ago.
    without_place: Vec<EndpointId>,
    /// Endpoints that cannot be read, with the reason, or that have a place in the log but do not exist.
    unreadable: BTreeMap<String, Option<StoreError>>,
    /// The ids of unreadable endpoints that the run has logged.
    logged: BTreeSet<String>,
    /// The head of the log, which was read after the places of the endpoints.
    head: Option<LogHead>,
}

impl Known {
    /// Separates the unreadable endpoints, so that the others are served.
    fn new(
        endpoints: BTreeMap<String, Result<WebhookEndpoint, StoreError>>,
        mut states: HashMap<String, Result<WebhookState, StoreError>>,
    ) -> Self {
        let mut known = Self::default();
        for (id, endpoint) in endpoints {
            let state = states.remove(&id);
            if state.is_none() {
                // Unreadable endpoints get a place, too, so that a PUT can repair them.
                known.without_place.extend(id.parse());
            }
            match (endpoint, state) {
                (Ok(endpoint), Some(Ok(state))) => {
                    known.endpoints.push(endpoint);
                    known.states.insert(id, state);
                }
                (Ok(_), None) => {}
                (Err(error), _) | (Ok(_), Some(Err(error))) => drop(known.unreadable.insert(id, Some(error))),
            }
        }
        known.unreadable.extend(states.into_keys().map(|id| (id, None)));
        known
    }

    /// Logs the endpoints that cannot be read, each once.
    fn log_unreadable(&mut self) {
        for (id, error) in &self.unreadable {
            match error {
                _ if !self.logged.insert(id.clone()) => {}
                Some(error) => {
                    tracing::error!(endpoint = %id, %error, "a webhook endpoint cannot be read, and gets nothing");
                }
                None => {
                    tracing::error!(endpoint = %id, "a webhook endpoint has a place in the log and is not there; if that stays, see docs/alarms.md, WebhooksBehind");
                }
            }
        }
    }

    /// Takes over the result of a later read, except for states that this run has written since the read
    /// began. Returns the endpoints that have events to get at `now`, without the endpoints whose states
    /// this run has written: their settings may have changed in between.
    fn renew(&mut self, found: Self, now: UtcSecond) -> Vec<(WebhookEndpoint, u64)> {
        let mut due = found.due(now);
        let before = std::mem::replace(self, found);
        self.logged = before.logged;
        self.log_unreadable();
        for (id, state) in before.states {
            let is_older = |found: &&mut WebhookState| {
                (found.lease, found.lease_until.is_none()) < (state.lease, state.lease_until.is_none())
            };
            if let Some(found) = self.states.get_mut(&id).filter(is_older) {
                *found = state;
            }
        }
        due.retain(|(endpoint, lease)| {
            self.states.get(endpoint.id.as_str()).is_some_and(|state| state.lease == *lease)
        });
        due
    }

    /// Whether no endpoints exist.
    fn is_empty(&self) -> bool {
        self.endpoints.is_empty() && self.without_place.is_empty() && self.unreadable.is_empty()
    }

    /// The readable endpoints with their states.
    fn with_states(&self) -> impl Iterator<Item = (&WebhookEndpoint, &WebhookState)> {
        self.endpoints.iter().filter_map(|endpoint| Some((endpoint, self.states.get(endpoint.id.as_str())?)))
    }

    /// The endpoints that have events to get at `now`, with the numbers of their leases.
    fn due(&self, now: UtcSecond) -> Vec<(WebhookEndpoint, u64)> {
        let due = self.with_states().filter_map(|(endpoint, state)| {
            let has_more = self.head.as_ref().is_some_and(|head| state.position != head.end());
            let gets_more = has_more && endpoint.disabled_at.is_none();
            let is_due = state.can_be_taken(now) && (gets_more || state.test_at.is_some());
            is_due.then(|| (endpoint.clone(), state.lease))
        });
        due.collect()
    }
}

impl Publish {
    /// Delivers to all endpoints at the same time. Afterwards, `outcome` has the state of the endpoints,
    /// even if a delivery failed; `None` if no endpoints exist.
    ///
    /// # Errors
    /// A [`PublishError`] if the endpoints cannot be read, or the first error of an endpoint. The other
    /// endpoints are served before an endpoint's error is returned.
    pub(crate) async fn deliver(
        &self,
        deadline: &Deadline,
        outcome: &mut Option<WebhookOutcome>,
    ) -> Result<(), PublishError> {
        let mut known = self.known().await?;
        if known.is_empty() {
            return Ok(());
        }
        let outcome = outcome.insert(WebhookOutcome::default());
        known.log_unreadable();
        let begun = self.begin_again(&known).await;
        let served = self.serve_due(&mut known, deadline, outcome).await;
        // Endpoints also get events that were appended during this run. Then their places are beyond the
        // head as it was read, and the head must be read again.
        let is_ahead = |head: &LogHead| known.states.values().any(|state| state.position > head.end());
        if known.head.as_ref().is_some_and(is_ahead) {
            known.head = self.store.log_head().await.unwrap_or(known.head);
        }
        let unreadable = u64::try_from(known.unreadable.len()).unwrap_or(u64::MAX);
        outcome.judge(known.head.as_ref(), known.with_states(), unreadable);
        served.and(begun)
    }

    /// Reads the endpoints and the log's head.
    async fn known(&self) -> Result<Known, PublishError> {
        // The places are read before the head: otherwise another run could move a place beyond the head that this run
        // has read. The places are also read before the endpoints. If an endpoint is changed in between, its lease gets
        // another number than the lease read here. So nothing is sent under the old settings.
        let states = self.store.webhook_states().await?;
        let endpoints = self.store.webhook_endpoints().await?;
        if endpoints.is_empty() && states.is_empty() {
            return Ok(Known::default());
        }
        Ok(Known { head: self.store.log_head().await?, ..Known::new(endpoints, states) })
    }

    /// Gives a place in the log to endpoints without a place. The next run serves these endpoints.
    async fn begin_again(&self, known: &Known) -> Result<(), PublishError> {
        for id in &known.without_place {
            let state = self.store.begin_webhook(id, known.head.as_ref(), self.clock.now()).await?;
            tracing::warn!(endpoint = %id, position = %state.position, "the endpoint had no place in the log, and begins here");
        }
        Ok(())
    }

    /// Delivers to all endpoints that have events to get. This includes endpoints that get new events
    /// while the run still sends to other endpoints.
    async fn serve_due(
        &self,
        known: &mut Known,
        deadline: &Deadline,
        outcome: &mut WebhookOutcome,
    ) -> Result<(), PublishError> {
        let mut due = known.due(self.clock.now());
        if due.is_empty() {
            return Ok(());
        }
        let master = self.webhooks.master.get_secret().await?;
        let run = &Run {
            store: &self.store,
            sender: &self.webhooks.sender.anew(),
            master: &master,
            clock: &self.clock,
            signed_by: self.webhooks.clock.as_ref().unwrap_or(&self.clock),
            deadline: &deadline.earlier(needed_at_the_end()),
        };
        let serve = |(endpoint, lease, longest): (WebhookEndpoint, u64, Duration)| async move {
            let mut own = Served { longest, ..Served::default() };
            let state = run.serve(&endpoint, lease, &mut own).await;
            (endpoint.id.to_string(), own, state)
        };
        let look = || async {
            tokio::time::sleep(LOOK_AGAIN).await;
            self.known().await
        };
        // The longest round of each endpoint that was served and is not being served now.
        let mut longest = HashMap::new();
        let mut serving = FuturesUnordered::new();
        let mut served = BTreeSet::new();
        let mut failure = None;
        // The endpoints are read while deliveries run, so that a slow DynamoDB does not delay them.
        let mut looking = pin!(look());
        loop {
            for (endpoint, lease) in due.drain(..) {
                let id = endpoint.id.to_string();
                let longest = longest.get(&id).copied().unwrap_or_default();
                if !served.contains(&id) && !run.deadline.comes_within(longest) {
                    served.insert(id);
                    serving.push(serve((endpoint, lease, longest)));
                }
            }
            tokio::select! {
                biased;
                ended = serving.next() => match ended {
                    None => return failure.map_or(Ok(()), Err),
                    Some((id, own, state)) => {
                        *outcome += own.outcome;
                        served.remove(&id);
                        longest.insert(id.clone(), own.longest);
                        match state {
                            Ok(Some(state)) => drop(known.states.insert(id, state)),
                            Ok(None) => {}
                            // The first error is returned after the other endpoints are served.
                            Err(error) => failure = failure.or(Some(error)),
                        }
                    }
                },
                found = &mut looking, if !run.deadline.has_come() => {
                    looking.set(look());
                    // If the read failed, or ended after the deadline, the next run reads the endpoints.
                    if let Ok(found) = found && !run.deadline.has_come() {
                        due = known.renew(found, self.clock.now());
                    }
                }
            }
        }
    }
}
