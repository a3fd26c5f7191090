//! Redates: payments of a date that was closed after they had been scheduled.
//!
//! They are created while no currency has a calendar. Then functions run whose bank has one: for these payments the calendar has changed.

mod meanwhile;
mod midnight;
mod named;
mod stops;
mod units;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use lambda_runtime::LambdaEvent;
use payments_bank::{Dependencies, Functions};
use payments_machine::{Environment, Recorder};
use payments_store::Store;
use payments_tests::tables::{NO_DEADLINE, context};
use payments_tests::{Ask, Counting, Reply, World, with_role};
use redate::{Left, RedateOutcome};
use serde_json::{Value, json};

/// A holiday of England that T2 does not have, and the open dates before and after it.
pub(crate) const HOLIDAY: &str = "2026-12-28";
const BEFORE: &str = "2026-12-24";
const AFTER: &str = "2026-12-29";

fn order(more: &Value) -> Value {
    let mut order =
        json!({ "payeeAccountId": "landlord", "amountMinor": 5, "currency": "GBP", "scheduledFor": HOLIDAY });
    let more = more.as_object().cloned().unwrap_or_default();
    order.as_object_mut().into_iter().for_each(|order| order.extend(more.clone()));
    order
}

/// Functions of the same bank with other settings and with their roles, over a recorder.
pub(crate) async fn bank(
    world: &World,
    recorder: &Recorder,
    change: impl FnOnce(&mut Environment),
) -> Result<Functions> {
    let mut environment = world.environment.clone();
    change(&mut environment);
    let tables = environment.tables.clone();
    let dependencies = world.dependencies_over(recorder).await;
    let client = world.client_over(recorder).await;
    Functions::within(&environment, |function| {
        let store = Store::new(with_role(&client, function, &tables)?, tables.clone());
        Ok(Dependencies { store, ..dependencies.clone() })
    })
}

pub(crate) fn england(environment: &mut Environment) {
    environment.calendars = "GBP=GB,EUR=T2".to_owned();
}

/// A bank without calendars, and its functions once they have some.
struct Announced {
    world: World,
    after: Functions,
}

impl Announced {
    async fn new() -> Result<Self> {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Environment)) -> Result<Self> {
        let world = World::with(change).await?;
        let after = bank(&world, &world.recorder, england).await?;
        Ok(Self { world, after })
    }

    /// Creates a payment of the holiday with this rule, which is also its idempotency key.
    async fn create(&self, rule: &str) -> Result<String> {
        self.create_as(rule, &json!({ "dateRule": rule })).await
    }

    /// Creates a payment as a bank did whose calendars have none of these dates.
    async fn create_as(&self, key: &str, more: &Value) -> Result<String> {
        // Pounds and euros have no calendar, but the bank has one, so it accepts rules.
        let other = |environment: &mut Environment| environment.calendars = "USD=FED".to_owned();
        let before = bank(&self.world, &self.world.recorder, other).await?;
        let created = self.world.send_to(&before, Ask::create("tenant", key, &order(more))).await?;
        ensure!(created.status == 201, "{created}");
        Ok(created.field("paymentId").to_owned())
    }

    async fn run(&self, action: &str) -> Result<RedateOutcome> {
        run(&self.after, action).await
    }

    async fn get(&self, id: &str) -> Result<Reply> {
        self.world.send(Ask::get(&format!("/accounts/tenant/payments/{id}"))).await
    }

    /// When a payment is due, why, and its version.
    async fn due(&self, id: &str) -> Result<(String, String, u64)> {
        let payment = self.get(id).await?;
        let reason = payment.body["moveReason"].as_str().unwrap_or("–").to_owned();
        Ok((payment.field("dueAt").to_owned(), reason, payment.body["version"].as_u64().context("no version")?))
    }

    /// All items of the bank, to see that nothing has changed.
    async fn items(&self) -> Result<Vec<payments_store::Item>> {
        let (world, mut items) = (&self.world, Vec::new());
        for table in [&world.environment.tables.payments, &world.environment.tables.history] {
            items.extend(world.client().await.scan().table_name(table).send().await?.items.unwrap_or_default());
        }
        Ok(items)
    }
}

/// Runs `redate` for the holiday.
pub(crate) async fn run(functions: &Functions, action: &str) -> Result<RedateOutcome> {
    let request = json!({ "action": action, "calendar": "GB", "from": HOLIDAY, "to": HOLIDAY });
    ask(functions, &request, NO_DEADLINE).await
}

