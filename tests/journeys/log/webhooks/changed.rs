//! Endpoints that are changed or created again while a run delivers: it stops, and writes nothing about the new one.

use super::*;

/// The port to which an endpoint is moved.
const NEW_PORT: u16 = 7002;

/// At how many of a run's calls something else happens. A run that delivers two segments has fewer.
const CALLS: usize = 24;

/// What an operator chooses who moves the endpoint.
fn moved() -> Result<EndpointChoice> {
    at(NEW_PORT)
}

fn at(port: u16) -> Result<EndpointChoice> {
    let url = EndpointUrl::loopback(&format!("http://127.0.0.1:{port}/hook"))?;
    Ok(EndpointChoice { url, description: String::new(), filter: EventFilter::default() })
}

/// An endpoint whose old URL says that it is gone.
async fn with_old_url() -> Result<Hooks> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.receivers.react(PORT, |_| Reaction::Status(410));
    for from in [0, 2] {
        hooks.segment(2, from).await?;
    }
    Ok(hooks)
}

/// The new URL gets everything, and what the old one answered does not concern it.
async fn judge_moved(hooks: &Hooks, number: usize) -> Result<()> {
    hooks.publish().await?;
    let state = hooks.state().await?;
    assert_eq!((state.disabled_by, state.lease_until), (None, None), "at call {number}");
    assert!(hooks.receivers.messages(PORT).len() <= 1, "the old URL got more, at call {number}");
    let log = events(&all(&hooks.world, 1_000).await?)?;
    hooks.receivers.settle().await;
    hooks.receivers.judge(NEW_PORT, &log).with_context(|| format!("at call {number}"))
}

#[tokio::test]
async fn an_endpoint_that_is_changed_while_a_run_delivers_is_not_switched_off_by_its_old_url() -> Result<()> {
    for number in 0..CALLS {
        let hooks = with_old_url().await?;
        let (store, now) = (hooks.world.store().await, hooks.world.now());
        let other = async {
            ensure!(store.change_webhook_endpoint(&id()?, &moved()?, false, now).await?, "there is none");
            anyhow::Ok(())
        };
        hooks.publish_while("webhooks-changed", number, other).await?;
        // The run that stopped gave its lease back, so nothing waits for its end.
        judge_moved(&hooks, number).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_endpoint_that_is_created_again_while_a_run_delivers_is_not_switched_off_by_the_one_before() -> Result<()> {
    for number in 0..CALLS {
        let hooks = with_old_url().await?;
        let (store, from) = (hooks.world.store().await, LogPosition::BEGINNING);
        let change = async |times: u32, port| {
            for _ in 0..times {
                let now = hooks.world.now();
                ensure!(store.change_webhook_endpoint(&id()?, &at(port)?, false, now).await?, "there is none");
            }
            anyhow::Ok(())
        };
        // More changes than seconds: both endpoints would have the same leases if those began with seconds.
        change(10, PORT).await?;
        hooks.pass(TimeDelta::seconds(4))?;
        let now = hooks.world.now();
        let other = async {
            ensure!(store.delete_webhook_endpoint(&id()?).await?, "there is none");
            ensure!(
                store
                    .create_webhook_endpoint(
                        &id()?,
                        &moved()?,
                        from,
                        false,
                        now.as_chrono(),
                        store.endpoints_created().await?
                    )
                    .await?
                    == CreateEndpoint::Created,
                "there is one"
            );
            change(6, NEW_PORT).await?;
            // Another run has it at once, unless this one has it by now: it does not wait with all of its calls.
            drop(store.take_webhook(&id()?, now, now).await?);
            anyhow::Ok(())
        };
        hooks.publish_while("webhooks-created-again", number, other).await?;
        // The lease that another run took may last until now.
        hooks.pass(publish::LEASE)?;
        judge_moved(&hooks, number).await?;
    }
    Ok(())
}

/// A run that only looked for more, because others were still sent to, learns of a change before it sends again.
#[tokio::test]
async fn a_run_that_waits_does_not_send_to_the_old_url() -> Result<()> {
    let mut hooks = Hooks::with_endpoint().await?;
    hooks.endpoint("slow", 7003, EventFilter::default()).await?;
    hooks.receivers.react(7003, |_| Reaction::Hang);
    hooks.segment(2, 0).await?;
    let (receivers, client) = (hooks.receivers.clone(), hooks.world.client().await);
    let function = hooks.function(&client).await?;
    let deadline = u64::try_from(hooks.world.now().saturating_add(TimeDelta::days(1)).as_chrono().timestamp_millis())?;
    let request = serde_json::from_value(json!({ "action": "publish" }))?;
    let run = function.handle(lambda_runtime::LambdaEvent::new(request, context(deadline)));
    let run = async { run.await.map_err(anyhow::Error::from_boxed) };
    let more = async {
        let end = head(&hooks.world).await?.end();
        while hooks.state().await?.position != end {
            yield_now().await;
        }
        let (store, now) = (hooks.world.store().await, hooks.world.now());
        ensure!(store.change_webhook_endpoint(&id()?, &moved()?, false, now).await?);
        hooks.segment(3, 2).await?;
        for _ in 0..1_000 {
            yield_now().await;
        }
        receivers.release();
        anyhow::Ok(())
    };
    tokio::try_join!(run, more)?;
    assert_eq!(hooks.receivers.events(PORT).len(), 2, "the old URL got more");
    hooks.receivers.react(7003, |_| Reaction::Status(200));
    hooks.pass(publish::LEASE)?;
    hooks.publish().await?;
    let log = events(&all(&hooks.world, 1_000).await?)?;
    let news = hooks.receivers.events(NEW_PORT);
    assert!(log[2..].iter().all(|event| news.contains(event)), "{} of {}", news.len(), log.len());
    Ok(())
}
