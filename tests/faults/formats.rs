//! Items of other versions: as the commit before this one wrote them, and as a later one might, with attributes that
//! nobody here knows. All of them live beside new ones, and nothing unknown is lost.
//!
//! A month runs one version of the code.

use std::collections::HashMap;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use daily_due_sweeper::Action;
use payments_local::Function;
use payments_model::{BusinessDate, DayCounts, PaymentId, Status};
use payments_month::intent::Intent;
use payments_store::{Evidence, Item};
use payments_tests::tables::{item_of, number, text};
use serde_json::json;

use crate::fixture::Fixture;
use crate::invariants::{Stage, violations};
use crate::night::{UNTIL_NIGHT, invoke};

/// The details and the head of a scheduled payment, as commit 9b01d2c wrote them. Never change this text.
fn as_the_previous_version(intent: &Intent, id: &str) -> Result<(Item, Item)> {
    let (account, amount, due_at) = (&intent.account, intent.amount.to_string(), &intent.scheduled_for);
    let day = &due_at[..10];
    let details = json!({
        "pk": {"S": format!("PAY#{id}")}, "sk": {"S": "DETAILS"}, "accountId": {"S": account},
        "payeeAccountId": {"S": "landlord"}, "amountMinor": {"N": amount}, "currency": {"S": "GBP"},
        "scheduledFor": {"S": due_at}, "data": {"S": json!({ "note": format!("rent {amount}") }).to_string()},
        "dueAt": {"S": due_at}, "dueDate": {"S": day}, "shard": {"N": "1"},
        "createdAt": {"S": "2026-11-20T08:59:00Z"}, "createdBy": {"S": "c:channel"},
    });
    let head = json!({
        "pk": {"S": format!("ACCT#{account}")}, "sk": {"S": format!("{due_at}#{id}")}, "shard": {"N": "1"},
        "due": {"S": format!("SCHEDULED#{day}#{due_at}#{id}")}, "status": {"S": "SCHEDULED"}, "version": {"N": "1"},
        "payeeAccountId": {"S": "landlord"}, "amountMinor": {"N": amount}, "currency": {"S": "GBP"},
        "scheduledFor": {"S": due_at},
        "trail": {"L": [{"M": {
            "status": {"S": "SCHEDULED"}, "at": {"S": "2026-11-20T08:59:00Z"}, "by": {"S": "c:channel"},
        }}]},
    });
    Ok((item_of(&details)?, item_of(&head)?))
}

