//! The night: what is past and reported moves to history, once, and nothing else does.

mod reads;
mod stops;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use archive::{Action, ArchiveReport, Request};
use aws_sdk_dynamodb::types::AttributeValue;
use lambda_runtime::{Context, LambdaEvent};
use payments_local::Functions;
use payments_store::Item;
use payments_tests::{Ask, World};
use serde_json::{Value, json};

/// The day of these payments, which is also the one on which they are put in.
const DAY: &str = "2026-11-20";

/// The night after it, when the archive runs.
const NIGHT: &str = "2026-11-21T02:30:00Z";

/// Lambda's deadline, where none is tested: in the year 2100, in milliseconds.
const NO_DEADLINE: u64 = 4_102_444_800_000;

fn body(date: &str, data: &str) -> Value {
    json!({ "payeeAccountId": "landlord", "amountMinor": 120_000, "currency": "GBP", "scheduledFor": date, "data": data })
}

/// Puts a payment of the day in.
async fn put(world: &World, account: &str, key: &str) -> Result<String> {
    let reply = world.send(Ask::create(account, key, &body(DAY, key))).await?;
    ensure!(reply.status == 201, "{reply}");
    Ok(reply.field("paymentId").to_owned())
}

async fn sweep(world: &World) -> Result<()> {
    let mut context = Context::default();
    context.deadline = NO_DEADLINE;
    let request = daily_due_sweeper::Request { action: daily_due_sweeper::Action::Sweep };
    world.functions().sweeper.handle(LambdaEvent::new(request, context)).await.map_err(anyhow::Error::msg)?;
    Ok(())
}

/// Brings a result of the transaction service in.
async fn settle(world: &World, result: Value) -> Result<()> {
    let event = json!({ "Records": [{ "messageId": "m", "body": result.to_string() }] });
    let response = world.functions().settle.handle(serde_json::from_value(event)?).await;
    ensure!(response.batch_item_failures.is_empty(), "{response:?}");
    Ok(())
}

fn processed(payment_id: &str) -> Value {
    json!({ "paymentId": payment_id, "outcome": "PROCESSED", "transactionId": format!("TX-{payment_id}") })
}

fn refused(payment_id: &str) -> Value {
    json!({ "paymentId": payment_id, "outcome": "FAILED", "reason": "no funds" })
}

/// Puts payments in and has them processed, and reported if that is said.
async fn put_processed(world: &World, account: &str, keys: &[&str], reported: bool) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for key in keys {
        ids.push(put(world, account, key).await?);
    }
    sweep(world).await?;
    for id in &ids {
        settle(world, processed(id)).await?;
    }
    if reported {
        report_all(world, account).await?;
    }
    Ok(ids)
}

/// What a report does at its end: the account's payments wait for none any more.
async fn report_all(world: &World, account: &str) -> Result<()> {
    for head in world.heads(account).await? {
        alter(world, &head, "REMOVE unreported", &[]).await?;
    }
    Ok(())
}

/// Changes a head of the hot table behind everybody's back.
async fn alter(world: &World, head: &Item, change: &str, values: &[(&str, AttributeValue)]) -> Result<()> {
    let update = world.client().await.update_item().table_name(&world.environment.tables.payments);
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let values = Some(values).filter(|values: &std::collections::HashMap<_, _>| !values.is_empty());
    let update = update.set_key(Some(key_of(head))).update_expression(change).set_expression_attribute_values(values);
    update.send().await?;
    Ok(())
}

fn key_of(head: &Item) -> Item {
    ["pk", "sk"].map(|name| (name.to_owned(), head[name].clone())).into()
}

async fn tick(world: &World) -> Result<ArchiveReport> {
    tick_of(world.functions()).await
}

async fn tick_of(functions: &Functions) -> Result<ArchiveReport> {
    let mut context = Context::default();
    context.deadline = NO_DEADLINE;
    let request = Request { action: Action::Archive };
    functions.archive.handle(LambdaEvent::new(request, context)).await.map_err(anyhow::Error::msg)
}

