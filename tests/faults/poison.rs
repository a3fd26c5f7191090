//! Poison: what nobody can read or place stops nobody else, ends where somebody finds it, and raises
//! its alarm metric.

use anyhow::{Context as _, Result, bail};
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use daily_due_sweeper::{Action, Report};
use payments_local::triggers::DISPATCH_RETRIES;
use payments_local::triggers::queues::{MAX_RESULT_RECEIVES, RESULT_VISIBILITY};
use serde_json::{Value, json};

use crate::ledger::{self, Intent, Stage};
use crate::rig::Rig;
use crate::service;
use crate::staleness::Lag;
use payments_local::Fate;

/// Payments that have become pending and were not sent yet.
async fn pending(rig: &Rig, count: usize) -> Result<Vec<Intent>> {
    let intents = rig.created(count).await?;
    rig.time.pass(TimeDelta::seconds(61));
    rig.tick(Action::Sweep).await?;
    Ok(intents)
}

/// The messages of a queue.
fn bodies(queue: &payments_queue::Queue, rig: &Rig) -> Vec<String> {
    let mut bodies = Vec::new();
    loop {
        let received = queue.receive(10, rig.time.now());
        if received.is_empty() {
            bodies.sort();
            return bodies;
        }
        bodies.extend(received.into_iter().map(|message| message.body));
    }
}

