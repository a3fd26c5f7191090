//! A payment is created once, whatever happens on the way.

use anyhow::Result;
use futures::future::try_join_all;
use payments_machine::{Call, Fate, Recorder};
use payments_tests::orders::{order_with, with};
use payments_tests::tables::text;
use payments_tests::{Ask, CrashPoints, Way, World};
use serde_json::{Value, json};

fn rent() -> Value {
    rent_on("2026-12-01")
}

fn rent_on(date: &str) -> Value {
    order_with(date, json!({ "data": { "note": "rent" } }))
}

/// The create of the rent with other values.
fn ask(changes: Value) -> Ask {
    Ask::create("tenant", "rent-1", &with(rent(), changes))
}

fn ask_on(date: &str) -> Ask {
    Ask::create("tenant", "rent-1", &rent_on(date))
}

async fn listed(world: &World) -> Result<Vec<Value>> {
    let list = world.get("/accounts/tenant/payments?from=2026-11-01&to=2027-10-01").await?;
    Ok(list.payments().to_vec())
}

#[tokio::test]
async fn a_retry_by_another_client_is_a_replay_even_of_the_largest_payment() -> Result<()> {
    let world = World::open().await?;
    let of_size = |bytes| ask(json!({ "data": "x".repeat(bytes) }));
    let refused = world.send_as("feed", of_size(10_000)).await?;
    let largest = 10_000 - usize::try_from(refused.body["excessBytes"].as_u64().unwrap_or(10_000))?;
    let first = world.send_as("feed", of_size(largest)).await?.with_status(201)?;
    // Details name their creator, so this client's would be larger.
    assert_eq!(world.send_as("operations", of_size(largest)).await?.replayed()?.body, first.body);
    Ok(())
}

