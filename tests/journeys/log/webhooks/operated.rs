//! What operators do with endpoints: skip an event, replay, rotate, test; and what the log no longer has.

use payments_model::Actor;
use payments_store::SkippedEvent;

use super::*;

/// Runs the function each minute, for so long.
async fn minutes(hooks: &Hooks, minutes: i32) -> Result<()> {
    for _ in 0..minutes {
        hooks.pass(TimeDelta::minutes(1))?;
        hooks.publish().await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_event_that_is_never_accepted_can_be_skipped_and_nothing_else_is() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.segment(20, 0).await?;
    hooks.segment(5, 20).await?;
    let log = events(&all(&hooks.world, 1_000).await?)?;
    let poison = text_of(&log[11]["id"]).to_owned();
    let refused = poison.clone();
    hooks.receivers.react(PORT, move |message| {
        let has = message.events.iter().any(|event| event["id"] == refused.as_str());
        Reaction::Status(if has { 422 } else { 200 })
    });
    minutes(&hooks, 10).await?;
    let state = hooks.state().await?;
    let blocking = state.progress.blocking.clone().context("nothing blocks")?;
    assert_eq!(blocking.event_id, poison);
    let last = hooks.receivers.messages(PORT).pop().context("no message")?;
    assert_eq!(last.events.len(), 1, "only what blocks is sent again");
    let store = hooks.world.store().await;
    let skipped = SkippedEvent { at: hooks.world.now(), event_id: poison.clone(), by: Actor::operator("ops") };
    for _ in 0..2 {
        // Once more, as after a lost reply.
        assert!(store.skip_webhook_event(&id()?, &state, &blocking, skipped.clone()).await?);
    }
    minutes(&hooks, 3).await?;
    let wanted: Vec<Value> = log.into_iter().filter(|event| event["id"] != poison.as_str()).collect();
    hooks.receivers.judge(PORT, &wanted)?;
    assert_eq!(hooks.state().await?.skipped, [skipped]);
    Ok(())
}

/// A replay goes back, also while a run delivers.
#[tokio::test]
async fn a_replay_is_not_undone_by_a_run_that_delivers() -> Result<()> {
    for number in 0..16 {
        let mut hooks = Hooks::with_endpoint().await?;
        hooks.segment(2, 0).await?;
        hooks.publish().await?;
        hooks.segment(2, 2).await?;
        let (start, store) = (head(&hooks.world).await?.start(hooks.world.now()), hooks.world.store().await);
        let replay = async {
            ensure!(store.replay_webhook(&id()?, start).await?);
            anyhow::Ok(())
        };
        hooks.publish_while("webhooks-replayed", number, replay).await?;
        hooks.publish().await?;
        let first = text_of(&events(&all(&hooks.world, 1).await?)?[0]["id"]).to_owned();
        let times = hooks.receivers.events(PORT).iter().filter(|event| event["id"] == first.as_str()).count();
        assert_eq!(times, 2, "replayed at call {number}");
        hooks.judge().await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_the_log_no_longer_has_is_missed_loudly() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.segment(1, 0).await?;
    let start = head(&hooks.world).await?.start(hooks.world.now());
    hooks.publish().await?;
    ensure!(hooks.world.store().await.replay_webhook(&id()?, start).await?);
    hooks.world.set_clock("2026-12-28T09:00:00Z")?;
    let late = json!({
        "accountId": "payer", "idempotencyKey": "late", "payeeAccountId": "shop",
        "amountMinor": 1, "currency": "GBP", "scheduledFor": "2026-12-29",
    });
    hooks.world.create_all([late]).await?;
    hooks.counting.count(hooks.world.functions()).await?;
    assert_eq!(hooks.publish().await?["webhooksMissed"], 1);
    let missed = hooks.state().await?.progress.missed.context("not noted")?;
    assert_eq!((missed.from, missed.to), (start, head(&hooks.world).await?.start(hooks.world.now())));
    let got: Vec<Value> = hooks.receivers.events(PORT).split_off(1);
    assert_eq!(got, events(&all(&hooks.world, 10).await?)?);
    Ok(())
}

#[tokio::test]
async fn two_secrets_sign_while_a_rotation_lasts_and_a_test_is_sent_when_asked() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.segment(1, 0).await?;
    hooks.publish().await?;
    let (store, now) = (hooks.world.store().await, hooks.world.now());
    let generation = store.webhook_endpoint(&id()?).await?.context("no endpoint")?.generation;
    let until = now.saturating_add(TimeDelta::days(1));
    assert!(store.rotate_webhook_secret(&id()?, generation, until, now).await?);
    assert!(!store.rotate_webhook_secret(&id()?, generation, until, now).await?, "it is rotated once");
    let mut signatures = Vec::new();
    for _ in 0..2 {
        ensure!(store.ask_webhook_test(&id()?, hooks.world.now()).await?);
        hooks.publish().await?;
        let test = hooks.receivers.messages(PORT).pop().context("no test")?;
        assert_eq!(test.events[0]["type"], "webhook.test");
        signatures.push(test.signatures.split(' ').count());
        let state = hooks.state().await?;
        assert_eq!((state.test_at, state.progress.deliveries[0].events), (None, 0));
        hooks.pass(TimeDelta::days(1))?;
    }
    assert_eq!(signatures, [2, 1]);
    Ok(())
}
