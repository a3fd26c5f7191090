//! Amendments as a client sees them: what they change, and every answer against one.

mod chain;
mod paging;
mod retried;
mod units;

use anyhow::{Context as _, Result};
use http::Method;
use payments_tests::{Ask, Reply, World};
use serde_json::{Value, json};

fn rent() -> Value {
    json!({ "payeeAccountId": "landlord", "amountMinor": 4_200, "currency": "GBP", "scheduledFor": "2026-12-01", "data": {"n": 1} })
}

/// The same order with other values.
fn rent_with(changes: &Value) -> Value {
    let mut body = rent();
    for (name, value) in changes.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body
}

fn path(id: &str) -> String {
    format!("/accounts/tenant/payments/{id}")
}

async fn created(world: &World) -> Result<String> {
    world.create("tenant", "rent", &rent()).await
}

async fn amend(world: &World, id: &str, key: (&str, u32), changes: &Value) -> Result<Reply> {
    world.send(Ask::amend("tenant", id, key, &rent_with(changes))).await
}

async fn get(world: &World, id: &str) -> Result<Reply> {
    world.send(Ask::get(&path(id))).await
}

#[tokio::test]
async fn an_amendment_changes_everything_but_the_id_and_says_so_everywhere() -> Result<()> {
    let world = World::open().await?;
    let id = created(&world).await?;
    let first = get(&world, &id).await?;
    assert_eq!(first.header("etag"), Some("\"1\""), "{first}");
    world.set_clock("2026-11-21T10:00:00Z")?;
    let changes = json!({
        "payeeAccountId": "landlord-2", "amountMinor": 9_900, "currency": "EUR", "scheduledFor": "2026-12-04T09:30:00Z",
        "reference": "RENT 12", "data": [1, 2],
    });
    let amended = amend(&world, &id, ("change", 1), &changes).await?;
    assert_eq!((amended.status, amended.header("etag")), (200, Some("\"2\"")), "{amended}");
    assert_eq!(amended.header("idempotent-replayed"), None);
    for (name, want) in changes.as_object().context("an object")? {
        if name != "data" {
            assert_eq!(&amended.body[name], want, "{amended}");
        }
    }
    let dates = ["createdAt", "updatedAt", "dueAt", "dueDate"].map(|name| amended.field(name));
    assert_eq!(dates, ["2026-11-20T09:00:00Z", "2026-11-21T10:00:00Z", "2026-12-04T09:30:00Z", "2026-12-04"]);
    assert_eq!((amended.field("paymentId"), &amended.body["version"]), (id.as_str(), &json!(2)));
    let shown = get(&world, &id).await?;
    assert_eq!((&shown.body["data"], shown.header("etag")), (&json!([1, 2]), Some("\"2\"")), "{shown}");
    let again = world.send(Ask::create("tenant", "rent", &rent())).await?;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")), "{again}");
    assert_eq!((&again.body["amountMinor"], again.header("etag")), (&json!(9_900), Some("\"2\"")));
    let listed = world.send(Ask::get("/accounts/tenant/payments?include=data")).await?;
    assert_eq!(listed.payments().len(), 1, "{listed}");
    assert_eq!(listed.payments()[0]["data"], json!([1, 2]), "{listed}");
    Ok(())
}

#[tokio::test]
async fn a_repeated_amendment_is_a_replay_whatever_came_after_it() -> Result<()> {
    let world = World::open().await?;
    let id = created(&world).await?;
    let (one, two) = (json!({ "amountMinor": 1 }), json!({ "amountMinor": 2 }));
    assert_eq!(amend(&world, &id, ("one", 1), &one).await?.status, 200);
    assert_eq!(amend(&world, &id, ("two", 2), &two).await?.status, 200);
    world.cancel("tenant", &id).await?;
    // Its date has passed, and so has that of every new payment.
    world.set_clock("2027-01-20T08:00:00Z")?;
    for (key, version, body) in [("one", 1, &one), ("two", 2, &two), ("one", 7, &one)] {
        let replay = amend(&world, &id, (key, version), body).await?;
        assert_eq!((replay.status, replay.header("idempotent-replayed")), (200, Some("true")), "{replay}");
        let now = (&replay.body["amountMinor"], replay.field("status"), replay.header("etag"));
        assert_eq!(now, (&json!(2), "CANCELLED", Some("\"4\"")));
    }
    let other = amend(&world, &id, ("one", 1), &two).await?;
    assert_eq!((other.status, other.problem()), (422, "idempotency-key-reused"), "{other}");
    assert_eq!(other.body["fields"], json!(["amountMinor"]));
    Ok(())
}

