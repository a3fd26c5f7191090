//! Business days: payments that move, the record of their moves, and replays whatever happened to the calendars since.

use crate::golden::{golden_details, orders};
use payments_tests::prelude::*;

const CALENDARS: &str = "EUR=T2,GBP=GB,USD=FED";

/// The create of a payment of 5 pence for a date.
fn ask(key: &str, date: &str) -> Ask {
    ask_with(key, date, json!({}))
}

fn ask_with(key: &str, date: &str, more: Value) -> Ask {
    Ask::create("tenant", key, &order_with(date, more))
}

/// The create of a payment of a Saturday that moves to Monday.
fn ask_of_saturday() -> Ask {
    ask_with("rent", "2026-11-28", json!({ "dateRule": "following" }))
}

/// A world whose bank has calendars.
async fn world() -> Result<World> {
    World::with(|environment| environment.calendars = CALENDARS.to_owned()).await
}

/// The date fields of a payment that did not move.
fn unmoved(date: &str) -> Value {
    json!({
        "scheduledFor": date, "dateRule": null, "dueAt": format!("{date}T00:00:00Z"), "dueDate": date,
        "moveReason": null, "calendarId": null, "calendarVersion": null,
    })
}

/// Details keep which version of which calendar moved them, so their date can be explained when the calendar has
/// changed. A payment that was not moved has none.
#[tokio::test]
async fn a_payment_of_a_saturday_moves_and_is_found_where_it_is_due() -> Result<()> {
    let world = world().await?;
    let version = world.get("/calendars/GB").await?.field("calendarVersion").to_owned();
    assert!(version.starts_with("2026-"), "{version}");
    let calendar = json!({ "calendarId": "GB", "calendarVersion": version });
    let moved = json!({
        "scheduledFor": "2026-11-28", "dateRule": "following", "dueAt": "2026-11-30T00:00:00Z",
        "dueDate": "2026-11-30", "moveReason": "weekend", "calendarId": "GB", "calendarVersion": version,
    });
    let created = world.send(ask_of_saturday()).await?.with_status(201)?;
    assert_has(&created.body, &moved);
    let id = created.field("paymentId").to_owned();
    let head = world.heads("tenant").await?.remove(0);
    assert_eq!(head["sk"].as_s().ok(), Some(&format!("2026-11-30T00:00:00Z#{id}")));
    assert_has(&world.payment("tenant", &id).await?.body, &moved);
    let by_key = world.get("/accounts/tenant/payments?idempotencyKey=rent").await?;
    assert_has(&by_key.payments()[0], &moved);
    let versions = world.get(&format!("/accounts/tenant/payments/{id}/versions")).await?;
    assert_has(&versions.body["versions"][0], &calendar);
    let details = world.details(&id).await?.remove(0);
    let stored = ["calendarId", "calendarVersion"].map(|name| details[name].as_s().map(String::as_str));
    assert_eq!(stored, [Ok("GB"), Ok(version.as_str())]);
    // A list reads no details.
    let list = world.get("/accounts/tenant/payments?from=2026-11-30&to=2026-11-30").await?;
    let want = json!({ "scheduledFor": "2026-11-28", "dueDate": "2026-11-30", "dateRule": null, "moveReason": null });
    assert_has(&list.payments()[0], &want);
    assert_eq!(world.send(ask_of_saturday()).await?.replayed()?.body, created.body);
    let cancelled = world.send(Ask::cancel("tenant", &id)).await?;
    assert_eq!(cancelled.field("status"), "CANCELLED", "{cancelled}");
    assert_has(&cancelled.body, &moved);
    assert_eq!(world.send(Ask::cancel("tenant", &id)).await?.body, cancelled.body);
    // Friday is open.
    let open =
        world.send(ask_with("open", "2026-11-27", json!({ "dateRule": "following" }))).await?.with_status(201)?;
    assert_has(&open.body, &json!({ "dueDate": "2026-11-27", "calendarId": null, "calendarVersion": null }));
    Ok(())
}

