//! Create, change, show and delete endpoints.

use futures::future::{join, try_join3};
use http::header::LOCATION;
use payments_boot::Deadline;
use payments_http::{Answer, Problem, ProblemKind, Request};
use payments_model::UtcSecond;
use payments_model::webhook::{EndpointId, SecretGeneration};
use payments_store::{
    CreateEndpoint, EndpointsCreated, LogHead, LogPosition, LogRead, MAX_ENDPOINTS, StoreError, WebhookEndpoint,
    WebhookState,
};

use crate::audited::Change;
use crate::choice::{Start, Wanted};
use crate::function::{Webhooks, no_such_endpoint};
use crate::view::{DeletedView, EndpointView, EndpointsView, SecretsView};

/// An endpoint, and the log that it reads. A request also makes its changes here: reading the
/// endpoint again would take too long.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) endpoint: WebhookEndpoint,
    /// Its state; without a place in the log, the state in which it will begin.
    pub(crate) state: WebhookState,
    /// Whether it has a place. A restore of the log can lose the place, and the next run of `publish` makes a new one.
    pub(crate) has_place: bool,
    pub(crate) head: Option<LogHead>,
}

impl Found {
    /// Whether the endpoint already has the wanted settings. An endpoint that `publish` switched
    /// off differs from one that its operator switched off.
    fn is_as(&self, wanted: &Wanted) -> bool {
        let is_off = self.endpoint.disabled_at.is_some();
        let is_on = !is_off && self.state.disabled_at.is_none();
        self.endpoint.chosen == wanted.chosen && if wanted.disabled { is_off } else { is_on }
    }

    /// Makes the next run try the endpoint at once.
    pub(crate) fn forgive(&mut self) {
        let progress = &mut self.state.progress;
        (progress.failures, progress.failing_since, progress.next_try_at) = (0, None, None);
    }
}

impl Webhooks {
    /// Creates an endpoint, or changes it. Repeating the PUT changes nothing.
    pub(crate) async fn put(&self, request: &Request<'_>, id: &EndpointId, body: &[u8]) -> Result<Answer, Problem> {
        let wanted = Wanted::parse(body, self.config.data.endpoint.is_some())?;
        let deadline = Deadline::for_http(&self.clock);
        let (mut endpoints, head, created) =
            try_join3(self.store.webhook_endpoints(), self.store.log_head(), self.store.endpoints_created()).await?;
        match endpoints.remove(id.as_str()) {
            Some(Ok(endpoint)) => self.change(request, endpoint, head, wanted).await,
            Some(Err(error)) => self.repair(request, id, &wanted, &error).await,
            // The rejected request has no intent.
            None if endpoints.len() >= MAX_ENDPOINTS => Err(too_many()),
            None => self.create(request, id, (head, created), wanted, &deadline).await,
        }
    }

    async fn create(
        &self,
        request: &Request<'_>,
        id: &EndpointId,
        (head, created): (Option<LogHead>, EndpointsCreated),
        wanted: Wanted,
        deadline: &Deadline,
    ) -> Result<Answer, Problem> {
        let instant = self.clock.instant();
        let now = UtcSecond::new(instant).unwrap_or(UtcSecond::MAX);
        // The number is read before the endpoints are counted: a create after the count changes the number.
        let counted = self.store.webhook_endpoints();
        let (counted, from) = join(counted, self.place(wanted.start, head.as_ref())).await;
        let mut counted = counted?;
        let mut created = created;
        let from = from?;
        let change = Change::create(id, &wanted, from);
        let Wanted { chosen, disabled, .. } = wanted;
        let create = async {
            loop {
                if counted.contains_key(id.as_str()) {
                    return Err(overtaken());
                }
                if counted.len() >= MAX_ENDPOINTS {
                    return Err(too_many());
                }
                match self.store.create_webhook_endpoint(id, &chosen, from, disabled, instant, created).await? {
                    CreateEndpoint::Created => return Ok(()),
                    CreateEndpoint::Overtaken if !deadline.has_come() => {}
                    CreateEndpoint::Overtaken | CreateEndpoint::Existing => return Err(overtaken()),
                }
                created = self.store.endpoints_created().await?;
                counted = self.store.webhook_endpoints().await?;
            }
        };
        self.audited(request, change, "created", create).await?;
        let (generation, previous_until) = (SecretGeneration::FIRST, None);
        let id = id.clone();
        let location = format!("/webhook-endpoints/{id}");
        let created_at = now;
        let updated_at = now;
        let disabled_at = disabled.then_some(now);
        let endpoint = WebhookEndpoint { id, chosen, generation, previous_until, created_at, updated_at, disabled_at };
        let found = Found { endpoint, state: WebhookState::new(from), has_place: true, head };
        Ok(Answer::json(201, &self.view(&found))?.header(LOCATION, &location))
    }