#[tokio::test]
async fn each_answer_against_an_amendment_comes_in_its_order() -> Result<()> {
    let world = World::open().await?;
    let id = created(&world).await?;
    let put = |id: &str| Ask::new(Method::PUT, &path(id)).header("Idempotency-Key", "k").json(&rent());
    let without = world.send(put(&id)).await?;
    assert_eq!((without.status, without.problem(), without.field("field")), (428, "precondition-required", "If-Match"));
    for tag in ["*", "1", "\"1\", \"2\"", "W/\"1\"", "\"01\"", "\"-1\"", "\"x\"", "\"\"", "\"1000000000\""] {
        let refused = world.send(put(&id).header("If-Match", tag)).await?;
        assert_eq!((refused.status, refused.problem()), (400, "invalid-precondition"), "{tag}: {refused}");
    }
    let keyless = world.send(Ask::new(Method::PUT, &path(&id)).header("If-Match", "\"1\"").json(&rent())).await?;
    assert_eq!((keyless.status, keyless.problem()), (400, "invalid-idempotency-key"), "{keyless}");
    let malformed = amend(&world, &id, ("k", 9), &json!({ "amountMinor": "5", "paymentId": id })).await?;
    assert_eq!((malformed.status, malformed.problem()), (400, "invalid-shape"), "{malformed}");
    let none = "626e8292-8e84-575a-b684-0af73927405b";
    let nobody = amend(&world, none, ("k", 1), &json!({})).await?;
    assert_eq!((nobody.status, nobody.problem()), (404, "no-such-payment"), "{nobody}");
    let stale = amend(&world, &id, ("k", 2), &json!({ "amountMinor": 5, "scheduledFor": "2026-01-01" })).await?;
    assert_eq!((stale.status, stale.problem()), (412, "version-changed"), "{stale}");
    assert_eq!(stale.body["currentVersion"], 1);
    // The version is right, so what is wanted is judged.
    for (changes, status, problem) in [
        (json!({ "scheduledFor": "2026-11-19" }), 422, "date-passed"),
        (json!({ "scheduledFor": "2029-12-01" }), 422, "date-beyond-horizon"),
        (json!({ "currency": "XAU" }), 422, "invalid-currency"),
        (json!({ "dateRule": "following" }), 422, "invalid-date-rule"),
        (json!({ "payeeAccountId": "tenant" }), 422, "invalid-payee"),
        (json!({ "data": "x".repeat(9_000) }), 413, "payment-too-large"),
        (json!({ "data": "x".repeat(9_000), "scheduledFor": "2026-11-19" }), 413, "payment-too-large"),
    ] {
        let refused = amend(&world, &id, ("k", 1), &changes).await?;
        assert_eq!((refused.status, refused.problem()), (status, problem), "{refused}");
    }
    world.cancel("tenant", &id).await?;
    let late = amend(&world, &id, ("k", 1), &json!({})).await?;
    assert_eq!(
        (late.status, late.problem(), &late.body["currentVersion"]),
        (409, "not-amendable", &json!(2)),
        "{late}"
    );
    Ok(())
}

