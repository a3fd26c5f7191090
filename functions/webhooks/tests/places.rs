//! Places of endpoints in the log: an endpoint is enabled where it stands, and a replay begins at a time.

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use payments_machine::given::Given;
use payments_model::webhook::{EndpointId, EndpointUrl};
use payments_model::{EventFilter, UtcSecond};
use payments_store::{DisabledBy, EnableWebhook, EndpointChoice, LogHead, LogPosition, Progress, WebhookCommit};
use serde_json::json;

const START: &str = "2026-11-20T09:00:00Z";

/// A log of segments that begins at [`START`], each so many minutes after the one before.
async fn log(minutes: &[i64]) -> Result<Given> {
    let given = Given::at(START, |_| {}).await?;
    for pass in minutes {
        given.pass(TimeDelta::minutes(*pass));
        given.segment(&[json!({ "n": 1 }), json!({ "n": 2 })]).await?;
    }
    Ok(given)
}

async fn head(given: &Given) -> Result<LogHead> {
    given.store.log_head().await?.context("the log has no head")
}

#[tokio::test]
async fn a_time_has_its_place_in_the_log() -> Result<()> {
    // On the 20th 1 to 5, on the 21st 6, on the 23rd 7 and 8.
    let given = log(&[10, 10, 10, 30, 10, 24 * 60, 48 * 60, 1]).await?;
    let (log, now) = (head(&given).await?, given.stack.clock.now());
    for (at, number) in [
        ("2026-11-20T00:00:00Z", 1),
        ("2026-11-20T09:10:00Z", 1),
        ("2026-11-20T09:11:00Z", 1),
        // A minute before the time, because clocks differ.
        ("2026-11-20T09:11:01Z", 2),
        ("2026-11-20T09:30:00Z", 3),
        ("2026-11-20T10:00:00Z", 4),
        ("2026-11-20T23:00:00Z", 6),
        ("2026-11-21T10:00:00Z", 6),
        ("2026-11-22T12:00:00Z", 7),
        ("2026-11-23T10:11:30Z", 8),
        ("2026-11-24T00:00:00Z", 9),
        // The log began later, so nothing is missing.
        ("2026-10-30T00:00:00Z", 1),
    ] {
        let place = given.store.log_place_at(&log, at.parse()?, now).await?;
        assert_eq!(place, Some(LogPosition { epoch: log.epoch, number, offset: 0 }), "{at}");
    }
    assert_eq!(given.store.log_place_at(&log, "2026-10-18T00:00:00Z".parse()?, now).await?, None);
    Ok(())
}

#[tokio::test]
async fn a_time_has_its_place_across_epochs() -> Result<()> {
    let given = log(&[10, 10]).await?;
    given.pass(TimeDelta::hours(1));
    let ended = head(&given).await?;
    let now = given.stack.clock.now();
    assert!(given.store.end_epoch(&ended, ended.next).await?);
    let ended = head(&given).await?;
    let next = ended.next_epoch(ended.next, now);
    assert!(given.store.begin_epoch(&ended, &next, &["{}".to_owned()], now).await?);
    let log = head(&given).await?;
    assert!(log.epoch > ended.epoch);
    for (at, epoch, number) in [
        ("2026-11-20T09:20:00Z", ended.epoch, 2),
        ("2026-11-20T09:40:00Z", log.epoch, 1),
        ("2026-11-20T11:00:00Z", log.epoch, 2),
    ] {
        let place = given.store.log_place_at(&log, at.parse()?, now).await?;
        assert_eq!(place, Some(LogPosition { epoch, number, offset: 0 }), "{at}");
    }
    Ok(())
}

#[tokio::test]
async fn an_endpoint_is_enabled_where_it_was_seen() -> Result<()> {
    let given = log(&[10, 10]).await?;
    let (store, log) = (&given.store, head(&given).await?);
    let id: EndpointId = "shop".parse()?;
    let chosen = EndpointChoice {
        url: EndpointUrl::from_stored("https://shop.example.com/hook")?,
        description: String::new(),
        filter: EventFilter::default(),
    };
    let start = LogPosition { epoch: log.epoch, number: 1, offset: 0 };
    let created = store.endpoints_created().await?;
    store.create_webhook_endpoint(&id, &chosen, start, true, given.stack.clock.instant(), created).await?;
    let now = given.stack.clock.now();
    let until: UtcSecond = now.saturating_add(TimeDelta::minutes(1));
    // `publish` disables it, too, one event further on.
    let taken = store.take_webhook(&id, now, until).await?.context("it is taken")?;
    let place = LogPosition { offset: 1, ..start };
    let progress = Progress { failures: 7, next_try_at: Some(until), ..Progress::default() };
    let disabled = Some((DisabledBy::Gone, now));
    let commit = WebhookCommit { to: place, progress: &progress, lease_until: None, disabled };
    store.commit_webhook(&id, &taken, &commit).await?.context("it is committed")?;

    assert_eq!(store.enable_webhook(&id, (start, taken.version), now).await?, EnableWebhook::Elsewhere);
    let endpoint = async || store.webhook_endpoint(&id).await?.context("an endpoint");
    assert!(endpoint().await?.disabled_at.is_some());
    assert_eq!(store.enable_webhook(&id, (place, taken.version), until).await?, EnableWebhook::Done);
    let state = store.webhook_state(&id).await?.context("a state")?;
    let endpoint = endpoint().await?;
    assert_eq!((endpoint.disabled(&state), endpoint.updated_at), (None, until));
    assert_eq!((state.position, state.progress.failures, state.progress.next_try_at), (place, 0, None));
    assert!(state.lease > taken.lease, "a run that still delivers can no longer write");
    assert_eq!(store.enable_webhook(&"other".parse()?, (place, taken.version), now).await?, EnableWebhook::Missing);
    Ok(())
}
