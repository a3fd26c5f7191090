//! A sweep's cost, its deadline, and a throttled shard that stops no other.
//!
//! The tests take more payments at once than a month has.

mod lateness;
mod limit;
mod limits;
mod switch;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use chrono::{DateTime, TimeDelta, Utc};
use daily_due_sweeper::{Action, SweepOutcome, SweeperOutcome};
use payments_machine::{Call, Fate};
use payments_store::Item;
use payments_tests::tables::{Units, key_of, number as n, text as s, units};

use crate::kit::fixture::Fixture;
use crate::kit::invariants::Stage;
use crate::kit::staleness::Lag;
use crate::kit::transaction_service::result_of;

pub(crate) fn swept(report: SweeperOutcome) -> Result<SweepOutcome> {
    if let SweeperOutcome::Sweep(report) = report { Ok(report) } else { bail!("{report:?}") }
}

#[tokio::test]
async fn a_sweep_costs_three_per_payment_and_a_stale_page_at_most_one() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.due(7).await?;
    drop(fixture.world.take_write_units());
    assert_eq!(swept(fixture.tick(Action::Sweep).await?)?.claimed, 7);
    assert_eq!(fixture.world.take_write_units(), units("UpdateItem", [("payments", 7), ("payments/due", 14)]));

    // The index still shows all seven as scheduled. A rejected update costs what the item costs.
    fixture.faults.lag(Lag::always(7));
    fixture.faults.clear();
    let again = swept(fixture.tick(Action::Sweep).await?)?;
    assert_eq!((again.claimed, again.already_claimed, again.remaining), (0, 7, 0));
    // Beside them, a sweep reads today's counters in one call, and puts a sample and its outcome.
    assert_eq!((fixture.faults.tries_of("UpdateItem"), fixture.faults.calls()), (7 + 2, 3 + 7 + 1 + 2));
    assert_eq!(fixture.world.take_write_units(), Units::new(), "nothing was written");
    for head in fixture.world.heads(&intents[0].account).await? {
        assert!(payments_store::item_bytes(&head) <= 1_024, "more than a unit: {head:?}");
    }
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_settlement_costs_seven_or_six() -> Result<()> {
    let fixture = Fixture::start().await?;
    for _ in 0..8 {
        let intents = fixture.pending(1).await?;
        fixture.dispatch_all().await?;
        fixture.serve(None)?;
        drop(fixture.world.take_write_units());
        fixture.settle_all().await?;
        let failed = intents[0].amount.is_multiple_of(4);
        let mut want = units("UpdateItem", [("payments", 1), ("payments/due", 2), ("payments/unreported", 1)]);
        let first = [("history", 1), ("history/due", 1), ("history/transaction", 1)];
        let first = first.into_iter().take(if failed { 2 } else { 3 });
        want.extend(first.map(|(place, units)| (("PutItem".to_owned(), place.to_owned()), units)));
        assert_eq!(fixture.world.take_write_units(), want, "payment {}", intents[0].amount);
        assert_eq!(want.values().sum::<u64>(), if failed { 6 } else { 7 });

        // The same result again finds the payment settled, and nothing is written.
        fixture.faults.clear();
        fixture.send_result(&result_of(&request_of(&fixture, &intents[0].account)?))?;
        fixture.settle_all().await?;
        assert_eq!((fixture.world.take_write_units(), fixture.faults.tries_of("UpdateItem")), (Units::new(), 0));
        fixture.assert_lawful(&intents, Stage::Finished).await?;
    }
    fixture.assert_counters_exact().await
}

fn request_of(fixture: &Fixture, account: &str) -> Result<serde_json::Value> {
    Ok(fixture.faults.sent_for(account).into_iter().next().context("nothing was sent")?.request)
}

/// Puts this many due heads, copies of a real one, into the table, spread over the shards. Returns their sort keys by
/// shard.
pub(crate) async fn many_due(fixture: &Fixture, count: u32, shards: u32) -> Result<HashMap<u32, HashSet<String>>> {
    let intents = fixture.created(1).await?;
    let head = fixture.world.heads(&intents[0].account).await?.pop().context("no head")?;
    let text = |name: &str| head[name].as_s().map(String::as_str).unwrap_or_default();
    let (due_at, date) =
        (intents[0].scheduled_for.clone(), text("due").split('#').nth(1).unwrap_or_default().to_owned());
    let mut by_shard: HashMap<u32, HashSet<String>> = HashMap::new();
    let mut puts = Vec::new();
    for number in 0..count {
        let sk = format!("{due_at}#{number:08x}-0000-5000-8000-{number:012x}");
        let mut item: Item = head.clone();
        let mut set = |name: &str, value: AttributeValue| drop(item.insert(name.to_owned(), value));
        set("pk", s(format!("ACCT#bulk-{}", number % 50)));
        set("due", s(format!("SCHEDULED#{date}#{sk}")));
        set("sk", s(sk.as_str()));
        set("shard", n(number % shards));
        by_shard.entry(number % shards).or_default().insert(sk);
        puts.push(WriteRequest::builder().put_request(PutRequest::builder().set_item(Some(item)).build()?).build());
    }
    for some in puts.chunks(25) {
        let table = &fixture.tables().payments;
        fixture.client.batch_write_item().request_items(table, some.to_vec()).send().await?;
    }
    // The original is deleted: only the copies are to be swept.
    let delete = fixture.client.delete_item().table_name(&fixture.tables().payments);
    delete.set_key(Some(key_of(&head))).send().await?;
    fixture.time.pass(TimeDelta::seconds(61));
    Ok(by_shard)
}

