//! Operators' actions on webhook endpoints in the console: as by the API, once, and in the audit trail.

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use http::Method;
use payments_model::Actor;
use payments_model::webhook::EndpointId;
use payments_store::{EnableWebhook, SkippedEvent, WebhookState};
use payments_tests::given::{HORIZON_DAYS, prepare};
use payments_tests::tables::{audited, key, text};
use payments_tests::{Ask, CrashPoints, World};
use serde_json::json;

use super::acting::{LASTING, Offered, confirm, first_try, offered, only_entry, preview, preview_of};
use super::page;

/// The endpoint of the step `failing-endpoint`, which fails at the first of three events.
const ENDPOINT: &str = "shop";

async fn failing() -> Result<World> {
    let world = World::with(|environment| environment.horizon_days = HORIZON_DAYS).await?;
    prepare(&world, &["failing-endpoint"], "2026-11-20T08:30:00Z").await?;
    world.set_clock("2026-11-20T09:00:00Z")?;
    Ok(world)
}

async fn state(world: &World) -> Result<WebhookState> {
    let id: EndpointId = ENDPOINT.parse()?;
    world.store().await.webhook_state(&id).await?.context("no endpoint")
}

/// The event at which the endpoint fails.
async fn blocking(world: &World) -> Result<String> {
    Ok(state(world).await?.progress.blocking.context("nothing blocks")?.event_id)
}

/// The actions of operators on the endpoint.
const DEEDS: [&str; 3] = ["test-endpoint", "replay-endpoint", "skip-event"];

/// The offer of an action.
async fn offer(world: &World, name: &str) -> Result<Offered> {
    let more = match name {
        "replay-endpoint" => format!("&cursor={}", state(world).await?.position),
        "skip-event" => format!("&event={}", blocking(world).await?),
        _ => String::new(),
    };
    offered(world, name, &format!("endpoint={ENDPOINT}{more}")).await
}

#[tokio::test]
async fn each_does_what_the_api_does_once() -> Result<()> {
    for name in DEEDS {
        let world = failing().await?;
        let view = page(&world, "endpoints").await?;
        assert!(view.contains(&format!("data-action=\"{name}\"")), "{view}");
        let before = state(&world).await?;
        let offered = offer(&world, name).await?;
        assert_eq!(state(&world).await?, before, "a preview changes nothing");
        let done = confirm(&world, "first", &offered).await?;
        let after = state(&world).await?;
        match name {
            "test-endpoint" => assert_eq!((before.test_at, after.test_at), (None, Some(world.now()))),
            "replay-endpoint" => assert_eq!((after.position, &after.progress.blocking), (before.position, &None)),
            _ => {
                assert!(after.position > before.position);
                let by: Vec<_> = after.skipped.iter().map(|skipped| skipped.by.as_str()).collect();
                assert_eq!(by, ["o:local-development"]);
            }
        }
        let entry = only_entry(&world).await?;
        assert_eq!((entry.intent.action.as_str(), entry.intent.by.as_str()), (name, "o:local-development"));
        let result = audited(&entry);
        let words = result.strip_prefix("shop: ").with_context(|| result.to_owned())?;
        assert!(done.text.contains(words), "{words}: {done}");
        let audit = page(&world, "audit").await?;
        assert!(audit.contains(words) && audit.contains("#endpoints?id=shop"), "{words}: {audit}");
        // Again, and later: nothing more happens.
        world.set_clock("2026-11-20T09:10:00Z")?;
        assert_eq!(confirm(&world, "second", &offered).await?.text, done.text);
        assert_eq!((state(&world).await?, only_entry(&world).await?), (after, entry));
    }
    Ok(())
}

/// Changes the endpoint since a preview, over the API.
async fn put(world: &World, url: &str) -> Result<()> {
    let body = json!({ "url": url, "enabled": false });
    world.send(Ask::new(Method::PUT, "/webhook-endpoints/shop").json(&body)).await?;
    Ok(())
}

