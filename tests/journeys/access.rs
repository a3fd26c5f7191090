//! Access: every route with every kind of token, and nothing of one account for another.

mod clients;
mod sign_in;
mod tokens;

use http::Method;
use payments_http::routes::ROUTES;
use payments_http::{ProblemKind, Route, Scope};
use payments_machine::{Handlers as _, event};
use payments_tests::prelude::*;

/// The scope of each route, whose payments it is about, and the status of an allowed request, if only one payment of `tenant` and one
/// webhook endpoint exist, and nothing is logged.
const NEEDS: [(Route, Scope, Reach, i64); 22] = [
    (Route::CreatePayment, Scope::Write, Reach::Account, 201),
    (Route::CreateBatch, Scope::Feed, Reach::Bank, 200),
    (Route::CreateAccountBatch, Scope::Write, Reach::Account, 200),
    (Route::CancelPayment, Scope::Write, Reach::Account, 200),
    (Route::AmendPayment, Scope::Write, Reach::Account, 409),
    (Route::ListPayments, Scope::Read, Reach::Account, 200),
    (Route::GetPayment, Scope::Read, Reach::Account, 200),
    (Route::ListVersions, Scope::Read, Reach::Account, 200),
    (Route::ListDue, Scope::Inspect, Reach::Bank, 200),
    (Route::GetCounts, Scope::Inspect, Reach::Bank, 200),
    (Route::ListEvents, Scope::Inspect, Reach::Bank, 200),
    (Route::ListEndpoints, Scope::Inspect, Reach::Bank, 200),
    (Route::PutEndpoint, Scope::Webhooks, Reach::Bank, 200),
    (Route::GetEndpoint, Scope::Inspect, Reach::Bank, 200),
    (Route::DeleteEndpoint, Scope::Webhooks, Reach::Bank, 404),
    (Route::GetEndpointSecret, Scope::Webhooks, Reach::Bank, 200),
    (Route::TestEndpoint, Scope::Webhooks, Reach::Bank, 202),
    (Route::ReplayEndpoint, Scope::Webhooks, Reach::Bank, 200),
    (Route::SkipEvent, Scope::Webhooks, Reach::Bank, 409),
    (Route::RotateSecret, Scope::Webhooks, Reach::Bank, 200),
    (Route::ListCalendars, Scope::Read, Reach::Nothing, 200),
    (Route::GetCalendar, Scope::Read, Reach::Nothing, 404),
];

/// The owner of the payments that a route shows or changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Account,
    Bank,
    Nothing,
}

