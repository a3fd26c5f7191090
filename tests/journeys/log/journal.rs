//! The journal has every event of the log once and in its order, whatever ends a run and whoever else writes.

use aws_sdk_dynamodb::Client;
use object_store::PutMode;
use payments_lab::laws::journal::journaled;
use payments_machine::interceptor::Fate;
use payments_machine::{Function, Handlers as _};
use payments_restore::{Restored, begin, finish};
use payments_store::Store;
use payments_tests::tables::{NO_DEADLINE, context};
use payments_tests::{Counting, CrashPoints, Way};
use publish::{JournalObject, Publish};

use super::between::{at_call, failing};
use super::*;

/// Creates payments, and counts them: one segment.
async fn segment(world: &World, counting: &mut Counting, payments: usize, from: usize) -> Result<()> {
    create(world, payments, from).await?;
    counting.count(world.functions()).await.map(drop)
}

/// Runs the function, and returns its outcome.
async fn publish(world: &World) -> Result<Value> {
    let request = json!({ "action": "publish" });
    let done = world.functions().scheduled(Function::Publish, request, context(NO_DEADLINE)).await;
    done.map_err(anyhow::Error::msg)
}

/// Runs the function over a client.
async fn publish_over(world: &World, client: Client) -> Result<()> {
    let store = Store::new(client, world.environment.tables.clone());
    let dependencies = world.dependencies_over(&world.recorder).await;
    let function =
        Publish::new(store, dependencies.reports, dependencies.webhooks, dependencies.clock, dependencies.metrics);
    let request = serde_json::from_value(json!({ "action": "publish" }))?;
    let event = lambda_runtime::LambdaEvent::new(request, context(NO_DEADLINE));
    function.handle(event).await.map(drop).map_err(anyhow::Error::from_boxed)
}

/// The journal must have what the log has.
async fn assert_whole(world: &World) -> Result<()> {
    assert_eq!(journaled(&world.outside.reports).await?, events(&all(world, 1_000).await?)?);
    Ok(())
}

#[tokio::test]
async fn each_run_writes_what_is_new() -> Result<()> {
    let world = World::open().await?;
    let nothing = json!({ "journaledEvents": 0, "journalFiles": 0, "journalSegmentsBehind": 0, "journalMissed": 0 });
    assert_eq!(publish(&world).await?, nothing);
    let mut counting = Counting::of(&world).await?;
    segment(&world, &mut counting, 3, 0).await?;
    segment(&world, &mut counting, 2, 3).await?;
    let written = |events: u64| {
        let mut outcome = nothing.clone();
        (outcome["journaledEvents"], outcome["journalFiles"]) = (events.into(), 1.into());
        outcome
    };
    assert_eq!(publish(&world).await?, written(5));
    assert_eq!(publish(&world).await?, nothing);
    segment(&world, &mut counting, 1, 5).await?;
    assert_eq!(publish(&world).await?, written(1));
    // More than a month in which nothing happens.
    world.set_clock("2026-12-28T09:00:00Z")?;
    assert_eq!(publish(&world).await?, nothing);
    Ok(())
}

#[tokio::test]
async fn a_run_that_is_killed_at_any_call_leaves_files_without_overlap() -> Result<()> {
    let mut points = CrashPoints::new("journal-killed", [Fate::KillBefore, Fate::KillAfter].map(Way::once));
    while let Some(point) = points.next_case() {
        let world = World::open().await?;
        let mut counting = Counting::of(&world).await?;
        segment(&world, &mut counting, 2, 0).await?;
        segment(&world, &mut counting, 1, 2).await?;
        let run = async |client| publish_over(&world, client).await;
        failing(&world, &mut points, point, |_| true, run).await?;
        // More comes before the next run, which finds the file that the killed one wrote.
        segment(&world, &mut counting, 1, 3).await?;
        publish(&world).await?;
        assert_whole(&world).await.with_context(|| format!("{point:?}"))?;
    }
    assert!(points.cases() > 7, "{points:?}");
    Ok(())
}

