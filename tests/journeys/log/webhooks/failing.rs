//! Endpoints that fail: they are tried again, less and less often, and are switched off in the end.

use payments_store::DisabledBy;

use payments_boot::{WebhookMaster, WebhookMasterError};
use payments_lab::laws::journal::journaled;
use payments_tests::Bus;

use super::*;

/// Runs the function each minute, for so long.
async fn minutes(hooks: &Hooks, minutes: i32) -> Result<Value> {
    let mut last = Value::Null;
    for _ in 0..minutes {
        hooks.pass(TimeDelta::minutes(1))?;
        last = hooks.publish().await?;
    }
    Ok(last)
}

#[tokio::test]
async fn an_endpoint_that_recovers_gets_everything_in_order() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.segment(60, 0).await?;
    hooks.cancel(5).await?;
    let fails = Arc::new(AtomicBool::new(true));
    let still = Arc::clone(&fails);
    // Its first three messages arrive, and what is longer is refused.
    hooks.receivers.react(PORT, move |message| {
        let is_refused = still.load(Ordering::Relaxed) && message.events.len() > 4;
        Reaction::Status(if is_refused { 500 } else { 204 })
    });
    let outcome = hooks.publish().await?;
    assert_eq!((&outcome["failedDeliveries"], &outcome["deliveredEvents"]), (&json!(1), &json!(7)));
    let state = hooks.state().await?;
    let error = state.progress.last_error.context("no error")?.outcome;
    assert_eq!((error.kind.as_str(), error.status), ("refused", Some(500)));
    assert_eq!(state.progress.failures, 1);
    // Before it is time nothing is sent.
    let messages = hooks.receivers.messages(PORT).len();
    hooks.publish().await?;
    assert_eq!(hooks.receivers.messages(PORT).len(), messages);
    minutes(&hooks, 2).await?;
    fails.store(false, Ordering::Relaxed);
    let outcome = minutes(&hooks, 5).await?;
    assert_eq!((&outcome["webhookSegmentsBehind"], &outcome["webhooksDisabled"]), (&json!(0), &json!(0)));
    assert_eq!(hooks.state().await?.progress.failures, 0);
    hooks.judge().await
}

/// A retry of the same events has the same id.
#[tokio::test]
async fn a_retry_repeats_the_message() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.segment(1, 0).await?;
    hooks.receivers.react(PORT, |_| Reaction::Status(503));
    minutes(&hooks, 3).await?;
    hooks.receivers.react(PORT, |_| Reaction::Status(200));
    minutes(&hooks, 3).await?;
    let messages = hooks.receivers.messages(PORT);
    assert!(messages.len() > 2, "{} messages", messages.len());
    assert!(messages.iter().all(|message| message.id == messages[0].id && message.events == messages[0].events));
    Ok(())
}

#[tokio::test]
async fn what_fails_for_five_days_is_switched_off_and_what_is_gone_at_once() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.endpoint("gone", 7002, EventFilter::default()).await?;
    hooks.receivers.react(PORT, |_| Reaction::Status(404));
    hooks.receivers.react(7002, |_| Reaction::Status(410));
    hooks.segment(2, 0).await?;
    let start = hooks.world.now();
    assert_eq!(hooks.publish().await?["webhooksDisabled"], 1);
    let gone = hooks.world.store().await.webhook_state(&"gone".parse()?).await?.context("no endpoint")?;
    assert_eq!((gone.disabled_by, gone.disabled_at), (Some(DisabledBy::Gone), Some(start)));
    let state = loop {
        let state = hooks.state().await?;
        if state.disabled_at.is_some() {
            break state;
        }
        hooks.pass(TimeDelta::minutes(10))?;
        hooks.publish().await?;
    };
    assert_eq!(state.disabled_by, Some(DisabledBy::Failing));
    let after = hooks.world.now().as_chrono() - start.as_chrono();
    assert!((publish::GIVE_UP_AFTER..publish::GIVE_UP_AFTER + TimeDelta::hours(5)).contains(&after), "{after}");
    let tries = hooks.receivers.messages(PORT).len();
    assert!((30..60).contains(&tries), "{tries} tries");
    hooks.pass(TimeDelta::days(1))?;
    let outcome = hooks.publish().await?;
    assert_eq!((&outcome["webhooksDisabled"], &outcome["webhookSegmentsBehind"]), (&json!(2), &json!(0)));
    assert_eq!((hooks.receivers.messages(PORT).len(), hooks.receivers.messages(7002).len()), (tries, 1));
    // Its operator repairs it, and switches it on.
    hooks.receivers.react(PORT, |_| Reaction::Status(200));
    let store = hooks.world.store().await;
    let chosen = store.webhook_endpoint(&id()?).await?.context("no endpoint")?.chosen;
    ensure!(store.change_webhook_endpoint(&id()?, &chosen, false, hooks.world.now()).await?);
    hooks.publish().await?;
    hooks.judge().await
}