    async fn change(
        &self,
        request: &Request<'_>,
        endpoint: WebhookEndpoint,
        head: Option<LogHead>,
        wanted: Wanted,
    ) -> Result<Answer, Problem> {
        let state = self.store.webhook_state(&endpoint.id).await?.ok_or_else(without_place)?;
        let mut found = Found { endpoint, state, has_place: true, head };
        if !found.is_as(&wanted) {
            let now = self.clock.now();
            self.replace(request, &found.endpoint.id, &wanted, now).await?;
            (found.endpoint.chosen, found.endpoint.updated_at) = (wanted.chosen, now);
            if wanted.disabled {
                found.endpoint.disabled_at.get_or_insert(now);
            } else {
                found.endpoint.disabled_at = None;
                (found.state.disabled_at, found.state.disabled_by) = (None, None);
                found.forgive();
            }
        }
        Answer::json(200, &self.view(&found))
    }

    /// Repairs an endpoint that cannot be read: the settings of the PUT are written anew.
    async fn repair(
        &self,
        request: &Request<'_>,
        id: &EndpointId,
        wanted: &Wanted,
        error: &StoreError,
    ) -> Result<Answer, Problem> {
        tracing::error!(endpoint = %id, %error, "a webhook endpoint cannot be read, and is changed");
        self.replace(request, id, wanted, self.clock.now()).await?;
        Answer::json(200, &self.view(&self.find(id).await?))
    }

    /// Replaces the settings of an endpoint's operator.
    async fn replace(
        &self,
        request: &Request<'_>,
        id: &EndpointId,
        wanted: &Wanted,
        now: UtcSecond,
    ) -> Result<(), Problem> {
        let replace = async {
            let is_there = self.store.change_webhook_endpoint(id, &wanted.chosen, wanted.disabled, now).await?;
            if is_there {
                return Ok(());
            }
            // The endpoint or its state is missing. Without a place, it gets one.
            Err(match self.store.webhook_state(id).await {
                Ok(None) => without_place(),
                _ => no_such_endpoint(),
            })
        };
        self.audited(request, Change::put(id, wanted), "changed", replace).await
    }

    /// All readable endpoints; the others are logged.
    pub(crate) async fn list(&self) -> Result<EndpointsView, Problem> {
        let endpoints = self.store.webhook_endpoints().await?;
        let (mut states, head) = (self.store.webhook_states().await?, self.store.log_head().await?);
        let (mut views, now) = (Vec::new(), self.clock.now());
        for (id, endpoint) in endpoints {
            // Without a state, a restore lost its place, or it was deleted a moment ago.
            let state = states.remove(&id).unwrap_or_else(|| Ok(WebhookState::after_loss(head.as_ref(), now)));
            match endpoint.and_then(|endpoint| Ok((endpoint, state?))) {
                Ok((endpoint, state)) => views.push(EndpointView::new(&endpoint, &state, head.as_ref(), now)),
                Err(error) => {
                    tracing::error!(endpoint = %id, %error, "a webhook endpoint cannot be read, and is left out");
                }
            }
        }
        Ok(EndpointsView { endpoints: views })
    }

    /// Deletes an endpoint, even if it cannot be read. The answer is the endpoint as it was, or its id alone.
    pub(crate) async fn delete(&self, request: &Request<'_>, id: &EndpointId) -> Result<Answer, Problem> {
        let found = match self.read(id).await {
            Ok(found) => Some(found.ok_or_else(no_such_endpoint)?),
            Err(error @ StoreError::Unreadable { .. }) => {
                tracing::error!(endpoint = %id, %error, "a webhook endpoint cannot be read, and is deleted");
                None
            }
            Err(error) => return Err(error.into()),
        };
        let delete = async {
            let was_there = self.store.delete_webhook_endpoint(id).await?;
            if was_there { Ok(()) } else { Err(no_such_endpoint()) }
        };
        self.audited(request, Change::delete(id), "deleted", delete).await?;
        match found {
            Some(found) => Answer::json(200, &self.view(&found)),
            None => Answer::json(200, &DeletedView { id: id.as_str() }),
        }
    }

