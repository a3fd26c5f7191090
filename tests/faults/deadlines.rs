//! Deadlines: each call takes as long as its timeout allows, and Lambda's deadline comes at any second. Each handler
//! still ends before it, with no call under way, and a later invocation completes the work.
//!
//! A month's invocations seldom come near their deadline; here each does, at every second.

use anyhow::{Context as _, Result, ensure};
use chrono::TimeDelta;
use daily_due_sweeper::Action;
use lambda_runtime::{Context, LambdaEvent};
use payments_boot::MARGIN;
use payments_lab::facts::results::processed;
use payments_machine::{Fate, Handlers as _};
use payments_store::CALL_TIMEOUT;
use serde_json::{Value, json};

use crate::kit::fault_plan::of_calls;
use crate::kit::fixture::Fixture;
use crate::kit::invariants::{Stage, violations};
use crate::kit::transaction_service::{batch_of, read_requests, result_of};
use crate::night::{UNTIL_NIGHT, invoke};

/// The deadlines, in seconds after the start: those that leave less than twice the margin shorten the margin.
const DEADLINES: std::ops::Range<i64> = 22..60;

/// Runs a handler whose calls are as slow as they may be. It must end before the deadline.
async fn run_slowly<T>(fixture: &Fixture, seconds: i64, run: impl AsyncFnOnce(Context) -> T) -> Result<T> {
    let deadline = fixture.time.now() + TimeDelta::seconds(seconds);
    let mut context = Context::default();
    context.request_id = fixture.new_name();
    context.deadline = u64::try_from(deadline.timestamp_millis())?;
    fixture.faults.calls_take(TimeDelta::from_std(CALL_TIMEOUT)?);
    let answer = run(context).await;
    fixture.faults.calls_take(TimeDelta::zero());
    let late = fixture.time.now() - deadline;
    ensure!(late <= TimeDelta::zero(), "with {seconds} s, it ended {} s late", late.num_seconds());
    Ok(answer)
}

/// Delivers a result to `settle` with this much time. Returns whether it is to be delivered again.
async fn settle_within(fixture: &Fixture, seconds: i64, result: &Value) -> Result<bool> {
    let event = serde_json::from_value(batch_of(std::slice::from_ref(result)))?;
    let settle = async |context| fixture.functions.settle.handle(LambdaEvent::new(event, context)).await;
    Ok(!run_slowly(fixture, seconds, settle).await?.batch_item_failures.is_empty())
}

/// The most calls of a settlement: the echo leads nowhere, then the details decide.
#[tokio::test]
async fn settle_ends_before_its_deadline_and_returns_what_it_did_not_finish() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut unfinished = 0;
    for seconds in DEADLINES {
        let intents = fixture.pending(2).await?;
        fixture.dispatch_all().await?;
        for request in read_requests(&fixture.requests, &fixture.time)? {
            let mut result = result_of(&request);
            (result["accountId"], result["dueAt"]) = (json!("nobody"), request["dueAt"].clone());
            if settle_within(&fixture, seconds, &result).await? {
                unfinished += 1;
                // DynamoDB is fast again.
                fixture.send_result(&result)?;
                fixture.settle_all().await?;
            }
        }
        assert_eq!(violations(&fixture, &intents, Stage::Finished).await?, [""; 0], "{seconds} s");
    }
    ensure!(unfinished > 0, "every deadline was late enough");
    assert_eq!(fixture.measured(["OutOfTime"]), [unfinished]);
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn settle_returns_what_it_has_not_begun() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.pending(3).await?;
    let results: Vec<Value> = intents.iter().map(|intent| processed(&intent.transfer(), "T")).collect();
    fixture.faults.clear();
    let event = serde_json::from_value(batch_of(&results))?;
    let settle = async |context| fixture.functions.settle.handle(LambdaEvent::new(event, context)).await;
    let response = run_slowly(&fixture, 0, settle).await?;
    assert_eq!((response.batch_item_failures.len(), fixture.faults.calls()), (3, 0));
    fixture.assert_counters_exact().await
}

/// Another transaction cancels every commit, so all tries are made.
#[tokio::test]
async fn the_aggregator_ends_before_its_deadline() -> Result<()> {
    let fixture = Fixture::start().await?;
    for seconds in DEADLINES {
        fixture.created(2).await?;
        fixture.faults.inject(of_calls("TransactWriteItems", Fate::CancelTransaction("TransactionConflict")));
        let count = async |event: Value, context| {
            let event = LambdaEvent::new(serde_json::from_value(event).map_err(|error| error.to_string())?, context);
            let counted = fixture.functions.aggregator.handle(event).await;
            counted.map(|_| json!({})).map_err(|error| error.to_string())
        };
        let count = |event: Value| async {
            let counted = run_slowly(&fixture, seconds, async |context| count(event, context).await).await;
            counted.map_err(|error| error.to_string()).and_then(|counted| counted)
        };
        let mapping = &mut *fixture.aggregating.lock().await;
        let deliveries = payments_tests::counting::next_batch(mapping, fixture.time.now(), count).await?;
        let outcome = format!("{:?}", deliveries.last().context("no delivery")?.outcome);
        ensure!(outcome.contains("the deadline came before all changes"), "{outcome}");
        fixture.faults.clear();
    }
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn sweeps_and_redrives_end_before_their_deadline() -> Result<()> {
    let fixture = Fixture::with_shards(1).await?;
    for seconds in DEADLINES {
        let intents = fixture.due(1).await?;
        for (action, wait) in [(Action::Sweep, TimeDelta::zero()), (Action::Redrive, TimeDelta::minutes(61))] {
            fixture.time.pass(wait);
            let time = TimeDelta::seconds(seconds);
            let tick = async |_| fixture.tick_within(&fixture.functions, action, time).await.map(drop);
            run_slowly(&fixture, seconds, tick).await??;
        }
        assert_eq!(fixture.finish(&intents, None).await?, [""; 0], "{seconds} s");
    }
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn the_nights_functions_end_before_their_deadline() -> Result<()> {
    let fixture = Fixture::with_shards(1).await?;
    for seconds in DEADLINES.step_by(3) {
        let intents = fixture.created(1).await?;
        fixture.assert_finishes(&intents).await?;
        fixture.time.pass(UNTIL_NIGHT);
        for function in ["report", "archive"] {
            let input = json!({ "action": function });
            let scheduled = async |context| fixture.functions.scheduled(function, input, context).await;
            run_slowly(&fixture, seconds, scheduled).await?.map_err(anyhow::Error::msg)?;
        }
        for function in ["report", "archive"] {
            invoke(&fixture, &fixture.functions, function).await?;
        }
        assert_eq!(fixture.world.archived_heads(&intents[0].account).await?.len(), 1, "{seconds} s");
        fixture.time.pass(TimeDelta::hours(6));
    }
    fixture.assert_counters_exact().await
}

#[test]
fn the_margin_is_at_most_half_of_each_of_these_deadlines() {
    assert!(TimeDelta::from_std(MARGIN).is_ok_and(|margin| margin.num_seconds() * 2 <= DEADLINES.start));
}
