//! Endpoints that are changed or created again while a run delivers: it stops, and writes nothing about the new one.

use super::*;

/// At how many of a run's calls something else happens. A run that delivers two segments has fewer.
const CALLS: usize = 24;

/// An endpoint whose old URL says that it is gone.
async fn with_old_url() -> Result<Log> {
    let log = Log::with_endpoint(&[2, 2]).await?;
    log.answer(PORT, 410);
    Ok(log)
}

/// The new URL gets everything. The answers of the old one do not concern it.
async fn judge_moved(log: &Log, number: usize) -> Result<()> {
    log.publish().await?;
    let state = log.state().await?;
    assert_eq!((state.disabled_by, state.lease_until), (None, None), "at call {number}");
    assert!(log.messages().len() <= 1, "the old URL got more, at call {number}");
    log.judge_at(OTHER_PORT).await.with_context(|| format!("at call {number}"))
}

#[tokio::test]
async fn an_endpoint_that_is_changed_while_a_run_delivers_is_not_switched_off_by_its_old_url() -> Result<()> {
    for number in 0..CALLS {
        let log = with_old_url().await?;
        log.publish_while("webhooks-changed", number, log.move_to(OTHER_PORT)).await?;
        // The run that stopped gave its lease back, so nothing waits for its end.
        judge_moved(&log, number).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_endpoint_that_is_created_again_while_a_run_delivers_is_not_switched_off_by_the_one_before() -> Result<()> {
    for number in 0..CALLS {
        let log = with_old_url().await?;
        // More changes than seconds: both endpoints would have the same leases if those began with seconds.
        for _ in 0..10 {
            log.move_to(PORT).await?;
        }
        log.pass(TimeDelta::seconds(4))?;
        let (store, now) = (log.store().await, log.now());
        let other = async {
            ensure!(store.delete_webhook_endpoint(&id()?).await?, "there is none");
            log.endpoint("erp", OTHER_PORT).await?;
            for _ in 0..6 {
                log.move_to(OTHER_PORT).await?;
            }
            // Another run has it at once, unless this one has it by now: it does not wait with all of its calls.
            drop(store.take_webhook(&id()?, now, now).await?);
            Ok(())
        };
        log.publish_while("webhooks-created-again", number, other).await?;
        // The lease that another run took may last until now.
        log.pass(publish::LEASE)?;
        judge_moved(&log, number).await?;
    }
    Ok(())
}

/// A run that only looked for more, because others were still sent to, learns of a change before it sends again.
#[tokio::test]
async fn a_run_that_waits_does_not_send_to_the_old_url() -> Result<()> {
    let log = Log::with_endpoint(&[]).await?;
    log.endpoint("slow", THIRD_PORT).await?;
    log.receivers.react(THIRD_PORT, |_| Reaction::Hang);
    log.segment(2).await?;
    let more = async {
        let end = log.end().await?;
        while log.state().await?.position != end {
            yield_now().await;
        }
        log.move_to(OTHER_PORT).await?;
        log.segment(3).await?;
        for _ in 0..1_000 {
            yield_now().await;
        }
        log.receivers.release();
        Ok(())
    };
    log.publish_beside(more).await?;
    assert_eq!(log.received().len(), 2, "the old URL got more");
    log.answer(THIRD_PORT, 200);
    log.pass(publish::LEASE)?;
    log.publish().await?;
    let (events, news) = (log.events().await?, log.receivers.events(OTHER_PORT));
    assert!(events[2..].iter().all(|event| news.contains(event)), "{} of {}", news.len(), events.len());
    Ok(())
}
