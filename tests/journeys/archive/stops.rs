//! Faults that stop the archive, or one payment: crashes, other runs, deadlines, throttling, damage. A payment stays in
//! one table or in both, and all others move.

use payments_tests::prelude::*;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use archive::{Archive, ArchiveOutcome, Config};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::DateTime;
use payments_boot::{Clock, Lookup};
use payments_model::HeadKey;
use payments_store::key::parse_head_key;
use payments_store::{Archived, Removed, Store, StoredHead};

use super::{NIGHT, archive_with, archived, assert_archived, put_cancelled, put_many, put_processed, status_of};

/// Runs the archive while every try of an operation has this fate.
async fn archive_meeting(world: &World, operation: &'static str, fate: Fate) -> Result<ArchiveOutcome> {
    archive_with(&world.functions_meeting(fate, move |call| call.operation == operation).await?).await
}

#[tokio::test]
async fn the_next_run_resumes_a_stopped_one() -> Result<()> {
    for (operation, fate, then) in [
        ("PutItem", Fate::LoseRequest, (3, 0)),
        ("PutItem", Fate::LoseReply, (3, 3)),
        ("DeleteItem", Fate::LoseRequest, (3, 3)),
        ("DeleteItem", Fate::LoseReply, (0, 3)),
        ("DeleteItem", Fate::Refuse(500, "InternalServerError"), (3, 3)),
    ] {
        let world = World::open().await?;
        let before = put_many(&world, 3).await?;
        world.set_clock(NIGHT)?;
        let report = archive_meeting(&world, operation, fate).await?;
        assert_eq!((report.archived, report.remaining), (0, 3), "{operation} {fate:?}: {report:?}");
        assert!(report.shards_given_up > 0, "{operation} {fate:?}: {report:?}");
        assert_eq!(world.places("tenant").await?, then, "{operation} {fate:?}");
        assert_eq!(world.archive().await?, archived(u64::try_from(then.0)?), "{operation} {fate:?}");
        assert_archived(&world, "tenant", &before).await?;
        note_case("archive-steps", format_args!("each {operation} {fate:?}"), 0)?;
    }
    Ok(())
}

/// Every put and every delete loses its reply once, in one run.
#[tokio::test]
async fn a_reply_lost_once_does_no_harm() -> Result<()> {
    let world = World::open().await?;
    let before = put_many(&world, 3).await?;
    world.set_clock(NIGHT)?;
    let seen: Mutex<BTreeSet<String>> = Mutex::default();
    let is_first = move |call: &Call| {
        let is_write = ["PutItem", "DeleteItem"].contains(&call.operation.as_str());
        let written = format!("{} {}", call.operation, call.input());
        is_write && seen.lock().unwrap_or_else(PoisonError::into_inner).insert(written)
    };
    let lossy = world.functions_meeting(Fate::LoseReply, is_first).await?;
    assert_eq!(archive_with(&lossy).await?, ArchiveOutcome { already_gone: 3, ..archived(0) });
    assert_archived(&world, "tenant", &before).await
}

#[tokio::test]
async fn different_heads_in_both_tables_are_both_kept() -> Result<()> {
    let world = World::open().await?;
    put_processed(&world, "tenant", &["one"], true).await?;
    put_processed(&world, "other", &["two", "three"], true).await?;
    let hot = world.heads("tenant").await?;
    let mut different: Item = hot[0].clone();
    different.insert("transactionId".to_owned(), text("TX-of-somebody-else"));
    world.put_items(&world.environment.tables.history, [different.clone()]).await?;
    world.set_clock(NIGHT)?;
    for others in [2, 0] {
        let report = world.archive().await?;
        assert_eq!(report, ArchiveOutcome { failed: 1, overdue_unmovable: 1, ..archived(others) });
        assert_eq!(world.heads("tenant").await?, hot);
        assert_eq!(world.archived_heads("tenant").await?, std::slice::from_ref(&different));
    }
    assert_eq!(world.places("other").await?, (0, 2));
    Ok(())
}

#[tokio::test]
async fn unreadable_items_stop_no_others() -> Result<()> {
    let world = World::open().await?;
    // A damaged head, a damaged index entry, a damaged head in history, and undamaged payments.
    for account in ["head", "entry", "archived"] {
        put_processed(&world, account, &["one"], true).await?;
    }
    put_many(&world, 30).await?;
    let damage = [(":none", AttributeValue::L(vec![]))];
    world.update(&world.heads("head").await?[0], "SET trail = :none", &damage).await?;
    world.update(&world.heads("entry").await?[0], "SET amountMinor = :zero", &[(":zero", number(0))]).await?;
    let mut damaged = world.heads("archived").await?.remove(0);
    damaged.insert("version".to_owned(), number(7));
    world.put_items(&world.environment.tables.history, [damaged]).await?;
    world.set_clock(NIGHT)?;
    assert_eq!(world.archive().await?, ArchiveOutcome { failed: 3, overdue_unmovable: 3, ..archived(30) });
    for (account, want) in [("head", (1, 0)), ("entry", (1, 0)), ("archived", (1, 1)), ("tenant", (0, 30))] {
        assert_eq!(world.places(account).await?, want, "{account}");
    }
    Ok(())
}

