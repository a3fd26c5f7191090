//! The event files of the functions that nobody asks over HTTP, run: each is what a schedule, the
//! table's stream or the queue of results delivers. What it is answered, what is sent, what is
//! measured and what becomes of the payments is written down.

use anyhow::{Context as _, Result, bail};
use aws_lambda_events::dynamodb;
use aws_sdk_dynamodb::types::AttributeValue;
use insta::assert_snapshot;
use lambda_runtime::{Context, LambdaEvent};
use payments_store::Item;
use payments_tests::World;
use payments_tests::given::{ACCOUNT, Given, assert_names_events, event_text, function_of, snapshot_of};
use payments_tests::trigger_events::{
    GIVEN, bank, deadline_of, delivered, found_by, in_order_of_ids, now_of, trigger_events, written_down,
};
use serde_json::{Value, json};

#[tokio::test]
async fn every_trigger_does_what_is_written_down() -> Result<()> {
    for name in trigger_events()? {
        let given = found_by(&name);
        let world = bank(given).await.with_context(|| format!("preparing {given:?} for {name}"))?;
        world.set_clock(now_of(&name))?;
        let answer = run(&world, &name).await?;
        let what_happened = written_down(&world, &answer, &world.outside.metrics.take()).await?;
        let (settings, case) = snapshot_of(&name, given);
        settings.bind(|| assert_snapshot!(case, what_happened));
    }
    Ok(())
}

#[test]
fn what_triggers_find_is_about_events_that_are_there() -> Result<()> {
    assert_names_events(&GIVEN, &trigger_events()?);
    Ok(())
}

#[tokio::test]
async fn the_images_in_the_stream_events_are_what_the_store_writes() -> Result<()> {
    for (name, before, after) in [
        ("dispatch/became-pending", Given::OnePayment, Given::Pending),
        ("dispatch/redriven", Given::Pending, Given::Redriven),
    ] {
        let event: dynamodb::Event = serde_json::from_str(&event_text(name)?)?;
        let change = event.records.into_iter().next().context("a record")?.change;
        for (given, image) in [(before, change.old_image), (after, change.new_image)] {
            let image = image.into_inner().into_iter();
            let image: Item = image.map(|(name, value)| (name, AttributeValue::from(value))).collect();
            let world = bank(given).await?;
            assert_eq!(world.heads(ACCOUNT).await?, [image], "events/{name}.json: {given:?}");
        }
    }
    Ok(())
}

/// Runs an event through its function. One that its function cannot even read is answered by
/// Lambda's runtime, with the reason.
async fn run(world: &World, name: &str) -> Result<Value> {
    let (text, functions) = (delivered(world, name)?, world.functions());
    let answer = match function_of(name) {
        "archive" => match serde_json::from_str(&text) {
            Ok(request) => {
                let report = functions.archive.handle(LambdaEvent::new(request, context(name)?)).await;
                serde_json::to_value(report.map_err(anyhow::Error::msg)?)?
            }
            Err(error) => json!({ "notTaken": error.to_string() }),
        },
        "daily-due-sweeper" => match serde_json::from_str(&text) {
            Ok(request) => {
                let report = functions.sweeper.handle(LambdaEvent::new(request, context(name)?)).await;
                serde_json::to_value(report.map_err(anyhow::Error::msg)?)?
            }
            Err(error) => json!({ "notTaken": error.to_string() }),
        },
        "dispatch" => {
            let response = functions.dispatch.handle(serde_json::from_str(&text)?).await;
            serde_json::to_value(response.map_err(anyhow::Error::msg)?)?
        }
        "recount" => match serde_json::from_str(&text) {
            Ok(request) => match functions.recount.handle(LambdaEvent::new(request, context(name)?)).await {
                Ok(report) => serde_json::to_value(report)?,
                Err(error) => json!({ "refused": error.to_string() }),
            },
            Err(error) => json!({ "notTaken": error.to_string() }),
        },
        "report" => match serde_json::from_str(&text) {
            Ok(request) => {
                let report = functions.report.handle(LambdaEvent::new(request, context(name)?)).await;
                serde_json::to_value(report.map_err(anyhow::Error::msg)?)?
            }
            Err(error) => json!({ "notTaken": error.to_string() }),
        },
        "settle" => {
            let response = functions.settle.handle(serde_json::from_str(&text)?).await;
            in_order_of_ids(serde_json::to_value(response)?)
        }
        "stream-aggregator" => {
            let response = functions.aggregator.handle(serde_json::from_str(&text)?).await;
            serde_json::to_value(response.map_err(anyhow::Error::msg)?)?
        }
        other => bail!("nothing here runs {other}"),
    };
    Ok(answer)
}

/// An event's invocation with five minutes to go.
fn context(name: &str) -> Result<Context> {
    let mut context = Context::default();
    context.deadline = u64::try_from(deadline_of(name)?.timestamp_millis())?;
    Ok(context)
}
