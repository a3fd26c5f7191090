//! A payment is created once, whatever happens on the way.

use anyhow::Result;
use futures::future::try_join_all;
use payments_machine::{Call, Fate, Recorder};
use payments_tests::tables::text;
use payments_tests::{Ask, CrashPoints, Reply, Way, World};
use serde_json::{Value, json};

fn rent() -> Value {
    json!({ "payeeAccountId": "landlord", "amountMinor": 120_000, "currency": "GBP", "scheduledFor": "2026-12-01", "data": {"note": "rent"} })
}

fn rent_on(date: &str) -> Value {
    let mut rent = rent();
    rent["scheduledFor"] = json!(date);
    rent
}

fn replayed(reply: &Reply) -> bool {
    reply.header("idempotent-replayed") == Some("true")
}

async fn listed(world: &World, account: &str) -> Result<Vec<Value>> {
    let list = world.send(Ask::get(&format!("/accounts/{account}/payments?from=2026-11-01&to=2027-10-01"))).await?;
    assert_eq!(list.status, 200, "{list}");
    Ok(list.payments().to_vec())
}

#[tokio::test]
async fn a_create_is_two_puts_and_no_read() -> Result<()> {
    let world = World::open().await?;
    let reply = world.send(Ask::create("tenant", "rent-1", &rent())).await?;
    assert_eq!(reply.status, 201, "{reply}");
    assert!(!replayed(&reply));
    assert_eq!(world.recorder.take_operations(), ["PutItem", "PutItem"]);
    Ok(())
}

