//! Bodies with faults: all of them are named at once, and an entry of a batch is known by its own key.

use anyhow::{Context as _, Result};
use payments_machine::{Handlers as _, event};
use payments_model::MAX_AMOUNT_MINOR;
use payments_tests::{Ask, Reply, World};
use serde_json::{Value, json};

fn rent() -> Value {
    json!({ "payeeAccountId": "landlord", "amountMinor": 120_000, "currency": "GBP", "scheduledFor": "2026-12-01" })
}

fn entry(key: &str) -> Value {
    let mut entry = rent();
    entry["idempotencyKey"] = json!(key);
    entry
}

/// The place and type of each fault of a body.
fn faults(problem: &Value) -> Vec<(String, String)> {
    let text = |fault: &Value, name: &str| fault[name].as_str().unwrap_or_default().to_owned();
    let kind = |fault: &Value| text(fault, "type").rsplit(':').next().unwrap_or_default().to_owned();
    let errors = problem["errors"].as_array().into_iter().flatten();
    errors.map(|fault| (text(fault, "pointer"), kind(fault))).collect()
}

fn pairs(faults: &[(&str, &str)]) -> Vec<(String, String)> {
    faults.iter().map(|(pointer, kind)| ((*pointer).to_owned(), (*kind).to_owned())).collect()
}

#[tokio::test]
async fn all_faults_of_a_body_are_named_at_once() -> Result<()> {
    let world = World::open().await?;
    let bodies = [
        (
            json!({}),
            vec![
                ("/payeeAccountId", "invalid-shape"),
                ("/amountMinor", "invalid-shape"),
                ("/currency", "invalid-shape"),
                ("/scheduledFor", "invalid-shape"),
            ],
        ),
        (
            json!({ "payeeAccountId": "tenant", "amountMinor": 1.5, "currency": "gbp", "scheduledFor": "soon", "a/b": 1 }),
            vec![
                ("/a~1b", "invalid-shape"),
                ("/payeeAccountId", "invalid-payee"),
                ("/amountMinor", "invalid-amount"),
                ("/currency", "invalid-currency"),
                ("/scheduledFor", "invalid-date"),
            ],
        ),
        // What only a new payment may not have. Dates and sizes are looked at once all else is well-formed.
        (
            json!({
                "payeeAccountId": "landlord", "amountMinor": MAX_AMOUNT_MINOR, "currency": "XAU",
                "scheduledFor": "2026-11-01", "data": "x".repeat(9_000),
            }),
            vec![("/currency", "invalid-currency"), ("/data", "payment-too-large"), ("/scheduledFor", "date-passed")],
        ),
        (
            json!({ "payeeAccountId": "", "amountMinor": MAX_AMOUNT_MINOR + 1, "currency": "XAU", "scheduledFor": 1 }),
            vec![
                ("/scheduledFor", "invalid-shape"),
                ("/payeeAccountId", "invalid-payee"),
                ("/amountMinor", "invalid-amount"),
                ("/currency", "invalid-currency"),
            ],
        ),
        (json!([]), vec![("", "invalid-shape")]),
    ];
    for (body, want) in bodies {
        let reply = world.send(Ask::create("tenant", "rent-1", &body)).await?;
        assert_eq!(faults(&reply.body), pairs(&want), "{reply}");
        // The first is the problem itself.
        let first = (&reply.body["errors"][0]["type"], &reply.body["errors"][0]["detail"]);
        assert_eq!(first, (&reply.body["type"], &reply.body["detail"]), "{reply}");
        assert!(world.heads("tenant").await?.is_empty());
    }
    let cancel = world
        .send(Ask::post("/accounts/tenant/payments/61ecab5a-6d56-55ab-977e-6dab3db8c000/cancel").json(&rent()))
        .await?;
    assert_eq!(faults(&cancel.body).len(), 4, "{cancel}");
    Ok(())
}

