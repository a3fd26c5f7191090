//! Endpoints that fail: they are tried again, less and less often, and are switched off in the end.

use std::sync::atomic::AtomicBool;

use payments_boot::{WebhookMaster, WebhookMasterError};
use payments_store::{DisabledBy, Job, LastRun};

use super::*;

/// The events that wait, in the outcome of the last run.
async fn waiting(log: &Log) -> Result<Value> {
    let runs: Vec<LastRun> = log.store().await.last_runs().await?.into_iter().collect::<Result<_, _>>()?;
    let run = runs.into_iter().find(|run| run.job == Job::Publish).context("no last run")?;
    Ok(run.outcome.context("no outcome")?["waiting"].take())
}

/// The event of this id in the log.
async fn blocking_event(log: &Log, id: &str) -> Result<Value> {
    let page = log.send(Ask::get("/events?limit=1000")).await?;
    let events = page.body["events"].as_array().into_iter().flatten();
    events.clone().find(|event| event["id"] == id).cloned().with_context(|| format!("no event {id}: {}", page.body))
}

#[tokio::test]
async fn an_endpoint_that_recovers_gets_everything_in_order() -> Result<()> {
    let log = Log::with_endpoint(&[60]).await?;
    log.cancel_event(5).await?;
    // The first three messages arrive, and longer ones are refused.
    log.receivers.react(PORT, |message| Reaction::Status(if message.events.len() > 4 { 500 } else { 204 }));
    assert_has(&log.publish().await?, &json!({ "failedDeliveries": 1, "deliveredEvents": 7 }));
    let progress = log.state().await?.progress;
    let error = progress.last_error.context("no error")?.outcome;
    assert_eq!((error.kind.as_str(), error.status, progress.failures), ("refused", Some(500), 1));
    // The stored outcome of the run has the time of the event that waits.
    let waits = blocking_event(&log, &progress.blocking.context("nothing blocks")?.event_id).await?;
    assert_eq!(waiting(&log).await?, json!({ "erp": waits["at"] }));
    // Before it is time nothing is sent.
    let messages = log.messages().len();
    log.publish().await?;
    assert_eq!(log.messages().len(), messages);
    log.minutes(2).await?;
    log.answer(PORT, 204);
    assert_has(&log.minutes(5).await?, &json!({ "webhookSegmentsBehind": 0, "webhooksDisabled": 0 }));
    assert_eq!(log.state().await?.progress.failures, 0);
    assert_eq!(waiting(&log).await?, Value::Null);
    log.judge().await
}

/// A retry of the same events has the same id.
#[tokio::test]
async fn a_retry_repeats_the_message() -> Result<()> {
    let log = Log::with_endpoint(&[1]).await?;
    for status in [503, 200] {
        log.answer(PORT, status);
        log.minutes(3).await?;
    }
    let messages = log.messages();
    assert!(messages.len() > 2, "{} messages", messages.len());
    assert!(messages.iter().all(|message| message.id == messages[0].id && message.events == messages[0].events));
    Ok(())
}

#[tokio::test]
async fn what_fails_for_five_days_is_switched_off_and_what_is_gone_at_once() -> Result<()> {
    let log = Log::with_endpoint(&[]).await?;
    log.endpoint("gone", OTHER_PORT).await?;
    log.answer(PORT, 404);
    log.answer(OTHER_PORT, 410);
    log.segment(2).await?;
    let start = log.now();
    assert_eq!(log.publish().await?["webhooksDisabled"], 1);
    let gone = log.state_of("gone").await?;
    assert_eq!((gone.disabled_by, gone.disabled_at), (Some(DisabledBy::Gone), Some(start)));
    let state = loop {
        let state = log.state().await?;
        if state.disabled_at.is_some() {
            break state;
        }
        log.pass(TimeDelta::minutes(10))?;
        log.publish().await?;
    };
    assert_eq!(state.disabled_by, Some(DisabledBy::Failing));
    let after = log.now().as_chrono() - start.as_chrono();
    assert!((publish::GIVE_UP_AFTER..publish::GIVE_UP_AFTER + TimeDelta::hours(5)).contains(&after), "{after}");
    let tries = log.messages().len();
    assert!((30..60).contains(&tries), "{tries} tries");
    log.pass(TimeDelta::days(1))?;
    assert_has(&log.publish().await?, &json!({ "webhooksDisabled": 2, "webhookSegmentsBehind": 0 }));
    assert_eq!((log.messages().len(), log.receivers.messages(OTHER_PORT).len()), (tries, 1));
    // An operator repairs the endpoint, and switches it on.
    log.answer(PORT, 200);
    log.move_to(PORT).await?;
    log.publish_all().await
}

/// While an endpoint is left alone, it gets the tests that are asked for, and no event.
#[tokio::test]
async fn an_endpoint_that_asks_to_be_left_alone_is() -> Result<()> {
    let log = Log::with_endpoint(&[1]).await?;
    log.receivers.react(PORT, |_| Reaction::RetryAfter(429, 600));
    log.publish().await?;
    log.ask_for_test().await?;
    log.minutes(2).await?;
    log.answer(PORT, 200);
    log.minutes(7).await?;
    let events: Vec<_> = log.messages().into_iter().map(|message| message.events[0].clone()).collect();
    assert_eq!(types(&events), ["payment.scheduled", "webhook.test"]);
    log.minutes(1).await?;
    log.judge().await
}

/// The journal and the bus need no secret.
#[tokio::test]
async fn without_the_master_secret_only_webhooks_wait() -> Result<()> {
    let log = Log { bus: Some(Arc::default()), ..Log::with_endpoint(&[]).await? };
    let Webhooks { sender, master, .. } = log.receivers.webhooks()?;
    let (secret, is_away) = (master.get_secret().await?, Arc::new(AtomicBool::new(true)));
    let away = Arc::clone(&is_away);
    let master = WebhookMaster::read_by(move || {
        let error = || WebhookMasterError::NotRead("it does not answer".into());
        let read = if away.load(Ordering::SeqCst) { Err(error()) } else { Ok(secret.clone()) };
        Box::pin(async { read })
    });
    let function = log.function_with(&log.client().await, Webhooks { sender, master, clock: None })?;
    let run = async || invoke(&function, Request::Tick, NO_DEADLINE).await;
    run().await?;
    log.segment(3).await?;
    assert_fails(run().await, "Secrets Manager");
    assert_eq!(log.journal().await?, log.events().await?);
    let bus = log.bus.as_ref().context("no bus")?;
    assert_eq!((bus.accepted().len(), log.messages().len()), (3, 0));
    assert_eq!(log.state().await?.progress.failures, 0, "the endpoint did not fail");
    is_away.store(false, Ordering::SeqCst);
    log.pass(TimeDelta::minutes(1))?;
    run().await?;
    log.judge().await
}
