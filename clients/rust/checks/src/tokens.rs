//! Checks of access tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use scheduled_payments::{AccountFilter, ClientCredentials, Token};
use serde_json::json;

use crate::fake::{Fake, PAYMENT_ID, Planned, created, gateway_slow, planned};
use crate::suite::{checks, equal};
use crate::world::{World, builder, error_of, problem_of};

checks![token_required, forbidden, credentials, token_callback, token_renewed];

/// Returns an issuer's response.
fn token(text: &str, seconds: u64) -> Planned {
    planned(200, &json!({"access_token": text, "expires_in": seconds, "token_type": "Bearer"}))
}

async fn token_required(world: World) -> Result<()> {
    let bank = builder(&world.url).build()?;
    equal(error_of(bank.get("acc-1", PAYMENT_ID).await)?.status(), Some(401))
}

async fn forbidden(world: World) -> Result<()> {
    let bank = builder(&world.url).token(world.credentials(Some("payments/read"))).build()?;
    equal(bank.list("rs-none", &AccountFilter::default())?.all().await?, [])?;
    let problem = problem_of(bank.counts(Some(world.today), Some(world.today)).await)?;
    equal((problem.status, problem.kind()), (403, "forbidden"))?;
    ensure!(problem.detail.contains("payments/inspect"), "{problem}");
    Ok(())
}

async fn credentials(world: World) -> Result<()> {
    let bank = builder(&world.url).token(world.credentials(None)).build()?;
    equal(bank.counts(Some(world.today), Some(world.today)).await?.len(), 1)
}

async fn token_callback(world: World) -> Result<()> {
    let asked = Arc::new(AtomicUsize::new(0));
    let next = move || {
        let asked = Arc::clone(&asked);
        async move { Ok(["one", "two"][asked.fetch_add(1, Ordering::Relaxed)].to_owned()) }
    };
    let fake = Fake::with([gateway_slow(), created()], 0, |builder| builder.token(Token::from_fn(next))).await?;
    fake.bank.create("acc-1", "key-1", &world.order()).await?;
    let seen = fake.seen();
    let used: Vec<_> = seen.iter().map(|seen| seen.header("authorization")).collect();
    equal(used, ["Bearer one", "Bearer two"])
}

async fn token_renewed(world: World) -> Result<()> {
    let planned = [gateway_slow(), token("one", 3600), created(), created(), token("two", 3600), created()];
    let fake = Fake::new(planned).await?;
    let issuer = ClientCredentials {
        id: "id".to_owned(),
        secret: "pass:word".to_owned(),
        token_url: format!("{}/token", fake.url),
        scope: Some("payments/read a".to_owned()),
    };
    let bank = builder(&fake.url).token(issuer.clone()).timer(fake.timer.clone()).build()?;
    // The first token is asked for again after a pause of half a second, in which time passes.
    for (now, paused) in [(0, 1), (3539, 1), (3541, 1)] {
        fake.timer.set(now);
        bank.create("acc-1", "key-1", &world.order()).await?;
        equal(fake.timer.pauses().len(), paused)?;
    }
    let seen = fake.seen();
    let (asked, sent): (Vec<_>, Vec<_>) = seen.iter().partition(|seen| seen.path == "/token");
    let used: Vec<_> = sent.iter().map(|seen| seen.header("authorization")).collect();
    equal(used, ["Bearer one", "Bearer one", "Bearer two"])?;
    equal(asked.len(), 3)?;
    equal(&*asked[0].body, "grant_type=client_credentials&scope=payments%2Fread+a")?;
    equal(asked[0].header("authorization"), "Basic aWQ6cGFzczp3b3Jk")?;
    let shown = format!("{issuer:?} {bank:?}");
    ensure!(!shown.contains("pass") && !shown.contains("two"), "{shown}");
    Ok(())
}
