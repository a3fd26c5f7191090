//! Amendments as a client sees them: their changes, and every refusal.

mod chain;
mod paging;
mod retried;
mod units;

use http::Method;
use payments_tests::prelude::*;

fn rent() -> Value {
    rent_with(json!({}))
}

/// The same order with other values.
fn rent_with(changes: Value) -> Value {
    with(order_with("2026-12-01", json!({ "amountMinor": 4_200, "data": { "n": 1 } })), changes)
}

fn path(id: &str) -> String {
    format!("/accounts/tenant/payments/{id}")
}

/// A world with a payment, and its id.
async fn created() -> Result<(World, String)> {
    let world = World::open().await?;
    let id = world.create("tenant", "rent", &rent()).await?;
    Ok((world, id))
}

fn amend(id: &str, key: (&str, u32), changes: Value) -> Ask {
    Ask::amend("tenant", id, key, &rent_with(changes))
}

/// Sends an amendment that is accepted.
async fn amended(world: &World, id: &str, key: (&str, u32), changes: Value) -> Result<Reply> {
    world.send(amend(id, key, changes)).await?.with_status(200)
}

/// The versions of a payment.
async fn versions(world: &World, id: &str, query: &str) -> Result<Vec<Value>> {
    let page = world.get(&format!("{}/versions{query}", path(id))).await?;
    page.body["versions"].as_array().cloned().context("no versions")
}

#[tokio::test]
async fn an_amendment_changes_everything_but_the_id_and_says_so_everywhere() -> Result<()> {
    let (world, id) = created().await?;
    let first = world.payment("tenant", &id).await?;
    assert_eq!(first.header("etag"), Some("\"1\""), "{first}");
    world.set_clock("2026-11-21T10:00:00Z")?;
    let changes = json!({
        "payeeAccountId": "landlord-2", "amountMinor": 9_900, "currency": "EUR", "reference": "RENT 12",
        "scheduledFor": "2026-12-04T09:30:00Z",
    });
    let with_data = with(changes.clone(), json!({ "data": [1, 2] }));
    let reply = amended(&world, &id, ("change", 1), with_data).await?;
    assert_eq!((reply.header("etag"), reply.header("idempotent-replayed")), (Some("\"2\""), None), "{reply}");
    assert_has(&reply.body, &changes);
    let dates = json!({
        "createdAt": "2026-11-20T09:00:00Z", "updatedAt": "2026-11-21T10:00:00Z", "dueAt": "2026-12-04T09:30:00Z",
        "dueDate": "2026-12-04", "paymentId": id, "version": 2,
    });
    assert_has(&reply.body, &dates);
    let shown = world.payment("tenant", &id).await?;
    assert_eq!((&shown.body["data"], shown.header("etag")), (&json!([1, 2]), Some("\"2\"")), "{shown}");
    let again = world.send(Ask::create("tenant", "rent", &rent())).await?.replayed()?;
    assert_eq!((&again.body["amountMinor"], again.header("etag")), (&json!(9_900), Some("\"2\"")));
    let listed = world.get("/accounts/tenant/payments?include=data").await?;
    assert_eq!(listed.ids(), [id]);
    assert_eq!(listed.payments()[0]["data"], json!([1, 2]), "{listed}");
    Ok(())
}

#[tokio::test]
async fn a_repeated_amendment_is_a_replay_whatever_came_after_it() -> Result<()> {
    let (world, id) = created().await?;
    let (one, two) = (|| json!({ "amountMinor": 1 }), || json!({ "amountMinor": 2 }));
    amended(&world, &id, ("one", 1), one()).await?;
    amended(&world, &id, ("two", 2), two()).await?;
    world.cancel("tenant", &id).await?;
    // The payment's date has passed, and so has that of every new payment.
    world.set_clock("2027-01-20T08:00:00Z")?;
    for (key, version, body) in [("one", 1, one()), ("two", 2, two()), ("one", 7, one())] {
        let replay = world.send(amend(&id, (key, version), body)).await?.replayed()?;
        assert_eq!((replay.status, replay.header("etag")), (200, Some("\"4\"")));
        assert_has(&replay.body, &json!({ "amountMinor": 2, "status": "CANCELLED" }));
    }
    let other = world.refused(amend(&id, ("one", 1), two()), 422, "idempotency-key-reused").await?;
    assert_eq!(other.body["fields"], json!(["amountMinor"]));
    Ok(())
}