#[tokio::test]
async fn fifty_concurrent_creates_are_one_payment() -> Result<()> {
    let world = World::open().await?;
    let replies = try_join_all((0..50).map(|_| world.send(ask(json!({}))))).await?;
    for reply in &replies {
        assert_eq!((reply.status, &reply.body), (201, &replies[0].body), "{reply}");
    }
    assert_eq!(replies.into_iter().filter(|reply| reply.clone().replayed().is_err()).count(), 1);
    assert_eq!(listed(&world).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn other_content_under_a_used_key_is_rejected() -> Result<()> {
    let world = World::open().await?;
    let first = world.send(ask(json!({}))).await?;
    // The same JSON value in another spelling is other content: data is kept byte for byte.
    let spaced = rent().to_string().replace("\"note\":", "\"note\" : ");
    for (field, other) in [
        ("payeeAccountId", ask(json!({ "payeeAccountId": "somebody" }))),
        ("amountMinor", ask(json!({ "amountMinor": 120_001 }))),
        ("currency", ask(json!({ "currency": "EUR" }))),
        ("scheduledFor", ask_on("2026-12-02")),
        ("scheduledFor", ask_on("2026-12-01T00:00:00Z")),
        ("data", ask(json!({ "data": { "note": "RENT" } }))),
        ("data", ask(json!({ "data": null }))),
        ("data", ask(json!({})).text(spaced)),
    ] {
        let reply = world.refused(other, 422, "idempotency-key-reused").await?;
        assert_eq!(reply.body["fields"], json!([field]), "{reply}");
    }
    assert_eq!(listed(&world).await?, [first.body]);
    Ok(())
}

/// Whether a call puts a head: if each is lost, the process dies between the two writes of a create.
fn is_head(call: &Call) -> bool {
    call.operation == "PutItem" && call.input()["TableName"].as_str().is_some_and(|table| !table.contains("history"))
}

#[tokio::test]
async fn a_crash_between_the_writes_is_invisible_and_the_retry_completes_it() -> Result<()> {
    let world = World::open().await?;
    let dying = world.functions_meeting(Fate::LoseRequest, is_head).await?;
    world.send_to(&dying, ask(json!({}))).await?.with_status(503)?;
    assert_eq!(listed(&world).await?, [] as [Value; 0]);
    let retry = world.send(ask(json!({}))).await?.replayed()?;
    assert_eq!(listed(&world).await?, [retry.body]);
    Ok(())
}

#[tokio::test]
async fn whichever_call_is_lost_the_retry_leaves_one_payment() -> Result<()> {
    // From the k-th try on nothing arrives: the SDK's retries are lost too.
    let fates = [Fate::LoseRequest, Fate::LoseReply, Fate::Refuse(500, "InternalServerError")];
    let mut points = CrashPoints::new("create", fates.map(Way::lasting));
    while let Some(point) = points.next_case() {
        let world = World::open().await?;
        let dying = world.functions_over(&point.recorder()).await?;
        let first = world.send_to(&dying, ask(json!({}))).await?;
        let retry = world.send(ask(json!({}))).await?.with_status(201)?;
        assert_eq!(listed(&world).await?, [retry.body], "{point:?}");
        if first.status != 201 {
            assert_eq!(first.status, 503, "{point:?}: {first}");
            points.failed(format_args!("{:?}", point.way.fate))?;
        }
    }
    assert_eq!(points.calls(), 2);
    Ok(())
}

#[tokio::test]
async fn a_retry_after_midnight_is_a_replay_and_a_new_payment_for_yesterday_is_rejected() -> Result<()> {
    let world = World::open().await?;
    world.set_clock("2026-11-20T23:59:30Z")?;
    let first = world.send(ask_on("2026-11-20")).await?;
    world.set_clock("2026-11-21T00:01:00Z")?;
    assert_eq!(world.send(ask_on("2026-11-20")).await?.replayed()?.body, first.body);

    let new = Ask::create("tenant", "rent-2", &rent_on("2026-11-20"));
    assert_eq!(world.refused(new, 422, "date-passed").await?.field("field"), "scheduledFor");
    world.refused(ask_on("2026-11-19"), 422, "idempotency-key-reused").await?;
    Ok(())
}

#[tokio::test]
async fn a_changed_time_zone_database_creates_no_second_head() -> Result<()> {
    let mut world = World::open().await?;
    let dying = world.functions_meeting(Fate::LoseRequest, is_head).await?;
    world.send_to(&dying, ask(json!({}))).await?;
    // The strongest change: the zone's days begin at another hour.
    world.environment.time_zone = "Asia/Tokyo".to_owned();
    let changed = world.functions_over(&Recorder::new()).await?;
    let retry = world.send_to(&changed, ask(json!({}))).await?.replayed()?;
    assert_eq!(retry.field("dueAt"), "2026-12-01T00:00:00Z", "{retry}");
    world.send(ask(json!({}))).await?;
    assert_eq!(world.heads("tenant").await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_currency_that_was_withdrawn_since_is_for_retries_only() -> Result<()> {
    let world = World::open().await?;
    let id = world.create("tenant", "rent-1", &rent()).await?;
    // As if it had been accepted while Bulgaria had the lev.
    let lev = [(":lev", text("BGN"))];
    world.update_details(&id, "SET currency = :lev", &lev).await?;
    world.update(&world.heads("tenant").await?[0], "SET currency = :lev", &lev).await?;
    let retry = world.send(ask(json!({ "currency": "BGN" }))).await?.replayed()?;
    assert_eq!(retry.field("currency"), "BGN", "{retry}");
    assert_eq!(listed(&world).await?, [retry.body]);
    // Of several faults of a new payment the currency is the first.
    let worse = json!({ "currency": "BGN", "data": "x".repeat(10_000), "scheduledFor": "2026-11-19" });
    for changes in [json!({ "currency": "BGN" }), worse.clone()] {
        let new = Ask::create("tenant", "rent-2", &with(rent(), changes));
        assert_eq!(world.refused(new, 422, "invalid-currency").await?.field("field"), "currency");
    }
    world.refused(ask(worse), 422, "idempotency-key-reused").await?;
    assert_eq!(listed(&world).await?.len(), 1);
    Ok(())
}