#[tokio::test]
async fn every_odd_result_has_an_end_of_its_own_and_the_others_are_settled_at_once() -> Result<()> {
    let rig = Rig::set_up().await?;
    let good = pending(&rig, 3).await?;
    rig.dispatch_all().await?;
    let requests = service::read(&rig.requests, &rig.time)?;
    let early = rig.created(1).await?;
    let taken = service::result_of(&requests[0]);
    let unknown = json!({ "paymentId": "00000000-0000-5000-8000-000000000000", "outcome": "FAILED", "reason": "who?" });
    let too_early = json!({ "paymentId": early[0].accepted, "outcome": "PROCESSED", "transactionId": "T-early" });
    let mut dead = vec![
        "not JSON".to_owned(),
        json!({ "outcome": "PROCESSED", "transactionId": "T-nobody" }).to_string(),
        json!({ "paymentId": taken["paymentId"], "outcome": "PERHAPS" }).to_string(),
        json!({ "paymentId": taken["paymentId"], "outcome": "PROCESSED" }).to_string(),
        unknown.to_string(),
        too_early.to_string(),
    ];
    drop(rig.metrics.take());
    let results = requests.iter().map(|request| {
        let mut result = service::result_of(request);
        result["fieldOfTomorrow"] = json!({ "ignored": true });
        result.to_string()
    });
    for message in dead.iter().cloned().chain(results) {
        rig.results.send(message, rig.time.now())?;
    }
    let first = rig.settle_step().await.context("no delivery")?;
    assert_eq!((first.messages, first.deleted, first.error), (9, 3, None));
    assert_eq!(ledger::violations(&rig, &good, Stage::Finished).await?, [""; 0]);

    rig.settle_all().await?;
    rig.time.pass(RESULT_VISIBILITY);
    assert!(rig.settle_step().await.is_none(), "nothing is left in the queue");
    dead.sort();
    assert_eq!(bodies(&rig.dead_results, &rig), dead);
    let lines = rig.metrics.take();
    let often = u64::from(MAX_RESULT_RECEIVES);
    for (metric, want) in [
        ("PoisonMessages", 4 * often),
        ("UnknownPayments", often),
        ("EarlyOutcomes", often),
        ("ConflictingOutcomes", 0),
    ] {
        assert_eq!(rig.metric(&lines, metric), want, "{metric}");
    }
    assert_eq!(ledger::violations(&rig, &early, Stage::UnderWay).await?, [""; 0]);
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn an_early_result_settles_when_its_payment_is_pending() -> Result<()> {
    let rig = Rig::set_up().await?;
    let intents = rig.created(1).await?;
    let request = json!({ "paymentId": intents[0].accepted, "amountMinor": intents[0].amount });
    rig.results.send(service::result_of(&request).to_string(), rig.time.now())?;
    let early = rig.settle_step().await.context("no delivery")?;
    assert_eq!(early.deleted, 0);
    rig.time.pass(RESULT_VISIBILITY);
    rig.tick(Action::Sweep).await?;
    let settled = rig.settle_step().await.context("no delivery")?;
    assert_eq!(settled.deleted, 1);
    assert_eq!(ledger::violations(&rig, &intents, Stage::Finished).await?, [""; 0]);
    // What the stream still says of it is past: nothing is sent for a settled payment.
    rig.dispatch_all().await?;
    assert_eq!(rig.line.sent(), 0);
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn contradictions_and_shared_transaction_ids_change_nothing_and_raise_alarms() -> Result<()> {
    let rig = Rig::set_up().await?;
    let intents = rig.created(3).await?;
    let result =
        |intent: &Intent| json!({ "paymentId": intent.accepted, "outcome": "PROCESSED", "transactionId": "T-same" });
    let other = json!({ "paymentId": intents[0].accepted, "outcome": "FAILED", "reason": "after all" });
    rig.time.pass(TimeDelta::seconds(61));
    rig.tick(Action::Sweep).await?;
    for (message, metric) in [
        (result(&intents[0]), "Processed"),
        (result(&intents[0]), "RepeatedOutcomes"),
        (other, "ConflictingOutcomes"),
        (result(&intents[1]), "SharedTransactionIds"),
    ] {
        drop(rig.metrics.take());
        rig.results.send(message.to_string(), rig.time.now())?;
        let step = rig.settle_step().await.context("no delivery")?;
        assert_eq!(step.deleted, 1, "{metric}: a success to the queue");
        let lines = rig.metrics.take();
        assert_eq!(rig.metric(&lines, metric), 1, "{metric}: {lines:?}");
    }
    let heads = rig.world.heads(&intents[0].account).await?;
    let status = |head: &payments_store::Item| head["status"].as_s().cloned().unwrap_or_default();
    let mut statuses: Vec<String> = heads.iter().map(status).collect();
    statuses.sort();
    assert_eq!(statuses, ["PENDING", "PROCESSED", "PROCESSED"]);
    rig.assert_counters_exact().await
}

/// Sets an attribute of a payment's head, past every rule.
async fn damage(rig: &Rig, intent: &Intent, attribute: &str, value: AttributeValue) -> Result<()> {
    let id = intent.accepted.as_deref().context("not accepted")?;
    let text = |text: String| AttributeValue::S(text);
    let update = rig.client.update_item().table_name(&rig.world.environment.tables.payments);
    update
        .key("pk", text(format!("ACCT#{}", intent.account)))
        .key("sk", text(format!("{}#{id}", intent.due_at)))
        .update_expression("SET #attribute = :value")
        .expression_attribute_names("#attribute", attribute)
        .expression_attribute_values(":value", value)
        .send()
        .await?;
    Ok(())
}

/// Which of the payments were sent.
fn sent(rig: &Rig, intents: &[Intent]) -> Vec<bool> {
    let sent = rig.line.sent_for(&intents[0].account);
    let was = |intent: &Intent| sent.iter().any(|sent| sent.request["amountMinor"] == intent.amount);
    intents.iter().map(was).collect()
}

#[tokio::test]
async fn a_head_that_cannot_be_read_is_isolated_and_sent_once_it_can() -> Result<()> {
    let rig = Rig::set_up().await?;
    let intents = pending(&rig, 7).await?;
    let scheduled_for = AttributeValue::S(intents[3].due_at.clone());
    damage(&rig, &intents[3], "scheduledFor", AttributeValue::S("some day".to_owned())).await?;
    drop(rig.metrics.take());
    rig.dispatch_all().await?;
    assert_eq!(sent(&rig, &intents), [true, true, true, false, true, true, true]);
    let put_aside = bodies(&rig.put_aside, &rig);
    // Its claim and the damage itself: both records lead to a head that cannot be read.
    assert_eq!(put_aside.len(), 2, "{put_aside:#?}");
    for record in &put_aside {
        let record: Value = serde_json::from_str(record)?;
        assert_eq!(record["DDBStreamBatchInfo"]["batchSize"], 1, "isolated");
        assert_eq!(record["requestContext"]["condition"], "RetryAttemptsExhausted");
        assert_eq!(record["requestContext"]["approximateInvokeCount"], DISPATCH_RETRIES + 1);
    }
    let lines = rig.metrics.take();
    assert!(rig.metric(&lines, "PoisonRecords") > 0, "{lines:?}");

    rig.serve(None)?;
    rig.settle_all().await?;
    rig.time.pass(TimeDelta::minutes(61));
    let Report::Redrive(report) = rig.tick(Action::Redrive).await? else { bail!("not a redrive") };
    assert_eq!((report.redriven, report.failed), (0, 1), "found, and not readable");
    let lines = rig.metrics.take();
    assert_eq!(rig.metric(&lines, "RedriveFailed"), 1, "{lines:?}");

    // Repaired, and the stream past: the redrive alone brings it to the service.
    damage(&rig, &intents[3], "scheduledFor", scheduled_for).await?;
    let Report::Redrive(report) = rig.tick(Action::Redrive).await? else { bail!("not a redrive") };
    assert_eq!((report.redriven, report.failed), (1, 0));
    rig.dispatch_all().await?;
    assert!(sent(&rig, &intents)[3]);
    rig.serve(None)?;
    rig.settle_all().await?;
    let statuses: Vec<_> =
        rig.world.heads(&intents[0].account).await?.iter().map(|head| head["status"].clone()).collect();
    assert!(statuses.iter().all(|status| status.as_s().is_ok_and(|status| status != "PENDING")), "{statuses:?}");
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn what_the_stream_had_to_give_up_is_found_by_the_redrive() -> Result<()> {
    let rig = Rig::set_up().await?;
    let intents = pending(&rig, 5).await?;
    let down = Fate::Refuse(500, "InternalError");
    rig.line.break_with(move |call| if call.operation == "SendMessageBatch" { down } else { Fate::Pass });
    rig.dispatch_all().await?;
    rig.line.mend();
    assert_eq!(sent(&rig, &intents), [false; 5]);
    assert_eq!(bodies(&rig.put_aside, &rig).len(), 5, "each on its own");
    // The stream is past them, but they are still pending.
    assert!(rig.dispatch_all().await?.is_empty());
    assert_eq!(rig.finish(&intents, None).await?, [""; 0]);
    assert_eq!(sent(&rig, &intents), [true; 5]);
    rig.assert_counters_exact().await
}

/// One payment of a shard cannot be read from the index, or not be updated: the others are claimed.
async fn a_sweep_past(attribute: &str, value: AttributeValue) -> Result<()> {
    let rig = Rig::with_shards(1).await?;
    let intents = rig.created(40).await?;
    damage(&rig, &intents[0], attribute, value).await?;
    rig.time.pass(TimeDelta::seconds(61));
    let Report::Sweep(report) = rig.tick(Action::Sweep).await? else { bail!("not a sweep") };
    assert_eq!((report.claimed, report.failed, report.remaining), (39, 1, 0), "{report:?}");
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn an_index_entry_that_cannot_be_read_stops_no_other_payment() -> Result<()> {
    a_sweep_past("payeeAccountId", AttributeValue::S("nobody at all".to_owned())).await
}

#[tokio::test]
async fn an_index_entry_that_cannot_be_read_stops_no_other_redrive() -> Result<()> {
    let rig = Rig::with_shards(1).await?;
    let intents = pending(&rig, 3).await?;
    damage(&rig, &intents[1], "payeeAccountId", AttributeValue::S("nobody at all".to_owned())).await?;
    rig.time.pass(TimeDelta::minutes(61));
    let Report::Redrive(report) = rig.tick(Action::Redrive).await? else { bail!("not a redrive") };
    assert_eq!((report.redriven, report.failed), (2, 1), "{report:?}");
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn a_head_that_cannot_be_updated_stops_no_other_payment() -> Result<()> {
    a_sweep_past("trail", AttributeValue::S("gone".to_owned())).await
}

/// The alarm looks at an index, which may lag: of two payments settled within the lag neither sees
/// the other. The next delivery of either result, and there is at least one now and then, does.
#[tokio::test]
async fn a_shared_transaction_id_raises_its_alarm_once_the_index_shows_it() -> Result<()> {
    let rig = Rig::set_up().await?;
    let intents = pending(&rig, 2).await?;
    let tell = || -> Result<()> {
        for intent in &intents {
            let result = json!({ "paymentId": intent.accepted, "outcome": "PROCESSED", "transactionId": "T-same" });
            rig.results.send(result.to_string(), rig.time.now())?;
        }
        Ok(())
    };
    drop(rig.metrics.take());
    rig.line.staleness().set(Lag::always(2));
    tell()?;
    rig.settle_all().await?;
    assert_eq!(rig.metric(&rig.metrics.take(), "SharedTransactionIds"), 0);
    rig.line.staleness().set(Lag::none());
    tell()?;
    rig.settle_all().await?;
    assert_eq!(rig.metric(&rig.metrics.take(), "SharedTransactionIds"), 2);
    rig.assert_counters_exact().await
}
