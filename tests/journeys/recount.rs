//! Recounts: dates that are exact, dates that have drifted, and dates that cannot be judged.

mod drift;
mod pages;
mod repair;
mod stops;

use payments_tests::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

use payments_tests::given::{ACCOUNT, HORIZON_DAYS, prepare};
use recount::RecountOutcome;

/// The date of these payments, its neighbours, and when the payments move.
const DAY: &str = "2090-06-15";
const BEFORE: &str = "2090-06-14";
const AFTER: &str = "2090-06-16";
const THAT_NIGHT: &str = "2090-06-15T00:05:00Z";

/// The time of the recount: the next night.
const NIGHT: &str = "2090-06-16T02:30:00Z";

/// A world after a day of counted payments in every status.
async fn a_counted_day() -> Result<Arc<World>> {
    let world = World::with(|environment| environment.horizon_days = HORIZON_DAYS).await?;
    prepare(&world, &["a-day", "reported"], THAT_NIGHT).await?;
    world.count_all().await?;
    world.set_clock(NIGHT)?;
    world.forget();
    Ok(Arc::new(world))
}

/// Creates one more payment of the date, at its noon, then sets the clock to `now`.
async fn put(world: &World, key: &str, now: &str) -> Result<String> {
    world.set_clock("2090-06-15T12:00:00Z")?;
    let id = world.create(ACCOUNT, key, &order(DAY)).await?;
    world.set_clock(now)?;
    Ok(id)
}

/// Runs a recount or repair of some dates.
async fn run_of(
    functions: &Functions,
    action: &str,
    (from, to): (&str, &str),
    deadline: u64,
) -> Result<RecountOutcome> {
    let request = json!({ "action": action, "from": from, "to": to, "ticket": TICKET });
    let outcome = invoke_until(|event| functions.recount.handle(event), request, deadline).await?;
    Ok(RecountOutcome { ticket: None, ..outcome })
}

/// Recounts the date and its neighbours.
async fn recount_with(functions: &Functions) -> Result<RecountOutcome> {
    run_of(functions, "recount", (BEFORE, AFTER), NO_DEADLINE).await
}

async fn recount(world: &World) -> Result<RecountOutcome> {
    recount_with(world.functions()).await
}

/// The ticket of a repair that one person asks for.
const TICKET: &str = "INC-4711";

/// Recounts or repairs the date alone.
async fn of_day(functions: &Functions, action: &str) -> Result<RecountOutcome> {
    run_of(functions, action, (DAY, DAY), NO_DEADLINE).await
}

async fn repair(world: &World) -> Result<RecountOutcome> {
    of_day(world.functions(), "repair").await
}

fn exact(dates: u64) -> RecountOutcome {
    RecountOutcome { exact: dates, ..RecountOutcome::default() }
}

/// The outcome of the date whose counters move.
fn moving() -> RecountOutcome {
    RecountOutcome { moving: vec![DAY.to_owned()], ..RecountOutcome::default() }
}

/// Adds to the numbers of a lane.
async fn alter(world: &World, lane: usize, numbers: &[(&str, i64)]) -> Result<()> {
    let counter = item([("pk", text(format!("COUNTS#{lane}"))), ("sk", text(DAY))]);
    for (name, by) in numbers {
        let update = world.client().await.update_item().table_name(&world.environment.tables.payments);
        let update = update.set_key(Some(counter.clone())).update_expression("ADD #name :by");
        let update = update.expression_attribute_names("#name", *name);
        update.expression_attribute_values(":by", number(by)).send().await?;
    }
    Ok(())
}

/// The finding that is stored for the date.
async fn finding(world: &World) -> Result<Option<Item>> {
    let get = world.client().await.get_item().table_name(&world.environment.tables.payments);
    let get = get.key("pk", text("CHECKPOINT#recount")).key("sk", text(DAY));
    Ok(get.send().await?.item)
}

/// The date's counts as the API shows them.
async fn shown(world: &World) -> Result<Value> {
    let mut counts = world.get(&format!("/counts?from={DAY}&to={DAY}")).await?.body["counts"][0].take();
    counts.as_object_mut().context("no counts")?.remove("date");
    Ok(counts)
}

/// Functions with a hook: before each call that `when` selects, something happens to the world.
async fn interfered<Done: Future<Output = Result<()>>>(
    world: &Arc<World>,
    when: impl Fn(&Call) -> bool + Send + Sync + 'static,
    happens: impl Fn(Arc<World>) -> Done + Send + Sync + 'static,
) -> Result<Functions> {
    let inside = Arc::clone(world);
    world.functions_over(&interrupted(when, move || happens(Arc::clone(&inside)))).await
}

/// Whether a call reads the first lane of the date's counters: once before and once after the payments are counted.
fn reads_counters(call: &Call) -> bool {
    let values = &call.input()["ExpressionAttributeValues"];
    values[":pk"]["S"] == "COUNTS#0" && values[":from"]["S"] == DAY
}