/// A world with a processed and reported payment: its item, and what reads its head with the item.
async fn one_payment() -> Result<(World, Item, HeadKey)> {
    let world = World::open().await?;
    let item = put_many(&world, 1).await?.remove(0);
    let part = |name: &str| item[name].as_s().ok().context("a key");
    let key = parse_head_key(part("pk")?, part("sk")?)?;
    Ok((world, item, key))
}

/// A head with its item.
async fn stored_head(store: &Store, key: &HeadKey) -> Result<StoredHead> {
    let (_, head) = store.stored_heads(std::slice::from_ref(key)).await?.pop().context("no such head")?;
    Ok(head?)
}

#[tokio::test]
async fn only_an_unchanged_head_is_removed() -> Result<()> {
    let (world, item, key) = one_payment().await?;
    let store = world.store().await;
    // Attributes that only a later version knows.
    world.update(&item, "SET later = :a, gone = :a", &[(":a", number(1))]).await?;
    let (whole, head) = (world.heads("tenant").await?, stored_head(&store, &key).await?);
    for (change, value) in [
        ("SET version = :v", Some(number(4))),
        ("SET unreported = :v", Some(text("202611200900#..."))),
        ("SET later = :v", Some(number(2))),
        ("REMOVE gone", None),
    ] {
        let values: Vec<_> = value.into_iter().map(|value| (":v", value)).collect();
        world.update(&item, change, &values).await?;
        assert_eq!(store.remove_head(&head).await?, Removed::Changed, "{change}");
        assert_eq!(world.places("tenant").await?, (1, 0), "{change}");
        world.put_items(&world.environment.tables.payments, whole.clone()).await?;
    }
    assert_eq!(store.remove_head(&head).await?, Removed::Done);
    assert_eq!(store.remove_head(&head).await?, Removed::Gone);
    Ok(())
}

/// A function of a later version writes to a settled head, without another version, while this one archives it.
#[tokio::test]
async fn an_attribute_that_is_added_or_changed_meanwhile_is_archived_too() -> Result<()> {
    let (world, item, key) = one_payment().await?;
    let store = world.store().await;
    let set = async |expression: &str, value: u32| world.update(&item, expression, &[(":v", number(value))]).await;
    // Changed after it was copied: the next run replaces the copy.
    set("SET later = :v", 1).await?;
    let head = stored_head(&store, &key).await?;
    assert_eq!(store.put_archived_head(&head).await?, Archived::Done);
    set("SET later = :v", 2).await?;
    assert_eq!(store.remove_head(&head).await?, Removed::Changed);
    let head = stored_head(&store, &key).await?;
    assert_eq!(store.put_archived_head(&head).await?, Archived::Done);
    assert_eq!(world.archived_heads("tenant").await?[0]["later"], number(2));
    // Added after it was copied: no condition can see that, but the removal returns it.
    set("SET added = :v", 3).await?;
    let Removed::Grown(grown) = store.remove_head(&head).await? else { anyhow::bail!("it has grown") };
    assert_eq!(store.put_archived_head(&grown).await?, Archived::Done);
    let copy = world.archived_heads("tenant").await?.remove(0);
    assert_eq!((&copy["later"], &copy["added"]), (&number(2), &number(3)));
    assert_eq!(store.remove_head(&grown).await?, Removed::Gone);
    assert_eq!(world.places("tenant").await?, (0, 1));
    Ok(())
}

#[tokio::test]
async fn a_run_replaces_the_copy_of_an_earlier_one_if_an_unknown_attribute_has_changed_since() -> Result<()> {
    let world = World::open().await?;
    put_many(&world, 2).await?;
    world.set_clock(NIGHT)?;
    archive_meeting(&world, "DeleteItem", Fate::LoseRequest).await?;
    assert_eq!(world.places("tenant").await?, (2, 2));
    for head in world.heads("tenant").await? {
        world.update(&head, "SET later = :v", &[(":v", number(2))]).await?;
    }
    let before = world.heads("tenant").await?;
    assert_eq!(world.archive().await?, archived(2));
    assert_archived(&world, "tenant", &before).await
}

#[tokio::test]
async fn two_concurrent_runs_do_no_harm() -> Result<()> {
    let world = World::open().await?;
    let before = put_many(&world, 40).await?;
    world.set_clock(NIGHT)?;
    let (one, other) = tokio::try_join!(world.archive(), world.archive())?;
    assert_eq!(one.archived + other.archived, 40, "each by one of them: {one:?} {other:?}");
    assert_eq!((one.failed, other.failed, one.changed, other.changed), (0, 0, 0, 0), "{one:?} {other:?}");
    assert!(one.already_gone + other.already_gone > 0, "they met: {one:?} {other:?}");
    assert_archived(&world, "tenant", &before).await
}

