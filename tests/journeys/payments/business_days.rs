//! Business days: payments that move, what is stored of it, and replays whatever happened to the calendars since.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use payments_bank::Functions;
use payments_machine::Environment;
use payments_store::Item;
use payments_tests::tables::{details_key, key_of};
use payments_tests::{Ask, Reply, World};
use serde_json::{Value, json};

use crate::golden::{golden_details, orders};

const CALENDARS: &str = "EUR=T2,GBP=GB,USD=FED";

/// An order of 5 pence.
fn order(more: &Value) -> Value {
    let mut order = json!({ "payeeAccountId": "landlord", "amountMinor": 5, "currency": "GBP" });
    let more = more.as_object().cloned().unwrap_or_default();
    order.as_object_mut().into_iter().for_each(|order| order.extend(more.clone()));
    order
}

fn ask(key: &str, more: &Value) -> Ask {
    Ask::create("tenant", key, &order(more))
}

/// A world whose bank has calendars.
async fn world() -> Result<World> {
    World::with(|environment| environment.calendars = CALENDARS.to_owned()).await
}

/// The world's functions with other settings.
async fn functions(world: &World, change: impl FnOnce(&mut Environment)) -> Result<Functions> {
    let mut environment = world.environment.clone();
    change(&mut environment);
    let dependencies = world.dependencies_over(&world.recorder).await;
    Functions::within(&environment, |_| Ok(dependencies.clone()))
}

/// The members of a payment that are about its date.
fn dates(payment: &Value) -> [&str; 5] {
    ["scheduledFor", "dateRule", "dueAt", "dueDate", "moveReason"].map(|name| payment[name].as_str().unwrap_or("–"))
}

/// The calendar that moved a payment, and its version.
fn calendar(payment: &Value) -> [&Value; 2] {
    [&payment["calendarId"], &payment["calendarVersion"]]
}

/// Details keep which version of which calendar moved them, so their date can be explained when the calendar has changed. A payment that
/// was not moved has none.
#[tokio::test]
async fn a_payment_that_moved_says_by_which_version_of_which_calendar() -> Result<()> {
    let world = world().await?;
    let england = world.send(Ask::get("/calendars/GB")).await?;
    let want = [&json!("GB"), &england.body["calendarVersion"]];
    assert!(england.field("calendarVersion").starts_with("2026-"), "{england}");
    let asked = json!({ "scheduledFor": "2026-11-28", "dateRule": "following" });
    let created = world.send(ask("rent", &asked)).await?;
    assert_eq!(calendar(&created.body), want, "{created}");
    let id = created.field("paymentId");
    let path = format!("/accounts/tenant/payments/{id}");
    let got = world.send(Ask::get(&path)).await?;
    assert_eq!(calendar(&got.body), want, "{got}");
    let versions = world.send(Ask::get(&format!("{path}/versions"))).await?;
    assert_eq!(calendar(&versions.body["versions"][0]), want, "{versions}");
    let details = stored(&world, id).await?;
    let details = ["calendarId", "calendarVersion"].map(|name| json!(details[name].as_s().ok()));
    assert_eq!([&details[0], &details[1]], want);
    let open = world.send(ask("open", &json!({ "scheduledFor": "2026-11-27", "dateRule": "following" }))).await?;
    assert_eq!((open.status, calendar(&open.body)), (201, [&Value::Null; 2]), "{open}");
    Ok(())
}

/// A payment's details, as stored.
async fn stored(world: &World, id: &str) -> Result<Item> {
    let get = world.client().await.get_item().table_name(&world.environment.tables.history);
    get.set_key(Some(details_key(id))).send().await?.item.context("no details")
}

const MOVED: [&str; 5] = ["2026-11-28", "following", "2026-11-30T00:00:00Z", "2026-11-30", "weekend"];