#[tokio::test]
async fn a_moved_payment_is_claimed_on_its_new_day_and_its_head_agrees_with_its_details() -> Result<()> {
    let world = world().await?;
    let id = world.send(ask_of_saturday()).await?.field("paymentId").to_owned();
    for (now, status) in [("2026-11-29T23:59:59Z", "SCHEDULED"), ("2026-11-30T00:00:00Z", "PENDING")] {
        world.set_clock(now)?;
        world.sweep().await?;
        assert_eq!(world.payment("tenant", &id).await?.field("status"), status);
    }
    let details = world.store().await.details(id.parse()?).await?.context("no details")?;
    let head = world.store().await.head(&details.key()).await?.context("no head")?;
    assert_eq!((head.payment_id, head.differences(&details)), (id.parse()?, vec![]));
    Ok(())
}

/// A change of the settings after a payment was created.
type Change = fn(&mut Environment);

/// Changes of a bank's calendars after a payment was created.
const CHANGES: [(&str, Change); 5] = [
    ("no calendars any more", |environment| environment.calendars.clear()),
    ("another calendar", |environment| environment.calendars = "GBP=T2".to_owned()),
    ("another rule", |environment| environment.date_rule = "refuse".to_owned()),
    ("a cut-off", |environment| environment.cut_offs = "GB=04:00".to_owned()),
    ("another horizon", |environment| environment.horizon_days = 1),
];

