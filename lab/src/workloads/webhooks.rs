//! A receiver of webhooks, which is as unreliable as it may be, and what it must know in the end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use payments_machine::Stack;
use payments_machine::layers::random::Seed;
use payments_model::webhook::{EndpointId, EndpointUrl};
use payments_model::{EventFilter, UtcSecond};
use payments_store::{EndpointChoice, LogPosition};

use crate::laws::journal::known;
use crate::plans::faults::{FaultKind, Faults};
use crate::time::Time;
use crate::workloads::triggers::until;
use crate::world::bank::Bank;
use crate::world::receivers::{Reaction, Receivers};

/// The port of the receiver, on a network of its own.
const PORT: u16 = 7001;

/// The number of messages, of a thousand, that get a fault of the receiver.
const FAILING: u16 = 40;

/// The time until the last events arrive: the longest wait after a failure, and the next run.
const LONGEST_DELIVERY: TimeDelta = TimeDelta::hours(6);

/// Creates the endpoint of a receiver, which gets everything from the beginning.
pub(crate) async fn create(stack: &Stack, seed: Seed, time: Time, faults: &Faults) -> Result<Receivers> {
    let receivers = Receivers::default();
    let ((id, chosen), now) = (chosen()?, UtcSecond::new(time.now())?);
    let store = stack.store(stack.client());
    store
        .create_webhook_endpoint(
            &id,
            &chosen,
            LogPosition::BEGINNING,
            false,
            now.as_chrono(),
            store.endpoints_created().await?,
        )
        .await?;
    let (faults, mood) = (faults.clone(), Mutex::new(Mood { away_until: time.now(), random: seed.source("receiver") }));
    receivers.react(PORT, move |_| mood.lock().unwrap_or_else(PoisonError::into_inner).react(&faults, time.now()));
    Ok(receivers)
}

/// The endpoint, as its operator creates it once.
fn chosen() -> Result<(EndpointId, EndpointChoice)> {
    let url = EndpointUrl::loopback(&format!("http://127.0.0.1:{PORT}/hook"))?;
    Ok(("month".parse()?, EndpointChoice { url, description: String::new(), filter: EventFilter::default() }))
}

/// The state of the receiver.
struct Mood {
    away_until: DateTime<Utc>,
    random: Rng,
}

impl Mood {
    fn react(&mut self, faults: &Faults, now: DateTime<Utc>) -> Reaction {
        if !faults.has(FaultKind::ReceiverFailed) {
            return Reaction::Status(200);
        }
        let is_away = now < self.away_until;
        if !is_away && !faults.draw(FaultKind::ReceiverFailed, FAILING) {
            return self.slow(2_000);
        }
        match self.random.u8(0..6) {
            _ if is_away => Reaction::Status(503),
            0 => Reaction::Lost,
            1 => Reaction::RetryAfter(429, self.random.u32(1..300)),
            2 => {
                self.away_until = now + TimeDelta::minutes(self.random.i64(10..600));
                Reaction::Status(500)
            }
            3 => Reaction::Status(500),
            // Some of them longer than the sender waits.
            _ => self.slow(25_000),
        }
    }

    fn slow(&mut self, most_millis: u64) -> Reaction {
        Reaction::Slow(Duration::from_millis(self.random.u64(10..most_millis)))
    }
}

/// Waits until the receiver has all events that a reader of the log has seen, and returns the
/// violation of it or of its endpoint, if there is one.
pub(crate) async fn check(bank: &Bank) -> Option<String> {
    let Some(receivers) = &bank.receivers else { return None };
    let (wanted, lost) = {
        let state = bank.state();
        (state.consumer.seen.clone(), (state.lost_epoch, state.consumer.before.clone()))
    };
    let taken = || known(receivers.taken(PORT), &wanted, (lost.0, &lost.1));
    until(LONGEST_DELIVERY, async || taken().is_ok_and(|taken| taken.len() >= wanted.len())).await;
    let judged = taken().and_then(|taken| receivers.judge_taken(&taken, &wanted).map_err(|error| format!("{error:#}")));
    let judged = match survives(bank).await {
        Ok(()) => judged,
        Err(error) => Err(format!("{error:#}")),
    };
    judged.err().map(|error| format!("webhooks: {error}"))
}

/// Checks that the endpoint is as its operator created it, whatever was restored or lost meanwhile.
async fn survives(bank: &Bank) -> Result<()> {
    let (id, wanted) = chosen()?;
    let endpoint = bank.lambda.operator().webhook_endpoint(&id).await?.context("the endpoint is lost")?;
    let is_as_created = endpoint.chosen == wanted && endpoint.created_at == UtcSecond::new(bank.begin)?;
    ensure!(is_as_created && endpoint.disabled_at.is_none(), "the endpoint is another one: {endpoint:?}");
    Ok(())
}