#[tokio::test]
async fn a_throttled_shard_stops_no_other_and_a_denied_call_is_an_error() -> Result<()> {
    let world = World::open().await?;
    let heads = put_cancelled(&world, 40).await?;
    let of_seven = |head: &&Item| head["shard"].as_n().is_ok_and(|shard| shard == "7");
    let hot: Vec<Item> = heads.iter().filter(of_seven).cloned().collect();
    let (held, count) = (hot.clone(), u64::try_from(hot.len())?);
    assert!(count > 0);
    let is_hot = move |call: &Call| {
        let sk = call.input()["Item"]["sk"]["S"].as_str().unwrap_or_default();
        held.iter().any(|head| head["sk"].as_s().is_ok_and(|hot| hot == sk))
    };
    let throttled =
        world.functions_meeting(Fate::Refuse(400, "ProvisionedThroughputExceededException"), is_hot).await?;
    world.set_clock("2026-11-21T02:30:00Z")?;
    let report = archive_with(&throttled).await?;
    assert_eq!(report, ArchiveOutcome { remaining: count, shards_given_up: 1, ..archived(40 - count) });
    assert_eq!(world.heads("tenant").await?, hot);

    drop(world.outside.metrics.take());
    let refused = archive_meeting(&world, "DeleteItem", Fate::Refuse(400, "AccessDeniedException")).await;
    let error = refused.err().context("it is loud")?;
    assert!(error.to_string().contains("DeleteItem"), "{error}");
    assert_eq!(world.metric("Archived")?, 0, "what was done is measured");
    assert_eq!(world.archive().await?.archived, count);
    assert!(world.archived_heads("tenant").await?.iter().all(|head| status_of(head) == "CANCELLED"));
    Ok(())
}

#[tokio::test]
async fn a_run_counts_what_it_leaves() -> Result<()> {
    let world = World::open().await?;
    put_many(&world, 3).await?;
    // More than a day after they should have expired: the payments that are left are overdue.
    world.set_clock("2026-11-25T02:30:00Z")?;
    for (operation, remaining, is_lower_bound) in
        [("Query", 0, true), ("BatchGetItem", 3, false), ("PutItem", 3, false)]
    {
        let report = archive_meeting(&world, operation, Fate::Refuse(400, "ThrottlingException")).await?;
        assert_eq!((report.remaining, report.overdue_remaining), (remaining, remaining), "{operation}: {report:?}");
        assert_eq!(report.remaining_is_lower_bound, is_lower_bound, "{operation}: {report:?}");
        assert!(report.shards_given_up > 0, "{operation}: {report:?}");
        assert_eq!(world.metric("OverdueRemaining")?, remaining, "{operation}");
        assert_eq!(world.places("tenant").await?, (3, 0), "{operation}");
    }
    assert_eq!(world.archive().await?, archived(3));
    Ok(())
}

/// The archive with a clock on which every call takes 5 ms.
async fn slow_archive(world: &World) -> Result<(Archive, Arc<AtomicI64>)> {
    let millis = Arc::new(AtomicI64::new(DateTime::parse_from_rfc3339(NIGHT)?.timestamp_millis()));
    let called = Arc::clone(&millis);
    let shown = Arc::clone(&millis);
    let slept = Arc::clone(&millis);
    let slow = Recorder::with_fate(move |_| {
        called.fetch_add(5, Ordering::Relaxed);
        Fate::Pass
    });
    let client = Client::from_conf(world.client().await.config().to_builder().http_client(slow).build());
    let now = move || DateTime::from_timestamp_millis(shown.load(Ordering::Relaxed)).unwrap_or_default();
    let clock = Clock::simulated(now, move |time: Duration| {
        slept.fetch_add(i64::try_from(time.as_millis()).unwrap_or(0), Ordering::Relaxed);
    });
    let get = |name: &str| world.environment.get("archive", name);
    let config = Config::read(&Lookup::new(&get))?;
    let store = Store::new(client, world.environment.tables.clone());
    Ok((Archive::new(config, store, clock, world.outside.metrics.clone()), millis))
}

#[tokio::test]
async fn a_run_stops_before_its_deadline_and_the_next_ones_do_the_rest() -> Result<()> {
    let world = World::open().await?;
    let before = put_cancelled(&world, 300).await?;
    world.set_clock("2026-11-23T02:30:00Z")?;
    let (archive, millis) = slow_archive(&world).await?;
    let (mut archived, mut ticks) = (0, 0);
    while archived < 300 {
        let started = millis.load(Ordering::Relaxed);
        let deadline = u64::try_from(started + 4_000)?;
        let report = invoke_until(|event| archive.handle(event), json!({ "action": "archive" }), deadline).await?;
        (archived, ticks) = (archived + report.archived, ticks + 1);
        assert!(millis.load(Ordering::Relaxed) < started + 4_000, "tick {ticks} is in time: {report:?}");
        assert!(report.archived > 0, "tick {ticks} makes progress: {report:?}");
        assert_eq!((report.remaining, report.remaining_is_lower_bound), (300 - archived, false), "tick {ticks}");
        assert_eq!(world.metric("Remaining")?, report.remaining);
    }
    assert!(ticks > 1, "four seconds are not enough for all");
    assert_archived(&world, "tenant", &before).await
}