async fn ask(functions: &Functions, request: &Value, deadline: u64) -> Result<RedateOutcome> {
    let request = serde_json::from_value(request.clone())?;
    functions.redate.handle(LambdaEvent::new(request, context(deadline))).await.map_err(anyhow::Error::msg)
}

/// An outcome without its examples.
fn numbers(outcome: &RedateOutcome) -> RedateOutcome {
    let outcome = outcome.clone();
    let (examples, examples_left, examples_unreadable) = (Vec::new(), Vec::new(), Vec::new());
    RedateOutcome { examples, examples_left, examples_unreadable, ..outcome }
}

fn moved(looked: u64, moved: u64) -> RedateOutcome {
    RedateOutcome { looked, moved, is_complete: true, ..RedateOutcome::default() }
}

/// The counts of dates as the API shows them, by status.
async fn counts(world: &World, date: &str) -> Result<Value> {
    let reply = world.send(Ask::get(&format!("/counts?from={date}&to={date}"))).await?;
    Ok(reply.body["counts"][0]["byStatus"].clone())
}

#[tokio::test]
async fn a_look_changes_nothing_and_says_what_waits() -> Result<()> {
    let bank = Announced::new().await?;
    let mut waiting = Vec::new();
    for rule in ["following", "preceding", "none", "refuse"] {
        waiting.push(bank.create(rule).await?);
    }
    let refused = waiting.remove(3);
    waiting.truncate(2);
    waiting.sort();
    let before = bank.items().await?;
    let mut outcome = bank.run("look").await?;
    outcome.examples.sort();
    assert_eq!((&outcome.examples, &outcome.examples_left), (&waiting, &vec![refused]));
    assert_eq!((outcome.looked, outcome.waiting, outcome.moved, outcome.is_complete), (4, 2, 0, true));
    assert_eq!(outcome.left, Left { none: 1, refuse: 1, uncovered: 0 });
    assert_eq!(bank.items().await?, before);
    let line: Value = serde_json::from_str(&bank.world.outside.metrics.take().remove(0))?;
    let names = ["WaitingForRedate", "LeftOnClosedDate", "RedateUnfinished"];
    assert_eq!(names.map(|name| line[name].as_u64()), [Some(2), Some(1), Some(0)]);
    // The schedule's look has no dates, and all calendars.
    bank.world.set_clock("2026-12-10T02:10:00Z")?;
    let daily = ask(&bank.after, &json!({ "action": "look" }), NO_DEADLINE).await?;
    assert_eq!((daily.looked, daily.waiting), (4, 2));
    Ok(())
}

#[tokio::test]
async fn a_move_moves_by_rule_and_says_so_everywhere() -> Result<()> {
    let bank = Announced::new().await?;
    let world = &bank.world;
    let mut counting = Counting::of(world).await?;
    let (following, preceding) = (bank.create("following").await?, bank.create("preceding").await?);
    counting.count(world.functions()).await?;
    assert_eq!(counts(world, HOLIDAY).await?["SCHEDULED"], 2);
    world.set_clock("2026-12-21T10:00:00Z")?;
    let outcome = bank.run("move").await?;
    assert_eq!(numbers(&outcome), moved(2, 2));
    assert_eq!(outcome.examples.len(), 2);
    for (id, date) in [(&following, AFTER), (&preceding, BEFORE)] {
        assert_eq!(bank.due(id).await?, (format!("{date}T00:00:00Z"), "holiday".to_owned(), 2));
        let payment = bank.get(id).await?;
        assert_eq!((payment.field("scheduledFor"), payment.field("updatedAt")), (HOLIDAY, "2026-12-21T10:00:00Z"));
        let listed = world.send(Ask::get(&format!("/payments?dueDate={date}"))).await?;
        assert_eq!(listed.payments()[0]["paymentId"], json!(id), "{listed}");
        let versions = world.send(Ask::get(&format!("/accounts/tenant/payments/{id}/versions"))).await?;
        let last = &versions.body["versions"][1];
        assert_eq!(
            (&last["changedFields"], &last["by"]),
            (&json!(["dueAt"]), &json!({ "kind": "bank" })),
            "{versions}"
        );
        assert_eq!((&last["dueDate"], &last["moveReason"]), (&json!(date), &json!("holiday")), "{versions}");
    }
    assert_eq!(counting.count(world.functions()).await?, 2);
    let scheduled = [counts(world, BEFORE).await?, counts(world, HOLIDAY).await?, counts(world, AFTER).await?];
    assert_eq!(scheduled.map(|counts| counts["SCHEDULED"].clone()), [json!(1), json!(0), json!(1)]);
    let events = world.send(Ask::get("/events")).await?;
    let amended: BTreeMap<_, _> = events.body["events"]
        .as_array()
        .context("events")?
        .iter()
        .filter(|event| event["type"] == "payment.amended")
        .map(|event| (event["paymentId"].as_str().unwrap_or_default().to_owned(), event.clone()))
        .collect();
    assert_eq!(amended.len(), 2, "{events}");
    let event = &amended[&following];
    assert_eq!((&event["changedFields"], &event["by"]), (&json!(["dueAt"]), &json!({ "kind": "bank" })));
    assert_eq!((&event["version"], &event["dueAt"]), (&json!(2), &json!("2026-12-29T00:00:00Z")));
    Ok(())
}