#[tokio::test]
async fn a_payment_of_a_saturday_moves_and_is_found_where_it_is_due() -> Result<()> {
    let world = world().await?;
    let asked = json!({ "scheduledFor": "2026-11-28", "dateRule": "following" });
    let created = world.send(ask("rent", &asked)).await?;
    assert_eq!((created.status, dates(&created.body)), (201, MOVED), "{created}");
    let id = created.field("paymentId").to_owned();
    let head = world.heads("tenant").await?.remove(0);
    assert_eq!(head["sk"].as_s().ok(), Some(&format!("2026-11-30T00:00:00Z#{id}")));
    for path in [format!("/accounts/tenant/payments/{id}"), "/accounts/tenant/payments?idempotencyKey=rent".to_owned()]
    {
        let got = world.send(Ask::get(&path)).await?;
        let payment = got.payments().first().unwrap_or(&got.body);
        assert_eq!(dates(payment), MOVED, "{got}");
    }
    // A list reads no details.
    let list = world.send(Ask::get("/accounts/tenant/payments?from=2026-11-30&to=2026-11-30")).await?;
    assert_eq!(dates(&list.payments()[0]), ["2026-11-28", "–", "2026-11-30T00:00:00Z", "2026-11-30", "–"], "{list}");
    let again = world.send(ask("rent", &asked)).await?;
    assert_eq!((again.header("idempotent-replayed"), &again.body), (Some("true"), &created.body));
    let cancelled = world.send(Ask::cancel("tenant", &id)).await?;
    assert_eq!((cancelled.field("status"), dates(&cancelled.body)), ("CANCELLED", MOVED), "{cancelled}");
    let again = world.send(Ask::cancel("tenant", &id)).await?;
    assert_eq!(again.body, cancelled.body);
    Ok(())
}

#[tokio::test]
async fn a_moved_payment_is_claimed_on_its_new_day_and_its_head_agrees_with_its_details() -> Result<()> {
    let world = world().await?;
    let id = world
        .create("tenant", "rent", &order(&json!({ "scheduledFor": "2026-11-28", "dateRule": "following" })))
        .await?;
    world.set_clock("2026-11-29T23:59:59Z")?;
    world.sweep().await?;
    let status = |reply: Reply| reply.field("status").to_owned();
    let path = format!("/accounts/tenant/payments/{id}");
    assert_eq!(status(world.send(Ask::get(&path)).await?), "SCHEDULED");
    world.set_clock("2026-11-30T00:00:00Z")?;
    world.sweep().await?;
    assert_eq!(status(world.send(Ask::get(&path)).await?), "PENDING");
    let (details, key) = (world.store().await.details(id.parse()?).await?.context("no details")?, id.parse()?);
    let head = world.store().await.head(&details.key()).await?.context("no head")?;
    assert_eq!((head.payment_id, head.differences(&details)), (key, vec![]));
    Ok(())
}

/// A change of the settings after a payment was created.
type Change = fn(&mut Environment);

