//! Poison: a message or item that cannot be read stops no other, ends where an operator finds it, and raises its
//! alarm metric.
//!
//! A month's items are never damaged.

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use daily_due_sweeper::Action;
use payments_lab::facts::intent::Intent;
use payments_lab::facts::results::{failed, processed};
use payments_machine::Fate;
use payments_machine::triggers::stream_settings;
use payments_tests::Ask;
use payments_tests::tables::{key, number, text};
use serde_json::{Value, json};

use crate::kit::fault_plan::of_calls;
use crate::kit::fixture::{Fixture, redriven};
use crate::kit::invariants::Stage;
use crate::kit::transaction_service::{read_requests, result_of};
use crate::sweeper::swept;

/// The id of a payment that there is not.
const NOBODY: &str = "00000000-0000-5000-8000-000000000000";

/// The messages of a queue.
pub(crate) fn bodies(queue: &payments_queue::Queue, fixture: &Fixture) -> Vec<String> {
    let mut bodies = Vec::new();
    loop {
        let received = queue.receive(10, fixture.time.now());
        if received.is_empty() {
            bodies.sort();
            return bodies;
        }
        bodies.extend(received.into_iter().map(|message| message.body));
    }
}

#[tokio::test]
async fn every_invalid_result_ends_as_a_dead_letter_and_the_others_are_settled_at_once() -> Result<()> {
    let fixture = Fixture::start().await?;
    let good = fixture.pending(3).await?;
    fixture.dispatch_all().await?;
    let requests = read_requests(&fixture.requests, &fixture.time)?;
    let early = fixture.created(1).await?;
    let taken = result_of(&requests[0]);
    let of_seven =
        |id: &str| json!({ "paymentId": id, "amountMinor": 7, "currency": "GBP", "payeeAccountId": "payee" });
    let unknown = failed(&of_seven(NOBODY), "who?");
    let too_early = processed(&of_seven(early[0].id()?), "T-early");
    let mut dead = vec![
        "not JSON".to_owned(),
        json!({ "v": 1, "kind": "settlement", "status": "PROCESSED", "transactionId": "T-nobody" }).to_string(),
        json!({ "v": 1, "kind": "recall", "paymentId": taken["paymentId"] }).to_string(),
        json!({ "v": 1, "kind": "settlement", "paymentId": taken["paymentId"], "status": "PERHAPS" }).to_string(),
        json!({ "v": 1, "kind": "settlement", "paymentId": taken["paymentId"], "status": "PROCESSED" }).to_string(),
        unknown.to_string(),
        too_early.to_string(),
    ];
    drop(fixture.metrics.take());
    let results = requests.iter().map(|request| {
        let mut result = result_of(request);
        result["fieldOfTomorrow"] = json!({ "ignored": true });
        result.to_string()
    });
    for message in dead.iter().cloned().chain(results) {
        fixture.results.send(message, fixture.time.now())?;
    }
    let first = fixture.settle_step().await.context("no delivery")?;
    assert_eq!((first.messages, first.deleted, first.error), (10, 3, None));
    fixture.assert_lawful(&good, Stage::Finished).await?;

    fixture.settle_all().await?;
    fixture.pass_visibility();
    assert!(fixture.settle_step().await.is_none(), "nothing is left in the queue");
    dead.sort();
    assert_eq!(bodies(&fixture.dead_results, &fixture), dead);
    let often = u64::from(fixture.most_receives());
    let metrics = ["PoisonMessages", "UnknownPayments", "EarlyResults", "ConflictingResults"];
    assert_eq!(fixture.measured(metrics), [5 * often, often, often, 0]);
    fixture.assert_lawful(&early, Stage::UnderWay).await?;
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn an_early_result_settles_when_its_payment_is_pending() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.created(1).await?;
    fixture.send_result(&result_of(&intents[0].transfer()))?;
    let early = fixture.settle_step().await.context("no delivery")?;
    assert_eq!(early.deleted, 0);
    fixture.pass_visibility();
    fixture.tick(Action::Sweep).await?;
    let settled = fixture.settle_step().await.context("no delivery")?;
    assert_eq!(settled.deleted, 1);
    fixture.assert_lawful(&intents, Stage::Finished).await?;
    // The stream still has its claim: nothing is sent for a settled payment.
    fixture.dispatch_all().await?;
    assert_eq!(fixture.faults.sent(), 0);
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn contradictions_and_shared_transaction_ids_change_nothing_and_raise_alarms() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.created(3).await?;
    let [first, second] = [&intents[0], &intents[1]].map(Intent::transfer);
    let mut cancelled = fixture.created(1).await?;
    fixture.cancel(&mut cancelled[0]).await?;
    let of_cancelled = cancelled[0].transfer();
    fixture.time.pass(TimeDelta::seconds(61));
    fixture.tick(Action::Sweep).await?;
    for (message, metric) in [
        (processed(&first, "T-same"), "Processed"),
        (processed(&first, "T-same"), "RepeatedResults"),
        (failed(&first, "after all"), "ConflictingResults"),
        (processed(&second, "T-same"), "SharedTransactionIds"),
        (processed(&of_cancelled, "T-moved"), "CancelledPaymentsProcessed"),
        (failed(&of_cancelled, "it was cancelled"), "ConflictingResults"),
    ] {
        drop(fixture.metrics.take());
        fixture.send_result(&message)?;
        let step = fixture.settle_step().await.context("no delivery")?;
        assert_eq!(step.deleted, 1, "{metric}: a success to the queue");
        let [counted, both @ ..] = fixture.measured([metric, "ConflictingResults", "CancelledPaymentsProcessed"]);
        assert_eq!(counted, 1, "{metric}");
        assert_eq!(both.iter().sum::<u64>(), u64::from(both.contains(&1)), "one of both: {both:?}");
    }
    let untouched = fixture.world.heads(&cancelled[0].account).await?;
    assert_eq!(untouched[0]["status"], text("CANCELLED"));
    let heads = fixture.world.heads(&intents[0].account).await?;
    let status = |head: &payments_store::Item| head["status"].as_s().cloned().unwrap_or_default();
    let mut statuses: Vec<String> = heads.iter().map(status).collect();
    statuses.sort();
    assert_eq!(statuses, ["PENDING", "PROCESSED", "PROCESSED"]);
    fixture.assert_counters_exact().await
}

