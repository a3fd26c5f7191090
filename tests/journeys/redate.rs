//! Redates: payments of a date that was closed after they had been scheduled.
//!
//! The payments are created while no currency has a calendar. Then functions run whose bank has
//! one: for these payments the calendar has changed.

mod meanwhile;
mod midnight;
mod named;
mod stops;
mod units;

use payments_store::Store;
use payments_tests::prelude::*;
use payments_tests::{orders, with_role};
use redate::{Left, RedateOutcome};

/// A holiday of England that T2 does not have, and the open dates before and after it.
pub(crate) const HOLIDAY: &str = "2026-12-28";
const BEFORE: &str = "2026-12-24";
const AFTER: &str = "2026-12-29";

fn order(more: &Value) -> Value {
    orders::order_with(HOLIDAY, more.clone())
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

    /// Creates a payment as a bank did whose calendars lack these dates.
    async fn create_as(&self, key: &str, more: &Value) -> Result<String> {
        // Pounds and euros have no calendar, but the bank has one, so it accepts rules.
        let other = |environment: &mut Environment| environment.calendars = "USD=FED".to_owned();
        let before = bank(&self.world, &self.world.recorder, other).await?;
        let created = self.world.send_to(&before, Ask::create("tenant", key, &order(more))).await?.with_status(201)?;
        Ok(created.field("paymentId").to_owned())
    }

    async fn run(&self, action: &str) -> Result<RedateOutcome> {
        run(&self.after, action).await
    }

    /// Creates so many payments that move to the next open date.
    async fn create_many(&self, count: usize, date_rule: &str) -> Result<()> {
        for n in 0..count {
            self.create_as(&format!("rent-{n}"), &json!({ "dateRule": date_rule })).await?;
        }
        Ok(())
    }

    /// Moves the payments of the holiday while calls that `meets` selects have this fate.
    async fn move_meeting(
        &self,
        fate: Fate,
        meets: impl Fn(&Call) -> bool + Send + Sync + 'static,
    ) -> Result<RedateOutcome> {
        let recorder = Recorder::with_fate(move |call| if meets(call) { fate } else { Fate::Pass });
        run(&bank(&self.world, &recorder, england).await?, "move").await
    }

    async fn get(&self, id: &str) -> Result<Reply> {
        self.world.payment("tenant", id).await
    }

    /// The versions of a payment.
    async fn versions(&self, id: &str) -> Result<Vec<Value>> {
        let versions = self.world.get(&format!("/accounts/tenant/payments/{id}/versions")).await?;
        versions.body["versions"].as_array().cloned().context("no versions")
    }

    /// The due time of a payment, the reason of its move, and its version.
    async fn due(&self, id: &str) -> Result<(String, String, u64)> {
        let payment = self.get(id).await?;
        let reason = payment.body["moveReason"].as_str().unwrap_or("–").to_owned();
        Ok((payment.field("dueAt").to_owned(), reason, payment.body["version"].as_u64().context("no version")?))
    }
}

/// Runs `redate` for the holiday.
pub(crate) async fn run(functions: &Functions, action: &str) -> Result<RedateOutcome> {
    let request = json!({ "action": action, "calendar": "GB", "from": HOLIDAY, "to": HOLIDAY });
    ask(functions, &request, NO_DEADLINE).await
}

async fn ask(functions: &Functions, request: &Value, deadline: u64) -> Result<RedateOutcome> {
    invoke_until(|event| functions.redate.handle(event), request.clone(), deadline).await
}

/// An outcome without its examples.
fn numbers(outcome: &RedateOutcome) -> RedateOutcome {
    let outcome = outcome.clone();
    let examples = Vec::new();
    let examples_left = Vec::new();
    let examples_unreadable = Vec::new();
    // `journeys/runs.rs` has the dates.
    let waiting_dates = BTreeMap::new();
    RedateOutcome { waiting_dates, examples, examples_left, examples_unreadable, ..outcome }
}

fn moved(looked: u64, moved: u64) -> RedateOutcome {
    RedateOutcome { looked, moved, is_complete: true, ..RedateOutcome::default() }
}

