//! A lagging index: it still shows reported payments, or shows settlements late.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use payments_bank::{Dependencies, Functions};
use payments_machine::layers::{Answer, Next, Reply, client_over};
use payments_machine::{Call, Layers};
use payments_store::Store;
use payments_tests::{World, assert_has};
use serde_json::json;

use super::settlements::{SETTLED_AT, ids_by_report, invoke, many, reported_ids, run};

/// The answers to queries of `unreported`, by query.
type Answers = Arc<Mutex<BTreeMap<String, Reply>>>;

/// Answers a query of `unreported` as it was answered the first time.
async fn stale(call: Call, next: Next, answers: Answers) -> Answer {
    let input = call.input();
    if input["IndexName"] != "unreported" {
        return next.send(call).await;
    }
    let query = format!("{} {}", input["ExpressionAttributeValues"], input["ExclusiveStartKey"]);
    let answers = || answers.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = answers().get(&query).cloned() {
        return Ok(known);
    }
    let reply = next.send(call).await?;
    answers().insert(query, reply.clone());
    Ok(reply)
}

/// Answers a query of `unreported` with each entry three times, as if it was on several pages.
async fn repeated(call: Call, next: Next) -> Answer {
    if call.input()["IndexName"] != "unreported" {
        return next.send(call).await;
    }
    let mut reply = next.send(call).await?;
    reply.change(|page| {
        let Some(entries) = page["Items"].as_array_mut() else { return false };
        *entries = entries.iter().flat_map(|entry| std::iter::repeat_n(entry.clone(), 3)).collect();
        true
    });
    Ok(reply)
}

/// The functions over an index that stays as they find it.
async fn over_a_stale_index(world: &World) -> Result<Functions> {
    let answers = Answers::default();
    over(world, Layers::over(world.recorder.clone()).with_fn(move |call, next| stale(call, next, Arc::clone(&answers))))
        .await
}

async fn over(world: &World, index: Layers) -> Result<Functions> {
    let dependencies = world.dependencies_over(&world.recorder).await;
    let store = Store::new(client_over(&world.client().await, index), world.environment.tables.clone());
    world.functions_in(&Dependencies { store, ..dependencies })
}

#[tokio::test]
async fn lingering_index_entries_are_not_reported_again() -> Result<()> {
    let world = World::open().await?;
    let stale = over_a_stale_index(&world).await?;
    let all = many(&world, SETTLED_AT, 40, 0).await?;
    let first = invoke(&stale, "first").await?;
    assert_has(&first, &json!({ "reported": 40, "drained": 40 }));
    // The index still shows all of them, and one has been archived.
    world.archive_all("payer-3").await?;
    let again = invoke(&stale, "again").await?;
    assert_has(&again, &json!({ "runsCommitted": 0, "skipped": 40, "moreWaits": false }));
    assert_eq!(reported_ids(&world).await?, all);
    Ok(())
}

#[tokio::test]
async fn late_index_entries_are_in_a_later_report() -> Result<()> {
    let world = World::open().await?;
    let early = many(&world, SETTLED_AT, 20, 0).await?;
    let stale = over_a_stale_index(&world).await?;
    // The index shows the state before the second twenty.
    assert_eq!(invoke(&stale, "first").await?["reported"], 20);
    let late = many(&world, "2026-11-20T09:05:00Z", 20, 1).await?;
    world.set_clock("2026-11-20T10:00:00Z")?;
    assert_eq!(invoke(&stale, "second").await?["reported"], 0);
    // Once the index shows them they are reported, though they were settled before the others.
    assert_eq!(run(&world).await?["reported"], 20);
    // The names of reports begin with the first settlement.
    assert_eq!(ids_by_report(&world).await?, [late, early]);
    Ok(())
}

/// 800 entries are read together, so some are read twice.
#[tokio::test]
async fn an_entry_that_the_index_shows_three_times_is_reported_once() -> Result<()> {
    let world = World::open().await?;
    let all = many(&world, SETTLED_AT, 300, 0).await?;
    let repeating = over(&world, Layers::over(world.recorder.clone()).with_fn(repeated)).await?;
    let run = invoke(&repeating, "first").await?;
    assert_has(&run, &json!({ "reported": 300, "skipped": 600 }));
    assert_eq!(reported_ids(&world).await?, all);
    Ok(())
}
