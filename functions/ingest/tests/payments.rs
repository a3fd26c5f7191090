//! `ingest` alone over the machine: a payment is created once under its key, amended and cancelled.

use anyhow::{Context as _, Result};
use ingest::{Config, Ingest};
use payments_machine::client::{Reply, Request};
use payments_machine::given::Given;
use payments_model::{Actor, Amendment, AmendmentId, AmendmentName, Currency, DateRule, Details, Head};
use payments_store::PutDetails;
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
        Reply::from_response(self.ingest.handle(self.given.http_event(&request)?).await)
    }

    /// Amends the amount of a payment of `currency`.
    async fn amend(
        &self,
        payment: &Details,
        (key, version): (&str, u32),
        (amount, currency, rule): (u64, &str, Option<&str>),
    ) -> Result<Reply> {
        let mut body = rent();
        (body["amountMinor"], body["currency"]) = (json!(amount), json!(currency));
        if let Some(rule) = rule {
            body["dateRule"] = json!(rule);
        }
        self.send(Request::amend("tenant", &payment.payment_id.to_string(), (key, version), &body)).await
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

/// The bank had calendars when the payment was created, and the currency was in use.
#[tokio::test]
async fn an_amendment_is_judged_by_what_it_changes_alone() -> Result<()> {
    let alone = Alone::start().await?;
    let withdrawn = Currency::from_stored("HRK").context("not known")?;
    let old = alone.given.scheduled_as("old", "2026-12-01", |instruction| {
        instruction.money.currency = withdrawn;
        instruction.date_rule = Some(DateRule::Following);
    });
    let (old, new) = (old.await?, alone.given.scheduled("new", "2026-12-01").await?);
    let same = alone.amend(&old, ("amount", 1), (600, "HRK", Some("following"))).await?;
    assert_eq!(same.status, 200, "{}", same.text);
    for (wanted, field) in [((600, "HRK", None), "currency"), ((600, "GBP", Some("following")), "dateRule")] {
        let changed = alone.amend(&new, ("amount", 1), wanted).await?;
        assert_eq!(changed.status, 422, "{}", changed.text);
        assert!(changed.text.contains(&format!("\"/{field}\"")), "{}", changed.text);
    }
    Ok(())
}

/// These details come from an earlier try under the same key, and follow details that a restore lost.
#[tokio::test]
async fn details_that_follow_a_lost_amendment_never_come_into_force() -> Result<()> {
    let alone = Alone::start().await?;
    let store = &alone.given.store;
    let first = alone.given.scheduled("rent", "2026-12-01").await?;
    assert_eq!(alone.amend(&first, ("kept", 1), (600, "GBP", None)).await?.status, 200);
    let head = store.head(&first.key()).await?.context("no head")?;
    let mut instruction = first.instruction.clone();
    instruction.money.amount = "700".parse()?;
    let id = AmendmentId::derive(first.payment_id, &"again".parse()?);
    let earlier = first.amended(&head, id, instruction, (alone.given.stack.clock.now(), Actor::client("test")));
    let lost = AmendmentName { version: 2, id: AmendmentId::derive(first.payment_id, &"lost".parse()?) };
    let amendment = earlier.amendment.map(|own| Amendment { previous: Some(lost), ..own });
    assert_eq!(store.put_details(&Details { amendment, ..earlier }).await?, PutDetails::Created);

    let refused = alone.amend(&first, ("again", 2), (700, "GBP", None)).await?;
    let problem: Value = refused.json()?;
    assert_eq!((refused.status, &problem["title"]), (422, &json!("Idempotency key reused")), "{problem}");
    assert_eq!(store.head(&first.key()).await?, Some(head));
    assert_eq!(alone.amend(&first, ("new", 2), (700, "GBP", None)).await?.status, 200);
    Ok(())
}