/// Sets an attribute of a payment's head.
async fn damage(fixture: &Fixture, intent: &Intent, attribute: &str, value: AttributeValue) -> Result<()> {
    let head = key(format!("ACCT#{}", intent.account), format!("{}#{}", intent.scheduled_for, intent.id()?));
    fixture.world.set(&fixture.tables().payments, &head, attribute, Some(value)).await
}

/// Whether each of these payments was sent.
fn sent(fixture: &Fixture, intents: &[Intent]) -> Vec<bool> {
    let sent = fixture.faults.sent_for(&intents[0].account);
    let was = |intent: &Intent| sent.iter().any(|sent| sent.request["amountMinor"] == intent.amount);
    intents.iter().map(was).collect()
}

#[tokio::test]
async fn an_unreadable_head_is_isolated_and_sent_once_it_is_repaired() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.pending(7).await?;
    let scheduled_for = text(&intents[3].scheduled_for);
    damage(&fixture, &intents[3], "scheduledFor", text("some day")).await?;
    drop(fixture.metrics.take());
    fixture.dispatch_all().await?;
    assert_eq!(sent(&fixture, &intents), [true, true, true, false, true, true, true]);
    let dispatch_failures = bodies(&fixture.dispatch_failures, &fixture);
    // The payment's claim and the damage: both records lead to a head that cannot be read.
    assert_eq!(dispatch_failures.len(), 2, "{dispatch_failures:#?}");
    let retries =
        stream_settings("dispatch", Some(&fixture.dispatch_failures))?.maximum_retry_attempts.context("no limit")?;
    for record in &dispatch_failures {
        let record: Value = serde_json::from_str(record)?;
        assert_eq!(record["DDBStreamBatchInfo"]["batchSize"], 1, "isolated");
        assert_eq!(record["requestContext"]["condition"], "RetryAttemptsExhausted");
        assert_eq!(record["requestContext"]["approximateInvokeCount"], retries + 1);
    }
    assert_ne!(fixture.measured(["PoisonRecords"]), [0]);

    fixture.serve(None)?;
    fixture.settle_all().await?;
    let report = fixture.redrive_later().await?;
    assert_eq!((report.redriven, report.failed), (0, 1), "found, and not readable");
    assert_eq!(fixture.measured(["RedriveFailed"]), [1]);

    // The head is repaired, and the stream has passed: the redrive sends it.
    damage(&fixture, &intents[3], "scheduledFor", scheduled_for).await?;
    let report = redriven(fixture.tick(Action::Redrive).await?)?;
    assert_eq!((report.redriven, report.failed), (1, 0));
    fixture.dispatch_all().await?;
    assert!(sent(&fixture, &intents)[3]);
    fixture.serve(None)?;
    fixture.settle_all().await?;
    let statuses: Vec<_> =
        fixture.world.heads(&intents[0].account).await?.iter().map(|head| head["status"].clone()).collect();
    assert!(statuses.iter().all(|status| status.as_s().is_ok_and(|status| status != "PENDING")), "{statuses:?}");
    fixture.assert_counters_exact().await
}