/// Attributes of a later version, of every type.
fn unknown() -> Item {
    let map = HashMap::from([("deep".to_owned(), AttributeValue::L(vec![number(1), AttributeValue::Null(true)]))]);
    [
        ("laterText", text("new")),
        ("laterNumber", number("12345678901234567890")),
        ("laterTruth", AttributeValue::Bool(false)),
        ("laterNothing", AttributeValue::Null(true)),
        ("laterBytes", AttributeValue::B(Blob::new([0_u8, 255]))),
        ("laterTexts", AttributeValue::Ss(vec!["a".to_owned()])),
        ("laterMap", AttributeValue::M(map)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// A later version's item: with more attributes, also in each entry of the trail.
fn as_a_later_version(mut item: Item) -> Item {
    item.extend(unknown());
    if let Some(AttributeValue::L(trail)) = item.get_mut("trail") {
        for entry in trail {
            if let AttributeValue::M(entry) = entry {
                entry.extend(unknown());
            }
        }
    }
    item
}

/// Creates a payment as another version would have.
async fn stored(fixture: &Fixture, change: impl Fn(Item) -> Item) -> Result<Intent> {
    let mut intent = fixture.intent(&fixture.new_name());
    let id = PaymentId::derive(&intent.account.parse()?, &intent.key.parse()?).to_string();
    let (details, head) = as_the_previous_version(&intent, &id)?;
    let tables = &fixture.world.environment.tables;
    fixture.world.put_items(&tables.history, [change(details)]).await?;
    fixture.world.put_items(&tables.payments, [change(head)]).await?;
    intent.accepted = Some(id);
    Ok(intent)
}

/// The one head of an account in history, as stored.
async fn archived(fixture: &Fixture, intent: &Intent) -> Result<Item> {
    fixture.world.archived_heads(&intent.account).await?.pop().with_context(|| intent.account.clone())
}

#[tokio::test]
async fn payments_of_the_previous_and_of_a_later_version_live_beside_new_ones() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut intents = vec![stored(&fixture, |item| item).await?, stored(&fixture, as_a_later_version).await?];
    intents.extend(fixture.created(1).await?);
    // A retried create finds each of them.
    for intent in &mut intents {
        let reply = fixture.create(&mut intent.clone()).await?;
        assert_eq!((reply.status, reply.field("paymentId")), (201, intent.id()?), "{reply}");
    }
    fixture.time.pass(chrono::TimeDelta::seconds(61));
    fixture.tick(Action::Sweep).await?;
    fixture.dispatch_all().await?;
    fixture.serve(None)?;
    fixture.settle_all().await?;
    for intent in &intents {
        assert_eq!(violations(&fixture, std::slice::from_ref(intent), Stage::Finished).await?, [""; 0]);
    }
    fixture.time.pass(UNTIL_NIGHT);
    let reported = invoke(&fixture, &fixture.functions, Function::Report).await?;
    let moved = invoke(&fixture, &fixture.functions, Function::Archive).await?;
    assert_eq!((&reported["reported"], &moved["archived"]), (&json!(3), &json!(3)), "{reported} {moved}");

    let [previous, later, new] = intents.as_slice() else { panic!("three payments") };
    let names = |item: &Item| item.keys().cloned().collect::<std::collections::BTreeSet<_>>();
    let (old, young) = (archived(&fixture, previous).await?, archived(&fixture, new).await?);
    assert_eq!(names(&old), names(&young), "the formats are the same");
    let head = archived(&fixture, later).await?;
    for (name, value) in unknown() {
        assert_eq!(head.get(&name), Some(&value), "{name} of the head");
        let created = head["trail"].as_l().ok().and_then(|trail| trail.first()?.as_m().ok()).context("a trail")?;
        assert_eq!(created.get(&name), Some(&value), "{name} in the trail");
    }
    let (details, _) = as_the_previous_version(later, later.id()?)?;
    let tables = &fixture.world.environment.tables;
    let key = ["pk", "sk"].map(|name| (name.to_owned(), details[name].clone()));
    let kept = fixture.client.get_item().table_name(&tables.history).set_key(Some(key.into())).send().await?;
    assert_eq!(kept.item, Some(as_a_later_version(details)));
    fixture.assert_counters_exact().await
}

/// The item at a key of the hot table.
async fn item_at(fixture: &Fixture, pk: &str, sk: &str) -> Result<Item> {
    let get = fixture.client.get_item().table_name(&fixture.world.environment.tables.payments);
    let item = get.key("pk", text(pk)).key("sk", text(sk)).consistent_read(true).send().await?.item;
    item.with_context(|| format!("{pk} / {sk}"))
}

#[tokio::test]
async fn a_reports_job_keeps_attributes_of_a_later_version() -> Result<()> {
    let fixture = Fixture::start().await?;
    for (run, is_first) in [("1", true), ("2", false)] {
        let intents = fixture.created(1).await?;
        assert_eq!(fixture.finish(&intents, None).await?, [""; 0]);
        invoke(&fixture, &fixture.functions, Function::Report).await?;
        let job = item_at(&fixture, "CHECKPOINT#report", "job").await?;
        assert_eq!((&job["run"], &job["finished"]), (&number(run), &AttributeValue::Bool(true)));
        if is_first {
            fixture.world.put_items(&fixture.world.environment.tables.payments, [as_a_later_version(job)]).await?;
        } else {
            assert!(unknown().iter().all(|(name, value)| job.get(name) == Some(value)), "{job:?}");
        }
    }
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_finding_keeps_attributes_of_a_later_version_and_no_old_number() -> Result<()> {
    let fixture = Fixture::start().await?;
    let store = &fixture.dependencies.store;
    let date: BusinessDate = "2026-11-20".parse()?;
    let evidence = |status: Status| -> Result<Evidence> {
        let mut recounted = DayCounts::default();
        recounted.shift(status, 7);
        recounted.shift_sum("GBP".parse()?, status, 70);
        Ok(Evidence { recounted, moves: [3; payments_store::key::LANES], found_at: "2026-11-20T03:00:00Z".parse()? })
    };
    store.keep_evidence(date, &evidence(Status::Pending)?, None).await?;
    let stored = item_at(&fixture, "CHECKPOINT#recount", "2026-11-20").await?;
    let tables = &fixture.world.environment.tables;
    fixture.world.put_items(&tables.payments, [as_a_later_version(stored)]).await?;
    let earlier = store.evidence(date, date).await?;
    let earlier = earlier.get(&date);
    assert_eq!(earlier.and_then(|earlier| earlier.evidence.clone()), Some(evidence(Status::Pending)?));
    store.keep_evidence(date, &evidence(Status::Failed)?, earlier).await?;
    let now = store.evidence(date, date).await?;
    assert_eq!(now.get(&date).and_then(|now| now.evidence.clone()), Some(evidence(Status::Failed)?));
    let stored = item_at(&fixture, "CHECKPOINT#recount", "2026-11-20").await?;
    assert!(unknown().iter().all(|(name, value)| stored.get(name) == Some(value)), "{stored:?}");
    Ok(())
}
