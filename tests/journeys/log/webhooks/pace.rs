//! The events per second that an endpoint gets, by the time that it takes for a request.
//!
//! On paused time: only calls and requests take any. So the work of the function and of the receiver, TLS and the first round
//! trips of a connection are left out.

use payments_model::{PaymentId, UtcSecond};
use payments_store::{Committed, CountsCommit, MAX_SEGMENT_BYTES};

use super::*;

/// The time of a call to DynamoDB. AWS promises nothing; reads usually take less.
const CALL: Duration = Duration::from_millis(10);

/// Five feeds at once: five million payments in half an hour.
const FIVE_FEEDS: u64 = 2_778;

/// One feed: a million.
const ONE_FEED: u64 = 556;

const HALF_AN_HOUR: u64 = 30 * 60;

/// The events that are sent first: after each round that is accepted the next one has twice as many, up to 1,000.
const FIRST: usize = 2_000;

/// The events that are measured: those of more than ten seconds.
const EVENTS: usize = 30_000;

/// An event of a payment, as long as those of accounts with an IBAN and a reference.
fn event(n: usize, now: UtcSecond) -> Result<String> {
    let (payer, payee) = (format!("GB29NWBK{:014}", n * 7_919 % 40_000), format!("GB29BARC{:014}", n * 31 % 5_000));
    let payment = PaymentId::derive(&payer.parse()?, &format!("feed-{n}").parse()?);
    let event = json!({
        "id": format!("3622140-{payment}-1"), "type": "payment.scheduled", "at": now.to_string(), "epoch": 3_622_140,
        "accountId": payer, "payeeAccountId": payee, "paymentId": payment.to_string(), "version": 1, "status": "SCHEDULED", "v": 1,
        "by": { "kind": "client", "name": "feed" }, "dueAt": "2026-11-20T00:00:00Z", "dueDate": "2026-11-20",
        "amountMinor": 1 + n * 7_907 % 2_000_003, "currency": "GBP", "reference": format!("INVOICE {n:07}"),
    });
    Ok(event.to_string())
}

/// Adds events to the log, in segments of full batches.
async fn fill(log: &Log, added: Range<usize>) -> Result<()> {
    let (store, now) = (log.store().await, log.now());
    let mut head = store.log_head().await?.unwrap_or_else(|| LogHead::first("the stream", now));
    let events = added.map(|n| event(n, now)).collect::<Result<Vec<_>>>()?;
    for events in events.chunks(MAX_SEGMENT_BYTES / 480) {
        let (shard, last) = (format!("shard-{}", head.next), 1.into());
        let commit = CountsCommit { deltas: BTreeMap::default(), unparsed: 0, events: events.to_vec(), last };
        let committed = store.commit_counts(&shard, None, &commit, &head, now).await?;
        ensure!(committed == Committed::Done, "{committed:?}");
        head = head.after_append(now);
    }
    Ok(())
}

/// Delivers the events that the only endpoint lacks, run after run. Returns the time that this takes.
async fn deliver(log: &Log, wanted: usize) -> Result<Duration> {
    let (origin, function) = (Instant::now(), InTime::over(log, |_| CALL).await?);
    for _ in 0..10 {
        // A segment woke the function.
        let outcome = function.wake().await?;
        ensure!(outcome["failedDeliveries"] == 0, "{outcome}");
        if outcome["webhookSegmentsBehind"] == 0 {
            ensure!(log.received().len() == wanted, "something came twice, or not");
            return Ok(origin.elapsed());
        }
    }
    bail!("it is not at the log's end after ten runs")
}

/// Returns how many events a second an endpoint gets that takes so long for each request.
async fn pace(millis: u64) -> Result<u64> {
    let log = Log::with_endpoint(&[]).await?;
    log.receivers.react(PORT, move |_| Reaction::Slow(Duration::from_millis(millis)));
    fill(&log, 0..FIRST).await?;
    deliver(&log, FIRST).await?;
    fill(&log, FIRST..FIRST + EVENTS).await?;
    let took = deliver(&log, FIRST + EVENTS).await?;
    log.judge().await?;
    Ok(EVENTS as u64 * 1_000 / u64::try_from(took.as_millis())?)
}

/// The table is in docs/performance.md, Speed of webhooks.
#[tokio::test(start_paused = true)]
async fn an_endpoint_with_150_ms_a_request_keeps_up_with_five_feeds_at_once() -> Result<()> {
    println!("| a request takes | events a second | behind after half an hour of 2,778 a second |\n|---|---|---|");
    for (millis, keeps_up) in [(50, true), (150, true), (300, true), (600, false), (1_500, false)] {
        let a_second = pace(millis).await?;
        let behind = (HALF_AN_HOUR * FIVE_FEEDS).div_ceil(a_second).saturating_sub(HALF_AN_HOUR).div_ceil(60);
        println!("| {millis} ms | {a_second} | {behind} min |");
        assert_eq!(a_second >= FIVE_FEEDS, keeps_up, "{millis} ms: {a_second} events a second");
        // One feed, at any pace.
        assert!(a_second > ONE_FEED, "{millis} ms: {a_second} events a second");
    }
    Ok(())
}