#[tokio::test]
async fn every_route_requires_its_scope_and_account() -> Result<()> {
    let world = World::open().await?;
    let id = world.create("tenant", "rent", &rent()).await?;
    world.send(ask(Route::PutEndpoint, "tenant", &id)).await?.with_status(201)?;
    assert_eq!(ROUTES.each_ref().map(|spec| spec.route), NEEDS.map(|(route, ..)| route), "each route needs a row");
    for (route, scope, reach, let_in) in NEEDS {
        let spec = ROUTES.iter().find(|spec| spec.route == route).context("a route")?;
        let right = scope.as_str();
        let wrong = Scope::ALL.into_iter().filter(|other| *other != scope).map(Scope::as_str);
        let (wrong, all) = (wrong.collect::<Vec<_>>().join(" "), Scope::ALL.map(Scope::as_str).join(" "));
        let forbidden = Some(ProblemKind::Forbidden);
        let nobody = if reach == Reach::Nothing { None } else { forbidden };
        let own_account = if reach == Reach::Bank { forbidden } else { None };
        let other_account = match reach {
            Reach::Account => Some(ProblemKind::NoSuchPayment),
            Reach::Bank => forbidden,
            Reach::Nothing => None,
        };
        for (authorizer, refusal) in [
            (Value::Null, Some(ProblemKind::TokenRequired)),
            (json!({}), Some(ProblemKind::TokenRequired)),
            (json!({ "lambda": { "scope": right } }), Some(ProblemKind::TokenRequired)),
            (json!({ "iam": { "callerId": "AROAEXAMPLE:feed" } }), Some(ProblemKind::TokenRequired)),
            (json!({ "jwt": { "claims": null, "scopes": null } }), forbidden),
            // The scopes that the route asks for are not those of the token.
            (json!({ "jwt": { "claims": { "sub": "x" }, "scopes": [right] } }), forbidden),
            (token(json!({ "sub": "x" })), forbidden),
            (token(json!({ "scope": "" })), forbidden),
            (token(json!({ "scope": "openid payments" })), forbidden),
            (token(json!({ "scope": wrong })), forbidden),
            (machine(json!({ "scope": wrong })), forbidden),
            (machine(json!({ "scope": right })), None),
            (machine(json!({ "scp": ["openid", right] })), None),
            (machine(json!({ "scope": all })), None),
            (token(json!({ "scope": all })), nobody),
            (token(json!({ "scope": wrong, "custom:accounts": "tenant" })), forbidden),
            (token(json!({ "scope": wrong, "custom:accounts": "landlord" })), forbidden),
            (token(json!({ "scope": right, "custom:accounts": "tenant" })), own_account),
            (token(json!({ "scope": all, "custom:accounts": ["landlord", "tenant"] })), own_account),
            (token(json!({ "scope": all, "custom:accounts": "landlord" })), other_account),
            (token(json!({ "scope": all, "custom:accounts": "" })), other_account),
            (token(json!({ "scope": all, "custom:accounts": "tenant2" })), other_account),
        ] {
            drop(world.recorder.take_operations());
            let reply = world.send_authorized(&authorizer, ask(route, "tenant", &id)).await?;
            let shown = format!("{} with {authorizer}: {reply}", spec.key());
            match refusal {
                None => assert_eq!(reply.status, let_in, "{shown}"),
                Some(kind) => {
                    assert_eq!((reply.status, reply.problem()), (i64::from(kind.status()), kind.slug()), "{shown}");
                    assert!(world.recorder.take_operations().is_empty(), "nothing is read for who may not: {shown}");
                }
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn another_account_is_answered_like_an_unknown_payment() -> Result<()> {
    let world = World::open().await?;
    let scheduled = world.create("landlord", "rent", &rent()).await?;
    let cancelled = world.create("landlord", "gone", &rent()).await?;
    world.cancel("landlord", &cancelled).await?;
    let tenant = token(json!({ "scope": "payments/read payments/write", "custom:accounts": "tenant" }));
    let unknown = "00000000-0000-5000-8000-000000000000";
    let none = world.send_authorized(&tenant, Ask::get(&format!("/accounts/tenant/payments/{unknown}"))).await?;
    let none = none.refused(404, "no-such-payment")?;
    let mut asks = vec![
        Ask::create("landlord", "new", &rent()),
        Ask::create("landlord", "rent", &rent()),
        Ask::create("landlord", "rent", &json!({ "amountMinor": 1.5 })),
        Ask::create("landlord", "", &rent()),
        Ask::create("a%231", "new", &rent()),
        Ask::post("/accounts/landlord/payments").text("{"),
        Ask::get("/accounts/landlord/payments"),
        Ask::get("/accounts/nobody/payments"),
        Ask::get("/accounts/landlord/payments?limit=0"),
        Ask::get("/accounts/landlord/payments?cursor=x"),
    ];
    for id in [scheduled.as_str(), cancelled.as_str(), unknown, "x"] {
        asks.push(Ask::get(&format!("/accounts/landlord/payments/{id}")));
        asks.push(Ask::cancel("landlord", id));
    }
    for id in [scheduled.as_str(), cancelled.as_str()] {
        asks.push(Ask::get(&format!("/accounts/tenant/payments/{id}")));
        asks.push(Ask::cancel("tenant", id));
    }
    for ask in asks {
        assert_eq!(world.send_authorized(&tenant, ask.clone()).await?, none, "{ask:?}");
    }
    let kept = |status: &str| format!("/accounts/landlord/payments?status={status}");
    assert_eq!(world.listed(&kept("SCHEDULED")).await?, [scheduled]);
    assert_eq!(world.listed(&kept("CANCELLED")).await?, [cancelled]);
    Ok(())
}

#[tokio::test]
async fn the_account_claim_is_read_in_all_its_forms() -> Result<()> {
    let world = World::with(|environment| environment.account_claim = "accounts".to_owned()).await?;
    for (claim, statuses) in [
        (json!("acc-1"), [200, 404]),
        (json!("[acc-1 acc-2]"), [200, 200]),
        (json!("acc-1,acc-2"), [200, 200]),
        (json!(r#"["acc-1","acc-2"]"#), [200, 200]),
        (json!(["acc-1", "acc-2"]), [200, 200]),
        (json!([]), [404, 404]),
        (json!(""), [404, 404]),
        (json!("*"), [404, 404]),
        (json!("acc-1 acc#2"), [404, 404]),
        (json!({ "acc-1": true }), [404, 404]),
        (json!(true), [404, 404]),
    ] {
        // The default claim means nothing here.
        let claims = machine(json!({ "scope": "payments/read", "accounts": claim, "custom:accounts": "acc-3" }));
        for (account, status) in ["acc-1", "acc-2"].into_iter().zip(statuses) {
            let list = Ask::get(&format!("/accounts/{account}/payments"));
            let reply = world.send_authorized(&claims, list).await?;
            assert_eq!(reply.status, status, "{claims}: {reply}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_trail_names_the_tokens_client_or_subject() -> Result<()> {
    let world = World::open().await?;
    for (n, (claims, by)) in [
        (json!({ "client_id": "feed", "sub": "7c3b" }), "feed"),
        (json!({ "azp": "feed", "sub": "7c3b" }), "feed"),
        (json!({ "cid": "feed", "sub": "7c3b" }), "feed"),
        (json!({ "sub": "7c3b" }), "7c3b"),
        (json!({ "client_id": "gateway-of-the-northern-branch-payments" }), "gateway-of-the-northern-~fb78a5328bba"),
        (json!({ "client_id": "gateway-of-the-northern-branch-payrolls" }), "gateway-of-the-northern-~8fd9ea72af24"),
        (json!({}), "anonymous"),
    ]
    .into_iter()
    .enumerate()
    {
        let claims = with(claims, json!({ "scope": "payments/write", "custom:accounts": "tenant" }));
        let put = world.send_authorized(&token(claims), Ask::create("tenant", &n.to_string(), &rent())).await?;
        assert_eq!(put.body["trail"][0]["by"], json!({ "kind": "client", "name": by }), "{put}");
    }
    Ok(())
}

#[tokio::test]
async fn a_request_without_an_authorizer_is_accepted_only_under_sam_local() -> Result<()> {
    let world = World::open().await?;
    let lambda = "2026/11/20/[$LATEST]8f4c2a30d5e14b7c9f0e6d1b2a3c4d5e";
    for (sam_local, log_stream, authorizer, status) in [
        ("true", "$LATEST", Value::Null, 201),
        ("true", lambda, Value::Null, 401),
        ("", "$LATEST", Value::Null, 401),
        // If an authorizer was asked, its statement counts.
        ("true", "$LATEST", json!({ "iam": { "callerId": "AROAEXAMPLE:feed" } }), 401),
        ("true", "$LATEST", token(json!({ "scope": "payments/read" })), 403),
    ] {
        let get = |package: &str, name: &str| match name {
            "AWS_SAM_LOCAL" => Some(sam_local.to_owned()),
            "AWS_LAMBDA_LOG_STREAM_NAME" => Some(log_stream.to_owned()),
            other => world.environment.get(package, other),
        };
        let dependencies = world.dependencies_over(&world.recorder).await;
        let functions = Functions::new(get, |_| Ok(dependencies.clone()))?;
        let now = chrono::DateTime::UNIX_EPOCH;
        let (function, event) = Ask::create("tenant", "rent", &rent()).event("test", now, &authorizer)?;
        let reply = Reply::from_response(functions.invoke(function, event).await)?;
        assert_eq!(reply.status, status, "{sam_local:?} {log_stream:?} {authorizer}: {reply}");
    }
    Ok(())
}

/// The authorizer's statement about a token with these claims.
fn token(claims: Value) -> Value {
    event::jwt(&claims)
}

/// The same of a machine's token.
fn machine(mut claims: Value) -> Value {
    claims["client_id"] = "feed".into();
    event::jwt(&claims)
}

fn rent() -> Value {
    order_with("2026-12-01", json!({ "payeeAccountId": "bank" }))
}

/// A valid request to a route.
fn ask(route: Route, account: &str, id: &str) -> Ask {
    match route {
        Route::CreatePayment => Ask::create(account, "rent", &rent()),
        Route::CreateBatch => {
            Ask::post("/payment-batches").json(&json!({ "payments": [entry(account, "rent", rent())] }))
        }
        Route::CreateAccountBatch => Ask::post(&format!("/accounts/{account}/payment-batches"))
            .json(&json!({ "payments": [with(rent(), json!({ "idempotencyKey": "rent" }))] })),
        Route::CancelPayment => Ask::cancel(account, id),
        Route::AmendPayment => Ask::amend(account, id, ("change", 1), &rent()),
        Route::ListVersions => Ask::get(&format!("/accounts/{account}/payments/{id}/versions")),
        Route::ListPayments => Ask::get(&format!("/accounts/{account}/payments")),
        Route::GetPayment => Ask::get(&format!("/accounts/{account}/payments/{id}")),
        Route::ListDue => Ask::get("/payments?dueDate=2026-12-01"),
        Route::GetCounts => Ask::get("/counts"),
        Route::ListEvents => Ask::get("/events"),
        Route::ListEndpoints => Ask::get("/webhook-endpoints"),
        Route::PutEndpoint => {
            let body = json!({ "url": "https://hooks.shop.co.uk/payments" });
            Ask::new(Method::PUT, "/webhook-endpoints/shop").json(&body)
        }
        Route::GetEndpoint => Ask::get("/webhook-endpoints/shop"),
        Route::DeleteEndpoint => Ask::new(Method::DELETE, "/webhook-endpoints/none"),
        Route::GetEndpointSecret => Ask::get("/webhook-endpoints/shop/secret"),
        Route::TestEndpoint => Ask::post("/webhook-endpoints/shop/test"),
        Route::ReplayEndpoint => Ask::post("/webhook-endpoints/shop/replay").json(&json!({ "cursor": "1.1.0" })),
        Route::SkipEvent => Ask::post("/webhook-endpoints/shop/skip").json(&json!({ "eventId": "7-a-1" })),
        Route::RotateSecret => Ask::post("/webhook-endpoints/shop/rotate").json(&json!({ "generation": 1 })),
        Route::ListCalendars => Ask::get("/calendars"),
        Route::GetCalendar => Ask::get("/calendars/T2"),
        Route::GetConsole => Ask::get("/console"),
        Route::GetConsoleAsset => Ask::get("/console/assets/none"),
        Route::GetConsoleView => Ask::get("/console/views/day"),
        Route::PostConsoleAction => Ask::post("/console/actions/cancel"),
        Route::PostConsoleApproval => Ask::post("/console/approvals/look"),
    }
}
