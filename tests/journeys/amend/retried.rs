//! A retried amendment whose first try ended between its writes: its date was decided then, and details never change.

use anyhow::{Result, ensure};
use payments_bank::Functions;
use payments_machine::{Environment, Fate, Recorder};
use payments_tests::{Ask, World};
use serde_json::{Value, json};

fn order(date: &str) -> Value {
    json!({ "payeeAccountId": "landlord", "amountMinor": 5, "currency": "GBP", "scheduledFor": date })
}

/// Pounds have this calendar, with a cut-off at 16:00 by its clock.
fn rail(environment: &mut Environment, calendar: &str) {
    environment.calendars = format!("GBP={calendar}");
    environment.cut_offs = format!("{calendar}=16:00");
    environment.date_rule = "following".to_owned();
}

/// Amends a payment at an instant with this calendar, without its head, and lets time pass until another one.
async fn retried(order_of_change: &Value, (calendar, first): (&str, &str), again: &str) -> Result<(World, String)> {
    let world = World::with(|environment| rail(environment, "GB")).await?;
    world.set_clock("2026-11-24T10:00:00Z")?;
    let id = world.create("tenant", "rent", &order("2026-12-22")).await?;
    world.set_clock(first)?;
    let recorder = Recorder::with_fate(|call| match call.operation.as_str() {
        "UpdateItem" => Fate::Refuse(400, "AccessDeniedException"),
        _ => Fate::Pass,
    });
    let mut environment = world.environment.clone();
    rail(&mut environment, calendar);
    let dependencies = world.dependencies_over(&recorder).await;
    let crashing = Functions::within(&environment, |_| Ok(dependencies.clone()))?;
    let crashed = world.send_to(&crashing, Ask::amend("tenant", &id, ("change", 1), order_of_change)).await?;
    ensure!(crashed.status >= 500, "{crashed}");
    world.set_clock(again)?;
    Ok((world, id))
}

#[tokio::test]
async fn it_is_completed_while_its_date_takes_payments() -> Result<()> {
    for (date, first, again) in [
        // The lead time is ten minutes.
        ("2026-11-24", "2026-11-24T15:49:00Z", "2026-11-24T15:50:00Z"),
        ("2026-12-29", "2026-11-24T15:49:00Z", "2026-11-24T18:00:00Z"),
    ] {
        let (world, id) = retried(&order(date), ("GB", first), again).await?;
        let amended = world.send(Ask::amend("tenant", &id, ("change", 1), &order(date))).await?;
        assert_eq!((amended.status, amended.field("dueDate")), (200, date), "{amended}");
    }
    Ok(())
}

#[tokio::test]
async fn it_needs_a_new_key_once_its_date_takes_no_more_payments() -> Result<()> {
    for (date, calendar, first, again, want) in [
        ("2026-11-24", "GB", "2026-11-24T15:49:00Z", "2026-11-24T18:00:00Z", "2026-11-25"),
        // T2 is open on that holiday.
        ("2026-12-28", "T2", "2026-11-24T12:00:00Z", "2026-11-24T13:00:00Z", "2026-12-29"),
    ] {
        let (world, id) = retried(&order(date), (calendar, first), again).await?;
        let refused = world.send(Ask::amend("tenant", &id, ("change", 1), &order(date))).await?;
        assert_eq!((refused.status, refused.problem()), (422, "idempotency-key-reused"), "{refused}");
        let anew = world.send(Ask::amend("tenant", &id, ("anew", 1), &order(date))).await?;
        assert_eq!((anew.status, anew.field("dueDate")), (200, want), "{anew}");
    }
    Ok(())
}

/// Its first try was moved back to a date that has passed since. Today's calendar lets it be today.
#[tokio::test]
async fn its_date_is_judged_again_if_it_changed() -> Result<()> {
    let mut order = order("2026-11-26");
    order["dateRule"] = json!("preceding");
    // On Thanksgiving.
    for (again, want) in [("2026-11-25T12:00:00Z", None), ("2026-11-26T08:00:00Z", Some("date-passed"))] {
        let (world, id) = retried(&order, ("FED", "2026-11-24T12:00:00Z"), again).await?;
        let amended = world.send(Ask::amend("tenant", &id, ("change", 1), &order)).await?;
        match want {
            None => assert_eq!((amended.status, amended.field("dueDate")), (200, "2026-11-25"), "{amended}"),
            Some(problem) => assert_eq!((amended.status, amended.problem()), (422, problem), "{amended}"),
        }
    }
    Ok(())
}

/// What does not change the date is completed also when it has passed.
#[tokio::test]
async fn its_date_is_not_judged_again_if_it_is_that_in_force() -> Result<()> {
    let mut order = order("2026-12-22");
    order["amountMinor"] = json!(6);
    let (world, id) = retried(&order, ("GB", "2026-12-22T10:00:00Z"), "2026-12-23T12:00:00Z").await?;
    let amended = world.send(Ask::amend("tenant", &id, ("change", 1), &order)).await?;
    assert_eq!((amended.status, &amended.body["amountMinor"]), (200, &json!(6)), "{amended}");
    Ok(())
}
