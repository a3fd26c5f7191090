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

use crate::fixture::{Fixture, settle, stream_of};
use crate::invariants::{self, Intent, Stage};
use crate::staleness::Lag;
use crate::transaction_service;
use crate::weakness::Weakness;
use payments_local::Fate;

/// Payments that have fallen due.
async fn due(fixture: &Fixture, count: usize) -> Result<Vec<Intent>> {
    let intents = fixture.created(count).await?;
    fixture.time.pass(TimeDelta::seconds(61));
    Ok(intents)
}

/// Payments that have become pending and were sent, and what the service says of them.
async fn sent(fixture: &Fixture, count: usize) -> Result<(Vec<Intent>, Vec<Value>)> {
    let intents = due(fixture, count).await?;
    fixture.tick(Action::Sweep).await?;
    fixture.dispatch_all().await?;
    Ok((intents, transaction_service::read_requests(&fixture.requests, &fixture.time)?))
}

async fn violations(fixture: &Fixture, intents: &[Intent], stage: Stage) -> Result<String> {
    Ok(invariants::violations(fixture, intents, stage).await?.join("; "))
}

/// What the ledger says with the handler weakened, and with ours.
fn assert_seen(weakened: &str, sign: &str, ours: &str) {
    assert!(weakened.contains(sign), "the ledger does not see it: {weakened:?}");
    assert_eq!(ours, "", "our own handler");
}

#[tokio::test]
async fn a_lagging_index_breaks_a_sweeper_without_a_condition() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut said = Vec::new();
    for weakness in [Some(Weakness::Unconditional), None] {
        let mut intents = fixture.created(1).await?;
        fixture.cancel(&mut intents[0]).await?;
        fixture.time.pass(TimeDelta::seconds(61));
        fixture.faults.weaken(weakness);
        // The index still shows the payment as it was before the cancel.
        fixture.faults.staleness().set(Lag::always(1));
        fixture.tick(Action::Sweep).await?;
        fixture.faults.staleness().set(Lag::none());
        fixture.faults.weaken(None);
        said.push(violations(&fixture, &intents, Stage::UnderWay).await?);
    }
    assert_seen(&said[0], "CANCELLED v2 became PENDING", &said[1]);
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn stale_reads_break_a_dispatch_that_does_not_ask_for_consistency() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut said = Vec::new();
    for weakness in [Some(Weakness::Inconsistent), None] {
        let intents = due(&fixture, 1).await?;
        fixture.tick(Action::Sweep).await?;
        fixture.faults.weaken(weakness);
        fixture.faults.staleness().set(Lag::always(1));
        fixture.dispatch_step().await?;
        fixture.faults.staleness().set(Lag::none());
        fixture.faults.weaken(None);
        fixture.dispatch_all().await?;
        fixture.serve(None)?;
        fixture.settle_all().await?;
        said.push(violations(&fixture, &intents, Stage::Finished).await?);
    }
    assert_seen(&said[0], "is PENDING when everything is over", &said[1]);
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn stale_reads_break_a_get_that_does_not_ask_for_consistency() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut statuses = Vec::new();
    for weakness in [Some(Weakness::Inconsistent), None] {
        let intents = fixture.created(1).await?;
        let id = intents[0].accepted.as_deref().context("not accepted")?;
        fixture.faults.weaken(weakness);
        fixture.faults.staleness().set(Lag::always(1));
        let one = fixture.ask(Ask::get(&format!("/accounts/{}/payments/{id}", intents[0].account))).await?;
        let list = fixture.ask(Ask::get(&format!("/accounts/{}/payments", intents[0].account))).await?;
        fixture.faults.staleness().set(Lag::none());
        fixture.faults.weaken(None);
        statuses.push((one.status, list.payments().len()));
    }
    assert_eq!(statuses, [(404, 0), (200, 1)]);
    fixture.assert_counters_exact().await
}

