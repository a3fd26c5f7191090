//! The archive: past and reported payments move to history, once, and no others.

mod kept;
mod reads;
mod stops;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use archive::{Action, ArchiveOutcome, Request};
use aws_sdk_dynamodb::types::AttributeValue;
use lambda_runtime::LambdaEvent;
use payments_bank::Functions;
use payments_model::{PaymentId, State};
use payments_store::Item;
use payments_store::key::{account_partition, head_sort};
use payments_tests::World;
use payments_tests::tables::{NO_DEADLINE, context, text};
use serde_json::{Value, json};

/// The day on which the payments are created and due.
const DAY: &str = "2026-11-20";

/// The night in which the archive takes settled payments that did not expire.
const NIGHT: &str = "2026-11-24T02:30:00Z";

fn body(date: &str, data: &str) -> Value {
    json!({ "payeeAccountId": "landlord", "amountMinor": 120_000, "currency": "GBP", "scheduledFor": date, "data": data })
}

/// Creates a payment of the day.
async fn put(world: &World, account: &str, key: &str) -> Result<String> {
    world.create(account, key, &body(DAY, key)).await
}

/// Delivers a settlement result. If it is new, the long-term table loses it, as if it were restored to an instant before: the archive copies
/// what it lacks.
async fn settle(world: &World, result: Value) -> Result<()> {
    let id: PaymentId = result["paymentId"].as_str().context("an id")?.parse()?;
    let key = world.store().await.details(id).await?.context("it has details")?.key();
    let was_pending = world.store().await.head(&key).await?.is_some_and(|head| head.state == State::Pending);
    let event = json!({ "Records": [{ "messageId": "m", "body": result.to_string() }] });
    let response = world.functions().settle_batch(serde_json::from_value(event)?).await;
    ensure!(response.batch_item_failures.is_empty(), "{response:?}");
    if was_pending {
        let head = [("pk", account_partition(&key.account)), ("sk", head_sort(key.slot))];
        let head: Item = head.map(|(name, value)| (name.to_owned(), text(&value))).into();
        let delete = world.client().await.delete_item().table_name(&world.environment.tables.history);
        delete.set_key(Some(head)).send().await?;
    }
    Ok(())
}

fn processed(payment_id: &str) -> Value {
    json!({
        "v": 1, "kind": "settlement", "paymentId": payment_id, "amountMinor": 120_000, "currency": "GBP", "payeeAccountId": "landlord",
        "status": "PROCESSED", "transactionId": format!("TX-{payment_id}"),
    })
}

fn refused(payment_id: &str) -> Value {
    json!({
        "v": 1, "kind": "settlement", "paymentId": payment_id, "amountMinor": 120_000, "currency": "GBP", "payeeAccountId": "landlord",
        "status": "FAILED", "failureCode": "AM04", "failureReason": "no funds",
    })
}

/// Creates payments and has them processed, and reported if `reported`.
async fn put_processed(world: &World, account: &str, keys: &[&str], reported: bool) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for key in keys {
        ids.push(put(world, account, key).await?);
    }
    world.sweep().await?;
    for id in &ids {
        settle(world, processed(id)).await?;
    }
    if reported {
        report_all(world, account).await?;
    }
    Ok(ids)
}

/// Marks the account's payments as reported.
async fn report_all(world: &World, account: &str) -> Result<()> {
    for head in world.heads(account).await? {
        world.update(&head, "REMOVE unreported", &[]).await?;
    }
    Ok(())
}

async fn tick(world: &World) -> Result<ArchiveOutcome> {
    tick_of(world.functions()).await
}

async fn tick_of(functions: &Functions) -> Result<ArchiveOutcome> {
    let event = LambdaEvent::new(Request { action: Action::Archive }, context(NO_DEADLINE));
    functions.archive.handle(event).await.map_err(anyhow::Error::msg)
}

fn status_of(head: &Item) -> &str {
    head["status"].as_s().map_or("", String::as_str)
}

