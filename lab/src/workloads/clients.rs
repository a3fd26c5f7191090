//! The clients: the feed, payments through the day, amendments, cancels, and creates that are repeated after days.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use fastrand::Rng;
use payments_bank::Functions;
use payments_machine::client::{Reply, Request};
use payments_machine::layers::random::happens;
use payments_machine::{Handlers as _, event};
use payments_model::UtcSecond;
use serde_json::json;
use tokio::task::spawn_local;

use crate::facts::intent::Intent;
use crate::plans::faults::FaultKind;
use crate::time::CLOCKS_AGREE;
use crate::time::{pause, to_next};
use crate::world::bank::Bank;

/// The most tries of a client's request, with waits of 1, 2, 4, … seconds, at most ten minutes each.
pub(crate) const TRIES: u32 = 16;

/// The longest wait.
const LONGEST_WAIT: TimeDelta = TimeDelta::minutes(10);

/// The number of accounts.
pub(crate) const ACCOUNTS: usize = 12;

/// The entries of a batch.
const BATCH: usize = 10;

/// The work that begins once a payment is created, at its place among the intents. Payments are due
/// before that instant.
pub(crate) type Then = fn(Arc<Bank>, usize, DateTime<Utc>);

/// Asks for `payments` a day, as clients, until `end`, and `then` for something else. A payment is due before the end.
pub(crate) async fn run(bank: Arc<Bank>, payments: usize, end: DateTime<Utc>, then: Then) {
    let mut random = bank.seed.source("clients");
    while bank.time.now() < end {
        let morning = bank.time.now();
        let feed = payments / 2;
        spawn_local(feed_of(Arc::clone(&bank), feed));
        for _ in feed..payments {
            let (bank, mut own) = (Arc::clone(&bank), Rng::with_seed(random.u64(..)));
            let wait = TimeDelta::seconds(random.i64(2 * 3_600..17 * 3_600));
            let left = (end - morning - wait).num_seconds();
            if left < 3_600 {
                continue;
            }
            spawn_local(async move {
                pause(wait).await;
                single(&bank, &mut own, (left, end, then)).await;
            });
        }
        pause(TimeDelta::days(1)).await;
    }
}

/// Sends the morning's feed: payments of this day, in batches.
async fn feed_of(bank: Arc<Bank>, payments: usize) {
    pause(TimeDelta::hours(1)).await;
    let today = UtcSecond::new(bank.time.now()).map(|now| bank.zone.date_of(now).to_string()).unwrap_or_default();
    let mut random = bank.seed.source(&format!("feed {today}"));
    let places: Vec<usize> = (0..payments).map(|_| new_intent(&bank, &mut random, today.clone())).collect();
    for batch in places.chunks(BATCH) {
        let mut left = batch.to_vec();
        for tried in 0..TRIES {
            let entries: Vec<_> = left.iter().map(|place| bank.state().intents[*place].entry()).collect();
            let request = Request::post("/payment-batches").json(&json!({ "payments": entries }));
            if let Some(reply) = ask(&bank, &request).await
                && reply.status == 200
                && let Ok(body) = reply.json()
            {
                let results = body["results"].as_array().cloned().unwrap_or_default();
                if results.len() != left.len() {
                    bank.complain(format!("a batch of {} was answered with {} results", left.len(), results.len()));
                }
                let ends = left.iter().zip(results);
                left = ends
                    .filter_map(|(place, result)| {
                        let status =
                            result["statusCode"].as_u64().and_then(|status| status.try_into().ok()).unwrap_or(500);
                        let id = result["payment"]["paymentId"].as_str().map(str::to_owned);
                        (!told(&bank, *place, status, id)).then_some(*place)
                    })
                    .collect();
            }
            if left.is_empty() {
                break;
            }
            wait(tried).await;
        }
    }
}

