//! Checks of responses that no bank sends, but a broken or hostile intermediary could.

use std::time::Duration;

use anyhow::{Result, ensure};
use scheduled_payments::{AccountFilter, BatchEntry, ClientCredentials, DueFilter, Error, Token};
use serde_json::{Value, json};

use crate::batches::{created, entries, keys, rejected, results};
use crate::fake::{self, Cut, Fake, Planned, cut, payment, planned, problem};
use crate::suite::{checks, equal};
use crate::world::{ONCE, World, attempts, builder, error_of, problem_of};

checks![
    broken_success,
    odd_amounts,
    broken_problem,
    odd_retry_after,
    broken_token,
    batch_mismatch,
    cursor_stuck,
    slow_body,
];

/// Fails if a call did not end in a gateway error with this status.
fn is_broken<T>(called: Result<T, Error>, status: u16) -> Result<()> {
    let error = error_of(called)?;
    ensure!(matches!(error, Error::Gateway { .. }), "{error:?}");
    equal(error.status(), Some(status))
}

/// Returns a response with a text.
fn text(status: u16, text: &str) -> Planned {
    planned(status, &Value::from(text))
}

async fn broken_success(world: World) -> Result<()> {
    let deep = "[".repeat(100_000);
    for body in ["<html>", "", "[]", "null", "5", r#""x""#, "{}", r#"{"a": NaN}"#, &deep] {
        let fake = Fake::new([text(201, body), text(200, body), text(200, body), fake::created()]).await?;
        is_broken(fake.bank.create("acc-1", "key-1", &world.order()).await, 201)?;
        is_broken(fake.bank.list("acc-1", &AccountFilter::default())?.all().await, 200)?;
        is_broken(fake.bank.events(None, None).await, 200)?;
        equal(fake.seen().len(), 3)?;
    }
    Ok(())
}

async fn odd_amounts(world: World) -> Result<()> {
    for amount in [r#""1""#, "1.5", "NaN", "true", "[1]"] {
        let odd = |value: &Value| value.to_string().replace("12050", amount);
        let at = "2090-06-15T09:00:00Z";
        let event = json!({"v": 1, "id": "1", "type": "x", "at": at, "epoch": 1, "amountMinor": 12050});
        let page = odd(&json!({"payments": [payment()], "nextCursor": null}));
        let events = odd(&json!({"events": [event], "nextCursor": "1.2.0", "hasMore": false}));
        let planned = [text(201, &odd(&payment())), text(200, &page), text(200, &page), text(200, &events)];
        let fake = Fake::new(planned).await?;
        is_broken(fake.bank.create("acc-1", "key-1", &world.order()).await, 201)?;
        is_broken(fake.bank.list("acc-1", &AccountFilter::default())?.all().await, 200)?;
        is_broken(fake.bank.due(world.day(0), &DueFilter::default()).all().await, 200)?;
        is_broken(fake.bank.events(None, None).await, 200)?;
    }
    Ok(())
}

async fn broken_problem(world: World) -> Result<()> {
    let fault = json!({"pointer": 1, "type": "x", "detail": "y"});
    for errors in [json!(5), json!([1]), json!([{}]), json!([fault]), json!({})] {
        let fake = Fake::new([planned(422, &problem(422, "invalid-body", &json!({"errors": errors})))]).await?;
        is_broken(fake.bank.create("acc-1", "key-1", &world.order()).await, 422)?;
    }
    Ok(())
}

async fn odd_retry_after(world: World) -> Result<()> {
    for seconds in [json!("x"), json!([1]), json!(-5), json!(null)] {
        let odd = json!({"retryAfterSeconds": seconds});
        let fake = Fake::new([planned(503, &problem(503, "throttled", &odd)), fake::created()]).await?;
        fake.bank.create("acc-1", "key-1", &world.order()).await?;
        equal(fake.timer.pauses(), [500])?;
        let busy = rejected("a", 503, "throttled", &odd);
        let fake = Fake::new([results(&[busy]), results(&[created("a")])]).await?;
        let found = fake.bank.create_account_batch("acc-1", &entries(&world, "a")).await?;
        equal(found[0].status_code, 201)?;
        equal(fake.timer.pauses(), [500])?;
    }
    let odd = problem(503, "throttled", &json!({"retryAfterSeconds": "x"}));
    let fake = Fake::with([planned(503, &odd)], 0, |builder| builder.retries(ONCE)).await?;
    let problem = problem_of(fake.bank.create("acc-1", "key-1", &world.order()).await)?;
    equal((problem.kind(), problem.retry_after), ("throttled", None))
}

