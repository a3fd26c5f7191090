//! Whether the checks see: each thing that tests inject breaks a handler that is weaker than ours in
//! one way, and the ledger says so. The same injection leaves our handler whole.

use anyhow::{Context as _, Result, ensure};
use chrono::TimeDelta;
use daily_due_sweeper::Action;
use payments_delivery::{QueueMapping, QueueMappingSettings, StreamMapping, StreamSettings};
use payments_local::triggers::dispatch_settings;
use payments_local::triggers::queues::RESULT_VISIBILITY;
use payments_model::PaymentId;
use payments_queue::PaymentRequest;
use payments_tests::Ask;
use serde_json::{Value, json};

use crate::ledger::{self, Intent, Stage};
use crate::rig::{Rig, settle, stream_of};
use crate::service;
use crate::staleness::Lag;
use crate::weakness::Weakness;
use payments_local::Fate;

/// Payments that have fallen due.
async fn due(rig: &Rig, count: usize) -> Result<Vec<Intent>> {
    let intents = rig.created(count).await?;
    rig.time.pass(TimeDelta::seconds(61));
    Ok(intents)
}

/// Payments that have become pending and were sent, and what the service says of them.
async fn sent(rig: &Rig, count: usize) -> Result<(Vec<Intent>, Vec<Value>)> {
    let intents = due(rig, count).await?;
    rig.tick(Action::Sweep).await?;
    rig.dispatch_all().await?;
    Ok((intents, service::read(&rig.requests, &rig.time)?))
}

async fn violations(rig: &Rig, intents: &[Intent], stage: Stage) -> Result<String> {
    Ok(ledger::violations(rig, intents, stage).await?.join("; "))
}

/// What the ledger says with the handler weakened, and with ours.
fn assert_seen(weakened: &str, sign: &str, ours: &str) {
    assert!(weakened.contains(sign), "the ledger does not see it: {weakened:?}");
    assert_eq!(ours, "", "our own handler");
}

