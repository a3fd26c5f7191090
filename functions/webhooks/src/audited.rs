//! The audit trail of endpoints: a change, or a read of a secret, is noted before it happens, and its outcome after it.
//!
//! As in the console, each of the two items is put only if it is absent. Without its intent, a
//! change is not made. If an intent has no outcome, its change may have happened.

use payments_http::{EndpointsChanged, Problem, Request};
use payments_model::event_filter::event_type;
use payments_model::webhook::EndpointId;
use payments_model::{ActionId, ActionName};
use payments_store::{AuditIntent, AuditOutcome, LogPosition};

use crate::choice::Wanted;
use crate::function::Webhooks;

/// A change to be made.
#[derive(Debug)]
pub(crate) struct Change {
    action: &'static str,
    endpoint: EndpointId,
    /// The requested values, each with its name.
    fields: Vec<(&'static str, String)>,
    /// Whether it decides where events are sent, or who can sign them.
    is_of_the_endpoint: bool,
}

impl Change {
    /// An endpoint is changed.
    pub(crate) fn put(endpoint: &EndpointId, wanted: &Wanted) -> Self {
        let chosen = &wanted.chosen;
        let types: Vec<String> = chosen.filter.statuses.iter().map(|status| event_type(*status)).collect();
        let accounts: Vec<String> = chosen.filter.accounts.iter().map(ToString::to_string).collect();
        let fields = vec![
            ("url", chosen.url.to_string()),
            ("description", chosen.description.clone()),
            ("types", types.join(" ")),
            ("accounts", accounts.join(" ")),
            ("enabled", (!wanted.disabled).to_string()),
        ];
        Self::new("put-endpoint", endpoint, fields, true)
    }

    /// An endpoint is created, and gets the events after a cursor.
    pub(crate) fn create(endpoint: &EndpointId, wanted: &Wanted, after: LogPosition) -> Self {
        let mut change = Self::put(endpoint, wanted);
        change.fields.push(("cursor", after.to_string()));
        change
    }

    /// An endpoint is deleted.
    pub(crate) fn delete(endpoint: &EndpointId) -> Self {
        Self::new("delete-endpoint", endpoint, Vec::new(), true)
    }

    /// An endpoint gets the secret of this generation.
    pub(crate) fn rotate(endpoint: &EndpointId, generation: u32) -> Self {
        Self::new("rotate-secret", endpoint, vec![("generation", generation.to_string())], true)
    }

    /// Somebody reads the secrets of an endpoint.
    pub(crate) fn read_secret(endpoint: &EndpointId) -> Self {
        Self::new("read-secret", endpoint, Vec::new(), false)
    }

    /// An endpoint gets a test.
    pub(crate) fn test(endpoint: &EndpointId) -> Self {
        Self::new("test-endpoint", endpoint, Vec::new(), false)
    }

    /// An endpoint gets the events after a cursor again.
    pub(crate) fn replay(endpoint: &EndpointId, after: LogPosition) -> Self {
        Self::new("replay-endpoint", endpoint, vec![("cursor", after.to_string())], false)
    }

    /// An endpoint skips an event.
    pub(crate) fn skip(endpoint: &EndpointId, event: String) -> Self {
        Self::new("skip-event", endpoint, vec![("event", event)], false)
    }

    fn new(
        action: &'static str,
        endpoint: &EndpointId,
        fields: Vec<(&'static str, String)>,
        is_of_the_endpoint: bool,
    ) -> Self {
        Self { action, endpoint: endpoint.clone(), fields, is_of_the_endpoint }
    }

    /// The fields as the trail keeps them: each on a line, without empty ones.
    fn arguments(&self) -> String {
        let endpoint = format!("endpoint: {}", self.endpoint);
        let given = self.fields.iter().filter(|(_, value)| !value.is_empty());
        let lines = given.map(|(name, value)| format!("{name}: {value}"));
        [endpoint].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    }
}

impl Webhooks {
    /// Notes a change, makes it, and notes its outcome, which is `done` if it succeeds: at least 2 write units.
    ///
    /// # Errors
    /// An error if the intent cannot be written, and then nothing is changed; and errors of `make`.
    pub(crate) async fn audited(
        &self,
        request: &Request<'_>,
        change: Change,
        done: &str,
        make: impl Future<Output = Result<(), Problem>>,
    ) -> Result<(), Problem> {
        let (now, arguments) = (self.clock.now(), change.arguments());
        let id = ActionId::derive(request.gateway_id(), now, &format!("{}\n{arguments}", change.action));
        let name = ActionName { previewed_at: now, id };
        let intent = AuditIntent {
            name,
            at: now,
            by: request.caller().to_string(),
            subject: request.person(),
            request: request.gateway_id().to_owned(),
            action: change.action.to_owned(),
            arguments,
            first: None,
        };
        // An existing intent belongs to this request: no other request has its id.
        self.store.put_audit_intent(&intent).await?;
        if change.is_of_the_endpoint {
            self.metrics.emit(self.clock.instant(), &EndpointsChanged::ONE);
        }
        let made = make.await;
        let result = match &made {
            Ok(()) => format!("{}: {done}", change.endpoint),
            Err(problem) if problem.status() < 500 => format!("refused: {}", problem.detail()),
            // The change may have happened, so the trail has no outcome.
            Err(_) => return made,
        };
        let outcome = AuditOutcome { at: self.clock.now(), result, second: None };
        if let Err(error) = self.store.put_audit_outcome(name, &outcome).await {
            // The change is made, and the answer says so.
            tracing::error!(%error, endpoint = %change.endpoint, "the outcome of a change is not in the audit trail");
        }
        made
    }
}