/// Creates one payment, and perhaps amends or cancels it, or repeats the create after days.
async fn single(bank: &Arc<Bank>, random: &mut Rng, (left, end, then): (i64, DateTime<Utc>, Then)) {
    let now = bank.time.now();
    let due = now + TimeDelta::seconds(random.i64(60..left.min(12 * 86_400)));
    let scheduled_for = if random.u8(0..3) == 0 {
        UtcSecond::new(due).map(|due| bank.zone.date_of(due).to_string()).unwrap_or_default()
    } else {
        due.to_rfc3339_opts(SecondsFormat::Secs, true)
    };
    let place = new_intent(bank, random, scheduled_for);
    create(bank, place).await;
    then(Arc::clone(bank), place, end);
    if bank.faults.draw(FaultKind::KeyReused, 30) {
        reuse(bank, place).await;
    }
    if happens(random, 80) {
        pause(TimeDelta::seconds(random.i64(1..2 * 86_400))).await;
        cancel(bank, place).await;
    } else if happens(random, 60) {
        // At the last moment: while the sweep claims the payment.
        let claimed = claimed_at(due, random);
        pause(claimed - bank.time.now()).await;
        cancel(bank, place).await;
    } else if happens(random, 40) {
        pause(TimeDelta::seconds(random.i64(1..3_600))).await;
        correct(bank, place, random).await;
    }
    if bank.faults.draw(FaultKind::CreateRepeatedLate, 40) {
        pause(TimeDelta::seconds(random.i64(3_600..5 * 86_400))).await;
        create(bank, place).await;
    }
}

fn new_intent(bank: &Bank, random: &mut Rng, scheduled_for: String) -> usize {
    let mut state = bank.state();
    let place = state.intents.len();
    let amount = 1_000 + u64::try_from(place).unwrap_or(0);
    let intent = Intent::new(format!("acc-{}", random.usize(0..ACCOUNTS)), amount, scheduled_for);
    state.intents.push(intent.at_bank_of(bank.tz.clone()));
    place
}

/// Corrects a payment: cancels it, and creates another one a day later.
async fn correct(bank: &Arc<Bank>, place: usize, random: &mut Rng) {
    cancel(bank, place).await;
    let is_cancelled = bank.state().intents[place].cancelled;
    if is_cancelled {
        let due = bank.time.now() + TimeDelta::seconds(random.i64(3_600..86_400));
        let corrected = new_intent(bank, random, due.to_rfc3339_opts(SecondsFormat::Secs, true));
        create(bank, corrected).await;
    }
}

/// Draws when about the sweep claims a payment, which comes every five minutes.
pub(crate) fn claimed_at(due: DateTime<Utc>, random: &mut Rng) -> DateTime<Utc> {
    due + to_next(TimeDelta::minutes(5), due) + TimeDelta::milliseconds(random.i64(-500..2_500))
}

pub(crate) async fn create(bank: &Arc<Bank>, place: usize) {
    let intent = bank.intent(place);
    asked(bank, &Request::create(&intent.account, &intent.key, &intent.body()), |reply| {
        let id = reply.json().ok().and_then(|body| body["paymentId"].as_str().map(str::to_owned));
        told(bank, place, reply.status, id).then_some(())
    })
    .await;
}

/// Creates payments that are due together.
pub(crate) async fn create_all(bank: &Arc<Bank>, payments: usize, due: DateTime<Utc>) {
    let mut random = bank.seed.source("payments due together");
    for _ in 0..payments {
        let place = new_intent(bank, &mut random, due.to_rfc3339_opts(SecondsFormat::Secs, true));
        create(bank, place).await;
    }
}

/// Uses a payment's idempotency key for another payment, which must be refused.
async fn reuse(bank: &Arc<Bank>, place: usize) {
    let mut other = bank.intent(place);
    if other.accepted.is_none() {
        return;
    }
    other.amount += 1_000_000;
    asked(bank, &Request::create(&other.account, &other.key, &other.body()), |reply| match reply.status {
        422 => Some(()),
        status if is_for_later(status) => None,
        status => {
            bank.complain(format!("a key that was used again was answered {status}"));
            Some(())
        }
    })
    .await;
}

