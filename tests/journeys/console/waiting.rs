//! The view Waiting: what nothing sends again comes first, and each other payment says when its next request follows.

use anyhow::Result;
use payments_model::UtcSecond;
use payments_store::{Job, LastRun};
use payments_tests::World;
use serde_json::{Value, json};

use super::{claim, page, rent};

/// A bank with so many dispatch attempts, and a payment that was claimed at 10:00 and due at 00:00.
async fn pending(attempts: u32) -> Result<(World, String)> {
    let world = World::with(|environment| environment.dispatch_attempts = attempts).await?;
    let id = rent(&world, "rent").await?;
    claim(&world, &id, None).await?;
    Ok((world, id))
}

async fn put_run(world: &World, job: Job, began_at: &str, outcome: &Value) -> Result<()> {
    let began_at: UtcSecond = began_at.parse()?;
    Ok(world.store().await.put_last_run(&LastRun::new(job, (began_at, began_at), Some(outcome))).await?)
}

#[tokio::test]
async fn a_payment_that_nothing_sends_again_is_stuck_and_says_so() -> Result<()> {
    let (world, id) = pending(1).await?;
    world.set_clock("2026-12-01T10:59:59Z")?;
    // Its request is the last one, and its wait is not over.
    let waits = page(&world, "waiting").await?;
    assert!(waits.contains("<b>1 of 1 sent</b>, none follows, last 59 min ago"), "{waits}");
    assert!(!waits.contains("id=\"stuck\"") && !waits.contains("send-again"), "{waits}");
    world.set_clock("2026-12-01T11:00:00Z")?;
    world.forget();
    let stuck = page(&world, "waiting").await?;
    let reads = world.recorder.take_operations();
    assert_eq!(reads.iter().filter(|operation| *operation == "BatchGetItem").count(), 1, "{reads:?}");
    for text in [
        "id=\"stuck\"",
        "12,345.67",
        "<b>1 of 1 sent</b>, none follows",
        "claimed 10 h late",
        "<form data-action=\"send-again\">",
        &format!("name=\"payment\" value=\"{id}\""),
        "#account?id=tenant",
        "No other payment waits for a result.",
    ] {
        assert!(stuck.contains(text), "{text}: {stuck}");
    }
    assert!(!stuck.contains("next "), "nothing follows: {stuck}");
    Ok(())
}

#[tokio::test]
async fn a_payment_that_waits_says_when_its_next_request_follows() -> Result<()> {
    let (world, _) = pending(8).await?;
    world.set_clock("2026-12-01T10:30:00Z")?;
    // Without a redrive that ended, the wait's end is all that is known.
    let unknown = page(&world, "waiting").await?;
    assert!(
        unknown.contains("1 of 8 sent, last 30 min ago") && unknown.contains("No redrive has ended yet."),
        "{unknown}"
    );
    assert!(unknown.contains("title=\"2026-12-01T11:00:00Z\">11:00</time></b>"), "{unknown}");
    // Redrives come an hour after each other: the first one after the wait is at 11:05.
    let requests = json!([
        { "attempt": 1, "payments": 324_918, "oldest": "2026-12-01T10:00:00Z" },
        { "attempt": 8, "payments": 2, "oldest": "2026-11-20T10:00:00Z" },
    ]);
    put_run(&world, Job::Redrive, "2026-12-01T10:05:00Z", &json!({ "redriven": 0, "requests": requests })).await?;
    put_run(&world, Job::Sweep, "2026-12-01T10:25:00Z", &json!({ "claimed": 7 })).await?;
    let shown = page(&world, "waiting").await?;
    for text in [
        "title=\"2026-12-01T11:05:00Z\">11:05</time></b>",
        "324,920",
        "324,918",
        "<b>none follows</b>",
        "Nothing is due and unclaimed.",
        "claimed 7",
        "Next <time datetime=\"2026-12-01T10:35:00Z\"",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    // A payment that is stuck, and not among those that are due first.
    let stuck = json!([{
        "pendingSince": "2026-11-20T10:00:00Z", "paymentId": "00000000-0000-5000-8000-000000000001", "accountId": "acc-7",
        "amountMinor": 98_700, "currency": "GBP", "dueDate": "2026-12-01",
    }, { "paymentId": "<script>" }]);
    put_run(&world, Job::Redrive, "2026-12-01T10:05:30Z", &json!({ "requests": [], "stuckPayments": stuck })).await?;
    let shown = page(&world, "waiting").await?;
    for text in
        ["id=\"stuck\"", "987.00", "value=\"00000000-0000-5000-8000-000000000001\"", "stuck at the last redrive"]
    {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    // A run of another version, or a damaged one.
    for requests in [json!("<script>"), json!([{ "attempt": "<b>", "oldest": "<b>" }]), json!(null)] {
        put_run(&world, Job::Redrive, "2026-12-01T10:06:00Z", &json!({ "waiting": 5, "requests": requests })).await?;
        let shown = page(&world, "waiting").await?;
        assert!(!shown.contains("<script") && !shown.contains("its result.</b>"), "{shown}");
    }
    Ok(())
}
