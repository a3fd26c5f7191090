//! Changes of a payment between the reads of a redate and its writes: the redate loses, and nothing else.

use payments_tests::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Announced, HOLIDAY, ask, bank, england, moved, numbers, order, run};

/// A change of a payment in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    Cancelled,
    Claimed,
    Amended,
    /// By another run of `redate`.
    Redated,
}

async fn happen(what: Between, announced: &Announced, id: &str) -> Result<()> {
    let world = &announced.world;
    match what {
        Between::Cancelled => world.cancel("tenant", id).await?,
        Between::Claimed => {
            world.set_clock("2026-12-28T00:00:00Z")?;
            world.sweep().await?;
        }
        Between::Amended => {
            let wanted = order(&json!({ "dateRule": "following", "amountMinor": 99 }));
            world.send_to(&announced.after, Ask::amend("tenant", id, ("more", 1), &wanted)).await?.with_status(200)?;
        }
        Between::Redated => ensure!(announced.run("move").await?.moved == 1),
    }
    Ok(())
}

/// The fate of a call that ends a run.
const REFUSED: Fate = Fate::Refuse(400, "AccessDeniedException");

fn writes_details(call: &Call) -> bool {
    call.operation == "PutItem"
}

fn writes_head(call: &Call) -> bool {
    call.operation == "UpdateItem"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn whoever_was_first_wins_and_the_redate_leaves_the_payment_alone() -> Result<()> {
    for when in [writes_details, writes_head] {
        for (what, status, amount) in [
            (Between::Cancelled, "CANCELLED", 5),
            (Between::Claimed, "PENDING", 5),
            (Between::Amended, "SCHEDULED", 99),
            (Between::Redated, "SCHEDULED", 5),
        ] {
            let announced = Arc::new(Announced::new().await?);
            let id = announced.create("following").await?;
            let inside = Arc::clone(&announced);
            let payment = id.clone();
            let once = AtomicBool::new(false);
            let recorder = interrupted(
                move |call| when(call) && !once.swap(true, Ordering::Relaxed),
                move || {
                    let (inside, payment) = (Arc::clone(&inside), payment.clone());
                    async move { happen(what, &inside, &payment).await }
                },
            );
            let functions = bank(&announced.world, &recorder, england).await?;
            let outcome = run(&functions, "move").await?;
            // Another run has the same id, so this one finds its own amendment in force.
            let want = u64::from(what == Between::Redated);
            assert_eq!((outcome.moved, outcome.changed_meanwhile), (want, 1 - want), "{what:?}");
            assert!(outcome.is_complete, "{what:?}");
            let payment = announced.get(&id).await?;
            assert_has(&payment.body, &json!({ "status": status, "version": 2, "amountMinor": amount }));
        }
    }
    Ok(())
}

/// A run that ended between its writes left details that no head names. The next run names them, and writes none.
#[tokio::test]
async fn a_run_that_crashed_between_its_writes_is_completed_by_the_next() -> Result<()> {
    let announced = Announced::new().await?;
    let id = announced.create("following").await?;
    assert!(announced.move_meeting(REFUSED, writes_head).await.is_err());
    assert_eq!(announced.due(&id).await?.2, 1);
    let before = announced.world.details(&id).await?;
    assert_eq!(before.len(), 2, "first details, and those of the move");
    // Later, so that a new try would write another time.
    announced.world.set_clock("2026-12-20T10:00:00Z")?;
    assert_eq!(numbers(&announced.run("move").await?), moved(1, 1));
    assert_eq!(announced.world.details(&id).await?, before);
    // The payment changed when its head did.
    assert_eq!(announced.get(&id).await?.field("updatedAt"), "2026-12-20T10:00:00Z");
    Ok(())
}

/// If the calendar changed again in between, the crashed run's details say another date. They are of no use, and do no harm.
#[tokio::test]
async fn a_crashed_run_before_another_change_of_the_calendar_does_no_harm() -> Result<()> {
    let announced = Announced::new().await?;
    let world = &announced.world;
    let id = announced.create_as("rent", &json!({ "scheduledFor": "2026-12-25", "dateRule": "following" })).await?;
    let recorder = Recorder::with_fate(|call| if writes_head(call) { REFUSED } else { Fate::Pass });
    // T2 is open on the 28th, and England's banks are not.
    let crashing = bank(world, &recorder, |environment| environment.calendars = "GBP=T2".to_owned()).await?;
    let request =
        |calendar: &str| json!({ "action": "move", "calendar": calendar, "from": "2026-12-25", "to": HOLIDAY });
    assert!(ask(&crashing, &request("T2"), NO_DEADLINE).await.is_err());
    let outcome = ask(&announced.after, &request("GB"), NO_DEADLINE).await?;
    assert_eq!(numbers(&outcome), moved(1, 1));
    assert_eq!(announced.due(&id).await?, ("2026-12-29T00:00:00Z".to_owned(), "holiday".to_owned(), 2));
    assert_eq!(announced.versions(&id).await?.len(), 2);
    Ok(())
}

/// A payment that cannot be read is counted and named, and does not hide the others.
#[tokio::test]
async fn a_payment_that_cannot_be_read_stays_and_the_others_move() -> Result<()> {
    let announced = Announced::new().await?;
    let world = &announced.world;
    let (damaged, lost) = (announced.create("following").await?, announced.create("preceding").await?);
    let good = announced.create_as("good", &json!({ "dateRule": "following" })).await?;
    // The damaged head and its details disagree. A move would hide which is right.
    let head = world.head_of("tenant", &damaged).await?;
    world.update(&head, "SET amountMinor = :other", &[(":other", number(6))]).await?;
    world.delete(&world.environment.tables.history, &details_key(&lost)).await?;
    let outcome = announced.run("move").await?;
    assert_eq!((outcome.looked, outcome.moved, outcome.unreadable, outcome.is_complete), (3, 1, 2, true));
    assert_eq!(outcome.examples, [good]);
    assert_eq!(world.metric("RedateUnfinished")?, 1);
    Ok(())
}

/// Attributes that only a later release knows are the client's, and survive.
#[tokio::test]
async fn details_are_copied_as_they_are_stored() -> Result<()> {
    let announced = Announced::new().await?;
    let world = &announced.world;
    let data = json!({ "n": "x".repeat(3_000) });
    let id =
        announced.create_as("rent", &json!({ "dateRule": "following", "reference": "RENT 12", "data": data })).await?;
    let mut later = world.details(&id).await?.remove(0);
    later.insert("later".to_owned(), text("attribute"));
    for (name, earlier) in
        [("moveReason", "weekend"), ("calendarId", "OLD"), ("calendarVersion", "2020-01-01-00000000")]
    {
        later.insert(name.to_owned(), text(earlier));
    }
    // One that says until when an item is kept is of that item alone.
    later.insert(payments_store::KEPT_UNTIL.to_owned(), number(4_000_000_000_u64));
    world.put_items(&world.environment.tables.history, [later.clone()]).await?;
    assert_eq!(announced.run("move").await?.moved, 1);
    let copied = world.details(&id).await?.remove(1);
    for name in ["pk", "later", "data", "reference", "payeeAccountId", "scheduledFor", "dateRule", "shard"] {
        assert_eq!(copied.get(name), later.get(name), "{name}");
    }
    let own = ["slotAt", "dueAt", "dueDate", "moveReason", "calendarId", "createdBy"]
        .map(|name| copied[name].as_s().cloned().unwrap_or_default());
    assert_eq!(own, ["2026-12-28T00:00:00Z", "2026-12-29T00:00:00Z", "2026-12-29", "holiday", "GB", "b:redate"]);
    assert!(!copied.contains_key("previous") && !copied.contains_key(payments_store::KEPT_UNTIL));
    assert_ne!(copied["calendarVersion"], later["calendarVersion"]);
    assert_eq!(announced.get(&id).await?.body["data"], data);
    Ok(())
}