#[tokio::test]
async fn a_second_move_moves_nothing() -> Result<()> {
    let bank = Announced::new().await?;
    for rule in ["following", "preceding", "none", "refuse"] {
        bank.create(rule).await?;
    }
    assert_eq!(bank.run("move").await?.moved, 2);
    let before = bank.items().await?;
    let again = bank.run("move").await?;
    assert_eq!((again.looked, again.moved, again.waiting, again.is_complete), (2, 0, 0, true));
    assert_eq!(again.left, Left { none: 1, refuse: 1, uncovered: 0 });
    assert_eq!(bank.items().await?, before);
    Ok(())
}

/// The bank's own rule applies to payments without one.
#[tokio::test]
async fn a_payment_without_a_rule_moves_by_that_of_the_bank() -> Result<()> {
    for (rule, want) in [("following", (1, 0, 0)), ("none", (0, 1, 0)), ("refuse", (0, 0, 1))] {
        let announced = Announced::new().await?;
        announced.create_as("rent", &json!({})).await?;
        let with_rule = |environment: &mut Environment| {
            england(environment);
            environment.date_rule = rule.to_owned();
        };
        let functions = bank(&announced.world, &announced.world.recorder, with_rule).await?;
        let outcome = run(&functions, "move").await?;
        assert_eq!((outcome.moved, outcome.left.none, outcome.left.refuse), want, "{rule}");
    }
    Ok(())
}

#[tokio::test]
async fn a_client_learns_of_the_move_by_its_next_request() -> Result<()> {
    let bank = Announced::new().await?;
    let world = &bank.world;
    let id = bank.create("following").await?;
    assert_eq!(bank.run("move").await?.moved, 1);
    let wanted = order(&json!({ "dateRule": "following", "amountMinor": 7 }));
    let stale = world.send_to(&bank.after, Ask::amend("tenant", &id, ("more", 1), &wanted)).await?;
    assert_eq!((stale.status, &stale.body["currentVersion"]), (412, &json!(2)), "{stale}");
    let again = Ask::create("tenant", "following", &order(&json!({ "dateRule": "following" })));
    let again = world.send_to(&bank.after, again).await?;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")), "{again}");
    assert_eq!((again.field("dueDate"), again.field("scheduledFor")), (AFTER, HOLIDAY));
    // What does not decide the date leaves it where the bank moved it.
    let amended = world.send_to(&bank.after, Ask::amend("tenant", &id, ("more", 2), &wanted)).await?;
    assert_eq!((amended.status, amended.field("dueDate"), amended.field("moveReason")), (200, AFTER, "holiday"));
    let replay = world.send_to(&bank.after, Ask::amend("tenant", &id, ("more", 2), &wanted)).await?;
    assert_eq!(replay.header("idempotent-replayed"), Some("true"), "{replay}");
    let cancelled = world.send(Ask::cancel("tenant", &id)).await?;
    assert_eq!((cancelled.status, cancelled.field("dueDate")), (200, AFTER), "{cancelled}");
    Ok(())
}

#[tokio::test]
async fn other_currencies_and_dates_are_untouched() -> Result<()> {
    let bank = Announced::new().await?;
    // T2 is open on the holiday, and no currency of this bank has a calendar for dollars.
    for currency in ["EUR", "USD"] {
        bank.create_as(currency, &json!({ "currency": currency, "dateRule": "following" })).await?;
    }
    bank.create_as("day-after", &json!({ "scheduledFor": AFTER, "dateRule": "following" })).await?;
    let before = bank.items().await?;
    assert_eq!(bank.run("move").await?, moved(0, 0));
    // Christmas is closed for both, and each calendar moves its own.
    bank.create_as("pounds", &json!({ "scheduledFor": "2026-12-25", "dateRule": "following" })).await?;
    bank.create_as("euros", &json!({ "currency": "EUR", "scheduledFor": "2026-12-25", "dateRule": "following" }))
        .await?;
    let request = json!({ "action": "move", "calendar": "T2", "from": "2026-12-20", "to": "2026-12-31" });
    assert_eq!(numbers(&ask(&bank.after, &request, NO_DEADLINE).await?), moved(1, 1));
    let after = bank.items().await?;
    assert!(before.iter().all(|item| after.contains(item)));
    Ok(())
}

