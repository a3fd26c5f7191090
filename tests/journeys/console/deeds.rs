//! What operators do with webhook endpoints in the console: as the API does it, once, and in the audit trail.

use anyhow::{Context as _, Result, ensure};
use payments_machine::Fate;
use payments_model::webhook::EndpointId;
use payments_store::WebhookState;
use payments_tests::given::{HORIZON_DAYS, prepare};
use payments_tests::{CrashPoints, Way, World};

use super::acting::{confirm, offered, preview, trail, troubled};
use super::page;

/// The endpoint of the step `failing-endpoint`, which fails at the first of three events.
const ENDPOINT: (&str, &str) = ("endpoint", "shop");

async fn failing() -> Result<World> {
    let world = World::with(|environment| environment.horizon_days = HORIZON_DAYS).await?;
    prepare(&world, &["failing-endpoint"], "2026-11-20T08:30:00Z").await?;
    world.set_clock("2026-11-20T09:00:00Z")?;
    Ok(world)
}

async fn state(world: &World) -> Result<WebhookState> {
    let id: EndpointId = ENDPOINT.1.parse()?;
    world.store().await.webhook_state(&id).await?.context("no endpoint")
}

/// The event at which the endpoint fails.
async fn blocking(world: &World) -> Result<String> {
    Ok(state(world).await?.progress.blocking.context("nothing blocks")?.event_id)
}

/// The actions and their fields beside the endpoint.
async fn actions(world: &World) -> Result<Vec<(&'static str, Vec<(&'static str, String)>)>> {
    let position = state(world).await?.position.to_string();
    Ok(vec![
        ("test-endpoint", vec![]),
        ("replay-endpoint", vec![("cursor", position)]),
        ("skip-event", vec![("event", blocking(world).await?)]),
    ])
}

