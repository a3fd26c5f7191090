//! What a stolen token cannot do.

use anyhow::Result;
use http::Method;
use payments_http::Route;
use payments_http::routes::ROUTES;
use payments_tests::{Ask, World};
use serde_json::json;

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
