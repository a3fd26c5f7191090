//! Whether the checks see: each injected fault breaks a handler that is weaker than ours in one way, and the
//! invariant checker says so. Our handler withstands the same fault.
//!
//! A month finds a `settle` without a condition in each of its seeds, so it is not here. Of a sweep without one, or a
//! `dispatch` without consistency, some seeds show nothing; and no month has weak handlers or mappings.

use anyhow::{Context as _, Result, ensure};
use daily_due_sweeper::Action;
use payments_delivery::{QueueMapping, QueueMappingSettings, StreamMapping, StreamSettings};
use payments_lab::Weakness;
use payments_lab::facts::intent::Intent;
use payments_machine::Fate;
use payments_machine::layers::attributes;
use payments_machine::triggers::stream_settings;
use payments_model::PaymentId;
use payments_queue::PaymentRequest;
use payments_tests::Ask;
use payments_tests::tables::text;
use serde_json::{Value, json};

use crate::kit::fault_plan::of_calls;
use crate::kit::fixture::{Fixture, settle};
use crate::kit::invariants::{self, Stage};
use crate::kit::staleness::Lag;
use crate::kit::transaction_service::{read_requests, result_of, send_results};
use crate::night::invoke;

/// The invariant checker's finding about a payment that was not settled.
const STAYS_PENDING: &str = "is PENDING when everything is over";

async fn violations(fixture: &Fixture, intents: &[Intent], stage: Stage) -> Result<String> {
    Ok(invariants::violations(fixture, intents, stage).await?.join("; "))
}

