//! `ingest` alone over the machine: a payment is created once under its key, amended and cancelled.

use anyhow::{Context as _, Result};
use ingest::{Config, Ingest};
use payments_machine::client::{Reply, Request};
use payments_machine::given::Given;
use payments_model::Head;
use serde_json::{Value, json};

/// `ingest` on a machine without payments.
struct Alone {
    given: Given,
    ingest: Ingest,
}

impl Alone {
    async fn start() -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
        let ingest = Ingest::new(given.config("ingest", Config::read)?, given.store.clone(), given.stack.clock.clone());
        Ok(Self { given, ingest })
    }

    async fn send(&self, request: Request) -> Result<Reply> {
        Reply::of(self.ingest.handle(self.given.http_event(&request)?).await)
    }

    /// The payment's head in the hot table.
    async fn head(&self, payment_id: &str) -> Result<Head> {
        let details = self.given.store.details(payment_id.parse()?).await?.context("no details")?;
        self.given.store.head(&details.key()).await?.context("no head")
    }
}

fn rent() -> Value {
    json!({ "payeeAccountId": "landlord", "amountMinor": 500, "currency": "GBP", "scheduledFor": "2026-12-01" })
}

/// The id of the payment that a reply shows.
fn id(reply: &Reply) -> Result<String> {
    reply.json()?["paymentId"].as_str().map(str::to_owned).with_context(|| reply.text.clone())
}

#[tokio::test]
async fn a_payment_is_created_once_under_its_key() -> Result<()> {
    let alone = Alone::start().await?;
    let first = alone.send(Request::create("tenant", "rent", &rent())).await?;
    assert_eq!(first.status, 201, "{}", first.text);
    let head = alone.head(&id(&first)?).await?;
    let again = alone.send(Request::create("tenant", "rent", &rent())).await?;
    assert_eq!((again.status, id(&again)?), (201, id(&first)?));
    let mut other = rent();
    other["amountMinor"] = json!(501);
    assert_eq!(alone.send(Request::create("tenant", "rent", &other)).await?.status, 422);
    assert_eq!(alone.head(&id(&first)?).await?, head);
    let elsewhere = alone.send(Request::create("tenant", "rent-2", &rent())).await?;
    assert_ne!(id(&elsewhere)?, id(&first)?);
    Ok(())
}

#[tokio::test]
async fn an_invalid_payment_is_rejected_and_nothing_is_stored() -> Result<()> {
    let alone = Alone::start().await?;
    for (field, value, status) in [
        ("amountMinor", json!("5"), 400),
        ("amountMinor", json!(0), 422),
        ("currency", json!("XXX"), 422),
        ("scheduledFor", json!("2026-11-19"), 422),
        ("scheduledFor", json!("2029-11-20"), 422),
        ("payeeAccountId", Value::Null, 400),
        ("note", json!("a"), 400),
    ] {
        let mut body = rent();
        body[field] = value;
        let reply = alone.send(Request::create("tenant", "rent", &body)).await?;
        assert_eq!(reply.status, status, "{body}: {}", reply.text);
    }
    assert_eq!(alone.send(Request::create("tenant", "rent", &rent())).await?.status, 201, "the key is free");
    Ok(())
}

#[tokio::test]
async fn a_scheduled_payment_is_amended_and_cancelled_and_a_pending_one_is_not() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = id(&alone.send(Request::create("tenant", "rent", &rent())).await?)?;
    let mut later = rent();
    later["scheduledFor"] = json!("2026-12-02");
    let amend = || Request::amend("tenant", &payment, ("later", 1), &later);
    for _ in 0..2 {
        assert_eq!(alone.send(amend()).await?.status, 200);
        let head = alone.head(&payment).await?;
        assert_eq!((head.due_date, head.version), ("2026-12-02".parse()?, 2));
    }
    for _ in 0..2 {
        assert_eq!(alone.send(Request::cancel("tenant", &payment)).await?.status, 200);
        let head = alone.head(&payment).await?;
        assert_eq!((head.state.status().as_str(), head.version), ("CANCELLED", 3));
    }
    let pending = alone.given.pending("pending").await?.payment_id.to_string();
    for request in [Request::cancel("tenant", &pending), Request::amend("tenant", &pending, ("later", 2), &later)] {
        assert_eq!(alone.send(request).await?.status, 409);
    }
    assert_eq!(alone.head(&pending).await?.state.status().as_str(), "PENDING");
    Ok(())
}