#[tokio::test]
async fn a_repeated_create_returns_the_first_payment() -> Result<()> {
    let world = World::open().await?;
    let first = world.send(Ask::create("tenant", "rent-1", &rent())).await?;
    world.set_clock("2026-11-21T10:00:00Z")?;
    for _ in 0..3 {
        let again = world.send(Ask::create("tenant", "rent-1", &rent())).await?;
        assert_eq!((again.status, &again.body, replayed(&again)), (201, &first.body, true));
        assert_eq!(again.header("location"), first.header("location"));
    }
    assert_eq!(listed(&world, "tenant").await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_retry_by_another_client_is_a_replay_even_of_the_largest_payment() -> Result<()> {
    let world = World::open().await?;
    let mut largest = rent();
    largest["data"] = json!("x".repeat(10_000));
    let refused = world.send_as("feed", Ask::create("tenant", "rent-1", &largest)).await?;
    let excess = refused.body["excessBytes"].as_u64().unwrap_or(10_000);
    largest["data"] = json!("x".repeat(10_000 - usize::try_from(excess)?));
    let first = world.send_as("feed", Ask::create("tenant", "rent-1", &largest)).await?;
    assert_eq!(first.status, 201, "{first}");
    // Details name their creator, so this client's would be larger.
    let again = world.send_as("operations", Ask::create("tenant", "rent-1", &largest)).await?;
    assert_eq!((again.status, &again.body, replayed(&again)), (201, &first.body, true), "{again}");
    Ok(())
}

#[tokio::test]
async fn fifty_concurrent_creates_are_one_payment() -> Result<()> {
    let world = World::open().await?;
    let replies = try_join_all((0..50).map(|_| world.send(Ask::create("tenant", "rent-1", &rent())))).await?;
    for reply in &replies {
        assert_eq!((reply.status, &reply.body), (201, &replies[0].body), "{reply}");
    }
    assert_eq!(replies.iter().filter(|reply| !replayed(reply)).count(), 1);
    assert_eq!(listed(&world, "tenant").await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn other_content_under_a_used_key_is_rejected() -> Result<()> {
    let world = World::open().await?;
    let first = world.send(Ask::create("tenant", "rent-1", &rent())).await?;
    for (field, value) in [
        ("payeeAccountId", json!("somebody")),
        ("amountMinor", json!(120_001)),
        ("currency", json!("EUR")),
        ("scheduledFor", json!("2026-12-02")),
        ("scheduledFor", json!("2026-12-01T00:00:00Z")),
        ("data", json!({"note": "RENT"})),
        ("data", Value::Null),
    ] {
        let mut other = rent();
        other[field] = value;
        let reply = world.send(Ask::create("tenant", "rent-1", &other)).await?;
        assert_eq!((reply.status, reply.problem()), (422, "idempotency-key-reused"), "{reply}");
        assert_eq!(reply.body["fields"], json!([field]));
    }
    // The same JSON value in another spelling is other content: data is kept byte for byte.
    let spaced = rent().to_string().replace("\"note\":", "\"note\" : ");
    let reply = world.send(Ask::create("tenant", "rent-1", &rent()).text(&spaced)).await?;
    assert_eq!(reply.body["fields"], json!(["data"]), "{reply}");

    assert_eq!(listed(&world, "tenant").await?, [first.body]);
    Ok(())
}

#[tokio::test]
async fn keys_belong_to_their_account() -> Result<()> {
    let world = World::open().await?;
    let one = world.send(Ask::create("tenant-1", "rent-1", &rent())).await?;
    let other = world.send(Ask::create("tenant-2", "rent-1", &rent())).await?;
    assert_ne!(one.field("paymentId"), other.field("paymentId"));
    Ok(())
}

/// Loses every try to put the head: the process dies between the two writes.
fn before_the_head(call: &Call) -> Fate {
    let is_head = call.input()["TableName"].as_str().is_some_and(|table| !table.contains("history"));
    if call.operation == "PutItem" && is_head { Fate::LoseRequest } else { Fate::Pass }
}

#[tokio::test]
async fn a_crash_between_the_writes_is_invisible_and_the_retry_completes_it() -> Result<()> {
    let world = World::open().await?;
    let dying = world.functions_over(&Recorder::with_fate(before_the_head)).await?;
    let lost = world.send_to(&dying, Ask::create("tenant", "rent-1", &rent())).await?;
    assert_eq!((lost.status, lost.header("retry-after")), (503, Some("1")), "{lost}");
    assert_eq!(listed(&world, "tenant").await?, [] as [Value; 0]);

    let retry = world.send(Ask::create("tenant", "rent-1", &rent())).await?;
    assert_eq!((retry.status, replayed(&retry)), (201, true), "{retry}");
    assert_eq!(listed(&world, "tenant").await?, [retry.body]);
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
        let first = world.send_to(&dying, Ask::create("tenant", "rent-1", &rent())).await?;
        let retry = world.send(Ask::create("tenant", "rent-1", &rent())).await?;
        assert_eq!(retry.status, 201, "{point:?}: {retry}");
        assert_eq!(listed(&world, "tenant").await?, [retry.body], "{point:?}");
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
    let first = world.send(Ask::create("tenant", "rent-1", &rent_on("2026-11-20"))).await?;
    world.set_clock("2026-11-21T00:01:00Z")?;
    let retry = world.send(Ask::create("tenant", "rent-1", &rent_on("2026-11-20"))).await?;
    assert_eq!((retry.status, &retry.body, replayed(&retry)), (201, &first.body, true));

    let new = world.send(Ask::create("tenant", "rent-2", &rent_on("2026-11-20"))).await?;
    assert_eq!((new.status, new.problem(), new.field("field")), (422, "date-passed", "scheduledFor"), "{new}");
    let other = world.send(Ask::create("tenant", "rent-1", &rent_on("2026-11-19"))).await?;
    assert_eq!(other.problem(), "idempotency-key-reused", "{other}");
    Ok(())
}

#[tokio::test]
async fn a_missing_head_is_completed_until_half_an_hour_after_its_day() -> Result<()> {
    for (retried_at, want) in [("2026-11-21T00:29:59Z", 201), ("2026-11-21T00:30:00Z", 422)] {
        let world = World::open().await?;
        world.set_clock("2026-11-20T23:59:30Z")?;
        let dying = world.functions_over(&Recorder::with_fate(before_the_head)).await?;
        world.send_to(&dying, Ask::create("tenant", "rent-1", &rent_on("2026-11-20"))).await?;
        world.set_clock(retried_at)?;
        let retry = world.send(Ask::create("tenant", "rent-1", &rent_on("2026-11-20"))).await?;
        assert_eq!(retry.status, want, "{retried_at}: {retry}");
        assert_eq!(listed(&world, "tenant").await?.len(), usize::from(want == 201), "{retried_at}");
    }
    Ok(())
}

#[tokio::test]
async fn a_changed_time_zone_database_creates_no_second_head() -> Result<()> {
    let mut world = World::open().await?;
    let dying = world.functions_over(&Recorder::with_fate(before_the_head)).await?;
    world.send_to(&dying, Ask::create("tenant", "rent-1", &rent())).await?;
    // The strongest change: the zone's days begin at another hour.
    world.environment.time_zone = "Asia/Tokyo".to_owned();
    let changed = world.functions_over(&Recorder::new()).await?;
    let retry = world.send_to(&changed, Ask::create("tenant", "rent-1", &rent())).await?;
    assert_eq!((retry.status, retry.field("dueAt")), (201, "2026-12-01T00:00:00Z"), "{retry}");
    world.send(Ask::create("tenant", "rent-1", &rent())).await?;
    assert_eq!(world.heads("tenant").await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_currency_that_was_withdrawn_since_is_for_retries_only() -> Result<()> {
    let world = World::open().await?;
    let id = world.create("tenant", "rent-1", &rent()).await?;
    // As if it had been accepted while Bulgaria had the lev.
    world.update_details(&id, "SET currency = :lev", &[(":lev", text("BGN"))]).await?;
    for head in world.heads("tenant").await? {
        world.update(&head, "SET currency = :lev", &[(":lev", text("BGN"))]).await?;
    }
    let mut lev = rent();
    lev["currency"] = json!("BGN");
    let retry = world.send(Ask::create("tenant", "rent-1", &lev)).await?;
    assert_eq!((retry.status, retry.field("currency"), replayed(&retry)), (201, "BGN", true), "{retry}");
    assert_eq!(listed(&world, "tenant").await?, [retry.body]);
    let new = world.send(Ask::create("tenant", "rent-2", &lev)).await?;
    assert_eq!((new.status, new.problem(), new.field("field")), (422, "invalid-currency", "currency"), "{new}");
    // Of several faults of a new payment the currency is the first.
    (lev["data"], lev["scheduledFor"]) = (json!("x".repeat(10_000)), json!("2026-11-19"));
    let new = world.send(Ask::create("tenant", "rent-2", &lev)).await?;
    assert_eq!(new.problem(), "invalid-currency", "{new}");
    let other = world.send(Ask::create("tenant", "rent-1", &lev)).await?;
    assert_eq!(other.problem(), "idempotency-key-reused", "{other}");
    assert_eq!(listed(&world, "tenant").await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_retry_after_archiving_is_a_replay_and_creates_no_head() -> Result<()> {
    let world = World::open().await?;
    let first = world.send(Ask::create("tenant", "rent-1", &rent_on("2026-11-20"))).await?;
    let id = first.field("paymentId").to_owned();
    let cancelled = world.send(Ask::cancel("tenant", &id)).await?;
    world.archive_all("tenant").await?;
    world.set_clock("2027-03-01T12:00:00Z")?;

    let retry = world.send(Ask::create("tenant", "rent-1", &rent_on("2026-11-20"))).await?;
    assert_eq!((retry.status, &retry.body, replayed(&retry)), (201, &cancelled.body, true), "{retry}");
    let again = world.send(Ask::cancel("tenant", &id)).await?;
    assert_eq!((again.status, &again.body), (200, &cancelled.body), "{again}");
    let got = world.send(Ask::get(&format!("/accounts/tenant/payments/{id}"))).await?;
    assert_eq!((got.status, got.field("status")), (200, "CANCELLED"), "{got}");
    assert!(world.heads("tenant").await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_cancel_is_repeatable_and_names_its_client() -> Result<()> {
    let world = World::open().await?;
    let first = world.send(Ask::create("tenant", "rent-1", &rent())).await?;
    let id = first.field("paymentId");
    world.set_clock("2026-11-20T10:00:00Z")?;
    let cancelled = world.send(Ask::cancel("tenant", id)).await?;
    assert_eq!((cancelled.status, cancelled.field("status")), (200, "CANCELLED"), "{cancelled}");
    assert_eq!(cancelled.body["version"], 2);
    let last = json!({ "status": "CANCELLED", "at": "2026-11-20T10:00:00Z", "by": { "kind": "client", "name": "local-development" } });
    assert_eq!(cancelled.body["trail"][1], last);
    world.set_clock("2026-11-20T11:00:00Z")?;
    assert_eq!(world.send(Ask::cancel("tenant", id)).await?.body, cancelled.body);
    Ok(())
}

#[tokio::test]
async fn a_batch_answers_each_entry_and_creates_a_repeated_key_once() -> Result<()> {
    let world = World::open().await?;
    let entry = |account: &str, key: &str| {
        let mut entry = rent();
        entry["accountId"] = json!(account);
        entry["idempotencyKey"] = json!(key);
        entry
    };
    let mut bad = entry("tenant-2", "b");
    bad["amountMinor"] = json!(0);
    let entries = [entry("tenant-1", "a"), bad, entry("tenant-1", "a"), entry("tenant-2", "c"), json!(7)];
    let reply = world.send(Ask::post("/payment-batches").json(&json!({ "payments": entries }))).await?;
    assert_eq!(reply.status, 200, "{reply}");
    let results = reply.body["results"].as_array().cloned().unwrap_or_default();
    let statuses: Vec<_> = results.iter().map(|result| result["statusCode"].as_u64()).collect();
    assert_eq!(statuses, [201, 422, 201, 201, 400].map(Some));
    assert_eq!(results[0]["payment"], results[2]["payment"]);
    assert_eq!((results[0].get("idempotentReplayed"), &results[2]["idempotentReplayed"]), (None, &json!(true)));
    assert_eq!(results[1]["problem"]["field"], "amountMinor");
    assert_eq!(listed(&world, "tenant-1").await?.len(), 1);
    assert_eq!(listed(&world, "tenant-2").await?.len(), 1);
    Ok(())
}