/// A bank whose endpoint an operator can test, replay to, make skip an event, or enable.
async fn ready(name: &str) -> Result<World> {
    let world = failing().await?;
    if name == ENABLE {
        put(&world, "https://hooks.shop.co.uk/").await?;
    }
    Ok(world)
}

const ENABLE: &str = "enable-endpoint";

#[tokio::test]
async fn an_endpoint_that_changed_since_the_preview_is_left_alone() -> Result<()> {
    for name in [DEEDS[0], DEEDS[1], DEEDS[2], ENABLE] {
        for (change, want) in [
            (
                "moves",
                "refused: The endpoint was changed since the preview, on Fri 20 Nov, 09:00:00, and its URL is now https://thief.example.com/x; preview",
            ),
            (
                "begins anew",
                "refused: The endpoint was deleted and created again since the preview, on Fri 20 Nov, 09:00:01, and its URL is now https://thief.example.com/x; preview",
            ),
            ("ends", "refused: There is no endpoint with this id"),
        ] {
            let world = ready(name).await?;
            let offer = offer(&world, name).await?;
            let known = world.audit_trail().await?.len();
            if change != "moves" {
                world.send(Ask::new(Method::DELETE, "/webhook-endpoints/shop")).await?.with_status(200)?;
                world.set_clock("2026-11-20T09:00:01Z")?;
            }
            // In the second of the preview, too.
            if change != "ends" {
                put(&world, "https://thief.example.com/x").await?;
            }
            let before = world.store().await.webhook_states().await?.remove(ENDPOINT).transpose()?;
            confirm(&world, "first", &offer).await?;
            let told: Vec<String> = world.audit_trail().await?.iter().map(|entry| audited(entry).to_owned()).collect();
            assert!(told.len() > known && told.iter().any(|told| told.starts_with(want)), "{name}, {change}: {told:?}");
            let after = world.store().await.webhook_states().await?.remove(ENDPOINT).transpose()?;
            assert_eq!(after, before, "{name}, {change}");
        }
        // A confirmation without a preview names no version.
        let world = ready(name).await?;
        let blind = offer(&world, name).await?.with("version", "");
        let refused = world.answered(blind.ask(), 400).await?;
        assert!(refused.text.contains("does not name what its preview showed"), "{refused}");
    }
    Ok(())
}

/// A change and its write at the same time: the write requires the version, too.
#[tokio::test]
async fn an_endpoint_that_changes_at_the_confirmation_is_left_alone() -> Result<()> {
    let (world, id) = (failing().await?, ENDPOINT.parse::<EndpointId>()?);
    let (store, now) = (world.store().await, world.now());
    let state = state(&world).await?;
    let blocking = state.progress.blocking.clone().context("nothing blocks")?;
    let by = Actor::operator("ops-1");
    let skipped = SkippedEvent { at: now, event_id: blocking.event_id.clone(), by };
    let (place, seen) = (state.position, state.version);
    put(&world, "https://thief.example.com/x").await?;
    let later = self::state(&world).await?;
    assert!(later.version > seen);
    assert!(!store.ask_webhook_test(&id, now, Some(seen)).await?);
    assert!(!store.replay_webhook(&id, place, Some(seen)).await?);
    assert!(!store.skip_webhook_event(&id, &state, &blocking, skipped.clone(), Some(seen)).await?);
    assert_eq!(store.enable_webhook(&id, (place, seen), now).await?, EnableWebhook::Elsewhere);
    assert_eq!(self::state(&world).await?, later);
    let seen = later.version;
    assert_eq!(store.enable_webhook(&id, (place, seen), now).await?, EnableWebhook::Done);
    assert!(store.ask_webhook_test(&id, now, Some(seen)).await?);
    assert!(store.skip_webhook_event(&id, &state, &blocking, skipped, Some(seen)).await?);
    assert!(store.replay_webhook(&id, place, Some(seen)).await?);
    Ok(())
}