fn fields<'f>(more: &'f [(&'static str, String)]) -> Vec<(&'static str, &'f str)> {
    let more = more.iter().map(|(name, value)| (*name, value.as_str()));
    [ENDPOINT].into_iter().chain(more).collect()
}

#[tokio::test]
async fn each_does_what_the_api_does_once() -> Result<()> {
    for place in 0..3 {
        let world = failing().await?;
        let view = page(&world, "endpoints").await?;
        let (name, more) = actions(&world).await?.swap_remove(place);
        assert!(view.contains(&format!("data-action=\"{name}\"")), "{view}");
        let before = state(&world).await?;
        let offered = offered(&world, name, &fields(&more)).await?;
        assert_eq!(state(&world).await?, before, "a preview changes nothing");
        let done = confirm(&world, "first", &offered).await?;
        ensure!(done.status == 200, "{name}: {done}");
        let after = state(&world).await?;
        match name {
            "test-endpoint" => assert_eq!((before.test_at, after.test_at), (None, Some(world.now()))),
            "replay-endpoint" => {
                assert_eq!((after.position, &after.progress.blocking), (before.position, &None));
            }
            _ => {
                assert!(after.position > before.position);
                assert_eq!(
                    after.skipped.iter().map(|skipped| skipped.by.as_str()).collect::<Vec<_>>(),
                    ["o:local-development"]
                );
            }
        }
        let all = trail(&world).await?;
        let [entry] = all.as_slice() else { anyhow::bail!("{all:?}") };
        assert_eq!((entry.intent.action.as_str(), entry.intent.by.as_str()), (name, "o:local-development"));
        let result = &entry.outcome.as_ref().context("no outcome")?.result;
        assert!(result.starts_with("shop: ") && done.text.contains(result.as_str()), "{result}: {done}");
        assert!(page(&world, "audit").await?.contains(result.as_str()));
        // Again, and later: nothing more happens.
        world.set_clock("2026-11-20T09:10:00Z")?;
        let again = confirm(&world, "second", &offered).await?;
        assert_eq!((again.status, &again.text), (200, &done.text));
        assert_eq!((state(&world).await?, trail(&world).await?), (after, all));
    }
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_and_nothing_changes() -> Result<()> {
    let world = failing().await?;
    let (before, event) = (state(&world).await?, blocking(&world).await?);
    let end = world.store().await.log_head().await?.context("no log")?.end();
    assert!(end > before.position);
    for (name, fields, status) in [
        ("test-endpoint", vec![("endpoint", "other")], 404),
        ("test-endpoint", vec![], 400),
        ("test-endpoint", vec![("endpoint", "a b")], 400),
        ("replay-endpoint", vec![ENDPOINT], 400),
        ("replay-endpoint", vec![ENDPOINT, ("cursor", "now")], 400),
        ("replay-endpoint", vec![ENDPOINT, ("cursor", &end.to_string())], 400),
        ("replay-endpoint", vec![ENDPOINT, ("cursor", "2.1.0")], 410),
        ("skip-event", vec![ENDPOINT], 400),
        ("skip-event", vec![ENDPOINT, ("event", &"a".repeat(201))], 400),
    ] {
        let fields: Vec<_> = fields.into_iter().chain([("step", "preview")]).collect();
        let reply = world.send(super::acting::action(name, &fields)).await?;
        assert_eq!(reply.status, status, "{name}, {fields:?}: {reply}");
    }
    let nothing = preview(&world, "skip-event", &[ENDPOINT, ("event", "another")]).await?;
    assert!(!nothing.contains("<form"), "{nothing}");
    assert_eq!(trail(&world).await?, []);
    // Confirmed all the same, or too late: the trail has it as refused.
    let skip = offered(&world, "skip-event", &[ENDPOINT, ("event", &event)]).await?.with("event", "another");
    let refused = confirm(&world, "first", &skip).await?;
    assert!(refused.status == 200 && refused.text.contains("refused: The endpoint does not fail"), "{refused}");
    assert_eq!(state(&world).await?, before);
    let all = trail(&world).await?;
    assert!(all[0].outcome.as_ref().is_some_and(|outcome| outcome.result.starts_with("refused: ")), "{all:?}");
    Ok(())
}

#[tokio::test]
async fn whatever_fails_it_is_in_the_trail_and_happens_at_most_once() -> Result<()> {
    let mut cases = 0;
    for place in 0..3 {
        let fates = [Fate::Refuse(500, "InternalServerError"), Fate::LoseRequest, Fate::LoseReply];
        let mut points = CrashPoints::new("console-endpoints", fates.map(Way::lasting));
        while let Some(point) = points.next_case() {
            let world = failing().await?;
            let (name, more) = actions(&world).await?.swap_remove(place);
            let offered = offered(&world, name, &fields(&more)).await?;
            let (functions, recorder) = troubled(&world, point).await?;
            let first = world.send_named(&functions, "first", offered.ask()).await?;
            let operations = recorder.take_operations();
            if operations.len() <= point.call {
                assert_eq!(first.status, 200, "{first}");
                continue;
            }
            points.failed(format_args!("{name} {:?}", point.way.fate))?;
            let case = format!("{name}: {point:?}: {first}");
            assert_eq!(first.status, 503, "{case}");
            let (between, known) = (state(&world).await?, trail(&world).await?);
            let has_acted = operations.iter().any(|operation| operation == "UpdateItem");
            assert!(!has_acted || known.len() == 1, "nothing is done without an intent: {case}");
            // Later, so that a second effect would show.
            world.set_clock("2026-11-20T09:10:00Z")?;
            let repeat = confirm(&world, "second", &offered).await?;
            assert_eq!(repeat.status, 200, "{case}: {repeat}");
            let (after, all) = (state(&world).await?, trail(&world).await?);
            assert_eq!(all.len(), 1, "{case}");
            match (name, &all[0].outcome) {
                ("skip-event", outcome) => {
                    assert_eq!((after.skipped.len(), outcome.is_some()), (1, true), "{case}");
                }
                // The reply of the outcome was lost, or the intent was not there, so the repeat was the first.
                (_, Some(_)) => match known.first() {
                    Some(entry) => assert!(entry.outcome.is_some() && after == between, "{case}"),
                    None => assert_ne!(after, between, "{case}"),
                },
                (_, None) => {
                    assert_eq!(after, between, "it may have happened, and does not happen again: {case}");
                    assert!(repeat.text.contains("Unknown: it may have happened"), "{case}: {repeat}");
                }
            }
        }
        cases += points.cases();
    }
    println!("{cases} cases");
    assert!(cases >= 30, "{cases} cases");
    Ok(())
}