/// A payment that moved off a holiday stays there when the holiday is taken back.
#[tokio::test]
async fn days_that_reopen_move_nothing() -> Result<()> {
    let announced = Announced::new().await?;
    let id = announced.create("following").await?;
    announced.run("move").await?;
    let reopened = bank(&announced.world, &announced.world.recorder, |it| it.calendars = "GBP=T2".to_owned()).await?;
    for date in [HOLIDAY, AFTER] {
        let request = json!({ "action": "move", "calendar": "T2", "from": date, "to": date });
        assert_eq!(ask(&reopened, &request, NO_DEADLINE).await?, moved(0, 0), "{date}");
    }
    assert_eq!(announced.due(&id).await?.2, 2);
    Ok(())
}

/// What was moved once can be moved again, and its versions are read one after the other.
#[tokio::test]
async fn moves_and_amendments_follow_each_other() -> Result<()> {
    let announced = Announced::new().await?;
    let world = &announced.world;
    let id = announced.create_as("rent", &json!({ "scheduledFor": "2026-12-25", "dateRule": "following" })).await?;
    let request = |date: &str| json!({ "action": "move", "calendar": "T2", "from": date, "to": date });
    let euro = bank(world, &world.recorder, |environment| environment.calendars = "GBP=T2".to_owned()).await?;
    assert_eq!(ask(&euro, &request("2026-12-25"), NO_DEADLINE).await?.moved, 1);
    assert_eq!(announced.due(&id).await?.0, "2026-12-28T00:00:00Z");
    assert_eq!(announced.run("move").await?.moved, 1);
    assert_eq!(announced.due(&id).await?, ("2026-12-29T00:00:00Z".to_owned(), "holiday".to_owned(), 3));
    // Twenty amendments of the client are possible all the same.
    for version in 3..=22 {
        let wanted = order(&json!({ "scheduledFor": "2026-12-25", "dateRule": "following", "amountMinor": version }));
        let key = format!("more-{version}");
        let amended = world.send_to(&announced.after, Ask::amend("tenant", &id, (&key, version), &wanted)).await?;
        assert_eq!(amended.status, 200, "{version}: {amended}");
    }
    let wanted = order(&json!({ "scheduledFor": "2026-12-25", "dateRule": "following" }));
    let full = world.send_to(&announced.after, Ask::amend("tenant", &id, ("full", 23), &wanted)).await?;
    assert_eq!((full.status, full.problem()), (409, "too-many-amendments"), "{full}");
    let versions = world.send(Ask::get(&format!("/accounts/tenant/payments/{id}/versions"))).await?;
    assert_eq!(versions.body["versions"].as_array().map(Vec::len), Some(23), "{versions}");
    Ok(())
}

#[tokio::test]
async fn a_moved_payment_is_sent_on_its_new_date_and_not_before() -> Result<()> {
    let bank = Announced::new().await?;
    let world = &bank.world;
    let id = bank.create("following").await?;
    bank.run("move").await?;
    for (now, status) in [("2026-12-28T23:59:59Z", "SCHEDULED"), ("2026-12-29T00:00:00Z", "PENDING")] {
        world.set_clock(now)?;
        world.sweep().await?;
        assert_eq!(bank.get(&id).await?.field("status"), status, "{now}");
    }
    Ok(())
}

/// A stack without calendars costs what it did: no call, and no metric.
#[tokio::test]
async fn without_calendars_the_daily_look_reads_nothing() -> Result<()> {
    let world = World::open().await?;
    world.create("tenant", "rent", &order(&json!({}))).await?;
    drop((world.recorder.take_operations(), world.outside.metrics.take()));
    world.set_clock("2026-12-10T02:10:00Z")?;
    let outcome = ask(world.functions(), &json!({ "action": "look" }), NO_DEADLINE).await?;
    assert_eq!(outcome, moved(0, 0));
    assert_eq!((world.recorder.take_operations(), world.outside.metrics.take()), (vec![], vec![]));
    Ok(())
}
