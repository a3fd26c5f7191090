//! `ingest` alone over the machine: amendments of payments that are as only time or a restore makes them.

use anyhow::{Context as _, Result};
use ingest::{Config, Ingest};
use payments_machine::client::{Reply, Request};
use payments_machine::given::Given;
use payments_model::{Actor, Amendment, AmendmentId, AmendmentName, Currency, DateRule, Details};
use payments_store::PutDetails;
use serde_json::{Value, json};

async fn start() -> Result<(Given, Ingest)> {
    let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
    let ingest = Ingest::new(given.config("ingest", Config::read)?, given.store.clone(), given.stack.clock.clone());
    Ok((given, ingest))
}

/// Amends the amount of a payment of `currency`.
async fn amend(
    (given, ingest): &(Given, Ingest),
    payment: &Details,
    (key, version): (&str, u32),
    (amount, currency, rule): (u64, &str, Option<&str>),
) -> Result<Reply> {
    let mut body = json!({
        "payeeAccountId": "landlord", "amountMinor": amount, "currency": currency, "scheduledFor": "2026-12-01",
    });
    if let Some(rule) = rule {
        body["dateRule"] = json!(rule);
    }
    let request = Request::amend("tenant", &payment.payment_id.to_string(), (key, version), &body);
    Reply::of(ingest.handle(given.http_event(&request)?).await)
}

/// The bank had calendars when the payment was created, and the currency was in use.
#[tokio::test]
async fn an_amendment_is_judged_by_what_it_changes_alone() -> Result<()> {
    let alone = start().await?;
    let withdrawn = Currency::from_stored("HRK").context("not known")?;
    let old = alone.0.scheduled_as("old", "2026-12-01", |instruction| {
        instruction.money.currency = withdrawn;
        instruction.date_rule = Some(DateRule::Following);
    });
    let (old, new) = (old.await?, alone.0.scheduled("new", "2026-12-01").await?);
    let same = amend(&alone, &old, ("amount", 1), (600, "HRK", Some("following"))).await?;
    assert_eq!(same.status, 200, "{}", same.text);
    for (wanted, field) in [((600, "HRK", None), "currency"), ((600, "GBP", Some("following")), "dateRule")] {
        let changed = amend(&alone, &new, ("amount", 1), wanted).await?;
        assert_eq!(changed.status, 422, "{}", changed.text);
        assert!(changed.text.contains(&format!("\"/{field}\"")), "{}", changed.text);
    }
    Ok(())
}

/// They are of an earlier try under the same key, and follow details that a restore took back.
#[tokio::test]
async fn details_that_follow_a_lost_amendment_never_come_into_force() -> Result<()> {
    let alone = start().await?;
    let store = &alone.0.store;
    let first = alone.0.scheduled("rent", "2026-12-01").await?;
    assert_eq!(amend(&alone, &first, ("kept", 1), (600, "GBP", None)).await?.status, 200);
    let head = store.head(&first.key()).await?.context("no head")?;
    let mut instruction = first.instruction.clone();
    instruction.money.amount = "700".parse()?;
    let id = AmendmentId::derive(first.payment_id, &"again".parse()?);
    let earlier = first.amended(&head, id, instruction, (alone.0.stack.clock.now(), Actor::client("test")));
    let lost = AmendmentName { version: 2, id: AmendmentId::derive(first.payment_id, &"lost".parse()?) };
    let amendment = earlier.amendment.map(|own| Amendment { previous: Some(lost), ..own });
    assert_eq!(store.put_details(&Details { amendment, ..earlier }).await?, PutDetails::Created);

    let refused = amend(&alone, &first, ("again", 2), (700, "GBP", None)).await?;
    let problem: Value = refused.json()?;
    assert_eq!((refused.status, &problem["title"]), (422, &json!("Idempotency key reused")), "{problem}");
    assert_eq!(store.head(&first.key()).await?, Some(head));
    assert_eq!(amend(&alone, &first, ("new", 2), (700, "GBP", None)).await?.status, 200);
    Ok(())
}
