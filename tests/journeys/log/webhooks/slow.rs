//! Receivers that are slow delay no other.

use super::*;

/// The longest request that a receiver may take to answer.
const SLOW: TimeDelta = TimeDelta::seconds(14);

/// More comes while one endpoint hangs, and reaches the other in the same run: the stream's next batch waits for it.
#[tokio::test]
async fn what_comes_while_a_receiver_hangs_reaches_the_others_and_the_journal_at_once() -> Result<()> {
    for (case, is_delivered) in [
        ("an_endpoint_that_hangs_holds_up_neither_the_others_nor_the_journal", false),
        // The other endpoint has everything when the run begins.
        ("what_comes_while_a_slow_receiver_is_sent_to_reaches_the_others_at_once", true),
    ] {
        let log = Log::with_endpoint(&[2]).await?;
        log.endpoint("slow", OTHER_PORT).await?;
        if is_delivered {
            log.publish().await?;
            log.replay("slow").await?;
        }
        log.receivers.react(OTHER_PORT, |_| Reaction::Hang);
        let more = async {
            log.received_by_now(2).await?;
            for (payments, wanted) in [(1, 3), (3, 6)] {
                log.segment(payments).await?;
                log.received_by_now(wanted).await?;
            }
            log.receivers.release();
            Ok(())
        };
        let outcome = log.publish_beside(more).await.context(case)?;
        assert_eq!(outcome["failedDeliveries"], 1, "{case}");
        if !is_delivered {
            assert_has(&outcome, &json!({ "journalFiles": 1, "journaledEvents": 2 }));
        }
        log.judge().await.context(case)?;
    }
    Ok(())
}

/// A run that waits for a request when its time is over sends nothing else meanwhile, and on AWS the next one waits for it.
#[tokio::test]
async fn a_run_begins_no_request_that_may_last_until_its_end() -> Result<()> {
    let log = Log::with(&[1, 1, 1]).await?;
    log.endpoint("slow", OTHER_PORT).await?;
    let pass = log.passing();
    log.receivers.react(OTHER_PORT, move |_| {
        pass(SLOW);
        Reaction::Status(200)
    });
    invoke(&log.function(&log.client().await)?, Request::Tick, log.deadline(TIMEOUT)?).await?;
    assert_eq!(log.receivers.messages(OTHER_PORT).len(), 1, "the second would last until 28 s");
    let took: Vec<u64> = log.state_of("slow").await?.progress.deliveries.iter().map(|it| it.took_ms).collect();
    assert_eq!(took, [14_000]);
    log.publish().await?;
    assert_eq!(log.receivers.events(OTHER_PORT).len(), 3);
    Ok(())
}