#[tokio::test]
async fn a_look_changes_nothing_and_a_second_move_moves_nothing() -> Result<()> {
    let bank = Announced::new().await?;
    let mut ids = Vec::new();
    for rule in ["following", "preceding", "none", "refuse"] {
        ids.push(bank.create(rule).await?);
    }
    let before = bank.world.items().await?;
    let mut outcome = bank.run("look").await?;
    outcome.examples.sort();
    ids[..2].sort();
    assert_eq!((&outcome.examples[..], &outcome.examples_left[..]), (&ids[..2], &ids[3..]));
    let left = || Left { none: 1, refuse: 1, uncovered: 0 };
    assert_eq!(numbers(&outcome), RedateOutcome { waiting: 2, left: left(), ..moved(4, 0) });
    assert_eq!(bank.world.items().await?, before);
    let line: Value = serde_json::from_str(&bank.world.outside.metrics.take().remove(0))?;
    assert_has(&line, &json!({ "WaitingForRedate": 2, "LeftOnClosedDate": 1, "RedateUnfinished": 0 }));
    // The look of a schedule names no dates.
    bank.world.set_clock("2026-12-10T02:10:00Z")?;
    let daily = ask(&bank.after, &json!({ "action": "look" }), NO_DEADLINE).await?;
    assert_eq!((daily.looked, daily.waiting), (4, 2));

    assert_eq!(bank.run("move").await?.moved, 2);
    let before = bank.world.items().await?;
    assert_eq!(numbers(&bank.run("move").await?), RedateOutcome { left: left(), ..moved(2, 0) });
    assert_eq!(bank.world.items().await?, before);
    Ok(())
}

#[tokio::test]
async fn a_move_moves_by_rule_and_says_so_everywhere() -> Result<()> {
    let bank = Announced::new().await?;
    let world = &bank.world;
    let mut counting = Counting::start(world).await?;
    let (following, preceding) = (bank.create("following").await?, bank.create("preceding").await?);
    counting.count(world.functions()).await?;
    // The schedule's look has no dates, and all calendars.
    world.set_clock("2026-12-10T02:10:00Z")?;
    let daily = ask(&bank.after, &json!({ "action": "look" }), NO_DEADLINE).await?;
    assert_eq!((daily.looked, daily.waiting), (2, 2));
    world.set_clock("2026-12-21T10:00:00Z")?;
    let outcome = bank.run("move").await?;
    assert_eq!((numbers(&outcome), outcome.examples.len()), (moved(2, 2), 2));
    let by_bank = json!({ "changedFields": ["dueAt"], "by": { "kind": "bank" }, "version": 2 });
    for (id, date) in [(&following, AFTER), (&preceding, BEFORE)] {
        assert_eq!(bank.due(id).await?, (format!("{date}T00:00:00Z"), "holiday".to_owned(), 2));
        let payment = bank.get(id).await?;
        assert_has(&payment.body, &json!({ "scheduledFor": HOLIDAY, "updatedAt": "2026-12-21T10:00:00Z" }));
        assert_eq!(world.listed(&format!("/payments?dueDate={date}")).await?, [id.as_str()]);
        let last = bank.versions(id).await?.remove(1);
        assert_has(&last, &by_bank);
        assert_has(&last, &json!({ "dueDate": date, "moveReason": "holiday" }));
    }
    assert_eq!(counting.count(world.functions()).await?, 2);
    for (date, scheduled) in [(BEFORE, 1), (HOLIDAY, 0), (AFTER, 1)] {
        let counts = world.get(&format!("/counts?from={date}&to={date}")).await?;
        assert_has(&counts.body["counts"][0]["byStatus"], &json!({ "SCHEDULED": scheduled }));
    }
    let events = world.get("/events").await?;
    let events = events.body["events"].as_array().context("events")?.iter();
    let amended: Vec<&Value> = events.filter(|event| event["type"] == "payment.amended").collect();
    assert_eq!(amended.len(), 2, "{amended:?}");
    let event = amended.into_iter().find(|event| event["paymentId"] == following.as_str()).context("no event")?;
    assert_has(event, &by_bank);
    assert_has(event, &json!({ "dueAt": "2026-12-29T00:00:00Z" }));
    Ok(())
}

