//! The archive: past and reported payments move to history, once, and no others.

mod kept;
mod reads;
mod stops;

use archive::ArchiveOutcome;
use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{PaymentId, State};
use payments_store::key::{account_partition, head_sort};
use payments_tests::orders;
use payments_tests::prelude::*;

/// The day on which the payments are created and due.
const DAY: &str = "2026-11-20";

/// The night in which the archive takes settled payments that did not expire.
const NIGHT: &str = "2026-11-24T02:30:00Z";

fn body(date: &str, data: &str) -> Value {
    order_with(date, json!({ "data": data }))
}

/// Creates a payment of the day.
async fn put(world: &World, account: &str, key: &str) -> Result<String> {
    world.create(account, key, &body(DAY, key)).await
}

/// Delivers a settlement result. If it is new, the long-term table loses it, as if it were restored to an instant
/// before: the archive copies what it lacks.
async fn settle(world: &World, result: Value) -> Result<()> {
    let id: PaymentId = result["paymentId"].as_str().context("an id")?.parse()?;
    let key = world.store().await.details(id).await?.context("it has details")?.key();
    let was_pending = world.store().await.head(&key).await?.is_some_and(|head| head.state == State::Pending);
    world.settle(&[result]).await?;
    if was_pending {
        let head = item([("pk", text(account_partition(&key.account))), ("sk", text(head_sort(key.slot)))]);
        world.delete(&world.environment.tables.history, &head).await?;
    }
    Ok(())
}

fn processed(payment_id: &str) -> Value {
    orders::processed(payment_id, &body(DAY, ""), &format!("TX-{payment_id}"))
}

fn refused(payment_id: &str) -> Value {
    orders::failed(payment_id, &body(DAY, ""), "AM04", "no funds")
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

/// The same for so many payments of `tenant`. Returns their heads.
async fn put_many(world: &World, count: usize) -> Result<Vec<Item>> {
    let keys: Vec<String> = (0..count).map(|n| format!("k-{n}")).collect();
    put_processed(world, "tenant", &keys.iter().map(String::as_str).collect::<Vec<_>>(), true).await?;
    world.heads("tenant").await
}

/// Creates so many payments of `tenant` and cancels them. Returns their heads.
async fn put_cancelled(world: &World, count: usize) -> Result<Vec<Item>> {
    for n in 0..count {
        let id = put(world, "tenant", &format!("k-{n}")).await?;
        world.cancel("tenant", &id).await?;
    }
    world.heads("tenant").await
}

/// Marks the account's payments as reported.
async fn report_all(world: &World, account: &str) -> Result<()> {
    for head in world.heads(account).await? {
        world.update(&head, "REMOVE unreported", &[]).await?;
    }
    Ok(())
}

async fn archive_with(functions: &Functions) -> Result<ArchiveOutcome> {
    invoke(|event| functions.archive.handle(event), json!({ "action": "archive" })).await
}

/// The outcome of a run that archived so many payments and met no other.
fn archived(archived: u64) -> ArchiveOutcome {
    ArchiveOutcome { archived, ..ArchiveOutcome::default() }
}

/// Asserts that an account has no head in the hot table, and these in history, attribute by attribute.
async fn assert_archived(world: &World, account: &str, heads: &[Item]) -> Result<()> {
    assert_eq!(world.heads(account).await?, []);
    assert_eq!(world.archived_heads(account).await?, heads);
    Ok(())
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
    for (key, date) in [("nine", DAY), ("ten", "2026-11-24")] {
        let cancelled = world.create("tenant", key, &body(date, key)).await?;
        world.cancel("tenant", &cancelled).await?;
    }
    let before = world.heads("tenant").await?;
    assert_eq!(before.len(), 10);

    world.set_clock(NIGHT)?;
    assert_eq!(world.archive().await?, ArchiveOutcome { waiting_for_report: 3, ..archived(5) });
    let is_past = |head: &Item| {
        matches!(status_of(head), "PROCESSED" | "FAILED" | "CANCELLED")
            && !head.contains_key("unreported")
            && head["due"].as_s().is_ok_and(|due| due.contains(DAY))
    };
    let (moved, left): (Vec<Item>, Vec<Item>) = before.into_iter().partition(is_past);
    assert_eq!(moved.iter().filter(|head| status_of(head) == "PROCESSED").count(), 3, "{moved:?}");
    // As stored, attribute by attribute.
    assert_eq!((world.heads("tenant").await?, world.archived_heads("tenant").await?), (left, moved));

    // After the report, the others move too.
    report_all(&world, "tenant").await?;
    assert_eq!(world.archive().await?, archived(3));
    assert_eq!(world.places("tenant").await?, (2, 8));
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
        // London's 31 October has 25 hours and ends with UTC's.
        ("2027-10-31", "2027-11-01T00:00:00Z", false),
        ("2027-10-31", "2027-11-01T00:59:59Z", false),
        ("2027-10-31", "2027-11-01T01:00:00Z", true),
    ] {
        world.set_clock("2026-11-20T09:00:00Z")?;
        let id = world.create("tenant", &format!("for-{day}"), &body(day, "x")).await?;
        world.cancel("tenant", &id).await?;
        world.set_clock(at)?;
        assert_eq!(world.archive().await?.archived, u64::from(moves), "{day} at {at}");
    }
    Ok(())
}

