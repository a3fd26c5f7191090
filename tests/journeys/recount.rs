//! Recounts: which dates are exact, which have drifted, and which cannot be judged.

mod drift;
mod pages;
mod repair;
mod stops;

use anyhow::{Context as _, Result, ensure};
use aws_sdk_dynamodb::Client;
use lambda_runtime::LambdaEvent;
use payments_bank::Functions;
use payments_machine::{Call, Fate, Recorder};
use payments_store::Item;
use payments_tests::given::{ACCOUNT, HORIZON_DAYS, prepare};
use payments_tests::tables::{NO_DEADLINE, context, number, text};
use payments_tests::{Ask, World};
use recount::RecountOutcome;
use serde_json::{Value, json};

/// The date of these payments, its neighbours, and when the payments move.
const DAY: &str = "2090-06-15";
const BEFORE: &str = "2090-06-14";
const AFTER: &str = "2090-06-16";
const THAT_NIGHT: &str = "2090-06-15T00:05:00Z";

/// When they are recounted: the next night.
const NIGHT: &str = "2090-06-16T02:30:00Z";

/// A world after a day of counted payments in every status.
async fn a_counted_day() -> Result<World> {
    let world = World::with(|environment| environment.horizon_days = HORIZON_DAYS).await?;
    prepare(&world, &["a-day", "reported"], THAT_NIGHT).await?;
    world.count_all().await?;
    world.set_clock(NIGHT)?;
    drop((world.outside.metrics.take(), world.recorder.take_operations(), world.recorder.take_capacity_use()));
    Ok(world)
}

/// Creates one more payment of the date, at its noon, then sets the clock to `now`.
async fn put(world: &World, key: &str, now: &str) -> Result<String> {
    world.set_clock("2090-06-15T12:00:00Z")?;
    let body = json!({ "payeeAccountId": "shop", "amountMinor": 99, "currency": "EUR", "scheduledFor": DAY });
    let id = world.create(ACCOUNT, key, &body).await?;
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
    let request = serde_json::from_value(json!({ "action": action, "from": from, "to": to }))?;
    functions.recount.handle(LambdaEvent::new(request, context(deadline))).await.map_err(anyhow::Error::msg)
}

/// Recounts the date and its neighbours.
async fn recount(world: &World) -> Result<RecountOutcome> {
    run_of(world.functions(), "recount", (BEFORE, AFTER), NO_DEADLINE).await
}

/// Repairs the date.
async fn repair(world: &World) -> Result<RecountOutcome> {
    run_of(world.functions(), "repair", (DAY, DAY), NO_DEADLINE).await
}

/// Adds to the numbers of a counter.
async fn add(client: &Client, table: &str, lane: usize, numbers: &[(&str, i64)]) -> Result<()> {
    let update = client.update_item().table_name(table);
    let update = update.key("pk", text(format!("COUNTS#{lane}"))).key("sk", text(DAY));
    let terms: Vec<_> = (0..numbers.len()).map(|place| format!("#{place} :{place}")).collect();
    let update = update.update_expression(format!("ADD {}", terms.join(", ")));
    let update = numbers.iter().enumerate().fold(update, |update, (place, (name, by))| {
        let update = update.expression_attribute_names(format!("#{place}"), *name);
        update.expression_attribute_values(format!(":{place}"), number(by))
    });
    update.send().await?;
    Ok(())
}

/// Adds to the numbers of a lane.
async fn alter(world: &World, lane: usize, numbers: &[(&str, i64)]) -> Result<()> {
    add(&world.client().await, &world.environment.tables.payments, lane, numbers).await
}

/// The finding that is stored for the date.
async fn finding(world: &World) -> Result<Option<Item>> {
    let get = world.client().await.get_item().table_name(&world.environment.tables.payments);
    let get = get.key("pk", text("CHECKPOINT#recount")).key("sk", text(DAY));
    Ok(get.send().await?.item)
}

