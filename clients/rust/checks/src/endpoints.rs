//! Checks of webhook endpoints at the running bank.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use chrono::Utc;
use scheduled_payments::{EndpointOrder, Event, TOLERANCE, verify};

use crate::fake::{Fake, Seen, planned};
use crate::suite::{checks, equal};
use crate::world::{World, problem_of};

checks![endpoint_put, endpoint_test, endpoint_replay];

/// The waits for the running bank: it sends a test at once, and events within some seconds.
const POLLS: usize = 1000;
const BETWEEN_POLLS: Duration = Duration::from_millis(20);

/// Returns a server that accepts this many messages.
async fn receiver(messages: usize) -> Result<Fake> {
    Fake::new(vec![planned(200, &serde_json::Value::Null); messages]).await
}

fn order(fake: &Fake) -> EndpointOrder {
    EndpointOrder { url: format!("{}/hook", fake.url), ..EndpointOrder::default() }
}

/// Returns the verified events of a request.
#[expect(clippy::disallowed_methods, reason = "the bank signs by the machine's clock")]
fn verified(seen: &Seen, secret: &str) -> Result<Vec<Event>> {
    Ok(verify(&[secret], &seen.headers, seen.body.as_bytes(), Utc::now(), TOLERANCE)?)
}

/// Waits for a request whose events are as wanted.
async fn await_events(fake: &Fake, secret: &str, is_wanted: impl Fn(usize, &[Event]) -> bool) -> Result<()> {
    for _ in 0..POLLS {
        for (number, seen) in fake.seen().iter().enumerate() {
            if is_wanted(number, &verified(seen, secret)?) {
                return Ok(());
            }
        }
        tokio::time::sleep(BETWEEN_POLLS).await;
    }
    anyhow::bail!("not within {:?}", BETWEEN_POLLS * 1000)
}

async fn endpoint_put(world: World) -> Result<()> {
    let bank = &world.bank;
    let order = EndpointOrder {
        url: "http://127.0.0.1:9/a".to_owned(),
        types: BTreeSet::from(["payment.failed".to_owned()]),
        accounts: BTreeSet::from(["rs-1".to_owned()]),
        disabled: true,
        ..EndpointOrder::default()
    };
    let (_, is_new) = bank.put_webhook_endpoint("rs-put", &order).await?;
    let (endpoint, is_new_again) = bank.put_webhook_endpoint("rs-put", &order).await?;
    equal((is_new, is_new_again), (true, false))?;
    equal((&endpoint.url, &endpoint.types, &endpoint.accounts), (&order.url, &order.types, &order.accounts))?;
    equal((endpoint.status.as_str(), endpoint.disabled_by.as_deref()), ("disabled", Some("operator")))?;
    equal(bank.webhook_endpoint("rs-put").await?.id, "rs-put")?;
    equal(bank.webhook_endpoints().await?.iter().filter(|one| one.id == "rs-put").count(), 1)?;
    bank.delete_webhook_endpoint("rs-put").await?;
    for problem in [
        problem_of(bank.webhook_endpoint("rs-put").await)?,
        problem_of(bank.delete_webhook_endpoint("rs-put").await)?,
        problem_of(bank.webhook_secrets("rs-put").await)?,
        problem_of(bank.test_webhook_endpoint("rs-put").await)?,
    ] {
        equal((problem.status, problem.kind()), (404, "no-such-endpoint"))?;
    }
    let invalid = EndpointOrder { url: "ftp://a".to_owned(), ..EndpointOrder::default() };
    equal(problem_of(bank.put_webhook_endpoint("rs-put", &invalid).await)?.kind(), "invalid-url")
}

async fn endpoint_test(world: World) -> Result<()> {
    let (bank, fake) = (&world.bank, receiver(2).await?);
    // No event but the tests.
    let accounts = BTreeSet::from(["rs-test".to_owned()]);
    bank.put_webhook_endpoint("rs-test", &EndpointOrder { accounts, ..order(&fake) }).await?;
    let secret = bank.webhook_secrets("rs-test").await?.pop().context("no secret")?;
    equal((secret.generation, secret.until), (1, None))?;
    ensure!(!format!("{secret:?}").contains(&secret.secret));
    ensure!(bank.test_webhook_endpoint("rs-test").await?.test_asked_at.is_some());
    let is_test =
        |events: &[Event]| events.iter().map(|event| (event.r#type.as_str(), event.v)).eq([("webhook.test", 1)]);
    await_events(&fake, &secret.secret, |_, events| is_test(events)).await?;
    for _ in 0..2 {
        equal(bank.rotate_webhook_secret("rs-test", 2).await?.secret_generation, 2)?;
    }
    equal(problem_of(bank.rotate_webhook_secret("rs-test", 4).await)?.kind(), "wrong-generation")?;
    let secrets = bank.webhook_secrets("rs-test").await?;
    let [latest, old] = &secrets[..] else { anyhow::bail!("{secrets:?}") };
    equal((latest.generation, latest.until, old.generation, &old.secret), (2, None, 1, &secret.secret))?;
    ensure!(old.until.is_some());
    bank.test_webhook_endpoint("rs-test").await?;
    await_events(&fake, &old.secret, |number, events| number == 1 && is_test(events)).await?;
    ensure!(is_test(&verified(&fake.seen()[1], &latest.secret)?));
    Ok(bank.delete_webhook_endpoint("rs-test").await?)
}

async fn endpoint_replay(world: World) -> Result<()> {
    let (bank, fake) = (&world.bank, receiver(9).await?);
    let cursor = bank.events(None, Some(1)).await?.next_cursor;
    let second = bank.events(Some(&cursor), Some(1)).await?.events.pop().context("no event")?;
    bank.put_webhook_endpoint("rs-replay", &order(&fake)).await?;
    bank.replay_webhook_events("rs-replay", &cursor).await?;
    let secret = bank.webhook_secrets("rs-replay").await?.pop().context("no secret")?;
    // Events of different payments come in parallel.
    await_events(&fake, &secret.secret, |_, events| events.contains(&second)).await?;
    equal(problem_of(bank.replay_webhook_events("rs-replay", "9.1.0").await)?.kind(), "cursor-gone")?;
    equal(problem_of(bank.skip_webhook_event("rs-replay", &second.id).await)?.kind(), "not-blocking")?;
    Ok(bank.delete_webhook_endpoint("rs-replay").await?)
}
