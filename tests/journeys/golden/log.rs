//! Golden items of counting and of the log: counters, segments, consumers, endpoints, and a log after a restore.

use chrono::TimeDelta;
use payments_model::webhook::{EndpointId, SecretGeneration};
use payments_model::{Actor, BusinessDate, DayCounts, EventFilter, LogRestoredEvent, Status, UtcSecond};
use payments_store::{
    BlockingEvent, CountsCommit, CreateEndpoint, Delivery, DeliveryEnd, DeliveryError, DisabledBy, EndpointChoice,
    LogHead, LogPosition, LogRead, Missed, MissedEvents, Progress, SkippedEvent, Store, WebhookCommit, WebhookEndpoint,
    WebhookState, first_lease,
};
use payments_tests::prelude::*;

const STREAM: &str = "arn:aws:dynamodb:eu-west-2:123456789012:table/payments/stream/2026-11-20T08:00:00.000";
const SHARD: &str = "shardId-00000003801168300000-0a1b2c3d";

/// The days on which the log's segments are appended. A reader of a segment does not need them.
const DAYS: [&str; 2] = ["2026-11-20T09:00:00Z", "2026-11-21T09:00:00Z"];

const CONSUMERS: [&str; 2] = ["journal", "bus#bank-events"];
const ENDPOINTS: [&str; 3] = ["books", "gone", "shop"];

fn first_date() -> Result<BusinessDate> {
    Ok("2026-12-01".parse()?)
}

/// Commits counters and the events of two segments.
async fn commit(
    store: &Store,
    segments: [Vec<String>; 2],
    mut deltas: BTreeMap<BusinessDate, DayCounts>,
    last: &str,
) -> Result<()> {
    let mut expected = None;
    for ((day, events), place) in DAYS.into_iter().zip(segments).zip(["41", last]) {
        let now: UtcSecond = day.parse()?;
        let log = store.log_head().await?.unwrap_or_else(|| LogHead::first(STREAM, now));
        let commit = CountsCommit { deltas: std::mem::take(&mut deltas), unparsed: 1, events, last: place.parse()? };
        let done = store.commit_counts(SHARD, expected.as_ref(), &commit, &log, now).await?;
        ensure!(done == payments_store::Committed::Done, "{done:?}");
        expected = Some(commit.last);
    }
    Ok(())
}

/// The events of a segment.
async fn events(store: &Store, head: &LogHead, at: LogPosition) -> Result<Vec<String>> {
    let LogRead::Page(page) = store.log_page(head, at, 100, 1, DAYS[1].parse()?).await? else { bail!("no segment") };
    Ok(page.entries.into_iter().map(|entry| entry.json).collect())
}