/// The date's counts as the API shows them.
async fn shown(world: &World) -> Result<Value> {
    let reply = world.send(Ask::get(&format!("/counts?from={DAY}&to={DAY}"))).await?;
    ensure!(reply.status == 200, "{reply}");
    let mut counts = reply.body["counts"][0].clone();
    counts.as_object_mut().context("no counts")?.remove("date");
    Ok(counts)
}

/// Functions with a hook: before each call that `when` selects, `what` runs. The test's runtime must have several
/// threads.
async fn interfered<Done: Future<Output = Result<()>>>(
    world: &World,
    when: impl Fn(&Call) -> bool + Send + Sync + 'static,
    what: impl Fn() -> Done + Send + Sync + 'static,
) -> Result<Functions> {
    let handle = tokio::runtime::Handle::current();
    let recorder = Recorder::with_fate(move |call| {
        if !when(call) {
            return Fate::Pass;
        }
        match tokio::task::block_in_place(|| handle.block_on(what())) {
            Ok(()) => Fate::Pass,
            Err(_) => Fate::Refuse(400, "AccessDeniedException"),
        }
    });
    world.functions_over(&recorder).await
}

/// Whether a call reads the first lane of the date's counters: once before and once after the payments are counted.
fn reads_counters(call: &Call) -> bool {
    let values = &call.input()["ExpressionAttributeValues"];
    values[":pk"]["S"] == "COUNTS#0" && values[":from"]["S"] == DAY
}