/// A number of the latest run.
fn metric(world: &World, name: &str) -> Result<u64> {
    let lines = world.outside.metrics.take();
    let line: Value = serde_json::from_str(lines.last().context("nothing was measured")?)?;
    line[name].as_u64().with_context(|| format!("no {name} in {line}"))
}

/// The writes since the last time, in units by operation and place.
fn written(world: &World) -> BTreeMap<(String, String), u64> {
    let tables = &world.environment.tables;
    let plain = |place: String| place.replace(&tables.history, "history").replace(&tables.payments, "payments");
    let ledger = world.wire.take_capacity_use().into_iter();
    let writes =
        ledger.filter(|((op, _), halves)| *halves > 0 && !matches!(op.as_str(), "Query" | "GetItem" | "BatchGetItem"));
    writes.map(|((op, place), halves)| ((op, plain(place)), halves / 2)).collect()
}

fn status_of(head: &Item) -> &str {
    head["status"].as_s().map_or("", String::as_str)
}

#[tokio::test]
async fn what_is_past_and_reported_moves_and_nothing_else() -> Result<()> {
    let world = World::open().await?;
    put_processed(&world, "tenant", &["one", "two", "three"], true).await?;
    settle(&world, refused(&swept(&world, "four").await?)).await?;
    report_all(&world, "tenant").await?;
    put_processed(&world, "tenant", &["five", "six"], false).await?;
    settle(&world, refused(&swept(&world, "seven").await?)).await?;
    swept(&world, "eight").await?;
    let cancelled = put(&world, "tenant", "nine").await?;
    world.send(Ask::cancel("tenant", &cancelled)).await?;
    let of_today = world.send(Ask::create("tenant", "ten", &body("2026-11-21", "ten"))).await?;
    world.send(Ask::cancel("tenant", of_today.field("paymentId"))).await?;
    let before = world.heads("tenant").await?;
    assert_eq!(before.len(), 10);

    world.set_clock(NIGHT)?;
    let report = tick(&world).await?;
    assert_eq!(report, ArchiveReport { archived: 5, waiting_for_report: 3, ..ArchiveReport::default() });
    let is_past = |head: &&Item| {
        matches!(status_of(head), "PROCESSED" | "FAILED" | "CANCELLED")
            && !head.contains_key("unreported")
            && head["due"].as_s().is_ok_and(|due| due.contains(DAY))
    };
    let (moved, left): (Vec<&Item>, Vec<&Item>) = before.iter().partition(is_past);
    let statuses: Vec<&str> = moved.iter().map(|head| status_of(head)).collect();
    assert_eq!(statuses.iter().filter(|status| **status == "PROCESSED").count(), 3, "{statuses:?}");
    // Field by field, as it is stored.
    assert_eq!(world.archived_heads("tenant").await?.iter().collect::<Vec<_>>(), moved);
    assert_eq!(world.heads("tenant").await?.iter().collect::<Vec<_>>(), left);

    // When the report has been, the rest of them moves too.
    report_all(&world, "tenant").await?;
    assert_eq!(tick(&world).await?, ArchiveReport { archived: 3, ..ArchiveReport::default() });
    assert_eq!(world.archived_heads("tenant").await?.len(), 8);
    Ok(())
}

/// Puts a payment in and has it become pending.
async fn swept(world: &World, key: &str) -> Result<String> {
    let id = put(world, "tenant", key).await?;
    sweep(world).await?;
    Ok(id)
}

#[tokio::test]
async fn nothing_moves_before_an_hour_after_the_end_of_its_day() -> Result<()> {
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
        let put_in = world.send(Ask::create("tenant", &format!("for-{day}"), &body(day, "x"))).await?;
        assert_eq!(world.send(Ask::cancel("tenant", put_in.field("paymentId"))).await?.status, 200, "{day}");
        world.set_clock(at)?;
        assert_eq!(tick(&world).await?.archived, u64::from(moves), "{day} at {at}");
    }
    Ok(())
}

