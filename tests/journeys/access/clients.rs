//! Who a token's client is: what a stolen token cannot do, and whose tokens pass without the account claim.

use anyhow::Result;
use http::Method;
use payments_http::Route;
use payments_http::routes::ROUTES;
use payments_machine::Environment;
use payments_tests::{Ask, World};
use serde_json::{Value, json};

use super::{ask, rent, token};

/// A token of the feed's scope creates payments, and neither sees nor changes where events are sent.
#[tokio::test]
async fn a_stolen_token_of_the_feed_touches_no_webhook_endpoint() -> Result<()> {
    let world = World::open().await?;
    let id = world.create("tenant", "rent", &rent()).await?;
    assert_eq!(world.send(ask(Route::PutEndpoint, "tenant", &id)).await?.status, 201);
    let stolen = token(json!({ "client_id": "feed", "scope": "payments/feed" }));
    let created = world.send_authorized(&stolen, ask(Route::CreateBatch, "tenant", &id)).await?;
    assert_eq!(created.status, 200, "{created}");
    let before = world.send(Ask::get("/webhook-endpoints/shop")).await?;
    let mut refused = 0;
    for spec in ROUTES.iter().filter(|spec| spec.path.starts_with("/webhook-endpoints")) {
        drop(world.recorder.take_operations());
        let reply = world.send_authorized(&stolen, ask(spec.route, "tenant", &id)).await?;
        assert_eq!((reply.status, reply.problem()), (403, "forbidden"), "{}: {reply}", spec.key());
        assert!(world.recorder.take_operations().is_empty(), "{}", spec.key());
        refused += 1;
    }
    assert_eq!(refused, 9);
    let elsewhere = json!({ "url": "https://hooks.thief.co.uk/" });
    let put = Ask::new(Method::PUT, "/webhook-endpoints/shop").json(&elsewhere);
    assert_eq!(world.send_authorized(&stolen, put.clone()).await?.status, 403);
    assert_eq!(world.send(Ask::get("/webhook-endpoints/shop")).await?.body, before.body);
    // And who administers endpoints creates no payments.
    let webhooks = token(json!({ "client_id": "operations", "scope": "payments/webhooks" }));
    assert_eq!(world.send_authorized(&webhooks, put).await?.status, 200);
    assert_eq!(world.send_authorized(&webhooks, ask(Route::CreateBatch, "tenant", &id)).await?.status, 403);
    Ok(())
}

/// An issuer that forgets a customer's accounts gives the customer nothing.
#[tokio::test]
async fn without_the_account_claim_only_machines_pass() -> Result<()> {
    let machines = |environment: &mut Environment| {
        environment.machine_clients = "erp,none,,local-console".to_owned();
    };
    let world = World::with(machines).await?;
    let scope = "payments/read payments/inspect";
    let (account, bank) = (Ask::get("/accounts/tenant/payments"), Ask::get("/counts"));
    for (claims, of_account, of_bank) in [
        (json!({ "client_id": "erp" }), 200, 200),
        (json!({ "azp": "erp" }), 200, 200),
        (json!({ "cid": "erp" }), 200, 200),
        (json!({ "client_id": "local-console", "sub": "eve" }), 200, 200),
        // Everybody else names accounts.
        (json!({ "client_id": "banking-app", "sub": "eve" }), 403, 403),
        (json!({ "client_id": "ERP" }), 403, 403),
        (json!({ "client_id": "erp,none" }), 403, 403),
        (json!({ "client_id": "none" }), 403, 403),
        (json!({ "client_id": "" }), 403, 403),
        (json!({ "sub": "erp" }), 403, 403),
        (json!({}), 403, 403),
        (json!({ "client_id": "banking-app", "custom:accounts": "tenant" }), 200, 403),
        // A claim that is there names accounts, if it names none at all.
        (json!({ "client_id": "erp", "custom:accounts": "" }), 404, 403),
        (json!({ "client_id": "erp", "custom:accounts": [] }), 404, 403),
        (json!({ "client_id": "erp", "custom:accounts": " " }), 404, 403),
        (json!({ "client_id": "erp", "custom:accounts": "landlord" }), 404, 403),
    ] {
        let mut claims = claims;
        claims["scope"] = json!(scope);
        for (ask, want) in [(&account, of_account), (&bank, of_bank)] {
            let reply = world.send_authorized(&token(claims.clone()), ask.clone()).await?;
            assert_eq!(reply.status, want, "{claims}: {reply}");
        }
        // Calendars show no payments.
        assert_eq!(
            world.send_authorized(&token(claims.clone()), Ask::get("/calendars")).await?.status,
            200,
            "{claims}"
        );
    }
    Ok(())
}

/// A provider that lets a client choose one of these claims would let it choose whose rights it has.
#[tokio::test]
async fn a_token_that_names_two_clients_is_refused_everywhere() -> Result<()> {
    let world = World::open().await?;
    let id = world.create("tenant", "rent", &rent()).await?;
    for (claims, status) in [
        (json!({ "client_id": "feed", "azp": "operations" }), 403),
        (json!({ "client_id": "feed", "cid": "operations" }), 403),
        (json!({ "azp": "feed", "cid": "operations" }), 403),
        (json!({ "client_id": "feed", "azp": "" }), 403),
        (json!({ "client_id": "feed", "azp": "feed", "cid": "feed" }), 200),
    ] {
        for ask in [ask(Route::GetPayment, "tenant", &id), Ask::get("/calendars"), Ask::get("/console/views/day")] {
            let reply = world.send_authorized(&with_all_scopes(&claims), ask.clone()).await?;
            assert_eq!(reply.status, status, "{claims}, {ask:?}: {reply}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_trail_names_the_client_by_whichever_claim_has_it() -> Result<()> {
    let world = World::open().await?;
    for (claim, key) in [("client_id", "1"), ("azp", "2"), ("cid", "3")] {
        let claims = with_all_scopes(&json!({ claim: "feed", "sub": "7c3b" }));
        let put = world.send_authorized(&claims, Ask::create("tenant", key, &rent())).await?;
        assert_eq!(put.body["trail"][0]["by"], json!({ "kind": "client", "name": "feed" }), "{claim}: {put}");
    }
    Ok(())
}

fn with_all_scopes(claims: &Value) -> Value {
    let mut claims = claims.clone();
    claims["scope"] = json!(payments_http::Scope::ALL.map(payments_http::Scope::as_str).join(" "));
    token(claims)
}