/// The due date is not that of the details, but the due time is: no amendment would do that.
#[tokio::test]
async fn a_head_whose_due_date_alone_is_another_is_never_sent() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.pending(3).await?;
    let due = format!("PENDING#2026-11-21#{}#{}", intents[1].scheduled_for, intents[1].id()?);
    damage(&fixture, &intents[1], "due", text(due)).await?;
    drop(fixture.metrics.take());
    assert_eq!(sent_in_the_end(&fixture, &intents).await?, [true, false, true]);
    assert_ne!(fixture.measured(["RequestsDisagreeing"]), [0]);
    fixture.assert_counters_exact().await
}

/// Delivers everything and redrives once. Returns which of these payments were sent.
async fn sent_in_the_end(fixture: &Fixture, intents: &[Intent]) -> Result<Vec<bool>> {
    fixture.dispatch_all().await?;
    fixture.redrive_later().await?;
    fixture.dispatch_all().await?;
    Ok(sent(fixture, intents))
}

#[tokio::test]
async fn a_head_that_disagrees_with_its_details_is_isolated_and_never_sent() -> Result<()> {
    for (attribute, value) in
        [("amountMinor", number(999_999)), ("currency", text("USD")), ("payeeAccountId", text("somebody-else"))]
    {
        let fixture = Fixture::start().await?;
        let intents = fixture.pending(3).await?;
        damage(&fixture, &intents[1], attribute, value).await?;
        drop(fixture.metrics.take());
        assert_eq!(sent_in_the_end(&fixture, &intents).await?, [true, false, true], "{attribute}");
        let bodies_of_others = fixture.faults.sent_for(&intents[0].account);
        assert!(bodies_of_others.iter().all(|sent| sent.request["amountMinor"] != 999_999), "{attribute}");
        assert_ne!(fixture.measured(["RequestsDisagreeing"]), [0], "{attribute}");
        // The payment's claim, the damage and the redrive, each on its own.
        assert_eq!(bodies(&fixture.dispatch_failures, &fixture).len(), 3, "{attribute}");
        fixture.assert_counters_exact().await?;
    }
    Ok(())
}