#[tokio::test]
async fn a_lagging_index_breaks_a_sweeper_without_a_condition() -> Result<()> {
    let rig = Rig::set_up().await?;
    let mut said = Vec::new();
    for weakness in [Some(Weakness::Unconditional), None] {
        let mut intents = rig.created(1).await?;
        rig.cancel(&mut intents[0]).await?;
        rig.time.pass(TimeDelta::seconds(61));
        rig.line.weaken(weakness);
        // The index still shows the payment as it was before the cancel.
        rig.line.staleness().set(Lag::always(1));
        rig.tick(Action::Sweep).await?;
        rig.line.staleness().set(Lag::none());
        rig.line.weaken(None);
        said.push(violations(&rig, &intents, Stage::UnderWay).await?);
    }
    assert_seen(&said[0], "CANCELLED v2 became PENDING", &said[1]);
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn stale_reads_break_a_dispatch_that_does_not_ask_for_consistency() -> Result<()> {
    let rig = Rig::set_up().await?;
    let mut said = Vec::new();
    for weakness in [Some(Weakness::Inconsistent), None] {
        let intents = due(&rig, 1).await?;
        rig.tick(Action::Sweep).await?;
        rig.line.weaken(weakness);
        rig.line.staleness().set(Lag::always(1));
        rig.dispatch_step().await?;
        rig.line.staleness().set(Lag::none());
        rig.line.weaken(None);
        rig.dispatch_all().await?;
        rig.serve(None)?;
        rig.settle_all().await?;
        said.push(violations(&rig, &intents, Stage::Finished).await?);
    }
    assert_seen(&said[0], "is PENDING when everything is over", &said[1]);
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn stale_reads_break_a_get_that_does_not_ask_for_consistency() -> Result<()> {
    let rig = Rig::set_up().await?;
    let mut statuses = Vec::new();
    for weakness in [Some(Weakness::Inconsistent), None] {
        let intents = rig.created(1).await?;
        let id = intents[0].accepted.as_deref().context("not accepted")?;
        rig.line.weaken(weakness);
        rig.line.staleness().set(Lag::always(1));
        let one = rig.ask(Ask::get(&format!("/accounts/{}/payments/{id}", intents[0].account))).await?;
        let list = rig.ask(Ask::get(&format!("/accounts/{}/payments", intents[0].account))).await?;
        rig.line.staleness().set(Lag::none());
        rig.line.weaken(None);
        statuses.push((one.status, list.payments().len()));
    }
    assert_eq!(statuses, [(404, 0), (200, 1)]);
    rig.assert_counters_exact().await
}

/// A dispatch that sends what the record shows, without a look at the head.
async fn trusting_dispatch(rig: &Rig, event: Value) -> Result<Value, String> {
    for record in event["Records"].as_array().into_iter().flatten() {
        let image = &record["dynamodb"]["NewImage"];
        let id = ledger::text(image, "sk").rsplit('#').next().unwrap_or_default().to_owned();
        let attempt = u32::try_from(ledger::number(image, "dispatchAttempt")).unwrap_or(0);
        send(rig, &id, attempt).await.map_err(|error| error.to_string())?;
    }
    Ok(json!({}))
}

/// Sends a payment's request, whatever state it is in.
async fn send(rig: &Rig, id: &str, attempt: u32) -> Result<()> {
    let id: PaymentId = id.parse()?;
    let details = rig.surroundings.store.details(id).await?.context("no details")?;
    let requests = [PaymentRequest::of(&details, attempt)];
    for sent in rig.surroundings.requests.send(&requests, rig.time.now()).await {
        sent?;
    }
    Ok(())
}

#[tokio::test]
async fn a_stream_that_repeats_itself_breaks_a_dispatch_that_trusts_its_records() -> Result<()> {
    let rig = Rig::set_up().await?;
    let intents = rig.created(3).await?;
    assert_eq!(rig.finish(&intents, None).await?, [""; 0]);
    let before = rig.line.sent();
    rig.dispatching.lock().await.restart_from_trim_horizon();
    rig.dispatch_all().await?;
    assert_eq!(rig.line.sent(), before, "our own handler");
    let mut mapping = StreamMapping::new(dispatch_settings(&rig.put_aside)?, stream_of(&rig.world).await?)?;
    mapping.drain(rig.time.now(), 99, |event| trusting_dispatch(&rig, event)).await?;
    assert_eq!(rig.line.sent(), before + 3, "settled payments are sent again");
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn repeated_and_contradicting_results_break_a_settle_without_a_condition() -> Result<()> {
    let rig = Rig::set_up().await?;
    let mut said = Vec::new();
    for weakness in [Some(Weakness::Unconditional), None] {
        let (mut intents, requests) = sent(&rig, 1).await?;
        intents[0].contested = true;
        rig.line.weaken(weakness);
        let first = service::result_of(&requests[0]);
        let id = &first["paymentId"];
        let second = json!({ "paymentId": id, "outcome": "PROCESSED", "transactionId": "T-other" });
        for result in [&first, &first, &second] {
            rig.results.send(result.to_string(), rig.time.now())?;
            rig.settle_step().await;
        }
        rig.line.weaken(None);
        said.push(violations(&rig, &intents, Stage::Finished).await?);
    }
    assert_seen(&said[0], "v3 became PROCESSED v3", &said[1]);
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn a_result_that_overtakes_breaks_a_settle_without_a_condition() -> Result<()> {
    let rig = Rig::set_up().await?;
    let mut said = Vec::new();
    for weakness in [Some(Weakness::Unconditional), None] {
        let intents = rig.created(1).await?;
        let request = json!({ "paymentId": intents[0].accepted, "amountMinor": intents[0].amount });
        rig.results.send(service::result_of(&request).to_string(), rig.time.now())?;
        rig.line.weaken(weakness);
        rig.settle_step().await;
        rig.line.weaken(None);
        said.push(violations(&rig, &intents, Stage::UnderWay).await?);
    }
    assert_seen(&said[0], "SCHEDULED v1 became", &said[1]);
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn a_conflict_breaks_a_settle_that_reports_no_failures() -> Result<()> {
    let rig = Rig::set_up().await?;
    let mut said = Vec::new();
    for report_batch_item_failures in [false, true] {
        let settings = QueueMappingSettings { batch_size: 10, report_batch_item_failures };
        let mapping = QueueMapping::new(settings, rig.results.clone());
        let (intents, requests) = sent(&rig, 2).await?;
        service::report(&requests, &rig.results, &rig.time, None)?;
        let conflict = Fate::Refuse(400, "TransactionConflictException");
        rig.line.break_with(move |call| if call.operation == "UpdateItem" { conflict } else { Fate::Pass });
        mapping.step(rig.time.now(), |event| settle(&rig.functions, event)).await;
        rig.line.mend();
        rig.time.pass(RESULT_VISIBILITY);
        mapping.step(rig.time.now(), |event| settle(&rig.functions, event)).await;
        said.push(violations(&rig, &intents, Stage::Finished).await?);
    }
    assert_seen(&said[0], "is PENDING when everything is over", &said[1]);
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn a_throttle_breaks_a_dispatch_that_reports_no_failures() -> Result<()> {
    for report_batch_item_failures in [false, true] {
        let rig = Rig::set_up().await?;
        let settings = StreamSettings { report_batch_item_failures, ..dispatch_settings(&rig.put_aside)? };
        *rig.dispatching.lock().await = StreamMapping::new(settings, stream_of(&rig.world).await?)?;
        let intents = due(&rig, 2).await?;
        rig.tick(Action::Sweep).await?;
        let throttle = Fate::Refuse(400, "RequestThrottled");
        rig.line.break_with(move |call| if call.operation == "SendMessageBatch" { throttle } else { Fate::Pass });
        rig.dispatch_step().await?;
        rig.line.mend();
        rig.dispatch_all().await?;
        rig.serve(None)?;
        rig.settle_all().await?;
        let said = violations(&rig, &intents, Stage::Finished).await?;
        assert_eq!(said.contains("is PENDING when everything is over"), !report_batch_item_failures, "{said}");
        rig.assert_counters_exact().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_lost_reply_breaks_an_ingest_with_random_ids() -> Result<()> {
    let rig = Rig::set_up().await?;
    let mut said = Vec::new();
    for random in [true, false] {
        let mut intent = rig.intent(&rig.new_name());
        rig.line.break_with(|call| if call.number == 1 { Fate::LoseReply } else { Fate::Pass });
        let lost = rig.create(&mut intent).await?;
        ensure!(lost.status == 503, "{lost}");
        rig.line.mend();
        if random {
            // As if ids were drawn: the retry is another payment.
            intent.key.push_str("-drawn-again");
        }
        rig.create(&mut intent).await?;
        said.push(violations(&rig, &[intent], Stage::UnderWay).await?);
    }
    assert_seen(&said[0], "is there 2 times", &said[1]);
    rig.assert_counters_exact().await
}

/// A sweeper that sends a payment and then makes it pending, or the other way round without anybody
/// who looks at the outbox.
async fn sending_sweeper(rig: &Rig, intent: &Intent, sends_first: bool) -> Result<()> {
    let id = intent.accepted.as_deref().context("not accepted")?;
    if sends_first {
        send(rig, id, 1).await?;
        rig.tick(Action::Sweep).await?;
    } else {
        rig.tick(Action::Sweep).await?;
        send(rig, id, 1).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_kill_breaks_a_sweeper_that_sends_before_the_update() -> Result<()> {
    let rig = Rig::set_up().await?;
    let mut intents = due(&rig, 1).await?;
    rig.line.break_with(|call| if call.operation == "SendMessageBatch" { Fate::KillAfter } else { Fate::Pass });
    let killed = rig.line.until_killed(sending_sweeper(&rig, &intents[0], true)).await;
    assert!(killed.is_none());
    rig.line.mend();
    rig.cancel(&mut intents[0]).await?;
    assert!(intents[0].cancelled);
    let said = violations(&rig, &intents, Stage::Finished).await?;
    assert!(said.contains("without being pending") && said.contains("was cancelled and sent"), "{said}");
    rig.assert_counters_exact().await
}

#[tokio::test]
async fn a_kill_breaks_a_sweeper_that_sends_after_the_update_without_an_outbox() -> Result<()> {
    let rig = Rig::set_up().await?;
    let intents = due(&rig, 1).await?;
    rig.line.break_with(|call| if call.operation == "SendMessageBatch" { Fate::KillBefore } else { Fate::Pass });
    assert!(rig.line.until_killed(sending_sweeper(&rig, &intents[0], false)).await.is_none());
    rig.line.mend();
    // Its next tick finds nothing to do: the payment is pending.
    rig.tick(Action::Sweep).await?;
    rig.serve(None)?;
    rig.settle_all().await?;
    let said = violations(&rig, &intents, Stage::Finished).await?;
    assert!(said.contains("is PENDING when everything is over"), "{said}");
    // Our own dispatch finds it in the stream.
    assert_eq!(rig.finish(&intents, None).await?, [""; 0]);
    rig.assert_counters_exact().await
}