#[tokio::test]
async fn a_second_run_does_nothing_and_writes_nothing() -> Result<()> {
    let world = World::open().await?;
    put_processed(&world, "tenant", &["one", "two"], true).await?;
    put_processed(&world, "tenant", &["three"], false).await?;
    world.set_clock(NIGHT)?;
    assert_eq!(tick(&world).await?.archived, 2);
    let (hot, history) = (world.heads("tenant").await?, world.archived_heads("tenant").await?);
    drop((written(&world), world.wire.take_operations()));
    assert_eq!(tick(&world).await?, ArchiveReport { waiting_for_report: 1, ..ArchiveReport::default() });
    assert_eq!(written(&world), BTreeMap::new());
    let operations = world.wire.take_operations();
    // Three statuses of ten shards, and the heads of the one that is left.
    assert_eq!(operations.iter().filter(|operation| *operation == "Query").count(), 30);
    assert_eq!(operations.iter().filter(|operation| *operation == "BatchGetItem").count(), 1);
    assert_eq!(operations.len(), 31);
    assert_eq!((world.heads("tenant").await?, world.archived_heads("tenant").await?), (hot, history));
    Ok(())
}

#[tokio::test]
async fn moving_a_processed_payment_costs_six_and_the_others_four() -> Result<()> {
    let world = World::open().await?;
    let write = |operation: &str, place: &str| ((operation.to_owned(), place.to_owned()), 1);
    let four = vec![
        write("PutItem", "history"),
        write("PutItem", "history/due"),
        write("DeleteItem", "payments"),
        write("DeleteItem", "payments/due"),
    ];
    let mut six = four.clone();
    six.extend([write("PutItem", "history/transaction"), write("DeleteItem", "payments/transaction")]);
    for (status, want) in [("PROCESSED", six), ("FAILED", four.clone()), ("CANCELLED", four)] {
        world.set_clock("2026-11-20T09:00:00Z")?;
        // As much data as fits: with the rest of it, 8 KB.
        let put_in = world.send(Ask::create("tenant", status, &body(DAY, &"x".repeat(7_700)))).await?;
        assert_eq!(put_in.status, 201, "{put_in}");
        let id = put_in.field("paymentId");
        match status {
            "CANCELLED" => drop(world.send(Ask::cancel("tenant", id)).await?),
            _ => {
                sweep(&world).await?;
                settle(&world, if status == "FAILED" { refused(id) } else { processed(id) }).await?;
                report_all(&world, "tenant").await?;
            }
        }
        world.set_clock(NIGHT)?;
        drop(written(&world));
        assert_eq!(tick(&world).await?.archived, 1, "{status}");
        assert_eq!(written(&world), BTreeMap::from_iter(want), "{status}");
    }
    Ok(())
}

#[tokio::test]
async fn what_stays_for_more_than_a_day_is_measured_by_its_reason() -> Result<()> {
    let world = World::open().await?;
    put_processed(&world, "tenant", &["one", "two"], false).await?;
    put_processed(&world, "broken", &["three"], true).await?;
    let broken = world.heads("broken").await?.remove(0);
    alter(&world, &broken, "SET trail = :none", &[(":none", AttributeValue::L(vec![]))]).await?;
    // They could have moved at one o'clock of the night after.
    for (at, waiting, unmovable) in
        [("2026-11-21T01:00:00Z", 0, 0), ("2026-11-22T01:00:00Z", 0, 0), ("2026-11-22T01:00:01Z", 2, 1)]
    {
        world.set_clock(at)?;
        let report = tick(&world).await?;
        assert_eq!((report.waiting_for_report, report.failed), (2, 1), "{at}");
        assert_eq!((report.overdue_waiting_for_report, report.overdue_unmovable), (waiting, unmovable), "{at}");
        assert_eq!(metric(&world, "OverdueWaitingForReport")?, waiting, "{at}");
        tick(&world).await?;
        assert_eq!(metric(&world, "OverdueUnmovable")?, unmovable, "{at}");
        tick(&world).await?;
        assert_eq!(metric(&world, "ArchiveFailed")?, 1, "{at}");
    }
    Ok(())
}