    /// The current signing secrets of an endpoint. Their holder can sign as the bank, so the trail names who read them.
    pub(crate) async fn secret(&self, request: &Request<'_>, id: &EndpointId) -> Result<Answer, Problem> {
        let endpoint = self.store.webhook_endpoint(id).await?.ok_or_else(no_such_endpoint)?;
        let master = self.master.get_secret().await?;
        self.audited(request, Change::read_secret(id), "read", async { Ok(()) }).await?;
        Answer::json(200, &SecretsView::new(&endpoint, &master, self.clock.now()))
    }

    /// Reads an endpoint that has a place in the log, with the log's head.
    pub(crate) async fn find_placed(&self, id: &EndpointId) -> Result<Found, Problem> {
        let found = self.find(id).await?;
        if found.has_place { Ok(found) } else { Err(without_place()) }
    }

    /// Reads an endpoint, with the log's head. A missing endpoint is an error.
    pub(crate) async fn find(&self, id: &EndpointId) -> Result<Found, Problem> {
        self.read(id).await?.ok_or_else(no_such_endpoint)
    }

    /// Reads an endpoint, with the log's head; `None` if it does not exist.
    async fn read(&self, id: &EndpointId) -> Result<Option<Found>, StoreError> {
        let (endpoint, state, head) =
            try_join3(self.store.webhook_endpoint(id), self.store.webhook_state(id), self.store.log_head()).await?;
        let (has_place, now) = (state.is_some(), self.clock.now());
        let state = state.unwrap_or_else(|| WebhookState::after_loss(head.as_ref(), now));
        Ok(endpoint.map(|endpoint| Found { endpoint, state, has_place, head }))
    }

    /// An endpoint's view.
    pub(crate) fn view(&self, found: &Found) -> EndpointView {
        EndpointView::new(&found.endpoint, &found.state, found.head.as_ref(), self.clock.now())
    }

    /// The place in the log at which an endpoint begins, or begins again. A log without a head has only its beginning.
    pub(crate) async fn place(&self, start: Start, head: Option<&LogHead>) -> Result<LogPosition, Problem> {
        match (start, head) {
            (Start::Now, head) => Ok(head.map_or(LogPosition::BEGINNING, LogHead::end)),
            (Start::Position(position), Some(head)) => self.kept(head, position).await,
            (Start::Position(LogPosition::BEGINNING), None) => Ok(LogPosition::BEGINNING),
            (Start::Position(_), None) => Err(gone("The log has no such place", LogPosition::BEGINNING)),
        }
    }

    /// Returns a place, if the log still has the events after it.
    async fn kept(&self, head: &LogHead, position: LogPosition) -> Result<LogPosition, Problem> {
        let now = self.clock.now();
        match self.store.log_page(head, position, 1, 1, now).await? {
            LogRead::Page(_) => Ok(position),
            LogRead::Expired(oldest) => Err(gone("The events after this cursor are no longer kept", oldest)),
            LogRead::Beyond(_) => Err(gone("The log has no such place", head.start(now))),
        }
    }
}

fn overtaken() -> Problem {
    let detail = "Another request created this endpoint, or others, meanwhile; send yours again.";
    Problem::new(ProblemKind::Unavailable, detail)
}

fn too_many() -> Problem {
    let detail = format!("The bank has {MAX_ENDPOINTS} endpoints, the most; delete one, or change another.");
    Problem::new(ProblemKind::TooManyEndpoints, detail)
}

fn without_place() -> Problem {
    let detail = "A restore took the endpoint's place in the log, and it gets a new one within a minute; send the request again then.";
    Problem::new(ProblemKind::Unavailable, detail)
}

fn gone(why: &str, oldest: LogPosition) -> Problem {
    let detail = format!("{why}; begin with oldestCursor, and compare with what the receiver knows.");
    Problem::new(ProblemKind::CursorGone, detail).at("cursor").oldest_cursor(oldest.to_string())
}
