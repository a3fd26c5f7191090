//! The journal has every event of the log once and in its order, whatever ends a run and whoever else writes.

use aws_sdk_dynamodb::Client;
use payments_lab::laws::journal::journaled;
use payments_machine::Fate;
use payments_machine::Handlers as _;
use payments_restore::{Restored, begin, finish};
use payments_store::Store;
use payments_tests::tables::{NO_DEADLINE, context};
use payments_tests::{Counting, CrashPoints, Way};
use publish::Publish;

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
    let done = world.functions().scheduled("publish", request, context(NO_DEADLINE)).await;
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