#[tokio::test]
async fn an_endpoint_that_asks_to_be_left_alone_is() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.receivers.react(PORT, |_| Reaction::RetryAfter(429, 600));
    hooks.segment(1, 0).await?;
    hooks.publish().await?;
    hooks.receivers.react(PORT, |_| Reaction::Status(200));
    minutes(&hooks, 9).await?;
    assert_eq!(hooks.receivers.messages(PORT).len(), 1);
    minutes(&hooks, 1).await?;
    hooks.judge().await
}

#[tokio::test]
async fn while_an_endpoint_is_left_alone_it_gets_the_tests_that_are_asked_for_and_no_event() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.receivers.react(PORT, |_| Reaction::RetryAfter(429, 600));
    hooks.segment(1, 0).await?;
    hooks.publish().await?;
    ensure!(hooks.world.store().await.ask_webhook_test(&id()?, hooks.world.now()).await?);
    minutes(&hooks, 2).await?;
    let messages = hooks.receivers.messages(PORT);
    let kinds: Vec<&str> = messages.iter().map(|message| text_of(&message.events[0]["type"])).collect();
    assert_eq!(kinds, ["payment.scheduled", "webhook.test"]);
    Ok(())
}

/// The journal and the bus need no secret.
#[tokio::test]
async fn without_the_master_secret_only_webhooks_wait() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    let Webhooks { sender, master, .. } = hooks.receivers.webhooks()?;
    let (secret, is_away) = (master.get_secret().await?, Arc::new(AtomicBool::new(true)));
    let away = Arc::clone(&is_away);
    let master = WebhookMaster::read_by(move || {
        let error = || WebhookMasterError::NotRead("it does not answer".into());
        let read = if away.load(Ordering::SeqCst) { Err(error()) } else { Ok(secret.clone()) };
        Box::pin(async { read })
    });
    let (bus, client) = (Arc::new(Bus::default()), hooks.world.client().await);
    let function = hooks.function_with(&client, Webhooks { sender, master, clock: None }).await?;
    let function = function.with_bus(Some(Arc::clone(&bus) as _));
    let run = async || {
        let event = serde_json::from_value(json!({ "action": "publish" }))?;
        let outcome = function.handle(lambda_runtime::LambdaEvent::new(event, context(NO_DEADLINE))).await;
        outcome.map_err(anyhow::Error::from_boxed)
    };
    run().await?;
    hooks.segment(3, 0).await?;
    let error = run().await.err().context("the secret was not needed")?;
    assert!(error.to_string().contains("Secrets Manager"), "{error}");
    let log = events(&all(&hooks.world, 1_000).await?)?;
    assert_eq!(journaled(&hooks.world.outside.reports).await?, log);
    assert_eq!((bus.accepted().len(), hooks.receivers.messages(PORT).len()), (3, 0));
    assert_eq!(hooks.state().await?.progress.failures, 0, "the endpoint did not fail");
    is_away.store(false, Ordering::SeqCst);
    hooks.pass(TimeDelta::minutes(1))?;
    run().await?;
    hooks.judge().await
}