/// The date is judged when it is new. One that was accepted stays, even if it could not be accepted now.
#[tokio::test]
async fn an_unchanged_date_is_neither_judged_nor_computed_again() -> Result<()> {
    let world = World::open().await?;
    let id = created(&world).await?;
    world.set_clock("2026-12-02T10:00:00Z")?;
    let amended = amend(&world, &id, ("late", 1), &json!({ "amountMinor": 7 })).await?;
    assert_eq!((amended.status, amended.field("dueDate")), (200, "2026-12-01"), "{amended}");
    let passed = amend(&world, &id, ("later", 2), &json!({ "scheduledFor": "2026-12-01T23:00:00Z" })).await?;
    assert_eq!((passed.status, passed.problem()), (422, "date-passed"), "{passed}");
    let today = amend(&world, &id, ("today", 2), &json!({ "scheduledFor": "2026-12-02" })).await?;
    assert_eq!((today.status, today.field("dueAt")), (200, "2026-12-02T00:00:00Z"), "{today}");
    Ok(())
}

#[tokio::test]
async fn a_payment_is_amended_twenty_times_and_its_versions_say_what_it_was() -> Result<()> {
    let world = World::open().await?;
    let id = created(&world).await?;
    for version in 1..=20 {
        let amended =
            amend(&world, &id, (&format!("k-{version}"), version), &json!({ "amountMinor": version })).await?;
        assert_eq!((amended.status, &amended.body["version"]), (200, &json!(version + 1)), "{amended}");
    }
    let full = amend(&world, &id, ("k-21", 21), &json!({})).await?;
    assert_eq!((full.status, full.problem()), (409, "too-many-amendments"), "{full}");
    let first = amend(&world, &id, ("k-1", 1), &json!({ "amountMinor": 1 })).await?;
    assert_eq!((first.status, first.header("idempotent-replayed")), (200, Some("true")), "{first}");
    let page = world.send(Ask::get(&format!("{}/versions", path(&id)))).await?;
    let versions = page.body["versions"].as_array().context("versions")?;
    assert_eq!(versions.len(), 21, "{page}");
    for (place, version) in versions.iter().enumerate() {
        let (amount, changed) = if place == 0 { (4_200, json!([])) } else { (place, json!(["amountMinor"])) };
        let seen = (&version["version"], &version["amountMinor"], &version["changedFields"], version.get("data"));
        assert_eq!(seen, (&json!(place + 1), &json!(amount), &changed, None), "{page}");
    }
    let with_data = world.send(Ask::get(&format!("{}/versions?include=data", path(&id)))).await?;
    assert_eq!(with_data.body["versions"][20]["data"], json!({"n": 1}), "{with_data}");
    Ok(())
}

/// A client that only lists and creates must never be told that an amended payment is not there.
#[tokio::test]
async fn lists_have_each_payment_once_where_it_is_due() -> Result<()> {
    let world = World::open().await?;
    let mut want = Vec::new();
    for n in 0..12_u32 {
        let day = |day: u32| format!("2026-12-{day:02}");
        let body = rent_with(&json!({ "scheduledFor": day(1 + n) }));
        let id = world.create("tenant", &format!("rent-{n}"), &body).await?;
        // Each third payment moves, some before the range, some behind it, some within.
        let to = match n {
            1 => 30,
            4 => 2,
            7 => 12,
            10 => 10,
            _ => 1 + n,
        };
        let moved = Ask::amend("tenant", &id, ("move", 1), &rent_with(&json!({ "scheduledFor": day(to) })));
        assert_eq!(world.send(moved).await?.status, 200);
        if (2..=12).contains(&to) {
            want.push((day(to), id));
        }
    }
    want.sort();
    for (order, limit) in [("asc", 1), ("asc", 3), ("asc", 100), ("desc", 1), ("desc", 4), ("desc", 100)] {
        let list = format!("/accounts/tenant/payments?from=2026-12-02&to=2026-12-12&order={order}&limit={limit}");
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.send(Ask::get(&format!("{list}{cursor}"))).await?;
            let name = |payment: &Value, name: &str| payment[name].as_str().unwrap_or_default().to_owned();
            seen.extend(page.payments().iter().map(|payment| (name(payment, "dueDate"), name(payment, "paymentId"))));
            let Some(next) = page.body["nextCursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        if order == "desc" {
            seen.reverse();
        }
        assert_eq!(seen, want, "{order}, {limit}");
    }
    Ok(())
}
