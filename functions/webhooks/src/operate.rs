//! Actions of operators on an endpoint: test it, replay events, skip one, rotate its secret.

use chrono::TimeDelta;
use payments_http::json::Fields;
use payments_http::{Answer, Pointer, Problem, ProblemKind, Request, bounded};
use payments_model::webhook::{EndpointId, SecretGeneration};
use payments_store::{BlockingEvent, REMEMBERED, SkippedEvent};

use crate::audited::Change;
use crate::choice::{Start, invalid, start};
use crate::endpoints::Found;
use crate::function::{Webhooks, no_such_endpoint};

/// Time for which both secrets sign after a rotation: a day in which the receiver learns the new one.
const BOTH_SIGN_FOR: TimeDelta = TimeDelta::days(1);

/// The longest id of a remembered event, in bytes. Ids of payments' events have 60.
const MAX_EVENT_ID_BYTES: usize = 200;

impl Webhooks {
    /// Asks for a test, which the next run of `publish` sends.
    pub(crate) async fn test(&self, request: &Request<'_>, id: &EndpointId, body: &[u8]) -> Result<Answer, Problem> {
        // The body is empty, or an object without fields.
        let faults = if body.is_empty() { Vec::new() } else { Fields::parse(body, &Pointer::body())?.end() };
        if !faults.is_empty() {
            return Err(Problem::for_body(&Pointer::body(), faults));
        }
        let (mut found, now) = (self.find_placed(id).await?, self.clock.now());
        let ask = async {
            let is_there = self.store.ask_webhook_test(id, now, None).await?;
            if is_there { Ok(()) } else { Err(no_such_endpoint()) }
        };
        self.audited(request, Change::test(id), "a test is sent within a minute", ask).await?;
        found.state.test_at = Some(now);
        Answer::json(202, &self.view(&found))
    }

    /// Moves an endpoint back, so that it gets the events after a cursor again.
    pub(crate) async fn replay(&self, request: &Request<'_>, id: &EndpointId, body: &[u8]) -> Result<Answer, Problem> {
        let mut fields = Fields::parse(body, &Pointer::body())?;
        let from = fields.text("cursor").map(|text| start(&mut fields, &text));
        let from = match (from, fields.end()) {
            (Some(Start::Position(position)), faults) if faults.is_empty() => position,
            (Some(Start::Now), faults) if faults.is_empty() => return Err(ahead()),
            (_, faults) => return Err(Problem::for_body(&Pointer::body(), faults)),
        };
        let mut found = self.find_placed(id).await?;
        if from > found.state.position {
            return Err(ahead());
        }
        let from = self.place(Start::Position(from), found.head.as_ref()).await?;
        let replay = async {
            let is_there = self.store.replay_webhook(id, from, None).await?;
            if is_there { Ok(()) } else { Err(no_such_endpoint()) }
        };
        let done = format!("it gets the events after {from} again");
        self.audited(request, Change::replay(id, from), &done, replay).await?;
        found.state.position = from;
        found.state.progress.blocking = None;
        found.forgive();
        Answer::json(200, &self.view(&found))
    }

    /// Skips the event that an endpoint does not accept. Repeating the request changes nothing.
    pub(crate) async fn skip(&self, request: &Request<'_>, id: &EndpointId, body: &[u8]) -> Result<Answer, Problem> {
        let mut fields = Fields::parse(body, &Pointer::body())?;
        let event = fields.text("eventId");
        let faults = fields.end();
        let Some(event_id) = event.filter(|_| faults.is_empty()) else {
            return Err(Problem::for_body(&Pointer::body(), faults));
        };
        let mut found = self.find_placed(id).await?;
        match found.state.blocked_by(&event_id).cloned() {
            Some(blocking) => {
                let event = bounded(&event_id, MAX_EVENT_ID_BYTES);
                let (change, done) = (Change::skip(id, event.clone()), format!("the event {event} is skipped"));
                let by = request.caller();
                let skipped = SkippedEvent { at: self.clock.now(), event_id: event, by };
                let skip = self.skip_blocking(id, &mut found, &blocking, skipped);
                self.audited(request, change, &done, skip).await?;
            }
            None if found.state.has_skipped(&event_id) => {}
            None => return Err(not_blocking()),
        }
        Answer::json(200, &self.view(&found))
    }

    async fn skip_blocking(
        &self,
        id: &EndpointId,
        found: &mut Found,
        blocking: &BlockingEvent,
        skipped: SkippedEvent,
    ) -> Result<(), Problem> {
        if self.store.skip_webhook_event(id, &found.state, blocking, skipped.clone(), None).await? {
            found.state.position = blocking.after;
            found.state.progress.blocking = None;
            found.state.skipped.insert(0, skipped);
            found.state.skipped.truncate(REMEMBERED);
            found.forgive();
            return Ok(());
        }
        // The same request came at the same time.
        found.state = self.store.webhook_state(id).await?.ok_or_else(no_such_endpoint)?;
        if found.state.has_skipped(&blocking.event_id) { Ok(()) } else { Err(not_blocking()) }
    }

    /// Raises the generation of an endpoint's secret to the requested one. Both secrets sign for a day.
    pub(crate) async fn rotate(&self, request: &Request<'_>, id: &EndpointId, body: &[u8]) -> Result<Answer, Problem> {
        let mut fields = Fields::parse(body, &Pointer::body())?;
        let asked = fields.number("generation").map(str::parse::<u32>);
        if let Some(Err(_)) = asked {
            let why = "it must be a whole number, one more than secretGeneration";
            fields.fault(invalid("generation", ProblemKind::InvalidShape, &why));
        }
        let faults = fields.end();
        let Some(Ok(asked)) = asked.filter(|_| faults.is_empty()) else {
            return Err(Problem::for_body(&Pointer::body(), faults));
        };
        let (mut found, now) = (self.find(id).await?, self.clock.now());
        let generation = found.endpoint.generation;
        // Repeating the request changes nothing.
        if asked != generation.get() {
            let next = generation.next().filter(|next| next.get() == asked);
            let until = now.saturating_add(BOTH_SIGN_FOR);
            let Some(next) = next else { return Err(wrong_generation(generation)) };
            let rotate = async {
                if self.store.rotate_webhook_secret(id, generation, until, now).await? {
                    found.endpoint.generation = next;
                    (found.endpoint.previous_until, found.endpoint.updated_at) = (Some(until), now);
                    return Ok(());
                }
                // The same request came at the same time, or this request's first answer was lost.
                found = self.find(id).await?;
                let has = found.endpoint.generation;
                if has == next { Ok(()) } else { Err(wrong_generation(has)) }
            };
            self.audited(request, Change::rotate(id, asked), "rotated", rotate).await?;
        }
        Answer::json(200, &self.view(&found))
    }
}

fn wrong_generation(generation: SecretGeneration) -> Problem {
    let (has, next) = (generation.get(), generation.get().saturating_add(1));
    let detail = format!("The endpoint's secret has the generation {has}; send {next} to rotate it.");
    Problem::new(ProblemKind::WrongGeneration, detail).at("generation")
}

fn not_blocking() -> Problem {
    let detail = "The endpoint does not fail at this event; get the endpoint, and send failing.eventId.";
    Problem::new(ProblemKind::NotBlocking, detail).at("eventId")
}

fn ahead() -> Problem {
    let why = "it is ahead of the endpoint's cursor, and a replay only goes back";
    invalid("cursor", ProblemKind::InvalidCursor, &why)
}