/// Runs a scenario with a weakened handler and with ours. The invariant checker must find `sign` in the first and
/// nothing in the second.
async fn assert_seen(
    sign: &str,
    stage: Stage,
    scenario: impl AsyncFn(&Fixture, bool) -> Result<Vec<Intent>>,
) -> Result<()> {
    for weakened in [true, false] {
        let fixture = Fixture::start().await?;
        let intents = scenario(&fixture, weakened).await?;
        let found = violations(&fixture, &intents, stage).await?;
        let is_right = if weakened { found.contains(sign) } else { found.is_empty() };
        ensure!(is_right, "weakened: {weakened}; the invariant checker found {found:?}");
        fixture.assert_counters_exact().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_lagging_index_breaks_a_sweeper_without_a_condition() -> Result<()> {
    assert_seen("was CANCELLED v2 and became PENDING", Stage::UnderWay, async |fixture, weakened| {
        let mut intents = fixture.due(1).await?;
        fixture.cancel(&mut intents[0]).await?;
        fixture.faults.weaken(weakened.then_some(Weakness::Unconditional));
        // The index still shows the payment as it was before the cancel.
        fixture.faults.lag(Lag::always(1));
        fixture.tick(Action::Sweep).await?;
        fixture.faults.end();
        Ok(intents)
    })
    .await
}

#[tokio::test]
async fn stale_reads_break_a_dispatch_that_does_not_ask_for_consistency() -> Result<()> {
    assert_seen(STAYS_PENDING, Stage::Finished, async |fixture, weakened| {
        let intents = fixture.pending(1).await?;
        fixture.faults.weaken(weakened.then_some(Weakness::Inconsistent));
        fixture.faults.lag(Lag::always(1));
        fixture.dispatch_step().await?;
        fixture.faults.end();
        fixture.settle_pending().await?;
        Ok(intents)
    })
    .await
}

#[tokio::test]
async fn stale_reads_break_a_get_that_does_not_ask_for_consistency() -> Result<()> {
    let fixture = Fixture::start().await?;
    for (weakness, status, listed) in [(Some(Weakness::Inconsistent), 404, 0), (None, 200, 1)] {
        let intents = fixture.created(1).await?;
        fixture.faults.weaken(weakness);
        fixture.faults.lag(Lag::always(1));
        let list = format!("/accounts/{}/payments", intents[0].account);
        let one = fixture.ask(Ask::get(&format!("{list}/{}", intents[0].id()?))).await?;
        let list = fixture.ask(Ask::get(&list)).await?;
        fixture.faults.end();
        assert_eq!((one.status, list.payments().len()), (status, listed), "{weakness:?}");
    }
    fixture.assert_counters_exact().await
}

/// A dispatch that sends what the record shows, without a look at the head.
async fn trusting_dispatch(fixture: &Fixture, event: Value) -> Result<Value, String> {
    for record in event["Records"].as_array().into_iter().flatten() {
        let image = &record["dynamodb"]["NewImage"];
        let id = attributes::text(image, "sk").rsplit('#').next().unwrap_or_default().to_owned();
        let attempt = u32::try_from(attributes::number(image, "dispatchAttempt")).unwrap_or(0);
        send(fixture, &id, attempt).await.map_err(|error| error.to_string())?;
    }
    Ok(json!({}))
}

/// Delivers the whole stream to it.
async fn dispatch_trustingly(fixture: &Fixture) -> Result<()> {
    let settings = stream_settings("dispatch", Some(&fixture.dispatch_failures))?;
    let mut mapping = StreamMapping::new(settings, fixture.world.stream().await?)?;
    mapping.drain(fixture.time.now(), 99, |event| trusting_dispatch(fixture, event)).await?;
    Ok(())
}

/// Sends a payment's request, whatever state the payment is in.
async fn send(fixture: &Fixture, id: &str, attempt: u32) -> Result<()> {
    let id: PaymentId = id.parse()?;
    let details = fixture.dependencies.store.details(id).await?.context("no details")?;
    let requests = [PaymentRequest::new(&details, attempt)];
    for sent in fixture.dependencies.requests.send(&requests, fixture.time.now()).await {
        sent?;
    }
    Ok(())
}

#[tokio::test]
async fn a_repeated_stream_breaks_a_dispatch_that_trusts_its_records() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.created(3).await?;
    fixture.assert_finishes(&intents).await?;
    let before = fixture.faults.sent();
    fixture.dispatching.lock().await.restart_from_trim_horizon();
    fixture.dispatch_all().await?;
    assert_eq!(fixture.faults.sent(), before, "our own handler");
    dispatch_trustingly(&fixture).await?;
    assert_eq!(fixture.faults.sent(), before + 3, "settled payments are sent again");
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn damaged_details_break_a_dispatch_that_does_not_compare_them_with_the_head() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.pending(1).await?;
    let damage = [(":other", text("somebody-else"))];
    fixture.world.update_details(intents[0].id()?, "SET payeeAccountId = :other", &damage).await?;
    fixture.dispatch_all().await?;
    assert_eq!(fixture.faults.sent(), 0, "our own handler");
    dispatch_trustingly(&fixture).await?;
    let found = violations(&fixture, &intents, Stage::UnderWay).await?;
    assert!(found.contains("was sent as"), "{found}");
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_repeated_result_breaks_a_settle_without_a_condition() -> Result<()> {
    assert_seen("and became PROCESSED", Stage::UnderWay, async |fixture, weakened| {
        let intents = fixture.pending(1).await?;
        fixture.assert_finishes(&intents).await?;
        invoke(fixture, &fixture.functions, "report").await?;
        fixture.faults.weaken(weakened.then_some(Weakness::UnconditionalSettle));
        let account = &intents[0].account;
        let request = fixture.faults.sent_for(account).pop().context("it was sent")?.request;
        // Of these reads of the past, one shows the payment before its settlement.
        for changes in 1..=8 {
            fixture.faults.lag(Lag::always(changes));
            let mut result = result_of(&request);
            // An echo, since details that are read may be of the past too.
            (result["accountId"], result["dueAt"]) = (request["accountId"].clone(), request["dueAt"].clone());
            fixture.send_result(&result)?;
            fixture.settle_step().await;
        }
        fixture.faults.end();
        Ok(intents)
    })
    .await
}

#[tokio::test]
async fn a_conflict_breaks_a_settle_that_reports_no_failures() -> Result<()> {
    assert_seen(STAYS_PENDING, Stage::Finished, async |fixture, weakened| {
        let settings = QueueMappingSettings { report_batch_item_failures: !weakened, ..Default::default() };
        let mapping = QueueMapping::new(settings, fixture.results.clone());
        let intents = fixture.pending(2).await?;
        fixture.dispatch_all().await?;
        send_results(&read_requests(&fixture.requests, &fixture.time)?, &fixture.results, &fixture.time, None)?;
        fixture.faults.inject(of_calls("UpdateItem", Fate::Refuse(400, "TransactionConflictException")));
        mapping.step(fixture.time.now(), |event| settle(&fixture.functions, event)).await;
        fixture.faults.clear();
        fixture.pass_visibility();
        mapping.step(fixture.time.now(), |event| settle(&fixture.functions, event)).await;
        Ok(intents)
    })
    .await
}

#[tokio::test]
async fn a_throttle_breaks_a_dispatch_that_reports_no_failures() -> Result<()> {
    assert_seen(STAYS_PENDING, Stage::Finished, async |fixture, weakened| {
        let settings = stream_settings("dispatch", Some(&fixture.dispatch_failures))?;
        let settings = StreamSettings { report_batch_item_failures: !weakened, ..settings };
        *fixture.dispatching.lock().await = StreamMapping::new(settings, fixture.world.stream().await?)?;
        let intents = fixture.pending(2).await?;
        fixture.faults.inject(of_calls("SendMessageBatch", Fate::Refuse(400, "RequestThrottled")));
        fixture.dispatch_step().await?;
        fixture.faults.clear();
        fixture.settle_pending().await?;
        Ok(intents)
    })
    .await
}

#[tokio::test]
async fn a_lost_reply_breaks_an_ingest_with_random_ids() -> Result<()> {
    assert_seen("is there 2 times", Stage::UnderWay, async |fixture, weakened| {
        let mut intent = fixture.intent(&fixture.new_name());
        fixture.faults.inject(|call| if call.number == 1 { Fate::LoseReply } else { Fate::Pass });
        let lost = fixture.create(&mut intent).await?;
        ensure!(lost.status == 503, "{lost}");
        fixture.faults.clear();
        if weakened {
            // As if ids were drawn: the retry is another payment.
            intent.key.push_str("-drawn-again");
        }
        fixture.create(&mut intent).await?;
        Ok(vec![intent])
    })
    .await
}

#[tokio::test]
async fn a_kill_breaks_a_sweeper_that_sends_before_the_update() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut intents = fixture.due(1).await?;
    fixture.faults.inject(of_calls("SendMessageBatch", Fate::KillAfter));
    let sending_sweep = async {
        send(&fixture, intents[0].id()?, 1).await?;
        fixture.tick(Action::Sweep).await
    };
    assert!(fixture.faults.until_killed(sending_sweep).await.is_none());
    fixture.faults.clear();
    fixture.cancel(&mut intents[0]).await?;
    assert!(intents[0].cancelled);
    let found = violations(&fixture, &intents, Stage::Finished).await?;
    assert!(found.contains("without being pending") && found.contains("was cancelled and sent"), "{found}");
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_kill_breaks_a_sweeper_that_sends_after_the_update_without_an_outbox() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.due(1).await?;
    fixture.faults.inject(of_calls("SendMessageBatch", Fate::KillBefore));
    let sweep_then_send = async {
        fixture.tick(Action::Sweep).await?;
        send(&fixture, intents[0].id()?, 1).await
    };
    assert!(fixture.faults.until_killed(sweep_then_send).await.is_none());
    fixture.faults.clear();
    // The sweeper's next tick finds nothing to do: the payment is pending.
    fixture.tick(Action::Sweep).await?;
    fixture.serve(None)?;
    fixture.settle_all().await?;
    let found = violations(&fixture, &intents, Stage::Finished).await?;
    assert!(found.contains(STAYS_PENDING), "{found}");
    // Our own dispatch finds it in the stream.
    fixture.assert_finishes(&intents).await?;
    fixture.assert_counters_exact().await
}