/// Somebody copies a pending head to where another account, or another time, has it.
#[tokio::test]
async fn a_head_at_the_key_of_another_account_or_time_is_never_sent() -> Result<()> {
    // With the due key of the copy, or with that of the payment.
    let copied: [(&[&str], _, _); 3] = [
        (&["pk", "due"], "ACCT#", "ACCT#x"),
        (&["sk", "due"], "2026-11-20T", "2026-11-21T"),
        (&["sk"], "2026-11-20T", "2026-11-21T"),
    ];
    for (attributes, from, to) in copied {
        let fixture = Fixture::start().await?;
        let intents = fixture.pending(1).await?;
        let mut copy = fixture.world.heads(&intents[0].account).await?.remove(0);
        for name in attributes {
            let changed = copy[*name].as_s().map_or_else(|_| String::new(), |it| it.replace(from, to));
            copy.insert((*name).to_owned(), text(changed));
        }
        fixture.world.put_items(&fixture.tables().payments, [copy]).await?;
        drop(fixture.metrics.take());
        fixture.dispatch_all().await?;
        assert_eq!(fixture.faults.sent(), 1, "{attributes:?}: only the payment itself");
        // One that is due elsewhere and was never amended is not even read.
        assert_ne!(fixture.measured(["PoisonRecords"]), [0], "{attributes:?}");
        fixture.assert_counters_exact().await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_redrive_finds_what_the_stream_mapping_gave_up() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.pending(5).await?;
    fixture.faults.inject(of_calls("SendMessageBatch", Fate::Refuse(500, "InternalError")));
    fixture.dispatch_all().await?;
    fixture.faults.clear();
    assert_eq!(sent(&fixture, &intents), [false; 5]);
    assert_eq!(bodies(&fixture.dispatch_failures, &fixture).len(), 1, "none is poison, so nothing is isolated");
    // The stream has passed them, but they are still pending.
    assert!(fixture.dispatch_all().await?.is_empty());
    fixture.assert_finishes(&intents).await?;
    assert_eq!(sent(&fixture, &intents), [true; 5]);
    fixture.assert_counters_exact().await
}

/// Sweeps a shard with one damaged payment: the others are claimed.
async fn a_sweep_past(attribute: &str, value: AttributeValue) -> Result<()> {
    let fixture = Fixture::with_shards(1).await?;
    let intents = fixture.created(40).await?;
    damage(&fixture, &intents[0], attribute, value).await?;
    fixture.time.pass(TimeDelta::seconds(61));
    let report = swept(fixture.tick(Action::Sweep).await?)?;
    assert_eq!((report.claimed, report.failed, report.remaining), (39, 1, 0), "{report:?}");
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn an_index_entry_that_cannot_be_read_stops_no_other_payment() -> Result<()> {
    a_sweep_past("payeeAccountId", text("nobody at all")).await
}

#[tokio::test]
async fn a_version_that_has_no_next_stops_no_other_payment() -> Result<()> {
    a_sweep_past("version", number(u32::MAX)).await?;
    a_sweep_past("version", number(0)).await
}

#[tokio::test]
async fn a_version_that_had_no_next_is_counted_once_it_is_repaired() -> Result<()> {
    let fixture = Fixture::with_shards(1).await?;
    let intents = fixture.created(2).await?;
    for version in [u32::MAX, 1] {
        damage(&fixture, &intents[0], "version", number(version)).await?;
    }
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn an_index_entry_that_cannot_be_read_stops_no_other_redrive() -> Result<()> {
    let fixture = Fixture::with_shards(1).await?;
    let intents = fixture.pending(3).await?;
    damage(&fixture, &intents[1], "payeeAccountId", text("nobody at all")).await?;
    let report = fixture.redrive_later().await?;
    assert_eq!((report.redriven, report.failed), (2, 1), "{report:?}");
    fixture.assert_counters_exact().await
}

/// Without a check it would be claimed, redriven and archived at a key that does not exist, without effect and for ever.
#[tokio::test]
async fn a_due_key_of_another_payment_is_counted_and_stops_no_other() -> Result<()> {
    for action in [Action::Sweep, Action::Redrive] {
        let fixture = Fixture::with_shards(1).await?;
        let (intents, status) = match action {
            Action::Sweep => (fixture.created(3).await?, "SCHEDULED"),
            Action::Redrive => (fixture.pending(3).await?, "PENDING"),
        };
        let due = text(format!("{status}#2026-11-20#{}#{NOBODY}", intents[1].scheduled_for));
        damage(&fixture, &intents[1], "due", due).await?;
        fixture.time.pass(TimeDelta::minutes(61));
        for _ in 0..2 {
            drop(fixture.metrics.take());
            let outcome = fixture.tick(action).await?;
            let metric = if action == Action::Sweep { "SweepFailed" } else { "RedriveFailed" };
            assert_eq!(fixture.measured([metric, "AlreadyClaimed"]), [1, 0], "{outcome:?}");
        }
        // A list names the payment itself, and not the one of its due key.
        let list = format!("/payments?dueDate=2026-11-20&status={status}");
        let unreadable = fixture.world.send(Ask::get(&list)).await?.body["unreadable"].clone();
        assert_eq!(unreadable, json!({ "count": 1, "paymentIds": [intents[1].accepted] }), "{action:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_head_that_cannot_be_updated_stops_no_other_payment() -> Result<()> {
    a_sweep_past("trail", text("gone")).await
}