#[tokio::test]
async fn a_counted_day_is_exact_and_takes_only_queries() -> Result<()> {
    let world = a_counted_day().await?;
    assert_eq!(recount(&world).await?, exact(3));
    assert_eq!(world.metric("DatesExact")?, 3);
    // One for the findings; for each date eight lanes twice, and for each shard five statuses, three of which can be
    // in history, and two of those while the hot table has the payment as pending.
    // Last, it puts its outcome.
    let queries = vec!["Query"; 1 + 3 * (2 * 8 + 10 * (5 + 3 + 2))];
    assert_eq!(world.recorder.take_operations(), [queries, vec!["UpdateItem"]].concat());
    // Of the tables themselves only counters and findings are read: a unit for each lane, and no head.
    let mut read = world.take_units();
    read.retain(|(operation, _), _| operation == "Query");
    let of_tables = read.iter().filter(|((_, place), _)| !place.contains('/')).map(|(_, units)| units);
    assert!(of_tables.sum::<u64>() <= 1 + 3 * 2 * 8, "{read:?}");
    // An index cannot be read consistently; everything else is.
    let lags = |call: &Call| call.input()["IndexName"] != "due" && call.input()["ConsistentRead"] != true;
    let consistent = world.functions_meeting(Fate::Refuse(400, "AccessDeniedException"), lags).await?;
    assert_eq!(recount_with(&consistent).await?, exact(3), "and again");
    Ok(())
}

#[tokio::test]
async fn a_payment_in_both_tables_counts_once_and_one_in_history_alone_is_archived() -> Result<()> {
    let world = a_counted_day().await?;
    // The archive was stopped between its two writes, for all terminal payments.
    let mut over = world.heads(ACCOUNT).await?;
    over.retain(|head| head["status"].as_s().is_ok_and(|status| !["SCHEDULED", "PENDING"].contains(&status.as_str())));
    world.put_items(&world.environment.tables.history, over).await?;
    assert_eq!(recount(&world).await?.exact, 3);
    assert_eq!(shown(&world).await?["archived"], 0);

    // The archive resumes, and moves the reported payments, which did not expire.
    world.set_clock("2090-06-19T02:30:00Z")?;
    assert_eq!(world.archive().await?.archived, 2);
    let moved = recount(&world).await?;
    assert_eq!((moved.exact, moved.drifted), (2, 1), "the counters do not know of it yet: {moved:?}");
    assert_eq!(serde_json::to_value(&moved.drifts[0].recounted)?["archived"], 2);
    world.count_all().await?;
    assert_eq!(recount(&world).await?.exact, 3);
    let shown = shown(&world).await?;
    assert_eq!((&shown["archived"], &shown["total"]), (&json!(2), &json!(7)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn counters_that_keep_moving_are_moving_and_those_that_stop_are_exact() -> Result<()> {
    let world = a_counted_day().await?;
    // Between the two reads of the first try, of the second, of all three.
    for (moves, reads, want) in [(1..2, 3, exact(1)), (1..3, 4, exact(1)), (1..4, 4, moving())] {
        let seen = Arc::new(AtomicU32::new(0));
        let (counted, at) = (Arc::clone(&seen), moves.clone());
        let when = move |call: &Call| reads_counters(call) && at.contains(&counted.fetch_add(1, Ordering::Relaxed));
        // A payment came and went: the numbers are unchanged.
        let moved = |world: Arc<World>| async move { alter(&world, 0, &[("moves", 2)]).await };
        let functions = interfered(&world, when, moved).await?;
        assert_eq!(of_day(&functions, "recount").await?, want, "moved at {moves:?}");
        assert_eq!(seen.load(Ordering::Relaxed), reads, "moved at {moves:?}");
        assert_eq!(finding(&world).await?, None);
    }
    Ok(())
}

#[tokio::test]
async fn unreadable_entries_make_their_date_unreadable_and_no_other() -> Result<()> {
    let world = a_counted_day().await?;
    alter(&world, 0, &[("SCHEDULED", 1)]).await?;
    assert_eq!(recount(&world).await?.drifted, 1);
    let tables = &world.environment.tables;
    let due = |status: &str, id: &str| format!("{status}#{DAY}#2090-06-15T08:00:00Z#{id}");
    let good = due("FAILED", "626e8292-8e84-575a-b684-0af73927405b");
    for (table, due, amount, currency) in [
        (&tables.payments, &good, number("0.5"), "EUR"),
        (&tables.payments, &good, text("5"), "EUR"),
        (&tables.payments, &good, number("5"), "euro"),
        (&tables.payments, &due("SCHEDULED", "none"), number("5"), "EUR"),
        (&tables.history, &good, number("-5"), "EUR"),
        (&tables.history, &due("CANCELLED", ""), number("5"), "EUR"),
    ] {
        let damaged = item([
            ("pk", text("ACCT#someone")),
            ("sk", text("2090-06-15T08:00:00Z#damaged")),
            ("shard", number(3)),
            ("due", text(due)),
            ("amountMinor", amount),
            ("currency", text(currency)),
        ]);
        world.put_items(table, [damaged.clone()]).await?;
        // Even if the finding could be repaired by now.
        world.set_clock("2090-06-18T03:00:00Z")?;
        let want = RecountOutcome { unreadable: vec![DAY.to_owned()], unreadable_entries: 1, ..exact(2) };
        for action in ["recount", "repair"] {
            let report = run_of(world.functions(), action, (BEFORE, AFTER), NO_DEADLINE).await?;
            assert_eq!(report, want, "{action}: {due}");
            assert_eq!(world.metric("UnreadableEntries")?, 1);
        }
        world.delete(table, &damaged).await?;
    }
    // An unreadable counter counts like an unreadable entry.
    let counter = item([("pk", text("COUNTS#5")), ("sk", text(DAY)), ("PENDING", number("0.5"))]);
    world.put_items(&tables.payments, [counter]).await?;
    assert_eq!(recount(&world).await?.unreadable, [DAY]);
    Ok(())
}
