//! The client of a token: tokens with two names of a client, and clients that pass without the account claim.

use payments_http::{Route, Scope};
use payments_tests::prelude::*;

use super::{ask, rent, token};

/// An issuer that forgets a customer's accounts gives the customer nothing.
#[tokio::test]
async fn without_the_account_claim_only_machines_pass() -> Result<()> {
    let machines = |environment: &mut Environment| {
        environment.machine_clients = "erp,none,,local-console".to_owned();
    };
    let world = World::with(machines).await?;
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
        // The claim names accounts if it is present, even if its list is empty.
        (json!({ "client_id": "erp", "custom:accounts": "" }), 404, 403),
        (json!({ "client_id": "erp", "custom:accounts": [] }), 404, 403),
        (json!({ "client_id": "erp", "custom:accounts": " " }), 404, 403),
        (json!({ "client_id": "erp", "custom:accounts": "landlord" }), 404, 403),
    ] {
        let token = token(with(claims, json!({ "scope": "payments/read payments/inspect" })));
        // Calendars show no payments.
        for (path, want) in [("/accounts/tenant/payments", of_account), ("/counts", of_bank), ("/calendars", 200)] {
            let reply = world.send_authorized(&token, Ask::get(path)).await?;
            assert_eq!(reply.status, want, "{path} with {token}: {reply}");
        }
    }
    Ok(())
}

/// If a provider allows a client to choose one of these claims, the client could choose another's rights.
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
            let token = token(with(claims.clone(), json!({ "scope": Scope::ALL.map(Scope::as_str).join(" ") })));
            let reply = world.send_authorized(&token, ask.clone()).await?;
            assert_eq!(reply.status, status, "{claims}, {ask:?}: {reply}");
        }
    }
    Ok(())
}
