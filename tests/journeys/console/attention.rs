//! The strip of troubles: each kind, its words and its link; and a part that cannot be read.

use anyhow::Result;
use payments_model::Settlement;
use payments_store::{Job, LastRun};
use payments_tests::World;
use payments_tests::orders::failed;
use payments_tests::tables::{item, text};
use serde_json::{Value, json};

use super::{claim, links, page, payment, rent};

/// Puts a run that ended this many minutes ago.
async fn ran(world: &World, job: Job, minutes: i64, outcome: &Value, failed: Option<&str>) -> Result<()> {
    let at = world.now().saturating_add(chrono::TimeDelta::minutes(-minutes));
    let run = LastRun::new(job, (at, at), Some(outcome)).with_failure(failed);
    Ok(world.store().await.put_last_run(&run).await?)
}

#[tokio::test]
async fn without_troubles_the_strip_says_so() -> Result<()> {
    let world = World::open().await?;
    ran(&world, Job::Sweep, 5, &json!({ "claimed": 3, "remaining": 7 }), None).await?;
    ran(&world, Job::Recount, 5_000, &json!({}), None).await?;
    let strip = page(&world, "attention").await?;
    assert!(strip.contains("Nothing needs attention.") && links(&strip).next().is_none(), "{strip}");
    Ok(())
}

#[tokio::test]
async fn each_trouble_has_its_words_and_its_link() -> Result<()> {
    let world = World::open().await?;
    let id = rent(&world, "rent-1").await?;
    claim(&world, &id, Some(Settlement::Processed("TX-77".parse()?))).await?;
    let told = failed(&id, &payment("2026-12-01"), "AM04", "no");
    world.settle(&[told]).await?;
    rent(&world, "rent-2").await?;
    world.count_all().await?;
    world.set_clock("2026-12-03T10:00:00Z")?;
    let stuck = |minor: i64| json!({ "amountMinor": minor, "currency": "GBP" });
    let redriven = json!({ "stuck": 2, "failed": 1, "stuckPayments": [stuck(98_700), stuck(32_547)] });
    ran(&world, Job::Redrive, 5, &redriven, None).await?;
    let waiting = json!([{ "date": "2026-12-14", "calendar": "GB", "count": 1_204 }]);
    ran(&world, Job::Look, 5, &json!({ "waiting": 1_204, "waitingDates": waiting }), None).await?;
    ran(&world, Job::Report, 5, &json!({}), Some("<script>window.pwned=1</script>")).await?;
    ran(&world, Job::Sweep, 21, &json!({}), None).await?;
    world.outside.operations.queues.dispatch_failures.send("x", world.now().as_chrono())?;
    let strip = page(&world, "attention").await?;
    for words in [
        "<b>2 stuck</b>",
        "1,312.47 <abbr>GBP</abbr>",
        "<b>Redrive is incomplete</b>",
        "<b>1,204 to redate</b>",
        "<b>Report failed</b>",
        "<b>Sweep does not run</b>",
        "<b>1 overdue</b>",
        "<b>1 contradiction</b>",
        "12,345.67 <abbr>EUR</abbr>",
        "<b>1 dead letter</b>",
        "SQS deletes each 14 days after it was sent",
        "the first Mon 14 Dec",
    ] {
        assert!(strip.contains(words), "{words}: {strip}");
    }
    assert!(!strip.contains("pwned"), "{strip}");
    // The order is that of the table of priorities.
    let cards: Vec<_> =
        strip.split("<li").skip(1).map(|card| (within(card, "<em>"), within(card, "#alarms?at="))).collect();
    let want = [
        ("Now", "paymentsoverdue"),
        ("Now", "paymentsoverdue"),
        ("Before Mon 14 Dec", "waitingforredate"),
        ("Today", "redrivefailures"),
        ("Today", "dispatchfailuresalarm"),
        ("Today", "paymentsstuckpending"),
        ("Today", "conflictingresults"),
        ("Today", "reporterrors"),
    ];
    assert_eq!(cards, want);
    for wanted in
        ["waiting", "bank", "ahead", "queues", &format!("payment?id={id}&account=tenant&at=2026-12-01T00%3A00%3A00Z")]
    {
        assert!(links(&strip).any(|link| link == wanted), "{wanted}: {strip}");
    }
    Ok(())
}

/// The text after a mark of a card, up to the end of the tag or the attribute.
fn within<'c>(card: &'c str, mark: &str) -> &'c str {
    card.split_once(mark).map_or("", |(_, rest)| rest.split(['<', '"']).next().unwrap_or_default())
}

#[tokio::test]
async fn each_of_many_findings_of_a_payment_is_reached_and_can_be_closed() -> Result<()> {
    let world = World::open().await?;
    let ids = [rent(&world, "rent-1").await?, rent(&world, "rent-2").await?];
    for (id, number) in [(&ids[0], 8), (&ids[1], 1)] {
        claim(&world, id, Some(Settlement::Processed("TX-77".parse()?))).await?;
        let told = |reason: usize| failed(id, &payment("2026-12-01"), "AM04", &format!("no {reason}"));
        world.settle(&(0..number).map(told).collect::<Vec<_>>()).await?;
    }
    let strip = page(&world, "attention").await?;
    assert!(strip.contains("<b>8 contradictions</b>") && strip.contains("<b>1 contradiction</b>"), "{strip}");
    assert!(!strip.contains("more contradictions"), "{strip}");
    let shown = page(&world, &format!("payment?id={}", ids[0])).await?;
    let hashes: std::collections::BTreeSet<_> =
        shown.split("name=\"hash\" value=\"").skip(1).filter_map(|form| form.split('"').next()).collect();
    assert_eq!(hashes.len(), 8, "{shown}");
    Ok(())
}

#[tokio::test]
async fn a_part_that_cannot_be_read_is_unknown_and_hides_no_other() -> Result<()> {
    let world = World::open().await?;
    let unknown = item([("pk", text("RUNS#LAST")), ("sk", text("later")), ("beganAt", text("x"))]);
    world.put_items(&world.environment.tables.history, [unknown]).await?;
    world.outside.operations.queues.dispatch_failures.send("x", world.now().as_chrono())?;
    let strip = page(&world, "attention").await?;
    assert!(strip.contains("Last runs unknown") && strip.contains("1 dead letter"), "{strip}");
    Ok(())
}