#[tokio::test]
async fn only_past_and_reported_payments_are_archived() -> Result<()> {
    let world = World::open().await?;
    put_processed(&world, "tenant", &["one", "two", "three"], true).await?;
    settle(&world, refused(&swept(&world, "four").await?)).await?;
    report_all(&world, "tenant").await?;
    put_processed(&world, "tenant", &["five", "six"], false).await?;
    settle(&world, refused(&swept(&world, "seven").await?)).await?;
    swept(&world, "eight").await?;
    let cancelled = put(&world, "tenant", "nine").await?;
    world.cancel("tenant", &cancelled).await?;
    let of_today = world.create("tenant", "ten", &body("2026-11-24", "ten")).await?;
    world.cancel("tenant", &of_today).await?;
    let before = world.heads("tenant").await?;
    assert_eq!(before.len(), 10);

    world.set_clock(NIGHT)?;
    let report = tick(&world).await?;
    assert_eq!(report, ArchiveOutcome { archived: 5, waiting_for_report: 3, ..ArchiveOutcome::default() });
    let is_past = |head: &&Item| {
        matches!(status_of(head), "PROCESSED" | "FAILED" | "CANCELLED")
            && !head.contains_key("unreported")
            && head["due"].as_s().is_ok_and(|due| due.contains(DAY))
    };
    let (moved, left): (Vec<&Item>, Vec<&Item>) = before.iter().partition(is_past);
    let statuses: Vec<&str> = moved.iter().map(|head| status_of(head)).collect();
    assert_eq!(statuses.iter().filter(|status| **status == "PROCESSED").count(), 3, "{statuses:?}");
    // As stored, attribute by attribute.
    assert_eq!(world.archived_heads("tenant").await?.iter().collect::<Vec<_>>(), moved);
    assert_eq!(world.heads("tenant").await?.iter().collect::<Vec<_>>(), left);

    // After the report, the others move too.
    report_all(&world, "tenant").await?;
    assert_eq!(tick(&world).await?, ArchiveOutcome { archived: 3, ..ArchiveOutcome::default() });
    assert_eq!(world.archived_heads("tenant").await?.len(), 8);
    Ok(())
}

/// Creates a payment and has it claimed.
async fn swept(world: &World, key: &str) -> Result<String> {
    let id = put(world, "tenant", key).await?;
    world.sweep().await?;
    Ok(id)
}

#[tokio::test]
async fn nothing_is_archived_before_an_hour_after_its_day() -> Result<()> {
    let world = World::open().await?;
    for (day, at, moves) in [
        ("2026-11-20", "2026-11-20T23:59:00Z", false),
        ("2026-11-20", "2026-11-21T00:59:59Z", false),
        ("2026-11-20", "2026-11-21T01:00:00Z", true),
        // London's 28 March has 23 hours and ends in summer time, an hour before UTC's.
        ("2027-03-28", "2027-03-28T22:59:59Z", false),
        ("2027-03-28", "2027-03-28T23:59:59Z", false),
        ("2027-03-28", "2027-03-29T00:00:00Z", true),
        // Its 31 October has 25 and ends with UTC's.
        ("2027-10-31", "2027-11-01T00:00:00Z", false),
        ("2027-10-31", "2027-11-01T00:59:59Z", false),
        ("2027-10-31", "2027-11-01T01:00:00Z", true),
    ] {
        world.set_clock("2026-11-20T09:00:00Z")?;
        let id = world.create("tenant", &format!("for-{day}"), &body(day, "x")).await?;
        world.cancel("tenant", &id).await?;
        world.set_clock(at)?;
        assert_eq!(tick(&world).await?.archived, u64::from(moves), "{day} at {at}");
    }
    Ok(())
}