async fn broken_token(world: World) -> Result<()> {
    let expiring = |seconds: Value| json!({"access_token": "t", "expires_in": seconds});
    let odd = [json!("soon"), json!(-1), json!([60]), json!(true)].map(expiring);
    let others = [json!("x"), json!(5), json!("[]"), json!({}), json!({"access_token": 5})];
    for body in others.into_iter().chain(odd) {
        let fake = Fake::new([planned(200, &body), fake::created()]).await?;
        let token_url = format!("{}/token", fake.url);
        let issuer = ClientCredentials { id: "id".to_owned(), secret: "secret".to_owned(), token_url, scope: None };
        let bank = builder(&fake.url).token(Token::from(issuer)).retries(ONCE).build()?;
        is_broken(bank.create("acc-1", "key-1", &world.order()).await, 200)?;
        equal(fake.seen().len(), 1)?;
    }
    Ok(())
}

async fn batch_mismatch(world: World) -> Result<()> {
    let (a, b) = (created("a"), created("b"));
    let sent = entries(&world, "ab");
    let other = rejected("b", 422, "x", &json!({}));
    for odd in [
        vec![],
        vec![a.clone()],
        vec![a.clone(), b.clone(), a.clone()],
        vec![b.clone(), a.clone()],
        vec![a.clone(), created("c")],
        vec![other, b],
    ] {
        let fake = Fake::new([results(&odd)]).await?;
        is_broken(fake.bank.create_account_batch("acc-1", &sent).await, 200)?;
    }
    let other_account = results(std::slice::from_ref(&a));
    let fake = Fake::new([other_account.clone(), other_account]).await?;
    let (account_id, idempotency_key) = ("acc-9".to_owned(), "a".to_owned());
    let of_another = BatchEntry { account_id, idempotency_key, order: world.order() };
    is_broken(fake.bank.create_batch(&[of_another]).await, 200)?;
    is_broken(fake.bank.create_account_batch("acc-9", &entries(&world, "a")).await, 200)?;
    // The key of an unreadable entry is unknown.
    let unnamed = json!({"statusCode": 422, "problem": problem(422, "x", &json!({}))});
    let fake = Fake::new([results(&[a.clone(), unnamed])]).await?;
    equal(fake.bank.create_account_batch("acc-1", &sent).await?[1].status_code, 422)?;
    // The repetition's entries for other keys are ignored, and the results of the first request stay.
    let busy = rejected("b", 503, "throttled", &json!({"retryAfterSeconds": 1}));
    let fake = Fake::new([results(&[a.clone(), busy]), results(&[a])]).await?;
    let found = fake.bank.create_account_batch("acc-1", &sent).await?;
    equal(found.iter().map(|result| result.status_code).collect::<Vec<_>>(), [201, 503])?;
    let sent = fake.seen().iter().map(|seen| keys(&seen.body)).collect::<Result<Vec<_>>>()?;
    equal(sent, ["ab", "b"])
}

async fn cursor_stuck(_: World) -> Result<()> {
    let page = planned(200, &json!({"payments": [payment()], "nextCursor": "same"}));
    let fake = Fake::new([page.clone(), page.clone(), page]).await?;
    is_broken(fake.bank.list("acc-1", &AccountFilter::default())?.all().await, 200)?;
    equal(fake.seen().len(), 2)?;
    let still = |has_more: bool| planned(200, &json!({"events": [], "nextCursor": "1.2.0", "hasMore": has_more}));
    let fake = Fake::new([still(true), still(false)]).await?;
    is_broken(fake.bank.events(Some("1.2.0"), None).await, 200)?;
    equal(&*fake.bank.events(Some("1.2.0"), None).await?.next_cursor, "1.2.0")
}

async fn slow_body(world: World) -> Result<()> {
    // A test of the client has the paused time in which a silent transport ends after 35 seconds.
    let soon = |builder: scheduled_payments::Builder| builder.retries(attempts(1)).timeout(Duration::from_millis(200));
    let fake = Fake::with([cut(Cut::Slow)], 0, soon).await?;
    let error = error_of(fake.bank.create("acc-1", "key-1", &world.order()).await)?;
    ensure!(matches!(error, Error::NoAnswer { .. }), "{error:?}");
    equal(fake.seen().len(), 1)
}