pub(super) async fn written() -> Result<World> {
    let world = World::open().await?;
    let store = world.store().await;
    let (mut counts, mut uncounted) = (DayCounts::default(), DayCounts::default());
    (counts.archived, counts.unparsed, uncounted.unparsed) = (2, 1, 1);
    for (status, number) in Status::ALL.into_iter().zip(1..) {
        counts.shift(status, number);
        counts.shift_sum("GBP".parse()?, status, i128::from(number) << 64);
        counts.shift_sum("EUR".parse()?, status, number.into());
    }
    let event =
        |n: u32| format!(r#"{{"id":"3622140-626e8292-8e84-575a-b684-0af73927405b-{n}","type":"payment.pending"}}"#);
    let segments = [(1..4).map(event).collect(), vec!["{}".to_owned()]];
    let deltas = [(first_date()?, counts), ("2026-12-02".parse()?, uncounted)];
    commit(&store, segments, deltas.into(), "495903382714902566085596925383").await?;
    for (consumer, to) in CONSUMERS.into_iter().zip(["3622140.2.0", "3622140.1.2"]) {
        ensure!(store.move_log_consumer(consumer, None, to.parse()?).await?, "{consumer}");
    }
    for id in ENDPOINTS {
        endpoint(&store, &id.parse()?).await?;
    }
    Ok(world)
}

/// An endpoint as it never is: all that can be known of one at once.
fn state(id: &str, created_at: UtcSecond) -> Result<WebhookState> {
    let at: UtcSecond = "2026-11-20T10:00:00Z".parse()?;
    let position: LogPosition = "3622140.1.2".parse()?;
    let outcome = DeliveryEnd { kind: "refused".to_owned(), status: Some(500) };
    let lease = first_lease(created_at.as_chrono());
    let new = WebhookState { version: lease, ..WebhookState::new(position) };
    Ok(match id {
        "books" => WebhookState { lease, ..new },
        "gone" => WebhookState { lease: lease + 1, disabled_by: Some(DisabledBy::Gone), disabled_at: Some(at), ..new },
        _ => WebhookState {
            lease: lease + 1,
            lease_until: Some(at.saturating_add(TimeDelta::minutes(1))),
            test_at: Some(at),
            skipped: vec![SkippedEvent { at, event_id: "3622140-a-1".to_owned(), by: Actor::operator("ops-1") }],
            progress: Progress {
                failures: 3,
                failing_since: Some(created_at),
                next_try_at: Some(at),
                more_at_once: 7,
                blocking: Some(BlockingEvent { event_id: "3622140-a-2".to_owned(), after: "3622140.2.0".parse()? }),
                last_error: Some(DeliveryError { at, outcome: outcome.clone() }),
                deliveries: vec![Delivery {
                    at,
                    message_id: "msg_0f3d5b7a9c1e2f4d6b8a0c2e4f6d8b0a".to_owned(),
                    events: 2,
                    bodies: 1,
                    took_ms: 1_234,
                    outcome,
                }],
                missed: Some(MissedEvents { at, from: "1.1.0".parse()?, to: "3622140.1.0".parse()? }),
            },
            ..new
        },
    })
}

async fn endpoint(store: &Store, id: &EndpointId) -> Result<()> {
    let created_at: UtcSecond = DAYS[0].parse()?;
    let filter = EventFilter {
        statuses: [Status::Processed, Status::Failed].into(),
        accounts: ["tenant".parse()?, "landlord".parse()?].into(),
    };
    let is_plain = id.to_string() == "books";
    let generation =
        if is_plain { SecretGeneration::FIRST } else { SecretGeneration::FIRST.next().context("no generation")? };
    let chosen = EndpointChoice {
        url: format!("https://{id}.shop.co.uk/payments").parse()?,
        description: if is_plain { String::new() } else { "The shop's books".to_owned() },
        filter: if is_plain { EventFilter::default() } else { filter },
    };
    let updated_at = if is_plain { created_at } else { "2026-11-20T11:00:00Z".parse()? };
    let previous_until = (!is_plain).then_some("2026-11-21T11:00:00Z".parse()?);
    let known = WebhookEndpoint {
        id: id.clone(),
        chosen,
        generation,
        previous_until,
        created_at,
        updated_at,
        disabled_at: is_plain.then_some(created_at),
    };
    put_endpoint(store, &known, &state(&id.to_string(), created_at)?).await
}

/// Writes an endpoint and its deliveries, step by step as they came about.
async fn put_endpoint(store: &Store, known: &WebhookEndpoint, state: &WebhookState) -> Result<()> {
    let WebhookEndpoint { id, chosen, created_at, .. } = known;
    let is_off = known.disabled_at.is_some();
    ensure!(
        store
            .create_webhook_endpoint(
                id,
                chosen,
                state.position,
                is_off,
                created_at.as_chrono(),
                store.endpoints_created().await?
            )
            .await?
            == CreateEndpoint::Created,
        "{id}"
    );
    for skipped in state.skipped.iter().rev() {
        let found = store.webhook_state(id).await?.context("no state")?;
        let blocking = BlockingEvent { event_id: skipped.event_id.clone(), after: state.position };
        ensure!(store.skip_webhook_event(id, &found, &blocking, skipped.clone(), None).await?, "{id}");
    }
    if state.lease > first_lease(created_at.as_chrono()) {
        let taken = store.take_webhook(id, *created_at, *created_at).await?.context("it is taken")?;
        let disabled = state.disabled_by.zip(state.disabled_at);
        let to = state.position;
        let progress = &state.progress;
        let lease_until = state.lease_until;
        let commit = WebhookCommit { to, progress, lease_until, disabled };
        store.commit_webhook(id, &taken, &commit).await?.context("the lease is lost")?;
    }
    if let Some(at) = state.test_at {
        ensure!(store.ask_webhook_test(id, at, None).await?, "{id}");
    }
    let mut generation = SecretGeneration::FIRST;
    while generation < known.generation {
        let until = known.previous_until.context("the generation before ends")?;
        ensure!(store.rotate_webhook_secret(id, generation, until, known.updated_at).await?, "{id}");
        generation = generation.next().context("no generation")?;
    }
    Ok(())
}

pub(super) async fn again(from: &World, to: &World) -> Result<()> {
    let (from, to) = (from.store().await, to.store().await);
    let head = from.log_head().await?.context("no log")?;
    let segment = |number| LogPosition { epoch: head.epoch, number, offset: 0 };
    let segments = [events(&from, &head, segment(1)).await?, events(&from, &head, segment(2)).await?];
    let counters = from.counters(first_date()?, BusinessDate::MAX).await?;
    let deltas = counters.into_iter().map(|(date, counters)| (date, counters.counts)).collect();
    let last = from.checkpoint(SHARD).await?.context("no checkpoint")?;
    commit(&to, segments, deltas, &last.to_string()).await?;
    for consumer in CONSUMERS {
        let read = from.log_consumer(consumer).await?.context("no consumer")?;
        ensure!(to.move_log_consumer(consumer, None, read).await?, "{consumer}");
    }
    for (id, endpoint) in from.webhook_endpoints().await? {
        let state = from.webhook_state(&id.parse()?).await?.context("no state")?;
        put_endpoint(&to, &endpoint?, &state).await?;
    }
    Ok(())
}

/// A log in its second epoch, with a gap that is not marked yet.
async fn restore(store: &Store, segments: [Vec<String>; 2], last: impl FnOnce(LogHead) -> LogHead) -> Result<()> {
    let [first, second] = [DAYS[0].parse()?, DAYS[1].parse::<UtcSecond>()?];
    let [before, after] = segments;
    let log = LogHead::first(STREAM, first);
    ensure!(store.begin_epoch(&log, &log, &before, first).await?, "the log begins");
    let head = store.log_head().await?.context("no log")?;
    let mut last = last(head.clone());
    let missed = last.missed.take();
    ensure!(store.begin_epoch(&head, &last, &after, second).await?, "an epoch begins");
    if let Some(missed) = missed {
        store.note_missed(missed).await?;
    }
    Ok(())
}

pub(super) async fn written_after_restore() -> Result<World> {
    let (world, now) = (World::open().await?, DAYS[1].parse()?);
    let end_cursor = "3622140.2.0".to_owned();
    let begun = LogRestoredEvent { at: now, restored_to: Some(DAYS[0].parse()?), end_cursor };
    let epoch = LogHead::first(STREAM, now).epoch;
    let missed = Some(Missed { since: Some(DAYS[0].parse()?), until: now });
    let segments = [vec!["{}".to_owned()], vec![begun.json(epoch)?]];
    let begin = |head: LogHead| {
        let mut next = head.next_epoch(2, now);
        next.missed = missed;
        next
    };
    restore(&world.store().await, segments, begin).await?;
    Ok(world)
}

pub(super) async fn again_after_restore(from: &World, to: &World) -> Result<()> {
    let from = from.store().await;
    let head = from.log_head().await?.context("no log")?;
    let before = head.end_before().context("no epoch before")?;
    let segments = [
        events(&from, &head, LogPosition { number: 1, ..before }).await?,
        events(&from, &head, head.start_of_epoch()).await?,
    ];
    // The append of its last segment makes the head equal to the one that was read.
    let mut last = head.clone();
    last.next -= 1;
    restore(&to.store().await, segments, |_| last).await
}
