//! The rights of people who act in the console, and the authors in its trail.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use payments_http::Scope;
use payments_tests::{Ask, Role, World, template};
use serde_json::{Value, json};

use super::acting::{action, offered, preview_of};
use super::{page, rent, token};

#[tokio::test]
async fn only_who_may_operate_acts() -> Result<()> {
    let world = World::with(|environment| environment.machine_clients.push_str(",<script>")).await?;
    let id = rent(&world, "a").await?;
    let offered = offered(&world, "cancel", &format!("payments={id}")).await?;
    let others = Scope::ALL.into_iter().filter(|scope| *scope != Scope::Operate).map(Scope::as_str);
    let others = others.collect::<Vec<_>>().join(" ");
    let preview = preview_of("cancel", &format!("payments={id}"));
    for (authorizer, status) in [
        (Value::Null, 401),
        (token(&json!({ "scope": others })), 403),
        // A person who acts must also have the right to see what the console shows.
        (token(&json!({ "scope": "payments/operate" })), 403),
        (token(&json!({ "scope": "payments/inspect payments/operate", "custom:accounts": "tenant" })), 403),
    ] {
        let mending = ["send-again", "close-finding", "enable-endpoint", "replay-endpoint"];
        let mending = mending.map(|name| preview_of(name, &format!("payment={id}&endpoint=shop")));
        for ask in [preview.clone(), offered.ask(), action("unknown", "")].into_iter().chain(mending) {
            world.forget();
            world.send_authorized(&authorizer, ask).await?.with_status(status)?;
            assert_eq!(world.recorder.take_operations(), Vec::<String>::new());
        }
    }
    assert_eq!(world.audit_trail().await?, []);
    // The trail shows the person as text, and not the client. Clients see that it was an operator.
    let claims = json!({ "client_id": "<script>", "username": "<b>eve", "scope": "payments/inspect payments/operate" });
    world.send_authorized(&token(&claims), offered.ask()).await?.with_status(200)?;
    let view = page(&world, "audit").await?;
    assert!(view.contains("&lt;b&gt;eve") && !view.contains("script&gt;"), "{view}");
    let seen = world.send(Ask::get(&format!("/accounts/tenant/payments/{id}"))).await?;
    assert_eq!(seen.body["trail"][1]["by"], json!({ "kind": "operator" }), "{seen}");
    Ok(())
}

/// On one machine no token is needed, so any page that its user opens could send a form.
#[tokio::test]
async fn no_other_site_acts() -> Result<()> {
    let world = World::open().await?;
    for (site, status) in [("cross-site", 403), ("same-site", 403), ("none", 403), ("same-origin", 200)] {
        let ask = preview_of("start-report", "").header("Sec-Fetch-Site", site);
        world.answered(ask, status).await?;
    }
    Ok(())
}

#[tokio::test]
async fn where_operators_sign_in_a_machine_does_not_act() -> Result<()> {
    let world = World::with(|environment| environment.require_tokens = true).await?;
    let id = rent(&world, "a").await?;
    let preview = preview_of("cancel", &format!("payments={id}"));
    let scope = "payments/inspect payments/operate";
    for (claims, status) in [
        (json!({ "client_id": "local-console", "scope": scope }), 200),
        (json!({ "azp": "local-console", "sub": "eve", "scope": scope }), 200),
        (json!({ "client_id": "feed", "scope": scope }), 403),
        (json!({ "client_id": "feed", "azp": "local-console", "scope": scope }), 403),
        (json!({ "sub": "local-console", "scope": scope }), 403),
    ] {
        let reply = world.send_authorized(&token(&claims), preview.clone()).await?;
        reply.with_status(status).with_context(|| claims.to_string())?;
    }
    Ok(())
}

#[test]
fn no_role_can_change_or_delete_the_trail() -> Result<()> {
    let keys = ["AUDIT#2026-11".to_owned()];
    let may = |role: &Role, action: &str| role.allows(&format!("dynamodb:{action}"), "HistoryTable", &keys);
    let mut writers = BTreeSet::new();
    for (function, role) in Role::all(&template()?)? {
        for action in ["UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLUpdate", "PartiQLDelete"] {
            assert!(!may(&role, action), "{function} may {action}");
        }
        if may(&role, "PutItem") {
            writers.insert(function);
        }
    }
    assert_eq!(writers, BTreeSet::from(["console", "webhooks"].map(str::to_owned)));
    Ok(())
}

/// Whoever may put a decision can be a second person, and whoever may change one, too.
#[test]
fn only_the_console_puts_decisions_and_nobody_changes_one() -> Result<()> {
    let keys = ["APPROVAL#2026-11".to_owned()];
    for (function, role) in Role::all(&template()?)? {
        let may = |action: &&&str| role.allows(&format!("dynamodb:{action}"), "HistoryTable", &keys);
        let actions = ["PutItem", "GetItem", "Query", "BatchGetItem", "UpdateItem", "DeleteItem", "BatchWriteItem"];
        let allowed: Vec<&str> = actions.iter().filter(may).copied().collect();
        let wanted: &[&str] = match &*function {
            "console" => &["PutItem", "GetItem"],
            "recount" | "redate" | "undo" => &["GetItem"],
            _ => &[],
        };
        assert_eq!(allowed, wanted, "{function}");
    }
    Ok(())
}
