//! Bodies with faults: all of them are named at once, and an entry of a batch is known by its own key.

use payments_machine::{Handlers as _, event};
use payments_model::MAX_AMOUNT_MINOR;
use payments_tests::prelude::*;

fn rent() -> Value {
    order("2026-12-01")
}

/// An entry of a batch to one account.
fn entry(key: &str, more: Value) -> Value {
    with(with(rent(), json!({ "idempotencyKey": key })), more)
}

/// The place and type of each fault of a body, as in `/currency invalid-shape`.
fn faults(problem: &Value) -> Vec<String> {
    let fault = |fault: &Value| {
        let kind = fault["type"].as_str().and_then(|kind| kind.rsplit(':').next()).unwrap_or_default();
        format!("{} {kind}", fault["pointer"].as_str().unwrap_or_default())
    };
    problem["errors"].as_array().into_iter().flatten().map(fault).collect()
}

#[tokio::test]
async fn all_faults_of_a_body_are_named_at_once() -> Result<()> {
    let world = World::open().await?;
    let large = "x".repeat(9_000);
    for (body, want) in [
        (
            json!({}),
            "/payeeAccountId invalid-shape, /amountMinor invalid-shape, /currency invalid-shape, \
             /scheduledFor invalid-shape",
        ),
        (
            json!({ "payeeAccountId": "tenant", "amountMinor": 1.5, "currency": "gbp", "scheduledFor": "soon", "a/b": 1 }),
            "/a~1b invalid-shape, /payeeAccountId invalid-payee, /amountMinor invalid-amount, \
             /currency invalid-currency, /scheduledFor invalid-date",
        ),
        // Values that only a new payment may not have. Dates and sizes are checked once all else is well-formed.
        (
            order_with("2026-11-01", json!({ "amountMinor": MAX_AMOUNT_MINOR, "currency": "XAU", "data": large })),
            "/currency invalid-currency, /data payment-too-large, /scheduledFor date-passed",
        ),
        (
            json!({ "payeeAccountId": "", "amountMinor": MAX_AMOUNT_MINOR + 1, "currency": "XAU", "scheduledFor": 1 }),
            "/scheduledFor invalid-shape, /payeeAccountId invalid-payee, /amountMinor invalid-amount, \
             /currency invalid-currency",
        ),
        (json!([]), " invalid-shape"),
    ] {
        let reply = world.send(Ask::create("tenant", "rent-1", &body)).await?;
        assert_eq!(faults(&reply.body).join(", "), want, "{reply}");
        // The first is the problem itself.
        assert_has(&reply.body["errors"][0], &json!({ "type": reply.body["type"], "detail": reply.body["detail"] }));
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
            assert_eq!((reply.status, faults(&reply.body)), (400, vec![" not-json".to_owned()]), "{body}: {reply}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_refused_entry_is_known_by_its_key() -> Result<()> {
    let world = World::open().await?;
    let of = |key: &str, amount: u32| entry(key, json!({ "accountId": "tenant", "amountMinor": amount }));
    let entries = [of("good", 5), of("zero", 0), of(&"k".repeat(5_000), 5), json!(7)];
    let reply = world.send(Ask::post("/payment-batches").json(&json!({ "payments": entries }))).await?;
    let results = reply.body["results"].as_array().context("results")?;
    // A long key is cut.
    let account = json!("tenant");
    let wanted = [
        (201, Some(&account), None),
        (422, Some(&account), Some(4)),
        (400, Some(&account), Some(255)),
        (400, None, None),
    ];
    for (result, (status, account, key)) in results.iter().zip(wanted) {
        assert_eq!((&result["statusCode"], result.get("accountId")), (&json!(status), account), "{result}");
        assert!(status == 201 || result["idempotencyKey"].as_str().map(str::len) == key, "{result}");
    }
    assert_eq!(results[1]["idempotencyKey"], "zero");
    assert_eq!(faults(&results[1]["problem"]), ["/payments/1/amountMinor invalid-amount"]);
    assert_eq!(faults(&results[3]["problem"]), ["/payments/3 invalid-shape"]);
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
    let plain = || entry("plain", json!({}));
    let entries = [
        plain(),
        entry("named", json!({ "accountId": "tenant" })),
        entry("other", json!({ "accountId": "stranger" })),
        entry("malformed", json!({ "accountId": null })),
        plain(),
    ];
    let reply = batch_of_tenant(&world, "tenant", &entries).await?;
    let results = reply.body["results"].as_array().with_context(|| reply.to_string())?;
    let statuses: Vec<_> = results.iter().filter_map(|result| result["statusCode"].as_u64()).collect();
    assert_eq!(statuses, [201, 201, 400, 400, 201], "{reply}");
    assert_eq!(faults(&results[2]["problem"]), ["/payments/2/accountId invalid-parameter"]);
    assert_eq!(faults(&results[3]["problem"]), ["/payments/3/accountId invalid-shape"]);
    assert_eq!(results[4]["idempotentReplayed"], true);
    assert_eq!(world.heads("tenant").await?.len(), 2);
    // The same as one by one.
    world.send(Ask::create("tenant", "plain", &rent())).await?.replayed()?;
    batch_of_tenant(&world, "stranger", &[plain()]).await?.refused(404, "no-such-payment")?;
    assert!(world.heads("stranger").await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn the_largest_amount_is_taken_and_a_larger_one_is_no_amount_also_under_its_key() -> Result<()> {
    let world = World::open().await?;
    let large = |amount: i64| Ask::create("tenant", "large", &with(rent(), json!({ "amountMinor": amount })));
    let created = world.send(large(MAX_AMOUNT_MINOR)).await?.with_status(201)?;
    assert_eq!(created.body["amountMinor"], MAX_AMOUNT_MINOR, "{created}");
    assert_eq!(world.send(large(MAX_AMOUNT_MINOR)).await?.replayed()?.body, created.body);
    for amount in [MAX_AMOUNT_MINOR + 1, i64::MAX] {
        world.refused(large(amount), 422, "invalid-amount").await?;
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
            let reply = Reply::from_response(world.functions().invoke(function, event).await)?;
            let want = given.filter(|_| is_kept).unwrap_or("gateway-1=");
            assert_eq!(reply.header("x-request-id"), Some(want), "{given:?}: {reply}");
            let in_problem = (reply.status >= 400).then_some(want);
            assert_eq!(reply.body["requestId"].as_str(), in_problem, "{given:?}: {reply}");
        }
    }
    Ok(())
}
