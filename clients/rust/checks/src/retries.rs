//! Checks of the requests that are sent again, and of their times.

use std::time::Duration;

use anyhow::{Result, ensure};
use scheduled_payments::Error;
use serde_json::json;

use crate::fake::{Cut, Fake, PAYMENT_ID, Planned, amended, created, cut, gateway_slow, planned, problem, throttled};
use crate::suite::{checks, equal};
use crate::world::{ONCE, World, attempts, builder, error_of, problem_of};

checks![
    retry_after,
    pauses_double,
    gateway_429,
    gateway_504,
    amend_retried,
    cut_connection,
    refused_connection,
    silent_server,
    internal_once,
    no_retry_of_4xx,
    attempts_bounded,
    time_bounded,
    gateway_error,
];

/// Fails unless the same request, with the same key, came this many times.
fn same(fake: &Fake, times: usize) -> Result<()> {
    let seen = fake.seen();
    equal(seen.len(), times)?;
    for one in &seen {
        equal((&one.path, &one.body), (&seen[0].path, &seen[0].body))?;
        equal((one.header("idempotency-key"), one.header("x-request-id")), ("key-1", "mine"))?;
    }
    Ok(())
}

/// Returns the id of the payment that is created in the end.
async fn create(world: &World, fake: &Fake) -> Result<String, Error> {
    let order = world.order_with(r#"{"n":1}"#).map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(fake.bank.request_id("mine").create("acc-1", "key-1", &order).await?.payment.payment_id)
}

async fn retry_after(world: World) -> Result<()> {
    let fake = Fake::new([throttled(7), created()]).await?;
    equal(create(&world, &fake).await?, PAYMENT_ID)?;
    same(&fake, 2)?;
    equal(fake.timer.pauses(), [7000])?;
    // Without the header, the problem says it.
    let unavailable = problem(503, "unavailable", &json!({"retryAfterSeconds": 3}));
    let fake = Fake::new([planned(503, &unavailable), created()]).await?;
    create(&world, &fake).await?;
    equal(fake.timer.pauses(), [3000])
}

async fn pauses_double(world: World) -> Result<()> {
    let fake = Fake::new([throttled(2), throttled(2), throttled(2), created()]).await?;
    create(&world, &fake).await?;
    equal(fake.timer.pauses(), [2000, 4000, 8000])?;
    let fake = Fake::with([throttled(2), throttled(2), created()], u32::MAX, |builder| builder).await?;
    create(&world, &fake).await?;
    equal(fake.timer.pauses(), [2500, 5000])
}

async fn gateway_429(world: World) -> Result<()> {
    let fake = Fake::new([planned(429, &json!({"message": "Too Many Requests"})), created()]).await?;
    create(&world, &fake).await?;
    same(&fake, 2)?;
    equal(fake.timer.pauses(), [500])
}

async fn gateway_504(world: World) -> Result<()> {
    let fake = Fake::new([gateway_slow(), gateway_slow(), created()]).await?;
    create(&world, &fake).await?;
    same(&fake, 3)
}

async fn amend_retried(world: World) -> Result<()> {
    let fake = Fake::new([throttled(1), cut(Cut::Before), amended()]).await?;
    let bank = fake.bank.request_id("mine");
    let answer = bank.amend("acc-1", PAYMENT_ID, "key-1", &world.order_with(r#"{"n":1}"#)?, 7).await?;
    equal((&*answer.payment.payment_id, answer.replayed), (PAYMENT_ID, true))?;
    same(&fake, 3)?;
    equal(fake.seen().iter().map(|seen| seen.header("if-match").to_owned()).collect::<Vec<_>>(), [r#""7""#; 3])
}

async fn cut_connection(world: World) -> Result<()> {
    let fake = Fake::new([cut(Cut::Before), cut(Cut::Within), created()]).await?;
    equal(create(&world, &fake).await?, PAYMENT_ID)?;
    same(&fake, 3)?;
    let twice = |builder: scheduled_payments::Builder| builder.retries(attempts(2));
    let fake = Fake::with([cut(Cut::Before), cut(Cut::Before)], 0, twice).await?;
    let error = error_of(create(&world, &fake).await)?;
    ensure!(matches!(error, Error::NoAnswer { .. }) && error.status().is_none(), "{error:?}");
    Ok(())
}

async fn refused_connection(_: World) -> Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    drop(listener);
    let bank = builder(&format!("http://{address}")).retries(ONCE).build()?;
    let error = error_of(bank.calendars().await)?;
    ensure!(matches!(&error, Error::NoAnswer { host, .. } if *host == address), "{error:?}");
    ensure!(error.to_string().contains("refused"), "{error}");
    Ok(())
}

async fn silent_server(world: World) -> Result<()> {
    let soon = |builder: scheduled_payments::Builder| builder.retries(attempts(2)).timeout(Duration::from_millis(200));
    let fake = Fake::with([cut(Cut::Never), cut(Cut::Never)], 0, soon).await?;
    let error = error_of(create(&world, &fake).await)?;
    ensure!(matches!(error, Error::NoAnswer { .. }) && error.status().is_none(), "{error:?}");
    equal(fake.timer.pauses(), [500])?;
    same(&fake, 2)
}

async fn internal_once(world: World) -> Result<()> {
    let internal = planned(500, &problem(500, "internal", &json!({"requestId": "r-1"})));
    let fake = Fake::new([internal.clone(), created()]).await?;
    create(&world, &fake).await?;
    same(&fake, 2)?;
    let unnamed = planned(500, &json!({"message": "Internal Server Error"}));
    let fake = Fake::new([internal, gateway_slow(), unnamed, created()]).await?;
    equal(error_of(create(&world, &fake).await)?.status(), Some(500))?;
    same(&fake, 3)
}

async fn no_retry_of_4xx(world: World) -> Result<()> {
    for status in [400, 401, 403, 404, 409, 412, 413, 415, 422, 428] {
        let fake = Fake::new([planned(status, &problem(status, "some", &json!({}))), created()]).await?;
        equal(problem_of(create(&world, &fake).await)?.status, status)?;
        same(&fake, 1)?;
    }
    Ok(())
}

fn four_times(seconds: u64) -> Vec<Planned> {
    vec![throttled(seconds); 4]
}

async fn attempts_bounded(world: World) -> Result<()> {
    let fake = Fake::with(four_times(1), 0, |builder| builder.retries(attempts(3))).await?;
    equal(problem_of(create(&world, &fake).await)?.kind(), "throttled")?;
    same(&fake, 3)?;
    equal(fake.timer.pauses(), [1000, 2000])
}

async fn time_bounded(world: World) -> Result<()> {
    // The default is a minute.
    let fake = Fake::new(four_times(10)).await?;
    equal(problem_of(create(&world, &fake).await)?.retry_after, Some(Duration::from_secs(10)))?;
    same(&fake, 3)?;
    equal(fake.timer.pauses(), [10_000, 20_000])
}

async fn gateway_error(world: World) -> Result<()> {
    let too_large = "Request Entity Too Large";
    for (status, body, message) in [(413, json!({"message": too_large}), too_large), (502, json!("<p>"), "<p>")] {
        let fake = Fake::new([planned(status, &body)]).await?;
        match error_of(create(&world, &fake).await)? {
            Error::Gateway { status: found, detail, request_id: None, .. } => {
                equal((found, &*detail), (status, message))?;
            }
            other => anyhow::bail!("{other:?}"),
        }
    }
    Ok(())
}
