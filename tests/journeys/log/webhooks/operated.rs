//! Operators' actions on endpoints: skip an event, replay, rotate, test. And endpoints whose events the log lacks.

use payments_model::Actor;
use payments_store::SkippedEvent;

use super::*;

#[tokio::test]
async fn an_event_that_is_never_accepted_can_be_skipped_and_nothing_else_is() -> Result<()> {
    let log = Log::with_endpoint(&[20, 5]).await?;
    let mut events = log.events().await?;
    let poison = text_of(&events[11]["id"]).to_owned();
    let refused = poison.clone();
    log.receivers.react(PORT, move |message| {
        let has = message.events.iter().any(|event| event["id"] == refused.as_str());
        Reaction::Status(if has { 422 } else { 200 })
    });
    log.minutes(10).await?;
    let state = log.state().await?;
    let blocking = state.progress.blocking.clone().context("nothing blocks")?;
    assert_eq!(blocking.event_id, poison);
    let last = log.messages().pop().context("no message")?;
    assert_eq!(last.events.len(), 1, "only what blocks is sent again");
    let skipped = SkippedEvent { at: log.now(), event_id: poison.clone(), by: Actor::operator("ops") };
    for _ in 0..2 {
        // Once more, as after a lost reply.
        assert!(log.store().await.skip_webhook_event(&id()?, &state, &blocking, skipped.clone(), None).await?);
    }
    log.minutes(3).await?;
    events.remove(11);
    log.receivers.judge(PORT, &events)?;
    assert_eq!(log.state().await?.skipped, [skipped]);
    Ok(())
}

/// A replay goes back, also while a run delivers.
#[tokio::test]
async fn a_replay_is_not_undone_by_a_run_that_delivers() -> Result<()> {
    for number in 0..16 {
        let log = Log::with_endpoint(&[2]).await?;
        log.publish().await?;
        log.segment(2).await?;
        log.publish_while("webhooks-replayed", number, log.replay("erp")).await?;
        log.publish().await?;
        let first = &log.events().await?[0];
        let times = log.received().iter().filter(|event| *event == first).count();
        assert_eq!(times, 2, "replayed at call {number}");
        log.judge().await?;
    }
    Ok(())
}

/// The journal, an endpoint and the bus lack a segment that expires, whether the log continues then or not.
#[tokio::test]
async fn what_the_log_no_longer_has_is_missed_loudly() -> Result<()> {
    for is_late in [false, true] {
        let log = Log { bus: Some(Arc::default()), ..Log::with_endpoint(&[1]).await? };
        log.publish().await?;
        let place = log.end().await?;
        log.segment(1).await?;
        log.expire()?;
        if is_late {
            log.late_segment().await?;
        }
        let late = u64::from(is_late);
        let wanted = json!({
            "journalMissed": 1, "journaledEvents": late, "webhooksMissed": 1, "deliveredEvents": late,
            "busMissed": 1, "busSegmentsBehind": 0, "busEvents": late,
        });
        assert_has(&log.publish().await?, &wanted);
        let missed = log.state().await?.progress.missed.context("not noted")?;
        assert_eq!((missed.from, missed.to), (place, log.start().await?));
        assert_eq!(log.received()[1..], log.events().await?);
        if is_late {
            assert_fails(log.journal().await, "does not begin where the one before it ended");
        }
    }
    Ok(())
}

#[tokio::test]
async fn two_secrets_sign_while_a_rotation_lasts_and_a_test_is_sent_when_asked() -> Result<()> {
    let log = Log::with_endpoint(&[1]).await?;
    log.publish().await?;
    let (store, now) = (log.store().await, log.now());
    let generation = store.webhook_endpoint(&id()?).await?.context("no endpoint")?.generation;
    let until = now.saturating_add(TimeDelta::days(1));
    for is_first in [true, false] {
        assert_eq!(store.rotate_webhook_secret(&id()?, generation, until, now).await?, is_first, "it is rotated once");
    }
    for signatures in [2, 1] {
        log.ask_for_test().await?;
        log.publish().await?;
        let test = log.messages().pop().context("no test")?;
        assert_eq!((types(&test.events), test.signatures.split(' ').count()), (vec!["webhook.test"], signatures));
        let state = log.state().await?;
        assert_eq!((state.test_at, state.progress.deliveries[0].events), (None, 0));
        log.pass(TimeDelta::days(1))?;
    }
    Ok(())
}
