//! What operators do with an endpoint: test it, replay events, skip one, rotate its secret.

use chrono::TimeDelta;
use payments_http::json::Fields;
use payments_http::{Answer, Pointer, Problem, ProblemKind, bounded};
use payments_model::Actor;
use payments_model::webhook::{EndpointId, SecretGeneration};
use payments_store::{REMEMBERED, SkippedEvent};

use crate::choice::{Start, invalid, start};
use crate::{Webhooks, no_such_endpoint};

/// How long both secrets sign after a rotation: a day in which the receiver learns the new one.
const BOTH_SIGN_FOR: TimeDelta = TimeDelta::days(1);

/// The longest id of an event that is remembered, in bytes. Those of payments have 60.
const MAX_EVENT_ID_BYTES: usize = 200;

impl Webhooks {
    /// Asks for a test, which the next run of `publish` sends.
    pub(crate) async fn test(&self, id: &EndpointId) -> Result<Answer, Problem> {
        let (mut found, now) = (self.find(id).await?, self.clock.now());
        if !self.store.ask_webhook_test(id, now).await? {
            return Err(no_such_endpoint());
        }
        found.state.test_at = Some(now);
        Answer::json(202, &self.view(&found))
    }

    /// Moves an endpoint back, so that it gets the events after a cursor again.
    pub(crate) async fn replay(&self, id: &EndpointId, body: &[u8]) -> Result<Answer, Problem> {
        let mut fields = Fields::of(body, &Pointer::body())?;
        let from = fields.text("after").map(|text| start(&mut fields, &text));
        let from = match (from, fields.end()) {
            (Some(Start::Position(position)), faults) if faults.is_empty() => position,
            (Some(Start::Now), faults) if faults.is_empty() => return Err(ahead()),
            (_, faults) => return Err(Problem::of_body(&Pointer::body(), faults)),
        };
        let mut found = self.find(id).await?;
        if from > found.state.position {
            return Err(ahead());
        }
        let from = self.place(Start::Position(from), found.head.as_ref()).await?;
        if !self.store.replay_webhook(id, from).await? {
            return Err(no_such_endpoint());
        }
        found.state.position = from;
        found.state.progress.blocking = None;
        found.forgive();
        Answer::json(200, &self.view(&found))
    }

    /// Skips the event that an endpoint does not accept.
    pub(crate) async fn skip(&self, id: &EndpointId, body: &[u8], by: Actor) -> Result<Answer, Problem> {
        let mut fields = Fields::of(body, &Pointer::body())?;
        let event = fields.text("eventId");
        let faults = fields.end();
        let Some(event_id) = event.filter(|_| faults.is_empty()) else {
            return Err(Problem::of_body(&Pointer::body(), faults));
        };
        let mut found = self.find(id).await?;
        let blocking = found.state.progress.blocking.clone().filter(|blocking| blocking.event_id == event_id);
        let is_skipped = match blocking {
            Some(blocking) => {
                let bounded_id = bounded(&event_id, MAX_EVENT_ID_BYTES);
                let skipped = SkippedEvent { at: self.clock.now(), event_id: bounded_id, by: by.clone() };
                if self.store.skip_webhook_event(id, &found.state, &blocking, skipped.clone()).await? {
                    found.state.position = blocking.after;
                    found.state.progress.blocking = None;
                    found.state.skipped.insert(0, skipped);
                    found.state.skipped.truncate(REMEMBERED);
                    found.forgive();
                    true
                } else {
                    // The same request at the same time.
                    found.state = self.store.webhook_state(id).await?.ok_or_else(no_such_endpoint)?;
                    found.state.skipped.iter().any(|skipped| skipped.event_id == event_id)
                }
            }
            // The same request again.
            None => found.state.skipped.iter().any(|skipped| skipped.event_id == event_id),
        };
        if !is_skipped {
            let detail = "The endpoint does not fail at this event; get the endpoint, and send failing.eventId.";
            return Err(Problem::new(ProblemKind::NotBlocking, detail).at("eventId"));
        }
        Answer::json(200, &self.view(&found))
    }

    /// Raises the generation of an endpoint's secret to the one that is asked for. Both sign for a day.
    pub(crate) async fn rotate(&self, id: &EndpointId, body: &[u8]) -> Result<Answer, Problem> {
        let mut fields = Fields::of(body, &Pointer::body())?;
        let asked = fields.number("generation").map(str::parse::<u32>);
        if let Some(Err(_)) = asked {
            let why = "it must be a whole number, one more than secretGeneration";
            fields.fault(invalid("generation", ProblemKind::InvalidShape, &why));
        }
        let faults = fields.end();
        let Some(Ok(asked)) = asked.filter(|_| faults.is_empty()) else {
            return Err(Problem::of_body(&Pointer::body(), faults));
        };
        let (mut found, now) = (self.find(id).await?, self.clock.now());
        let generation = found.endpoint.generation;
        // The same request again changes nothing.
        if asked != generation.get() {
            let next = generation.next().filter(|next| next.get() == asked);
            let until = now.saturating_add(BOTH_SIGN_FOR);
            let Some(next) = next else { return Err(wrong_generation(generation)) };
            if !self.store.rotate_webhook_secret(id, generation, until, now).await? {
                return Err(wrong_generation(generation));
            }
            found.endpoint.generation = next;
            (found.endpoint.previous_until, found.endpoint.updated_at) = (Some(until), now);
        }
        Answer::json(200, &self.view(&found))
    }
}

fn wrong_generation(generation: SecretGeneration) -> Problem {
    let (has, next) = (generation.get(), generation.get().saturating_add(1));
    let detail = format!("The endpoint's secret has the generation {has}; send {next} to rotate it.");
    Problem::new(ProblemKind::WrongGeneration, detail).at("generation")
}

fn ahead() -> Problem {
    let why = "it is ahead of the endpoint's cursor, and a replay only goes back";
    invalid("after", ProblemKind::InvalidCursor, &why)
}