#[tokio::test]
async fn a_second_run_writes_nothing() -> Result<()> {
    let world = World::open().await?;
    put_processed(&world, "tenant", &["one", "two"], true).await?;
    put_processed(&world, "tenant", &["three"], false).await?;
    world.set_clock(NIGHT)?;
    assert_eq!(tick(&world).await?.archived, 2);
    let (hot, history) = (world.heads("tenant").await?, world.archived_heads("tenant").await?);
    drop((world.take_write_units(), world.recorder.take_operations()));
    assert_eq!(tick(&world).await?, ArchiveOutcome { waiting_for_report: 1, ..ArchiveOutcome::default() });
    assert_eq!(world.take_write_units(), BTreeMap::new());
    let operations = world.recorder.take_operations();
    // Three statuses of ten shards, and the heads of the remaining payment.
    assert_eq!(operations.iter().filter(|operation| *operation == "Query").count(), 30);
    assert_eq!(operations.iter().filter(|operation| *operation == "BatchGetItem").count(), 1);
    assert_eq!(operations.len(), 31);
    assert_eq!((world.heads("tenant").await?, world.archived_heads("tenant").await?), (hot, history));
    Ok(())
}

#[tokio::test]
async fn archiving_costs_five_units_for_a_processed_payment_and_four_for_others() -> Result<()> {
    let world = World::open().await?;
    let write = |operation: &str, place: &str| ((operation.to_owned(), place.to_owned()), 1);
    let four = vec![
        write("PutItem", "history"),
        write("PutItem", "history/due"),
        write("DeleteItem", "payments"),
        write("DeleteItem", "payments/due"),
    ];
    let mut five = four.clone();
    five.push(write("PutItem", "history/transaction"));
    for (status, want) in [("PROCESSED", five), ("FAILED", four.clone()), ("CANCELLED", four)] {
        world.set_clock("2026-11-20T09:00:00Z")?;
        // As much data as fits into 8 KB.
        let id = &world.create("tenant", status, &body(DAY, &"x".repeat(7_500))).await?;
        match status {
            "CANCELLED" => world.cancel("tenant", id).await?,
            _ => {
                world.sweep().await?;
                settle(&world, if status == "FAILED" { refused(id) } else { processed(id) }).await?;
                report_all(&world, "tenant").await?;
            }
        }
        world.set_clock(NIGHT)?;
        drop(world.take_write_units());
        assert_eq!(tick(&world).await?.archived, 1, "{status}");
        assert_eq!(world.take_write_units(), BTreeMap::from_iter(want), "{status}");
    }
    Ok(())
}

#[tokio::test]
async fn overdue_payments_are_measured_by_reason() -> Result<()> {
    let world = World::open().await?;
    put_processed(&world, "tenant", &["one", "two"], false).await?;
    let cancelled = put(&world, "broken", "three").await?;
    world.cancel("broken", &cancelled).await?;
    let broken = world.heads("broken").await?.remove(0);
    world.update(&broken, "SET trail = :none", &[(":none", AttributeValue::L(vec![]))]).await?;
    // They could have moved at one o'clock in the night before, and settled ones get three days to expire.
    for (at, waiting, overdue, unmovable) in [
        ("2026-11-21T01:00:00Z", 0, 0, 0),
        ("2026-11-22T01:00:00Z", 0, 0, 0),
        ("2026-11-22T01:00:01Z", 0, 0, 1),
        ("2026-11-24T00:59:59Z", 0, 0, 1),
        ("2026-11-24T01:00:00Z", 2, 0, 1),
        ("2026-11-25T01:00:00Z", 2, 0, 1),
        ("2026-11-25T01:00:01Z", 2, 2, 1),
    ] {
        world.set_clock(at)?;
        let report = tick(&world).await?;
        assert_eq!((report.waiting_for_report, report.failed), (waiting, 1), "{at}");
        assert_eq!((report.overdue_waiting_for_report, report.overdue_unmovable), (overdue, unmovable), "{at}");
        assert_eq!(world.metric("OverdueWaitingForReport")?, overdue, "{at}");
        tick(&world).await?;
        assert_eq!(world.metric("OverdueUnmovable")?, unmovable, "{at}");
        tick(&world).await?;
        assert_eq!(world.metric("ArchiveFailed")?, 1, "{at}");
    }
    Ok(())
}