#[tokio::test]
async fn a_second_run_writes_nothing() -> Result<()> {
    let world = World::open().await?;
    put_processed(&world, "tenant", &["one", "two"], true).await?;
    put_processed(&world, "tenant", &["three"], false).await?;
    world.set_clock(NIGHT)?;
    assert_eq!(world.archive().await?.archived, 2);
    let before = world.items().await?;
    world.forget();
    assert_eq!(world.archive().await?, ArchiveOutcome { waiting_for_report: 1, ..archived(0) });
    assert_eq!(world.take_write_units(), Units::new());
    // Three statuses of ten shards, the heads of the remaining payment, and the outcome of the run.
    let mut operations = world.recorder.take_operations();
    operations.sort();
    assert_eq!(operations, [vec!["BatchGetItem"], vec!["Query"; 30], vec!["UpdateItem"]].concat());
    assert_eq!(world.items().await?, before);
    Ok(())
}

#[tokio::test]
async fn archiving_costs_five_units_for_a_processed_payment_and_four_for_others() -> Result<()> {
    let world = World::open().await?;
    for status in ["PROCESSED", "FAILED", "CANCELLED"] {
        world.set_clock("2026-11-20T09:00:00Z")?;
        // As much data as fits into 8 KB.
        let id = &world.create("tenant", status, &body(DAY, &"x".repeat(7_500))).await?;
        if status == "CANCELLED" {
            world.cancel("tenant", id).await?;
        } else {
            world.sweep().await?;
            settle(&world, if status == "FAILED" { refused(id) } else { processed(id) }).await?;
            report_all(&world, "tenant").await?;
        }
        world.set_clock(NIGHT)?;
        world.forget();
        assert_eq!(world.archive().await?.archived, 1, "{status}");
        let write = |operation: &str, place: &str| ((operation.to_owned(), place.to_owned()), 1);
        let mut want = Units::from([
            write("PutItem", "history"),
            write("PutItem", "history/due"),
            write("DeleteItem", "payments"),
            write("DeleteItem", "payments/due"),
        ]);
        want.extend((status == "PROCESSED").then(|| write("PutItem", "history/transaction")));
        assert_eq!(world.take_write_units(), want, "{status}");
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
    // The payments could have moved at one o'clock in the night before. Settled ones get three days to expire.
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
        let want = ArchiveOutcome {
            waiting_for_report: waiting,
            failed: 1,
            overdue_waiting_for_report: overdue,
            overdue_unmovable: unmovable,
            ..archived(0)
        };
        for (metric, value) in
            [("OverdueWaitingForReport", overdue), ("OverdueUnmovable", unmovable), ("ArchiveFailed", 1)]
        {
            assert_eq!(world.archive().await?, want, "{at}");
            assert_eq!(world.metric(metric)?, value, "{at}");
        }
    }
    Ok(())
}
