//! Deliveries are woken at once by a new segment.

use std::sync::atomic::AtomicI64;

use chrono::{DateTime, Utc};
use payments_bank::Functions;
use payments_local::TRANSACTION_SERVICE;
use payments_machine::client::{Client as Api, Request};
use payments_machine::triggers::Triggers;
use payments_machine::{EngineChoice, Stack};

use super::*;

/// The interval at which the triggers look for work, in milliseconds, as in `cargo local`.
const TICK: i64 = 250;

#[tokio::test]
async fn a_new_segment_brings_events_and_no_file_of_the_journal() -> Result<()> {
    let log = Log::with_endpoint(&[3]).await?;
    log.forget();
    let woken = serde_json::from_value(json!({ "Records": [{ "eventName": "INSERT" }] }))?;
    let outcome = invoke(&log.function(&log.client().await)?, woken, NO_DEADLINE).await?;
    assert_has(&outcome, &json!({ "journalFiles": 0, "deliveredEvents": 3 }));
    // The run did not look at the journal, so it emits no metric of it.
    let metrics = log.outside.metrics.take().concat();
    assert!(metrics.contains("DeliveredEvents") && !metrics.contains("JournalSegmentsBehind\":0,\"J"), "{metrics}");
    assert!(!metrics.contains("JournaledEvents"), "{metrics}");
    log.judge().await
}

/// The whole way, with the triggers of `cargo local`: claims, settlements, counting, deliveries.
#[tokio::test]
async fn half_of_the_settlements_are_at_the_receiver_within_five_seconds() -> Result<()> {
    let millis = Arc::new(AtomicI64::new(1_795_168_800_000));
    let shown = Arc::clone(&millis);
    let now = move || DateTime::<Utc>::from_timestamp_millis(shown.load(Ordering::Relaxed)).unwrap_or_default();
    let clock = Clock::simulated(now, |_| {});
    let stack = Stack::on(EngineChoice::Memory).clock(&clock).start().await?;
    let receivers = Receivers::default();
    let dependencies = Dependencies { webhooks: receivers.webhooks()?, ..Dependencies::on(&stack, stack.client()) };
    let functions = Arc::new(Functions::within(&stack.environment, |_| Ok(dependencies.clone()))?);
    let filter = EventFilter { statuses: ["PROCESSED".parse()?, "FAILED".parse()?].into(), ..EventFilter::default() };
    let settled = EndpointChoice { filter, ..at_port(PORT)? };
    create_endpoint(&dependencies.store, clock.now(), "erp", &settled, LogPosition::BEGINNING).await?;
    let mut triggers = Triggers::new(&stack, functions.clone(), TRANSACTION_SERVICE).await?;
    triggers = triggers.with_period("sweep", TimeDelta::minutes(1));
    let api = Api::for_functions(functions, clock.clone())?;
    let body = json!({ "payeeAccountId": "b", "amountMinor": 5, "currency": "GBP", "scheduledFor": "2026-11-20" });
    let (mut delays, mut seen) = (Vec::new(), 0);
    for tick in 0..4 * 60 * 1_000 / TICK {
        if tick % 40 == 0 {
            let put = api.send_until(&Request::create("a", &format!("coffee-{tick}"), &body), |_| true).await?;
            ensure!(put.status == 201, "{put:?}");
        }
        let told = triggers.tick(clock.instant()).await;
        ensure!(told.troubles.is_empty(), "{told}");
        let received = receivers.events(PORT);
        for event in &received[seen..] {
            let at: DateTime<Utc> = text_of(&event["at"]).parse()?;
            delays.push((clock.instant() - at).num_milliseconds());
        }
        seen = received.len();
        millis.fetch_add(TICK, Ordering::Relaxed);
    }
    delays.sort_unstable();
    ensure!(delays.len() > 15, "{} settlements", delays.len());
    let median = delays[delays.len() / 2];
    println!("from a settlement to its webhook: {median} ms in the median, at most {:?} ms", delays.last());
    assert!(median < 5_000, "{delays:?}");
    stack.stop().await
}