/// Notes what a client was told of a create. Returns whether that is final.
fn told(bank: &Bank, place: usize, status: u16, id: Option<String>) -> bool {
    let mut complaint = None;
    let is_final = {
        let mut state = bank.state();
        let intent = &mut state.intents[place];
        match (status, id) {
            (200 | 201, Some(id)) => {
                if intent.accepted.as_ref().is_some_and(|known| *known != id) {
                    complaint = Some(format!("payment {} was {:?} and is {id}", intent.amount, intent.accepted));
                }
                intent.accepted = Some(id);
                true
            }
            (status, _) if is_for_later(status) => false,
            // A payment is refused if its date ended while the client tried.
            (422, _) if intent.accepted.is_none() && intent.has_passed(bank.time.now() + CLOCKS_AGREE) => {
                intent.refused = true;
                true
            }
            (status, id) => {
                complaint = Some(format!("the create of {} was answered {status} {id:?}", intent.amount));
                true
            }
        }
    };
    complaint.into_iter().for_each(|complaint| bank.complain(complaint));
    is_final
}

/// Cancels the payment of an intent, if it was accepted.
pub(crate) async fn cancel(bank: &Arc<Bank>, place: usize) {
    let Intent { account, accepted: Some(id), .. } = bank.intent(place) else { return };
    bank.state().cancel_asked.insert(id.clone());
    asked(bank, &Request::cancel(&account, &id), |reply| {
        match reply.status {
            200 => bank.state().intents[place].cancelled = true,
            409 if bank.is_scheduled(place) => bank.complain(format!("the cancel of {id} was refused")),
            409 => {}
            status if is_for_later(status) => return None,
            // A restore left nothing of the payment meanwhile.
            404 if bank.switches.is_restoring() || bank.state().lost.contains(&id) => {}
            other => bank.complain(format!("the cancel of {id} was answered {other}")),
        }
        Some(())
    })
    .await;
}

/// Sends a request until its answer is final, or the client gives up.
pub(crate) async fn asked<T>(
    bank: &Arc<Bank>,
    request: &Request,
    is_final: impl FnMut(Reply) -> Option<T>,
) -> Option<T> {
    asked_as(bank, event::DEVELOPMENT_CLIENT, request, is_final).await
}

/// The same as a client.
pub(crate) async fn asked_as<T>(
    bank: &Arc<Bank>,
    client: &str,
    request: &Request,
    mut is_final: impl FnMut(Reply) -> Option<T>,
) -> Option<T> {
    for tried in 0..TRIES {
        if let Some(done) = ask_as(bank, client, request).await.and_then(&mut is_final) {
            return Some(done);
        }
        wait(tried).await;
    }
    None
}

/// Whether the same request may succeed later.
pub(crate) fn is_for_later(status: u16) -> bool {
    matches!(status, 500 | 502..=504 | 429)
}

pub(crate) async fn wait(tried: u32) {
    pause(TimeDelta::seconds(1_i64 << tried.min(10)).min(LONGEST_WAIT)).await;
}

/// Sends a request. No reply comes if the function was killed, or the reply is lost.
pub(crate) async fn ask(bank: &Arc<Bank>, request: &Request) -> Option<Reply> {
    ask_as(bank, event::DEVELOPMENT_CLIENT, request).await
}

/// Sends a request as a client.
async fn ask_as(bank: &Arc<Bank>, client: &str, request: &Request) -> Option<Reply> {
    if bank.switches.is_restoring() {
        // The API is closed: 429.
        return None;
    }
    let authorizer = event::all_scopes(client);
    let (function, event) = request.event("month", bank.time.now(), &authorizer).ok()?;
    let (path, faults) = (event.raw_path.clone().unwrap_or_default(), bank.faults.of_calls());
    let run = |functions: Arc<Functions>| async move { functions.invoke(function, event).await };
    let done = bank.lambda.invoke(function.name(), run).await;
    // API Gateway answers for a function that fails.
    bank.metrics.answered(done.as_ref().map_or(503, |response| response.status_code.try_into().unwrap_or(500)));
    let response = done.ok()?;
    if response.status_code >= 500
        && bank.is_calm(faults)
        && !bank.state().intents.iter().any(|intent| intent.is_unreadable_at(&path))
    {
        bank.complain(format!(
            "{} answered {} without a fault: {:?}",
            function.name(),
            response.status_code,
            response.body
        ));
    }
    if bank.faults.draw(FaultKind::RequestRepeated, 15) {
        return None;
    }
    Reply::from_response(response).ok()
}
