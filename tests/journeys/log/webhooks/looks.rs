//! A run that waits for a receiver looks again each second for endpoints that have something to get by now.
//!
//! On paused time: only what a test makes slow takes any.

use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;

use payments_store::WebhookCommit;
use payments_tests::LogLines;

use super::*;

/// The last second in which something may be begun.
const LAST: Duration = Duration::from_secs(23);

/// The time of a read while DynamoDB is slow: less than the timeout of an attempt.
const SLOW_READ: Duration = Duration::from_millis(1_900);

/// The times at which requests came.
#[derive(Clone, Default)]
struct Came(Arc<std::sync::Mutex<Vec<Duration>>>);

impl Came {
    fn note(&self, at: Duration) -> usize {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.push(at);
        times.len()
    }

    fn times(&self) -> Vec<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn assert_in_time(&self) {
        let times = self.times();
        assert!(times.last().is_some_and(|last| *last < LAST), "{times:?}");
    }
}

/// Runs the function, whose looks read the endpoints slowly from `slow_from` on.
async fn run(log: &Log, slow_from: Duration) -> Result<Value> {
    let (origin, history) = (Instant::now(), log.environment.tables.history.clone());
    let is_slow = move |call: &Call| origin.elapsed() >= slow_from && call.input()["TableName"] == *history;
    InTime::over(log, move |call| if is_slow(call) { SLOW_READ } else { Duration::ZERO }).await?.wake().await
}

/// Makes an endpoint answer its requests after these times, and all further ones after the last.
fn answer_after(log: &Log, port: u16, millis: &'static [u64]) -> Came {
    let (origin, came) = (Instant::now(), Came::default());
    let noted = came.clone();
    log.receivers.react(port, move |_| {
        let count = noted.note(origin.elapsed());
        Reaction::Slow(Duration::from_millis(millis[count.min(millis.len()) - 1]))
    });
    came
}

/// Four events wait for an endpoint, whose requests are returned, and for a slow one. The second request to that one lasts until 25 s.
async fn beside_a_slow_one() -> Result<(Log, Came)> {
    let log = Log::with_endpoint(&[2, 2]).await?;
    log.endpoint("slow", OTHER_PORT).await?;
    answer_after(&log, OTHER_PORT, &[11_000, 14_000]);
    let came = answer_after(&log, PORT, &[0]);
    Ok((log, came))
}

#[tokio::test(start_paused = true)]
async fn a_look_that_takes_long_holds_up_no_delivery() -> Result<()> {
    let log = Log::with_endpoint(&[31]).await?;
    let came = answer_after(&log, PORT, &[300]);
    run(&log, Duration::ZERO).await?;
    let came = came.times();
    assert_eq!(came.len(), 5, "1 + 2 + 4 + 8 + 16 events");
    assert!(came[4] - came[0] < Duration::from_millis(1_300), "a look lies between requests: {came:?}");
    log.judge().await
}

#[tokio::test(start_paused = true)]
async fn a_look_that_ends_after_the_deadline_is_dropped() -> Result<()> {
    let (log, came) = beside_a_slow_one().await?;
    let more = async {
        sleep(Duration::from_millis(21_950)).await;
        log.ask_for_test().await
    };
    tokio::try_join!(run(&log, Duration::from_millis(21_900)), more)?;
    came.assert_in_time();
    log.publish().await?;
    assert_eq!(came.times().len(), 4, "two rounds, another one, and the test");
    Ok(())
}

/// The deadline comes while a run reads the events to send.
#[tokio::test(start_paused = true)]
async fn what_is_read_when_the_deadline_comes_is_not_sent() -> Result<()> {
    let (log, came) = beside_a_slow_one().await?;
    let origin = Instant::now();
    let table = log.environment.tables.log.clone();
    let is_slow = AtomicBool::new(false);
    // From the moment on at which the endpoint's lease is taken for the fifth event.
    let publisher = InTime::over(&log, move |call| {
        let takes = call.operation == "UpdateItem" && origin.elapsed() > Duration::from_secs(20);
        let reads_slowly = is_slow.fetch_or(takes, Ordering::Relaxed) && call.input()["TableName"] == *table;
        if reads_slowly { SLOW_READ } else { Duration::ZERO }
    });
    let publisher = publisher.await?;
    let more = async {
        sleep(Duration::from_millis(20_500)).await;
        log.segment(1).await
    };
    tokio::try_join!(publisher.wake(), more)?;
    came.assert_in_time();
    log.publish_all().await
}

/// The endpoint gives its lease back, because a request as long as its last one would last past the deadline.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_gave_its_lease_back_before_the_deadline_is_not_served_again() -> Result<()> {
    let log = Log::open().await?;
    log.endpoint("slow", OTHER_PORT).await?;
    log.endpoint("third", THIRD_PORT).await?;
    log.segments(&[1; 4]).await?;
    let before = log.state_of("slow").await?.lease;
    let came = answer_after(&log, OTHER_PORT, &[14_000]);
    // The run waits for this one until 25 s.
    answer_after(&log, THIRD_PORT, &[11_000, 14_000]);
    run(&log, Duration::MAX).await?;
    assert_eq!(came.times().len(), 1, "the second began at 15 s, and lasted until 29 s");
    let after = log.state_of("slow").await?;
    assert_eq!((after.lease, after.lease_until), (before + 1, None), "its lease was taken again, for nothing");
    Ok(())
}

/// Of an endpoint that another run serves, a run knows how far it is from its last look.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_another_run_serves_is_judged_by_the_last_look() -> Result<()> {
    let log = Log::with_endpoint(&[]).await?;
    log.endpoint("slow", OTHER_PORT).await?;
    log.segment(1).await?;
    answer_after(&log, OTHER_PORT, &[12_000]);
    let store = log.store().await;
    let now = log.now();
    let end = log.end().await?;
    let until = now.saturating_add(publish::LEASE);
    let taken = store.take_webhook(&id()?, now, until).await?.context("it is not free")?;
    let another = async {
        sleep(Duration::from_secs(5)).await;
        let commit = WebhookCommit { to: end, progress: &taken.progress, lease_until: None, disabled: None };
        store.commit_webhook(&id()?, &taken, &commit).await?.context("the lease is lost")
    };
    let (outcome, _) = tokio::try_join!(run(&log, Duration::MAX), another)?;
    assert_has(&outcome, &json!({ "deliveredEvents": 1, "webhookSegmentsBehind": 0 }));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_run_logs_each_endpoint_that_cannot_be_read_once() -> Result<()> {
    let log = Log::open().await?;
    for (id, port) in [("slow", OTHER_PORT), ("damaged", THIRD_PORT), ("lost", THIRD_PORT)] {
        log.endpoint(id, port).await?;
    }
    log.spoil(ENDPOINTS, "damaged", "url").await?;
    log.lose_endpoint("lost").await?;
    log.segment(1).await?;
    answer_after(&log, OTHER_PORT, &[12_000]);
    let (lines, guard) = LogLines::start();
    let outcome = run(&log, Duration::MAX).await?;
    drop(guard);
    assert_has(&outcome, &json!({ "webhooksUnreadable": 2, "deliveredEvents": 1 }));
    let lines = lines.take()?;
    for id in ["damaged", "lost"] {
        let said = lines.iter().filter(|line| line["level"] == "ERROR" && line["endpoint"] == id).count();
        assert_eq!(said, 1, "{id}");
    }
    Ok(())
}