#[tokio::test]
async fn a_client_learns_of_the_move_by_its_next_request() -> Result<()> {
    let bank = Announced::new().await?;
    let world = &bank.world;
    let id = bank.create("following").await?;
    assert_eq!(bank.run("move").await?.moved, 1);
    let wanted = order(&json!({ "dateRule": "following", "amountMinor": 7 }));
    let amend = |version| Ask::amend("tenant", &id, ("more", version), &wanted);
    let stale = world.send_to(&bank.after, amend(1)).await?.with_status(412)?;
    assert_has(&stale.body, &json!({ "currentVersion": 2 }));
    let again = Ask::create("tenant", "following", &order(&json!({ "dateRule": "following" })));
    let again = world.send_to(&bank.after, again).await?.replayed()?;
    assert_has(&again.body, &json!({ "dueDate": AFTER, "scheduledFor": HOLIDAY }));
    // An amendment of other fields leaves the date where the bank moved it.
    let amended = world.send_to(&bank.after, amend(2)).await?.with_status(200)?;
    assert_has(&amended.body, &json!({ "dueDate": AFTER, "moveReason": "holiday" }));
    world.send_to(&bank.after, amend(2)).await?.replayed()?;
    let cancelled = world.send(Ask::cancel("tenant", &id)).await?.with_status(200)?;
    assert_eq!(cancelled.field("dueDate"), AFTER, "{cancelled}");
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
    let before = bank.world.items().await?;
    assert_eq!(bank.run("move").await?, moved(0, 0));
    // Christmas is closed for both, and each calendar moves its own.
    bank.create_as("pounds", &json!({ "scheduledFor": "2026-12-25", "dateRule": "following" })).await?;
    bank.create_as("euros", &json!({ "currency": "EUR", "scheduledFor": "2026-12-25", "dateRule": "following" }))
        .await?;
    let request = json!({ "action": "move", "calendar": "T2", "from": "2026-12-20", "to": "2026-12-31" });
    assert_eq!(numbers(&ask(&bank.after, &request, NO_DEADLINE).await?), moved(1, 1));
    let after = bank.world.items().await?;
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

/// A payment that was moved once can be moved again, and its versions are read one after the other.
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
        let amend = Ask::amend("tenant", &id, (&key, version), &wanted);
        world.send_to(&announced.after, amend).await?.with_status(200)?;
    }
    let wanted = order(&json!({ "scheduledFor": "2026-12-25", "dateRule": "following" }));
    let full = world.send_to(&announced.after, Ask::amend("tenant", &id, ("full", 23), &wanted)).await?;
    full.refused(409, "too-many-amendments")?;
    assert_eq!(announced.versions(&id).await?.len(), 23);
    Ok(())
}

/// A stack without calendars pays nothing for redates: it makes no call and emits no metric.
#[tokio::test]
async fn without_calendars_the_daily_look_reads_nothing() -> Result<()> {
    let world = World::open().await?;
    world.create("tenant", "rent", &order(&json!({}))).await?;
    world.forget();
    world.set_clock("2026-12-10T02:10:00Z")?;
    let outcome = ask(world.functions(), &json!({ "action": "look" }), NO_DEADLINE).await?;
    assert_eq!(outcome, moved(0, 0));
    let operations = world.recorder.take_operations();
    assert_eq!(
        (&operations[..], world.outside.metrics.take()),
        (&["UpdateItem".to_owned()][..], vec![]),
        "its outcome"
    );
    Ok(())
}

#[tokio::test]
async fn a_moved_payment_is_sent_on_its_new_date_and_not_before() -> Result<()> {
    let bank = Announced::new().await?;
    let id = bank.create("following").await?;
    bank.run("move").await?;
    for (now, status) in [("2026-12-28T23:59:59Z", "SCHEDULED"), ("2026-12-29T00:00:00Z", "PENDING")] {
        bank.world.set_clock(now)?;
        bank.world.sweep().await?;
        assert_eq!(bank.get(&id).await?.field("status"), status, "{now}");
    }
    Ok(())
}