#[tokio::test]
async fn a_sweeper_of_three_seconds_claims_five_thousand_in_several_runs() -> Result<()> {
    let fixture = Fixture::with_shards(10).await?;
    many_due(&fixture, 5_000, 10).await?;
    fixture.faults.calls_take(TimeDelta::milliseconds(1));
    let timeout = TimeDelta::seconds(3);
    let (mut ticks, mut claimed) = (0, 0);
    loop {
        let started = fixture.time.now();
        let report = swept(fixture.tick_within(&fixture.functions, Action::Sweep, timeout).await?)?;
        let took = fixture.time.now() - started;
        println!("tick {ticks}: {took} {report:?}");
        assert!(took < timeout, "tick {ticks} took {took}");
        (ticks, claimed) = (ticks + 1, claimed + report.claimed);
        assert!(report.claimed > 0 && ticks < 20, "tick {ticks} makes progress: {report:?}");
        assert_eq!(report.already_claimed, 0);
        assert_eq!((report.remaining, report.remaining_is_lower_bound), (5_000 - claimed, false));
        if report.remaining == 0 {
            break;
        }
    }
    assert_eq!(claimed, 5_000);
    assert!(ticks > 1, "three seconds are not enough for all");
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn lost_time_is_not_made_up_in_a_burst() -> Result<()> {
    let fixture = Fixture::with_shards(1).await?;
    many_due(&fixture, 600, 1).await?;
    let claims: Arc<Mutex<Vec<DateTime<Utc>>>> = Arc::default();
    let (time, seen) = (fixture.time.clone(), Arc::clone(&claims));
    fixture.faults.inject(move |call: &Call| {
        if call.operation == "UpdateItem" {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.is_empty() {
                time.pass(TimeDelta::seconds(10));
            }
            seen.push(time.now());
        }
        Fate::Pass
    });
    assert_eq!(swept(fixture.tick(Action::Sweep).await?)?.claimed, 600);
    // 200 a second, the 16 of the slow step, and the 16 of the step after it.
    let claims = claims.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for (claim, later) in claims.iter().zip(claims.iter().skip(232)) {
        assert!(*later - *claim >= TimeDelta::seconds(1), "233 claims within a second of {claim}");
    }
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_lastingly_throttled_shard_stops_no_other() -> Result<()> {
    const HOT: u32 = 7;
    for (operation, known) in [("UpdateItem", true), ("Query", false)] {
        let fixture = Fixture::with_shards(10).await?;
        let by_shard = many_due(&fixture, 200, 10).await?;
        let hot = by_shard.get(&HOT).cloned().unwrap_or_default();
        fixture.faults.inject(move |call: &Call| {
            let key = call.input()["Key"]["sk"]["S"].as_str().unwrap_or_default();
            let shard = call.input()["ExpressionAttributeValues"][":shard"]["N"].as_str();
            let is_hot = hot.contains(key) || shard == Some("7");
            if is_hot && call.operation == operation {
                Fate::Refuse(400, "ProvisionedThroughputExceededException")
            } else {
                Fate::Pass
            }
        });
        let started = fixture.time.now();
        let report = swept(fixture.tick(Action::Sweep).await?)?;
        let took = fixture.time.now() - started;
        assert_eq!((report.claimed, report.shards_given_up), (180, 1), "{operation}: {report:?}");
        let remaining = if known { (20, false) } else { (0, true) };
        assert_eq!((report.remaining, report.remaining_is_lower_bound), remaining, "{operation}: {report:?}");
        assert!(took < TimeDelta::seconds(10), "the sweep took {took}");
        assert_eq!(fixture.measured(["ShardsGivenUp"]), [1]);
        // Later the shard accepts writes again.
        fixture.faults.clear();
        let report = swept(fixture.tick(Action::Sweep).await?)?;
        assert_eq!((report.claimed, report.remaining), (20, 0));
        fixture.assert_counters_exact().await?;
    }
    Ok(())
}

/// Else the alarm on payments that are stuck would end where a shard is broken.
#[tokio::test]
async fn a_redrive_measures_the_other_shards_although_one_is_broken() -> Result<()> {
    let fixture = Fixture::with_shards(4).await?;
    let intents = fixture.pending(40).await?;
    let broken = intents[0].id()?.to_string();
    fixture.time.pass(TimeDelta::minutes(61));
    drop(fixture.metrics.take());
    fixture.faults.inject(move |call| {
        let is_broken = call.operation == "UpdateItem" && call.input()["Key"]["sk"]["S"].to_string().contains(&broken);
        if is_broken { Fate::Refuse(400, "AccessDeniedException") } else { Fate::Pass }
    });
    assert!(fixture.tick(Action::Redrive).await.is_err(), "the run fails");
    let [redriven, unfinished] = fixture.measured(["Redriven", "RedriveShardsUnfinished"]);
    assert!((1..40).contains(&redriven) && unfinished == 1, "{redriven}, {unfinished}");
    fixture.faults.clear();
    fixture.assert_finishes(&intents).await?;
    fixture.assert_counters_exact().await
}
