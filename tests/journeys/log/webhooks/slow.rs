//! Receivers that are slow delay no other.

use super::*;

const SLOW_PORT: u16 = 7002;

/// The longest request that a receiver may take to answer.
const SLOW: TimeDelta = TimeDelta::seconds(14);

/// Moves an endpoint back to the log's beginning.
async fn replay(hooks: &Hooks, endpoint: &str) -> Result<()> {
    let start = head(&hooks.world).await?.start(hooks.world.now());
    ensure!(hooks.world.store().await.replay_webhook(&endpoint.parse()?, start).await?);
    Ok(())
}

fn deadline(hooks: &Hooks, seconds: i64) -> Result<u64> {
    let end = hooks.world.now().saturating_add(TimeDelta::seconds(seconds));
    Ok(u64::try_from(end.as_chrono().timestamp_millis())?)
}

/// The other endpoint has everything when the run begins, and what comes during the slow request reaches it in the same run.
#[tokio::test]
async fn what_comes_while_a_slow_receiver_is_sent_to_reaches_the_others_at_once() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.endpoint("slow", SLOW_PORT, EventFilter::default()).await?;
    hooks.segment(2, 0).await?;
    hooks.publish().await?;
    replay(&hooks, "slow").await?;
    hooks.receivers.react(SLOW_PORT, |_| Reaction::Hang);
    let (receivers, client) = (hooks.receivers.clone(), hooks.world.client().await);
    let (function, deadline) = (hooks.function(&client).await?, deadline(&hooks, 86_400)?);
    let request = serde_json::from_value(json!({ "action": "publish" }))?;
    let run = async {
        let run = function.handle(lambda_runtime::LambdaEvent::new(request, context(deadline))).await;
        receivers.release();
        run.map_err(anyhow::Error::from_boxed)
    };
    let more = async {
        while receivers.messages(SLOW_PORT).len() < 2 {
            yield_now().await;
        }
        for n in [2, 3] {
            hooks.segment(1, n).await?;
            let (began, wanted) = (tokio::time::Instant::now(), n + 1);
            while receivers.events(PORT).len() < wanted {
                ensure!(
                    began.elapsed() < std::time::Duration::from_secs(10),
                    "event {wanted} waits for the slow receiver"
                );
                yield_now().await;
            }
        }
        receivers.release();
        anyhow::Ok(())
    };
    tokio::try_join!(run, more)?;
    hooks.judge().await
}

/// A run that waits for a request when its time is over sends nothing else meanwhile, and on AWS the next one waits for it.
#[tokio::test]
async fn a_run_begins_no_request_that_may_last_until_its_end() -> Result<()> {
    let mut hooks = Hooks::open().await?;
    hooks.endpoint("slow", SLOW_PORT, EventFilter::default()).await?;
    for n in 0..3 {
        hooks.segment(1, n).await?;
    }
    let pass = hooks.world.passing();
    hooks.receivers.react(SLOW_PORT, move |_| {
        pass(SLOW);
        Reaction::Status(200)
    });
    // As template.yaml has it: 11 s are for the answer, 21 s for a request and what is written of it.
    let deadline = deadline(&hooks, 55)?;
    hooks.publish_over(&hooks.world.client().await, deadline).await?;
    assert_eq!(hooks.receivers.messages(SLOW_PORT).len(), 1, "the second would last until 28 s");
    hooks.publish().await?;
    assert_eq!(hooks.receivers.events(SLOW_PORT).len(), 3);
    Ok(())
}