#[tokio::test]
async fn each_answer_against_an_amendment_comes_in_its_order() -> Result<()> {
    let (world, id) = created().await?;
    let put = || Ask::new(Method::PUT, &path(&id)).header("Idempotency-Key", "k").json(&rent());
    let without = world.refused(put(), 428, "precondition-required").await?;
    assert_eq!(without.field("field"), "If-Match");
    for tag in ["*", "1", "\"1\", \"2\"", "W/\"1\"", "\"01\"", "\"-1\"", "\"x\"", "\"\"", "\"1000000000\""] {
        world.refused(put().header("If-Match", tag), 400, "invalid-precondition").await?;
    }
    let none = "626e8292-8e84-575a-b684-0af73927405b";
    let keyless = Ask::new(Method::PUT, &path(&id)).header("If-Match", "\"1\"").json(&rent());
    let malformed = amend(&id, ("k", 9), json!({ "amountMinor": "5", "paymentId": id }));
    let stale = amend(&id, ("k", 2), json!({ "amountMinor": 5, "scheduledFor": "2026-01-01" }));
    world.refused(keyless, 400, "invalid-idempotency-key").await?;
    world.refused(malformed, 400, "invalid-shape").await?;
    world.refused(amend(none, ("k", 1), json!({})), 404, "no-such-payment").await?;
    assert_eq!(world.refused(stale, 412, "version-changed").await?.body["currentVersion"], 1);
    // The version is right, so what is wanted is judged.
    let large = "x".repeat(9_000);
    for (changes, status, problem) in [
        (json!({ "scheduledFor": "2026-11-19" }), 422, "date-passed"),
        (json!({ "scheduledFor": "2029-12-01" }), 422, "date-beyond-horizon"),
        (json!({ "currency": "XAU" }), 422, "invalid-currency"),
        (json!({ "dateRule": "following" }), 422, "invalid-date-rule"),
        (json!({ "payeeAccountId": "tenant" }), 422, "invalid-payee"),
        (json!({ "data": large }), 413, "payment-too-large"),
        (json!({ "data": large, "scheduledFor": "2026-11-19" }), 413, "payment-too-large"),
    ] {
        world.refused(amend(&id, ("k", 1), changes), status, problem).await?;
    }
    world.cancel("tenant", &id).await?;
    let late = world.refused(amend(&id, ("k", 1), json!({})), 409, "not-amendable").await?;
    assert_eq!(late.body["currentVersion"], 2, "{late}");
    Ok(())
}

/// The date is judged when it is new. One that was accepted stays, even if it could not be accepted now.
#[tokio::test]
async fn an_unchanged_date_is_neither_judged_nor_computed_again() -> Result<()> {
    let (world, id) = created().await?;
    world.set_clock("2026-12-02T10:00:00Z")?;
    let late = amended(&world, &id, ("late", 1), json!({ "amountMinor": 7 })).await?;
    assert_eq!(late.field("dueDate"), "2026-12-01", "{late}");
    let passed = amend(&id, ("later", 2), json!({ "scheduledFor": "2026-12-01T23:00:00Z" }));
    world.refused(passed, 422, "date-passed").await?;
    let today = amended(&world, &id, ("today", 2), json!({ "scheduledFor": "2026-12-02" })).await?;
    assert_eq!(today.field("dueAt"), "2026-12-02T00:00:00Z", "{today}");
    Ok(())
}

#[tokio::test]
async fn a_payment_is_amended_twenty_times_and_its_versions_say_what_it_was() -> Result<()> {
    let (world, id) = created().await?;
    for version in 1..=20 {
        let key = format!("k-{version}");
        let reply = amended(&world, &id, (&key, version), json!({ "amountMinor": version })).await?;
        assert_eq!(reply.body["version"], version + 1, "{reply}");
    }
    world.refused(amend(&id, ("k-21", 21), json!({})), 409, "too-many-amendments").await?;
    world.send(amend(&id, ("k-1", 1), json!({ "amountMinor": 1 }))).await?.replayed()?;
    let all = versions(&world, &id, "").await?;
    assert_eq!(all.len(), 21, "{all:?}");
    for (place, version) in all.iter().enumerate() {
        let (amount, changed) = if place == 0 { (4_200, json!([])) } else { (place, json!(["amountMinor"])) };
        assert_has(version, &json!({ "version": place + 1, "amountMinor": amount, "changedFields": changed }));
        assert_eq!(version.get("data"), None, "{version}");
    }
    assert_eq!(versions(&world, &id, "?include=data").await?[20]["data"], json!({ "n": 1 }));
    Ok(())
}

/// A client that only lists and creates must never be told that an amended payment is not there.
#[tokio::test]
async fn lists_have_each_payment_once_where_it_is_due() -> Result<()> {
    let world = World::open().await?;
    let mut want = Vec::new();
    for n in 0..12_u32 {
        let on = |day: u32| json!({ "scheduledFor": format!("2026-12-{day:02}") });
        let id = world.create("tenant", &format!("rent-{n}"), &rent_with(on(1 + n))).await?;
        // Each third payment moves, some before the range, some behind it, some within.
        let to = match n {
            1 => 30,
            4 => 2,
            7 => 12,
            10 => 10,
            _ => 1 + n,
        };
        amended(&world, &id, ("move", 1), on(to)).await?;
        if (2..=12).contains(&to) {
            want.push((to, id));
        }
    }
    want.sort();
    let want: Vec<String> = want.into_iter().map(|(_, id)| id).collect();
    for (order, limit) in [("asc", 1), ("asc", 3), ("asc", 100), ("desc", 1), ("desc", 4), ("desc", 100)] {
        let list = format!("/accounts/tenant/payments?from=2026-12-02&to=2026-12-12&order={order}&limit={limit}");
        let mut seen = world.listed(&list).await?;
        if order == "desc" {
            seen.reverse();
        }
        assert_eq!(seen, want, "{order}, {limit}");
    }
    Ok(())
}