/// A dispatch that sends what the record shows, without a look at the head.
async fn trusting_dispatch(fixture: &Fixture, event: Value) -> Result<Value, String> {
    for record in event["Records"].as_array().into_iter().flatten() {
        let image = &record["dynamodb"]["NewImage"];
        let id = invariants::text(image, "sk").rsplit('#').next().unwrap_or_default().to_owned();
        let attempt = u32::try_from(invariants::number(image, "dispatchAttempt")).unwrap_or(0);
        send(fixture, &id, attempt).await.map_err(|error| error.to_string())?;
    }
    Ok(json!({}))
}

/// Sends a payment's request, whatever state it is in.
async fn send(fixture: &Fixture, id: &str, attempt: u32) -> Result<()> {
    let id: PaymentId = id.parse()?;
    let details = fixture.dependencies.store.details(id).await?.context("no details")?;
    let requests = [PaymentRequest::of(&details, attempt)];
    for sent in fixture.dependencies.requests.send(&requests, fixture.time.now()).await {
        sent?;
    }
    Ok(())
}

#[tokio::test]
async fn a_stream_that_repeats_itself_breaks_a_dispatch_that_trusts_its_records() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.created(3).await?;
    assert_eq!(fixture.finish(&intents, None).await?, [""; 0]);
    let before = fixture.faults.sent();
    fixture.dispatching.lock().await.restart_from_trim_horizon();
    fixture.dispatch_all().await?;
    assert_eq!(fixture.faults.sent(), before, "our own handler");
    let mut mapping =
        StreamMapping::new(dispatch_settings(&fixture.dispatch_failures)?, stream_of(&fixture.world).await?)?;
    mapping.drain(fixture.time.now(), 99, |event| trusting_dispatch(&fixture, event)).await?;
    assert_eq!(fixture.faults.sent(), before + 3, "settled payments are sent again");
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn repeated_and_contradicting_results_break_a_settle_without_a_condition() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut said = Vec::new();
    for weakness in [Some(Weakness::Unconditional), None] {
        let (mut intents, requests) = sent(&fixture, 1).await?;
        intents[0].contested = true;
        fixture.faults.weaken(weakness);
        let first = transaction_service::result_of(&requests[0]);
        let id = &first["paymentId"];
        let second = json!({ "paymentId": id, "outcome": "PROCESSED", "transactionId": "T-other" });
        for result in [&first, &first, &second] {
            fixture.results.send(result.to_string(), fixture.time.now())?;
            fixture.settle_step().await;
        }
        fixture.faults.weaken(None);
        said.push(violations(&fixture, &intents, Stage::Finished).await?);
    }
    assert_seen(&said[0], "v3 became PROCESSED v3", &said[1]);
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_result_that_overtakes_breaks_a_settle_without_a_condition() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut said = Vec::new();
    for weakness in [Some(Weakness::Unconditional), None] {
        let intents = fixture.created(1).await?;
        let request = json!({ "paymentId": intents[0].accepted, "amountMinor": intents[0].amount });
        fixture.results.send(transaction_service::result_of(&request).to_string(), fixture.time.now())?;
        fixture.faults.weaken(weakness);
        fixture.settle_step().await;
        fixture.faults.weaken(None);
        said.push(violations(&fixture, &intents, Stage::UnderWay).await?);
    }
    assert_seen(&said[0], "SCHEDULED v1 became", &said[1]);
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_conflict_breaks_a_settle_that_reports_no_failures() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut said = Vec::new();
    for report_batch_item_failures in [false, true] {
        let settings = QueueMappingSettings { batch_size: 10, report_batch_item_failures };
        let mapping = QueueMapping::new(settings, fixture.results.clone());
        let (intents, requests) = sent(&fixture, 2).await?;
        transaction_service::send_results(&requests, &fixture.results, &fixture.time, None)?;
        let conflict = Fate::Refuse(400, "TransactionConflictException");
        fixture.faults.inject(move |call| if call.operation == "UpdateItem" { conflict } else { Fate::Pass });
        mapping.step(fixture.time.now(), |event| settle(&fixture.functions, event)).await;
        fixture.faults.clear();
        fixture.time.pass(RESULT_VISIBILITY);
        mapping.step(fixture.time.now(), |event| settle(&fixture.functions, event)).await;
        said.push(violations(&fixture, &intents, Stage::Finished).await?);
    }
    assert_seen(&said[0], "is PENDING when everything is over", &said[1]);
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_throttle_breaks_a_dispatch_that_reports_no_failures() -> Result<()> {
    for report_batch_item_failures in [false, true] {
        let fixture = Fixture::start().await?;
        let settings = StreamSettings { report_batch_item_failures, ..dispatch_settings(&fixture.dispatch_failures)? };
        *fixture.dispatching.lock().await = StreamMapping::new(settings, stream_of(&fixture.world).await?)?;
        let intents = due(&fixture, 2).await?;
        fixture.tick(Action::Sweep).await?;
        let throttle = Fate::Refuse(400, "RequestThrottled");
        fixture.faults.inject(move |call| if call.operation == "SendMessageBatch" { throttle } else { Fate::Pass });
        fixture.dispatch_step().await?;
        fixture.faults.clear();
        fixture.dispatch_all().await?;
        fixture.serve(None)?;
        fixture.settle_all().await?;
        let said = violations(&fixture, &intents, Stage::Finished).await?;
        assert_eq!(said.contains("is PENDING when everything is over"), !report_batch_item_failures, "{said}");
        fixture.assert_counters_exact().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_lost_reply_breaks_an_ingest_with_random_ids() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut said = Vec::new();
    for random in [true, false] {
        let mut intent = fixture.intent(&fixture.new_name());
        fixture.faults.inject(|call| if call.number == 1 { Fate::LoseReply } else { Fate::Pass });
        let lost = fixture.create(&mut intent).await?;
        ensure!(lost.status == 503, "{lost}");
        fixture.faults.clear();
        if random {
            // As if ids were drawn: the retry is another payment.
            intent.key.push_str("-drawn-again");
        }
        fixture.create(&mut intent).await?;
        said.push(violations(&fixture, &[intent], Stage::UnderWay).await?);
    }
    assert_seen(&said[0], "is there 2 times", &said[1]);
    fixture.assert_counters_exact().await
}

/// A sweeper that sends a payment and then makes it pending, or the other way round without anybody
/// who looks at the outbox.
async fn sending_sweeper(fixture: &Fixture, intent: &Intent, sends_first: bool) -> Result<()> {
    let id = intent.accepted.as_deref().context("not accepted")?;
    if sends_first {
        send(fixture, id, 1).await?;
        fixture.tick(Action::Sweep).await?;
    } else {
        fixture.tick(Action::Sweep).await?;
        send(fixture, id, 1).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_kill_breaks_a_sweeper_that_sends_before_the_update() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut intents = due(&fixture, 1).await?;
    fixture.faults.inject(|call| if call.operation == "SendMessageBatch" { Fate::KillAfter } else { Fate::Pass });
    let killed = fixture.faults.until_killed(sending_sweeper(&fixture, &intents[0], true)).await;
    assert!(killed.is_none());
    fixture.faults.clear();
    fixture.cancel(&mut intents[0]).await?;
    assert!(intents[0].cancelled);
    let said = violations(&fixture, &intents, Stage::Finished).await?;
    assert!(said.contains("without being pending") && said.contains("was cancelled and sent"), "{said}");
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_kill_breaks_a_sweeper_that_sends_after_the_update_without_an_outbox() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = due(&fixture, 1).await?;
    fixture.faults.inject(|call| if call.operation == "SendMessageBatch" { Fate::KillBefore } else { Fate::Pass });
    assert!(fixture.faults.until_killed(sending_sweeper(&fixture, &intents[0], false)).await.is_none());
    fixture.faults.clear();
    // Its next tick finds nothing to do: the payment is pending.
    fixture.tick(Action::Sweep).await?;
    fixture.serve(None)?;
    fixture.settle_all().await?;
    let said = violations(&fixture, &intents, Stage::Finished).await?;
    assert!(said.contains("is PENDING when everything is over"), "{said}");
    // Our own dispatch finds it in the stream.
    assert_eq!(fixture.finish(&intents, None).await?, [""; 0]);
    fixture.assert_counters_exact().await
}
