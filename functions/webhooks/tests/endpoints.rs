//! `webhooks` alone over the machine: an endpoint from its creation to its deletion.

use anyhow::Result;
use http::Method;
use payments_machine::client::{Reply, Request};
use payments_machine::given::Given;
use serde_json::{Value, json};
use webhooks::{Config, Webhooks};

const PATH: &str = "/webhook-endpoints/orders";

/// `webhooks` on a machine without endpoints.
struct Alone {
    given: Given,
    webhooks: Webhooks,
}

impl Alone {
    async fn start() -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
        let master = given.stack.webhook_master.clone();
        let (clock, metrics) = (given.stack.clock.clone(), given.stack.metrics.clone());
        let webhooks =
            Webhooks::new(given.config("webhooks", Config::read)?, given.store.clone(), master, clock, metrics);
        Ok(Self { given, webhooks })
    }

    async fn send(&self, request: Request) -> Result<Reply> {
        Reply::from_response(self.webhooks.handle(self.given.http_event(&request)?).await)
    }

    async fn put(&self, path: &str, body: &Value) -> Result<Reply> {
        self.send(Request::new(Method::PUT, path).json(body)).await
    }

    async fn get(&self, path: &str) -> Result<Reply> {
        self.send(Request::get(path)).await
    }
}

#[tokio::test]
async fn an_endpoint_is_created_changed_shown_and_deleted() -> Result<()> {
    let alone = Alone::start().await?;
    assert_eq!(alone.get(PATH).await?.status, 404);
    let mut body = json!({ "url": "https://hooks.example.com/payments", "description": "orders" });
    assert_eq!(alone.put(PATH, &body).await?.status, 201);
    body["description"] = json!("all orders");
    assert_eq!(alone.put(PATH, &body).await?.status, 200);
    let shown = alone.get(PATH).await?.json()?;
    assert_eq!((&shown["url"], &shown["description"]), (&body["url"], &body["description"]), "{shown}");
    let listed = alone.get("/webhook-endpoints").await?.json()?;
    assert_eq!(listed["endpoints"].as_array().map(Vec::len), Some(1), "{listed}");
    let delete = || Request::new(Method::DELETE, PATH);
    assert_eq!(alone.send(delete()).await?.status, 200);
    for request in [Request::get(PATH), Request::post(&format!("{PATH}/test")), delete()] {
        let reply = alone.send(request.clone()).await?;
        assert_eq!(reply.status, 404, "{request:?}: {}", reply.text);
    }
    Ok(())
}

#[tokio::test]
async fn a_secret_stays_until_it_is_rotated() -> Result<()> {
    let alone = Alone::start().await?;
    let body = json!({ "url": "https://hooks.example.com/payments" });
    assert_eq!(alone.put(PATH, &body).await?.status, 201);
    let secret = async || alone.get(&format!("{PATH}/secret")).await?.json();
    let first = secret().await?;
    assert_eq!(secret().await?, first);
    let rotate = async |generation: u32| {
        alone.send(Request::post(&format!("{PATH}/rotate")).json(&json!({ "generation": generation }))).await
    };
    assert_eq!(rotate(2).await?.status, 200);
    let second = secret().await?;
    assert_ne!(second, first);
    for (generation, status) in [(2, 200), (1, 409), (4, 409)] {
        let reply = rotate(generation).await?;
        assert_eq!(reply.status, status, "{}", reply.text);
        assert_eq!(secret().await?, second, "{generation}");
    }
    Ok(())
}

#[tokio::test]
async fn an_invalid_endpoint_is_rejected_and_not_created() -> Result<()> {
    let alone = Alone::start().await?;
    for (body, status) in [
        (json!({}), 400),
        (json!({ "url": 5 }), 400),
        (json!({ "url": "http://hooks.example.com/payments" }), 422),
        (json!({ "url": "https://10.0.0.1/hooks" }), 422),
        (json!({ "url": "https://hooks.example.com/payments", "secret": "mine" }), 400),
    ] {
        let reply = alone.put(PATH, &body).await?;
        assert_eq!(reply.status, status, "{body}: {}", reply.text);
    }
    assert_eq!(alone.get(PATH).await?.status, 404);
    Ok(())
}