#[tokio::test]
async fn json_that_breaks_off_is_no_json_whatever_it_has_before() -> Result<()> {
    let world = World::open().await?;
    for body in ["{", "\"abc", "nul", r#"{"a":1}x"#, "[", "[1,2", "[]x", "1 2"] {
        let asks =
            [Ask::post("/accounts/tenant/payments").header("idempotency-key", "rent-1"), Ask::post("/payment-batches")];
        for ask in asks {
            let reply = world.send(ask.text(body)).await?;
            assert_eq!((reply.status, faults(&reply.body)), (400, pairs(&[("", "not-json")])), "{body}: {reply}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_refused_entry_is_known_by_its_key() -> Result<()> {
    let world = World::open().await?;
    let mut entries = vec![entry("good"), entry("zero"), entry("k".repeat(5_000).as_str()), json!(7)];
    entries.iter_mut().take(3).for_each(|entry| entry["accountId"] = json!("tenant"));
    entries[1]["amountMinor"] = json!(0);
    let reply = world.send(Ask::post("/payment-batches").json(&json!({ "payments": entries }))).await?;
    let results = reply.body["results"].as_array().context("results")?;
    let known = |at: usize| (results[at]["statusCode"].as_u64(), results[at]["accountId"].as_str());
    assert_eq!(known(0), (Some(201), Some("tenant")));
    assert_eq!(known(1), (Some(422), Some("tenant")));
    assert_eq!(results[1]["idempotencyKey"], "zero");
    assert_eq!(faults(&results[1]["problem"]), pairs(&[("/payments/1/amountMinor", "invalid-amount")]));
    assert_eq!(known(2), (Some(400), Some("tenant")));
    assert_eq!(results[2]["idempotencyKey"].as_str().map(str::len), Some(255));
    assert_eq!((known(3), results[3].get("idempotencyKey")), ((Some(400), None), None));
    assert_eq!(faults(&results[3]["problem"]), pairs(&[("/payments/3", "invalid-shape")]));
    Ok(())
}

/// Sends a batch to an account, with a customer's own token.
async fn batch_of_tenant(world: &World, account: &str, entries: &[Value]) -> Result<Reply> {
    let claims = json!({ "scope": "payments/write", "custom:accounts": "tenant", "client_id": "app" });
    let authorizer = json!({ "jwt": { "claims": claims, "scopes": null } });
    let ask = Ask::post(&format!("/accounts/{account}/payment-batches")).json(&json!({ "payments": entries }));
    world.send_authorized(&authorizer, ask).await
}

#[tokio::test]
async fn a_customer_sends_a_batch_for_its_own_account_alone() -> Result<()> {
    let world = World::open().await?;
    let mut named = entry("named");
    named["accountId"] = json!("tenant");
    let mut other = entry("other");
    other["accountId"] = json!("stranger");
    let mut malformed = entry("malformed");
    malformed["accountId"] = json!(null);
    let reply = batch_of_tenant(&world, "tenant", &[entry("plain"), named, other, malformed, entry("plain")]).await?;
    let results = reply.body["results"].as_array().with_context(|| reply.to_string())?;
    let statuses: Vec<_> = results.iter().filter_map(|result| result["statusCode"].as_u64()).collect();
    assert_eq!(statuses, [201, 201, 400, 400, 201], "{reply}");
    assert_eq!(faults(&results[2]["problem"]), pairs(&[("/payments/2/accountId", "invalid-parameter")]));
    assert_eq!(faults(&results[3]["problem"]), pairs(&[("/payments/3/accountId", "invalid-shape")]));
    assert_eq!(results[4]["idempotentReplayed"], true);
    assert_eq!(world.heads("tenant").await?.len(), 2);
    // The same as one by one.
    let single = world.send(Ask::create("tenant", "plain", &rent())).await?;
    assert_eq!(single.header("idempotent-replayed"), Some("true"), "{single}");
    let reply = batch_of_tenant(&world, "stranger", &[entry("theirs")]).await?;
    assert_eq!((reply.status, reply.problem()), (404, "no-such-payment"), "{reply}");
    assert!(world.heads("stranger").await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn the_largest_amount_is_taken_and_a_larger_one_is_no_amount_also_under_its_key() -> Result<()> {
    let world = World::open().await?;
    let mut large = rent();
    large["amountMinor"] = json!(MAX_AMOUNT_MINOR);
    for replayed in [None, Some("true")] {
        let reply = world.send(Ask::create("tenant", "large", &large)).await?;
        assert_eq!((reply.status, reply.header("idempotent-replayed")), (201, replayed), "{reply}");
        assert_eq!(reply.body["amountMinor"], MAX_AMOUNT_MINOR, "{reply}");
    }
    for amount in [MAX_AMOUNT_MINOR + 1, i64::MAX] {
        large["amountMinor"] = json!(amount);
        let reply = world.send(Ask::create("tenant", "large", &large)).await?;
        assert_eq!((reply.status, reply.problem()), (422, "invalid-amount"), "{reply}");
    }
    Ok(())
}

#[tokio::test]
async fn every_answer_names_its_request() -> Result<()> {
    let world = World::open().await?;
    let authorizer = event::all_scopes(event::DEVELOPMENT_CLIENT);
    let long = "x".repeat(65);
    for (given, is_kept) in [
        (Some("checkout-7f3a.1:B_"), true),
        (None, false),
        (Some(""), false),
        (Some("a b"), false),
        (Some("a,b"), false),
        (Some("é"), false),
        (Some(long.as_str()), false),
    ] {
        for path in ["/accounts/tenant/payments", "/nowhere", "/counts?from=x"] {
            let (function, mut event) =
                Ask::get(path).event("gateway-1=", chrono::DateTime::UNIX_EPOCH, &authorizer)?;
            if let Some(given) = given {
                event.headers.insert("x-request-id", given.parse()?);
            }
            let reply = Reply::of(world.functions().invoke(function, event).await)?;
            let want = given.filter(|_| is_kept).unwrap_or("gateway-1=");
            assert_eq!(reply.header("x-request-id"), Some(want), "{given:?}: {reply}");
            let in_problem = (reply.status >= 400).then_some(want);
            assert_eq!(reply.body["requestId"].as_str(), in_problem, "{given:?}: {reply}");
        }
    }
    Ok(())
}