#[tokio::test]
async fn a_run_that_another_one_overtakes_at_any_call_ends_quietly() -> Result<()> {
    for number in 0..6 {
        let world = World::open().await?;
        let mut counting = Counting::of(&world).await?;
        segment(&world, &mut counting, 2, 0).await?;
        let run = async |client| publish_over(&world, client).await;
        let other = async {
            segment(&world, &mut counting, 1, 2).await?;
            publish(&world).await.map(drop)
        };
        let overtaken = at_call(&world, "journal-overtaken", number, run, other).await;
        overtaken.with_context(|| format!("overtaken at call {number}"))?;
        publish(&world).await?;
        assert_whole(&world).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_run_that_is_far_behind_goes_on_where_the_files_end() -> Result<()> {
    let world = World::open().await?;
    let (store, mut counting) = (world.store().await, Counting::of(&world).await?);
    let mut first = None;
    for n in 0..4 {
        segment(&world, &mut counting, 1, n).await?;
        publish(&world).await?;
        first = first.or(store.log_consumer("journal").await?);
    }
    // Its place is lost, as after a restore of the log's table: it finds one file after the other.
    let (first, last) = (first.context("no place")?, store.log_consumer("journal").await?);
    assert!(store.move_log_consumer("journal", last, first).await?);
    segment(&world, &mut counting, 1, 4).await?;
    assert_eq!(publish(&world).await?["journalFiles"], 1);
    assert_whole(&world).await?;
    // Runs at the same time write each file once.
    segment(&world, &mut counting, 1, 5).await?;
    let (one, other) = tokio::join!(publish(&world), publish(&world));
    assert_eq!(one?["journalFiles"].as_u64().unwrap_or(0) + other?["journalFiles"].as_u64().unwrap_or(0), 1);
    assert_whole(&world).await
}

#[tokio::test]
async fn the_journal_goes_on_in_the_next_epoch_also_of_a_torn_log() -> Result<()> {
    let world = World::open().await?;
    let (store, stream) = (world.store().await, world.stream().await?.arn().to_owned());
    let mut counting = Counting::of(&world).await?;
    for n in 0..3 {
        segment(&world, &mut counting, 1, n).await?;
    }
    publish(&world).await?;
    let before = journaled(&world.outside.reports).await?;
    lose_segment(&world, 3).await?;
    world.set_clock("2026-11-20T12:00:00Z")?;
    begin(&store).await?;
    publish(&world).await?;
    let restored = Restored { stream, tables_to: None, log_to: Some("2026-11-20T11:00:00Z".parse()?) };
    finish(&store, &restored, || world.now(), |_, _| {}).await?;
    segment(&world, &mut counting, 1, 3).await?;
    let outcome = publish(&world).await?;
    assert_eq!((&outcome["journalSegmentsBehind"], &outcome["journalMissed"]), (&json!(0), &json!(0)));
    // The journal still has the event that the log lost.
    let (journal, log) = (journaled(&world.outside.reports).await?, events(&all(&world, 1_000).await?)?);
    assert_eq!(journal[..3], before);
    assert_eq!(journal[3..], log[2..]);
    Ok(())
}

#[tokio::test]
async fn what_is_before_a_hole_is_in_a_file_and_what_is_behind_it_is_not() -> Result<()> {
    let world = World::open().await?;
    let mut counting = Counting::of(&world).await?;
    for n in 0..3 {
        segment(&world, &mut counting, 1, n).await?;
    }
    let before = events(&all(&world, 1_000).await?)?;
    lose_segment(&world, 2).await?;
    let error = publish(&world).await.err().context("it goes over the hole")?;
    assert!(error.to_string().contains("LOG#3622140 / 000000000002"), "{error}");
    assert_eq!(journaled(&world.outside.reports).await?, before[..1]);
    Ok(())
}

#[tokio::test]
async fn a_journal_that_disagrees_with_the_log_stands_still() -> Result<()> {
    let world = World::open().await?;
    let (store, mut counting) = (world.store().await, Counting::of(&world).await?);
    segment(&world, &mut counting, 1, 0).await?;
    let next = head(&world).await?.end();
    let end = LogPosition { number: next.number + 1, ..next };
    // The log was restored to an earlier time, and its numbers are used again.
    let files = &world.outside.reports;
    let put = async |events: Vec<String>, bytes: Option<&'static str>| -> Result<()> {
        let object = JournalObject { first: next, after: end, events };
        let bytes = bytes.map_or_else(|| object.encode(), |bytes| Ok(bytes.into()))?;
        files.put_opts(&JournalObject::path(next), bytes.into(), PutMode::Overwrite.into()).await?;
        Ok(())
    };
    put(vec!["{}".to_owned()], None).await?;
    publish(&world).await?;
    segment(&world, &mut counting, 1, 1).await?;
    for (bytes, want) in [(None, "has other events than the log"), (Some("none"), "was changed")] {
        put(vec!["{}".to_owned()], bytes).await?;
        let error = publish(&world).await.err().context("it goes on")?;
        assert!(error.to_string().contains(want), "{error}");
        assert_eq!(store.log_consumer("journal").await?, Some(next));
    }
    assert!(store.move_log_consumer("journal", Some(next), LogPosition { number: 9, ..next }).await?);
    let error = publish(&world).await.err().context("it goes on")?;
    assert!(error.to_string().contains("before the place 3622140.9.0 of the journal"), "{error}");
    Ok(())
}

#[tokio::test]
async fn what_the_log_no_longer_has_is_missed_loudly() -> Result<()> {
    let world = World::open().await?;
    let mut counting = Counting::of(&world).await?;
    segment(&world, &mut counting, 1, 0).await?;
    publish(&world).await?;
    segment(&world, &mut counting, 1, 1).await?;
    world.set_clock("2026-12-28T09:00:00Z")?;
    let late = json!({
        "accountId": "payer", "idempotencyKey": "late", "payeeAccountId": "shop",
        "amountMinor": 1, "currency": "GBP", "scheduledFor": "2026-12-29",
    });
    world.create_all([late]).await?;
    counting.count(world.functions()).await?;
    let outcome = publish(&world).await?;
    assert_eq!((&outcome["journalMissed"], &outcome["journaledEvents"]), (&json!(1), &json!(1)));
    let error = journaled(&world.outside.reports).await.err().context("the hole is not seen")?;
    assert!(error.to_string().contains("does not begin where the one before it ended"), "{error}");
    Ok(())
}