/// What can happen to a bank's calendars after a payment was created.
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
    let own = json!({ "scheduledFor": "2026-12-28", "dateRule": "following" });
    let banks = json!({ "scheduledFor": "2026-12-28T09:00:00Z" });
    for (n, (what, change)) in CHANGES.into_iter().enumerate() {
        let changed = functions(&world, change).await?;
        for (name, asked, due) in [("own", &own, "2026-12-29"), ("bank", &banks, "2026-12-24")] {
            world.set_clock("2026-11-20T09:00:00Z")?;
            let key = format!("{name}-{n}");
            let created = world.send(ask(&key, asked)).await?;
            assert_eq!((created.status, created.field("dueDate")), (201, due), "{what}: {created}");
            // A later day, on which the asked date is a Saturday's neighbour or has passed.
            for now in ["2026-12-23T20:00:00Z", "2026-12-24T12:00:00Z"] {
                world.set_clock(now)?;
                let again = world.send_to(&changed, ask(&key, asked)).await?;
                assert_eq!(again.header("idempotent-replayed"), Some("true"), "{what}: {again}");
                assert_eq!(again.body, created.body, "{what}");
            }
            // A crash left no head: the retry makes it where the details say.
            let head = world
                .heads("tenant")
                .await?
                .into_iter()
                .find(|head| head["sk"].as_s().is_ok_and(|sort| sort.ends_with(created.field("paymentId"))));
            let head = head.context("no head")?;
            let delete = world.client().await.delete_item().table_name(&world.environment.tables.payments);
            delete.set_key(Some(key_of(&head))).send().await?;
            let again = world.send_to(&changed, ask(&key, asked)).await?;
            assert_eq!(again.body, created.body, "{what}");
            assert!(world.heads("tenant").await?.contains(&head), "{what}");
            // The rule is compared as it was sent.
            let mut other = asked.clone();
            other["dateRule"] = json!("none");
            let other = world.send_to(&changed, ask(&key, &other)).await?;
            assert_eq!((other.status, &other.body["fields"]), (422, &json!(["dateRule"])), "{what}: {other}");
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
    world.set_clock("2026-11-24T10:00:00Z")?;
    for (key, now, asked, want) in [
        ("evening", "2026-11-24T10:00:00Z", "2026-11-24T17:30:00Z", ["2026-11-25T00:00:00Z", "2026-11-25", "cut-off"]),
        ("noon", "2026-11-24T10:00:00Z", "2026-11-24T12:00:00Z", ["2026-11-24T12:00:00Z", "2026-11-24", "–"]),
        // The lead time is ten minutes.
        ("late", "2026-11-24T15:50:01Z", "2026-11-24", ["2026-11-25T00:00:00Z", "2026-11-25", "cut-off"]),
        ("in-time", "2026-11-24T15:50:00Z", "2026-11-24", ["2026-11-24T00:00:00Z", "2026-11-24", "–"]),
    ] {
        world.set_clock(now)?;
        let created = world.send(ask(key, &json!({ "scheduledFor": asked }))).await?;
        assert_eq!(dates(&created.body)[2..], want, "{created}");
    }
    world.set_clock("2026-11-24T17:00:00Z")?;
    let refused = world.send(ask("no", &json!({ "scheduledFor": "2026-11-24", "dateRule": "refuse" }))).await?;
    assert_eq!((refused.status, refused.problem()), (422, "date-closed"), "{refused}");
    // Another currency has another calendar, or none.
    let asked = json!({ "scheduledFor": "2026-11-28", "currency": "SEK", "dateRule": "refuse" });
    assert_eq!(world.send(ask("sek", &asked)).await?.field("dueDate"), "2026-11-28");
    Ok(())
}

/// The attributes of details without a date rule, a reference and data.
const ATTRIBUTES: [&str; 12] = [
    "pk",
    "sk",
    "accountId",
    "payeeAccountId",
    "amountMinor",
    "currency",
    "scheduledFor",
    "dueAt",
    "dueDate",
    "shard",
    "createdAt",
    "createdBy",
];

#[tokio::test]
async fn without_calendars_or_a_rule_nothing_new_is_stored_or_spent() -> Result<()> {
    let (without, with) = (World::open().await?, world().await?);
    let saturday = json!({ "scheduledFor": "2026-11-28" });
    let mut spent = Vec::new();
    for world in [&without, &with] {
        drop(world.recorder.take_capacity_use());
        let created = world.send(ask("rent", &saturday)).await?;
        spent.push(world.take_units());
        assert_eq!(dates(&created.body), ["2026-11-28", "–", "2026-11-28T00:00:00Z", "2026-11-28", "–"], "{created}");
        let names: BTreeSet<String> = stored(world, created.field("paymentId")).await?.into_keys().collect();
        assert_eq!(names, ATTRIBUTES.map(str::to_owned).into());
    }
    assert_eq!(spent[0], spent[1]);
    assert_eq!(spent[0].values().sum::<u64>(), 3, "{spent:?}");
    // A rule is stored only by a bank that has calendars.
    let ruled = json!({ "scheduledFor": "2026-11-28", "dateRule": "none" });
    let refused = without.send(ask("ruled", &ruled)).await?;
    assert_eq!((refused.status, refused.problem()), (422, "invalid-date-rule"), "{refused}");
    let created = with.send(ask("ruled", &ruled)).await?;
    let names: BTreeSet<String> = stored(&with, created.field("paymentId")).await?.into_keys().collect();
    let new = names.iter().filter(|name| !ATTRIBUTES.contains(&name.as_str())).collect::<Vec<_>>();
    assert_eq!(new, ["dateRule"]);
    Ok(())
}

#[tokio::test]
async fn a_moved_payment_costs_and_holds_as_much_as_another() -> Result<()> {
    let world = world().await?;
    let create = |date: &str, bytes: usize| {
        ask("rent", &json!({ "scheduledFor": date, "data": "x".repeat(bytes), "dateRule": "following" }))
    };
    let mut largest = 0;
    for date in ["2026-11-27", "2026-11-28"] {
        let refused = world.send(create(date, 10_000)).await?;
        let excess = refused.body["excessBytes"].as_u64().context("no excessBytes")?;
        let fits = 10_000 - usize::try_from(excess)?;
        assert!(largest == 0 || largest == fits, "{largest} or {fits}");
        largest = fits;
    }
    drop(world.recorder.take_capacity_use());
    let created = world.send(create("2026-11-28", largest)).await?;
    assert_eq!((created.status, created.field("dueDate")), (201, "2026-11-30"), "{created}");
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
        let reply = world.send(ask).await?;
        assert_eq!((reply.status, reply.header("idempotent-replayed")), (201, Some("true")), "{key}: {reply}");
        for name in ["scheduledFor", "dateRule", "dueAt", "dueDate", "moveReason", "calendarId", "calendarVersion"] {
            let stored = golden.get(name).and_then(|value| value.as_s().ok());
            assert_eq!(reply.body[name].as_str(), stored.map(String::as_str), "{key}: {name}");
        }
    }
    Ok(())
}