/// A receiver that does not answer would not accept the next event either.
#[tokio::test]
async fn an_event_is_skipped_only_where_the_endpoint_refused_it() -> Result<()> {
    let world = failing().await?;
    let skips = "data-action=\"skip-event\"";
    assert!(page(&world, "endpoints").await?.contains(skips));
    let error = |kind: &str| {
        let outcome = AttributeValue::M([("kind".to_owned(), text(kind))].into());
        AttributeValue::M([("at".to_owned(), text("2026-11-20T08:30:00Z")), ("outcome".to_owned(), outcome)].into())
    };
    let (log, place) = (&world.environment.tables.log, key("LOG#CONSUMERS", "webhook#shop"));
    world.set(log, &place, "lastError", Some(error("connect"))).await?;
    let view = page(&world, "endpoints").await?;
    assert!(view.contains("connection refused") && !view.contains(skips), "{view}");
    // With another filter, the endpoint passed the event.
    world.set(log, &place, "lastError", Some(error("refused"))).await?;
    let (offer, end) =
        (offer(&world, "skip-event").await?, world.store().await.log_head().await?.context("no log")?.end());
    world.set(log, &place, "position", Some(text(end.to_string()))).await?;
    let refused = confirm(&world, "first", &offer).await?;
    assert!(refused.text.contains("The endpoint does not fail at this event"), "{refused}");
    assert_eq!(state(&world).await?.position, end);
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_and_nothing_changes() -> Result<()> {
    let world = failing().await?;
    let before = state(&world).await?;
    let end = world.store().await.log_head().await?.context("no log")?.end();
    assert!(end > before.position);
    for (name, form, status) in [
        ("test-endpoint", "endpoint=other", 404),
        ("test-endpoint", "", 400),
        ("test-endpoint", "endpoint=a+b", 400),
        ("replay-endpoint", "endpoint=shop&since=", 200),
        ("replay-endpoint", "", 400),
        ("replay-endpoint", "endpoint=shop&cursor=now", 400),
        ("replay-endpoint", &format!("endpoint=shop&cursor={end}"), 400),
        ("replay-endpoint", "endpoint=shop&cursor=2.1.0", 410),
        ("skip-event", "endpoint=shop", 400),
        ("skip-event", &format!("endpoint=shop&event={}", "a".repeat(201)), 400),
    ] {
        world.answered(preview_of(name, form), status).await?;
    }
    let nothing = preview(&world, "skip-event", "endpoint=shop&event=another").await?;
    assert!(!nothing.contains("<form"), "{nothing}");
    assert_eq!(world.audit_trail().await?, []);
    // Confirmed all the same, or too late: the trail has it as refused.
    let skip = offer(&world, "skip-event").await?.with("event", "another");
    let refused = confirm(&world, "first", &skip).await?;
    assert!(refused.text.contains("Refused</h3><p>The endpoint does not fail"), "{refused}");
    assert_eq!(state(&world).await?, before);
    assert!(audited(&only_entry(&world).await?).starts_with("refused: "));
    Ok(())
}

#[tokio::test]
async fn whatever_fails_it_is_in_the_trail_and_happens_at_most_once() -> Result<()> {
    let mut cases = 0;
    for name in DEEDS {
        let mut points = CrashPoints::new("console-endpoints", LASTING);
        while let Some(point) = points.next_case() {
            let world = failing().await?;
            let offered = offer(&world, name).await?;
            let (first, operations) = first_try(&world, point, &offered).await?;
            if operations.len() <= point.call {
                first.with_status(200)?;
                continue;
            }
            points.failed(format_args!("{name} {:?}", point.way.fate))?;
            let case = format!("{name}: {point:?}: {first}");
            assert_eq!(first.status, 503, "{case}");
            let (between, known) = (state(&world).await?, world.audit_trail().await?);
            let has_acted = operations.iter().any(|operation| operation == "UpdateItem");
            assert!(!has_acted || known.len() == 1, "nothing is done without an intent: {case}");
            // Later, so that a second effect would show.
            world.set_clock("2026-11-20T09:10:00Z")?;
            let repeat = confirm(&world, "second", &offered).await.with_context(|| case.clone())?;
            let (after, entry) = (state(&world).await?, only_entry(&world).await.with_context(|| case.clone())?);
            match (name, &entry.outcome) {
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
    assert!(cases >= 30, "{cases} cases");
    Ok(())
}