#[tokio::test]
async fn a_retry_returns_the_moved_payment_whatever_happened_to_the_calendar_since() -> Result<()> {
    let world = World::with(|environment| {
        environment.calendars = CALENDARS.to_owned();
        environment.date_rule = "preceding".to_owned();
    });
    let world = world.await?;
    // 28 December is a holiday in England, and not of T2.
    let orders = [
        ("own", order_with("2026-12-28", json!({ "dateRule": "following" })), "2026-12-29"),
        ("bank", order("2026-12-28T09:00:00Z"), "2026-12-24"),
    ];
    for (n, (what, change)) in CHANGES.into_iter().enumerate() {
        let changed = world.functions_with(change).await?;
        for (name, asked, due) in &orders {
            world.set_clock("2026-11-20T09:00:00Z")?;
            let create = |order| Ask::create("tenant", &format!("{name}-{n}"), order);
            let created = world.send(create(asked)).await?.with_status(201)?;
            assert_eq!(created.field("dueDate"), *due, "{what}: {created}");
            // A later day, on which the asked date is a Saturday's neighbour or has passed.
            for now in ["2026-12-23T20:00:00Z", "2026-12-24T12:00:00Z"] {
                world.set_clock(now)?;
                assert_eq!(world.send_to(&changed, create(asked)).await?.replayed()?.body, created.body, "{what}");
            }
            // A crash left no head: the retry makes it where the details say.
            let head = world.head_of("tenant", created.field("paymentId")).await?;
            world.delete(&world.environment.tables.payments, &head).await?;
            assert_eq!(world.send_to(&changed, create(asked)).await?.body, created.body, "{what}");
            assert!(world.heads("tenant").await?.contains(&head), "{what}");
            // The rule is compared as it was sent.
            let other = create(&with(asked.clone(), json!({ "dateRule": "none" })));
            let other = world.send_to(&changed, other).await?.with_status(422)?;
            assert_eq!(other.body["fields"], json!(["dateRule"]), "{what}: {other}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_comes_after_the_cut_off_is_due_on_the_next_open_day() -> Result<()> {
    let world = World::with(|environment| {
        environment.calendars = CALENDARS.to_owned();
        environment.cut_offs = "GB=16:00".to_owned();
        environment.date_rule = "following".to_owned();
    });
    let world = world.await?;
    for (key, now, asked, due_at, reason) in [
        ("evening", "2026-11-24T10:00:00Z", "2026-11-24T17:30:00Z", "2026-11-25T00:00:00Z", Some("cut-off")),
        ("noon", "2026-11-24T10:00:00Z", "2026-11-24T12:00:00Z", "2026-11-24T12:00:00Z", None),
        // The lead time is ten minutes.
        ("late", "2026-11-24T15:50:01Z", "2026-11-24", "2026-11-25T00:00:00Z", Some("cut-off")),
        ("in-time", "2026-11-24T15:50:00Z", "2026-11-24", "2026-11-24T00:00:00Z", None),
    ] {
        world.set_clock(now)?;
        let created = world.send(ask(key, asked)).await?;
        assert_has(&created.body, &json!({ "dueAt": due_at, "dueDate": due_at[..10], "moveReason": reason }));
    }
    world.set_clock("2026-11-24T17:00:00Z")?;
    world.refused(ask_with("no", "2026-11-24", json!({ "dateRule": "refuse" })), 422, "date-closed").await?;
    // Another currency has another calendar, or none.
    let krona = ask_with("sek", "2026-11-28", json!({ "currency": "SEK", "dateRule": "refuse" }));
    assert_eq!(world.send(krona).await?.field("dueDate"), "2026-11-28");
    Ok(())
}

/// The attributes of details without a date rule, a reference and data.
const ATTRIBUTES: &str =
    "accountId amountMinor createdAt createdBy currency dueAt dueDate payeeAccountId pk scheduledFor shard sk";

#[tokio::test]
async fn without_calendars_or_a_rule_nothing_new_is_stored_or_spent() -> Result<()> {
    let (without, with) = (World::open().await?, world().await?);
    let attributes = async |world: &World, reply: &Reply| {
        let names: BTreeSet<String> = world.details(reply.field("paymentId")).await?.remove(0).into_keys().collect();
        anyhow::Ok(names.into_iter().collect::<Vec<_>>().join(" "))
    };
    let mut spent = Vec::new();
    for world in [&without, &with] {
        world.forget();
        let created = world.send(ask("rent", "2026-11-28")).await?;
        spent.push(world.take_units());
        assert_has(&created.body, &unmoved("2026-11-28"));
        assert_eq!(attributes(world, &created).await?, ATTRIBUTES);
    }
    assert_eq!(spent[0], spent[1]);
    assert_eq!(spent[0].values().sum::<u64>(), 3, "{spent:?}");
    // A rule is stored only by a bank that has calendars.
    let ruled = ask_with("ruled", "2026-11-28", json!({ "dateRule": "none" }));
    without.refused(ruled.clone(), 422, "invalid-date-rule").await?;
    let created = with.send(ruled).await?;
    assert_eq!(attributes(&with, &created).await?.replace(" dateRule", ""), ATTRIBUTES);
    Ok(())
}

#[tokio::test]
async fn a_moved_payment_costs_and_holds_as_much_as_another() -> Result<()> {
    let world = world().await?;
    let create =
        |date: &str, bytes| ask_with("rent", date, json!({ "data": "x".repeat(bytes), "dateRule": "following" }));
    let mut largest = BTreeSet::new();
    for date in ["2026-11-27", "2026-11-28"] {
        let refused = world.send(create(date, 10_000)).await?;
        let excess = refused.body["excessBytes"].as_u64().context("no excessBytes")?;
        largest.insert(10_000 - usize::try_from(excess)?);
    }
    assert_eq!(largest.len(), 1, "{largest:?}");
    world.forget();
    let created = world.send(create("2026-11-28", largest.pop_first().context("a size")?)).await?.with_status(201)?;
    assert_eq!(created.field("dueDate"), "2026-11-30", "{created}");
    // One letter, repeated, compresses well.
    assert_eq!(world.take_units().values().sum::<u64>(), 3);
    Ok(())
}

#[tokio::test]
async fn golden_details_are_replayed() -> Result<()> {
    let world = world().await?;
    let keys = ["own-rule", "banks-rule", "open"];
    for (key, body) in orders().into_iter().filter(|(key, _)| keys.contains(key)) {
        let golden = golden_details("golden", key)?;
        world.put_items(&world.environment.tables.history, [golden.clone()]).await?;
        let ask = Ask::post("/accounts/golden/payments").header("Idempotency-Key", key).text(body);
        let reply = world.send(ask).await?.replayed()?;
        for name in ["scheduledFor", "dateRule", "dueAt", "dueDate", "moveReason", "calendarId", "calendarVersion"] {
            let stored = golden.get(name).and_then(|value| value.as_s().ok());
            assert_eq!(reply.body[name].as_str(), stored.map(String::as_str), "{key}: {name}");
        }
    }
    Ok(())
}
