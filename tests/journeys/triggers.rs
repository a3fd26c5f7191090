//! The events of schedules, stream and queues: each runs through its function, and its answer, messages, metrics
//! and payments are a snapshot.

use aws_lambda_events::dynamodb;
use aws_sdk_dynamodb::types::AttributeValue;
use insta::assert_snapshot;
use lambda_runtime::LambdaEvent;
use payments_machine::Handlers as _;
use payments_tests::events::files::{event_text, function_of, snapshot_of};
use payments_tests::events::triggers::{
    GIVEN, deadline_of, delivered, found_by, in_order_of_ids, now_of, snapshot_text, trigger_events, world_of,
};
use payments_tests::given::ACCOUNT;
use payments_tests::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[tokio::test]
async fn every_trigger_event_leads_to_its_snapshot() -> Result<()> {
    for name in trigger_events()? {
        let given = found_by(&name);
        let world = world_of(given).await.with_context(|| format!("preparing {given:?} for {name}"))?;
        world.set_clock(now_of(&name))?;
        let answer = run(&world, &name).await?;
        let happened = snapshot_text(&world, &answer, &world.outside.metrics.take()).await?;
        let (settings, case) = snapshot_of(&name);
        settings.bind(|| assert_snapshot!(case, happened));
    }
    Ok(())
}

#[test]
fn every_given_belongs_to_a_trigger_event() -> Result<()> {
    let events = trigger_events()?;
    let stated: Vec<&str> = GIVEN.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    for (at, name) in stated.iter().enumerate() {
        assert!(events.contains(*name), "GIVEN names {name}, which is not an event");
        assert!(!stated[..at].contains(name), "GIVEN names {name} twice");
    }
    Ok(())
}

#[tokio::test]
async fn stream_events_have_the_images_that_the_store_writes() -> Result<()> {
    let steps = ["ingest/create", "claimed", "redriven"];
    for (name, before, after) in
        [("dispatch/became-pending", &steps[..1], &steps[..2]), ("dispatch/redriven", &steps[..2], &steps[..])]
    {
        let event: dynamodb::Event = serde_json::from_str(&event_text(name)?)?;
        let change = event.records.into_iter().next().context("a record")?.change;
        for (given, image) in [(before, change.old_image), (after, change.new_image)] {
            let image = image.into_inner().into_iter();
            let image: Item = image.map(|(name, value)| (name, AttributeValue::from(value))).collect();
            let world = world_of(given).await?;
            assert_eq!(world.heads(ACCOUNT).await?, [image], "events/{name}.json: {given:?}");
        }
    }
    Ok(())
}

/// Runs an event through its function.
pub(crate) async fn run(world: &World, name: &str) -> Result<Value> {
    let (text, functions) = (delivered(world, name)?, world.functions());
    match function_of(name) {
        "archive" => scheduled(name, &text, |event| functions.archive.handle(event)).await,
        "daily-due-sweeper" => scheduled(name, &text, |event| functions.sweeper.handle(event)).await,
        "publish" => scheduled(name, &text, |event| functions.publish.handle(event)).await,
        "recount" => scheduled(name, &text, |event| functions.recount.handle(event)).await,
        "redate" => scheduled(name, &text, |event| functions.redate.handle(event)).await,
        "seal" => scheduled(name, &text, |event| functions.seal.handle(event)).await,
        "undo" => scheduled(name, &text, |event| functions.undo.handle(event)).await,
        "report" => scheduled(name, &text, |event| functions.report.handle(event)).await,
        "dispatch" => Ok(match functions.dispatch.handle(serde_json::from_str(&text)?).await {
            Ok(response) => serde_json::to_value(response)?,
            Err(error) => json!({ "error": error.to_string() }),
        }),
        "settle" => {
            let response = functions.settle_batch(serde_json::from_str(&text)?).await;
            Ok(in_order_of_ids(serde_json::to_value(response)?))
        }
        "stream-aggregator" => {
            let response = functions.deliver("stream-aggregator", serde_json::from_str(&text)?).await;
            response.map_err(anyhow::Error::msg)
        }
        other => bail!("nothing here runs {other}"),
    }
}

/// Runs a scheduled function. Lambda's runtime answers a request that it cannot parse.
async fn scheduled<Request: DeserializeOwned, Outcome: Serialize, Answer>(
    name: &str,
    text: &str,
    handle: impl FnOnce(LambdaEvent<Request>) -> Answer,
) -> Result<Value>
where
    Answer: Future<Output = Result<Outcome, lambda_runtime::Error>>,
{
    let request = match serde_json::from_str(text) {
        Ok(request) => request,
        Err(error) => return Ok(json!({ "notParsed": error.to_string() })),
    };
    let deadline = u64::try_from(deadline_of(name)?.timestamp_millis())?;
    Ok(match handle(LambdaEvent::new(request, context(deadline))).await {
        Ok(outcome) => serde_json::to_value(outcome)?,
        Err(error) => json!({ "error": error.to_string() }),
    })
}