#[tokio::test]
async fn a_counted_day_is_exact_and_takes_only_queries() -> Result<()> {
    let world = a_counted_day().await?;
    let exact = RecountOutcome { exact: 3, ..RecountOutcome::default() };
    assert_eq!(recount(&world).await?, exact);
    assert_eq!(world.metric("DatesExact")?, 3);
    let operations = world.recorder.take_operations();
    // One for the findings; for each date eight lanes twice, and for each shard five statuses, three of which can be
    // in history, and two of those while the hot table has the payment as pending.
    assert_eq!(operations, vec!["Query"; 1 + 3 * (2 * 8 + 10 * (5 + 3 + 2))]);
    let read = world.recorder.take_capacity_use();
    let head =
        |place: &str| [&world.environment.tables.payments, &world.environment.tables.history].map(|t| t == place);
    let of_tables = read.iter().filter(|((_, place), _)| head(place).contains(&true)).map(|(_, halves)| halves);
    // Of the tables themselves only counters and findings are read: a unit for each lane, and no head.
    assert!(of_tables.sum::<u64>() <= 2 * (1 + 3 * 2 * 8), "{read:?}");
    // An index cannot be read consistently; everything else is.
    let refused = Fate::Refuse(400, "AccessDeniedException");
    let lags = |call: &Call| call.input()["IndexName"] != "due" && call.input()["ConsistentRead"] != true;
    let recorder = Recorder::with_fate(move |call| if lags(call) { refused } else { Fate::Pass });
    let functions = world.functions_over(&recorder).await?;
    assert_eq!(run_of(&functions, "recount", (BEFORE, AFTER), NO_DEADLINE).await?, exact, "and again");
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

    // It resumes, and moves the reported ones, which did not expire.
    world.set_clock("2090-06-19T02:30:00Z")?;
    let request = archive::Request { action: archive::Action::Archive };
    let report = world.functions().archive.handle(LambdaEvent::new(request, context(NO_DEADLINE))).await;
    assert_eq!(report.map_err(anyhow::Error::msg)?.archived, 2);
    let moved = recount(&world).await?;
    assert_eq!((moved.exact, moved.drifted), (2, 1), "the counters do not know of it yet: {moved:?}");
    assert_eq!(serde_json::to_value(&moved.drifts[0].recounted)?["archived"], 2);
    world.count_all().await?;
    assert_eq!(recount(&world).await?.exact, 3);
    assert_eq!((&shown(&world).await?["archived"], &shown(&world).await?["total"]), (&json!(2), &json!(7)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn counters_that_keep_moving_are_moving_and_those_that_stop_are_exact() -> Result<()> {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    let world = a_counted_day().await?;
    let (client, table) = (world.client().await, world.environment.tables.payments.clone());
    for (moves, want) in [
        // Between the two reads of the first try, of the second, of all three.
        (vec![1], RecountOutcome { exact: 1, ..RecountOutcome::default() }),
        (vec![1, 2], RecountOutcome { exact: 1, ..RecountOutcome::default() }),
        (vec![1, 2, 3], RecountOutcome { moving: vec![DAY.to_owned()], ..RecountOutcome::default() }),
    ] {
        let reads = Arc::new(AtomicU32::new(0));
        let (seen, at) = (Arc::clone(&reads), moves.clone());
        let when = move |call: &Call| reads_counters(call) && at.contains(&seen.fetch_add(1, Ordering::Relaxed));
        let (client, table) = (client.clone(), table.clone());
        // A payment came and went: the numbers are unchanged.
        let what = move || {
            let (client, table) = (client.clone(), table.clone());
            async move { add(&client, &table, 0, &[("moves", 2)]).await }
        };
        let functions = interfered(&world, when, what).await?;
        let report = run_of(&functions, "recount", (DAY, DAY), NO_DEADLINE).await?;
        assert_eq!(report, want, "moved at {moves:?}");
        assert_eq!(reads.load(Ordering::Relaxed), u32::try_from(moves.len() + 2)?.min(4), "moved at {moves:?}");
        assert_eq!(finding(&world).await?, None);
    }
    Ok(())
}

#[tokio::test]
async fn unreadable_entries_make_their_date_unreadable_and_no_other() -> Result<()> {
    let world = a_counted_day().await?;
    alter(&world, 0, &[("SCHEDULED", 1)]).await?;
    assert_eq!(recount(&world).await?.drifted, 1);
    let (client, tables) = (world.client().await, &world.environment.tables);
    let due = |status: &str, id: &str| format!("{status}#{DAY}#2090-06-15T08:00:00Z#{id}");
    let good = due("FAILED", "626e8292-8e84-575a-b684-0af73927405b");
    for (table, due, amount, currency) in [
        (&tables.payments, &good, number("0.5"), text("EUR")),
        (&tables.payments, &good, text("5"), text("EUR")),
        (&tables.payments, &good, number("5"), text("euro")),
        (&tables.payments, &due("SCHEDULED", "none"), number("5"), text("EUR")),
        (&tables.history, &good, number("-5"), text("EUR")),
        (&tables.history, &due("CANCELLED", ""), number("5"), text("EUR")),
    ] {
        let (pk, sk) = (text("ACCT#someone"), text("2090-06-15T08:00:00Z#damaged"));
        let put = client.put_item().table_name(table).item("pk", pk.clone()).item("sk", sk.clone());
        let put = put.item("shard", number("3")).item("due", text(due));
        put.item("amountMinor", amount).item("currency", currency).send().await?;
        // Even if the finding could be repaired by now.
        world.set_clock("2090-06-18T03:00:00Z")?;
        for action in ["recount", "repair"] {
            let report = run_of(world.functions(), action, (BEFORE, AFTER), NO_DEADLINE).await?;
            let unreadable = vec![DAY.to_owned()];
            let want = RecountOutcome { exact: 2, unreadable, unreadable_entries: 1, ..RecountOutcome::default() };
            assert_eq!(report, want, "{action}: {due}");
            assert_eq!(world.metric("UnreadableEntries")?, 1);
        }
        client.delete_item().table_name(table).key("pk", pk).key("sk", sk).send().await?;
    }
    // An unreadable counter is no different.
    let put = client.put_item().table_name(&tables.payments).item("pk", text("COUNTS#5")).item("sk", text(DAY));
    put.item("PENDING", number("0.5")).send().await?;
    assert_eq!(recount(&world).await?.unreadable, [DAY]);
    Ok(())
}
