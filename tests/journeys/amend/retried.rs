//! A retried amendment whose first try ended between its writes: its date was decided then, and details never change.

use anyhow::{Result, ensure};
use payments_local::{Environment, Fate, Recorder};
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

/// Amends a payment to this date at an instant with this calendar, without its head, and again at another one.
async fn retried(date: &str, (calendar, first): (&str, &str), again: &str) -> Result<(World, String)> {
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
    let crashing = environment.functions(|_| Ok(dependencies.clone()))?;
    let crashed = world.send_to(&crashing, Ask::amend("tenant", &id, ("change", 1), &order(date))).await?;
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
        let (world, id) = retried(date, ("GB", first), again).await?;
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
        let (world, id) = retried(date, (calendar, first), again).await?;
        let refused = world.send(Ask::amend("tenant", &id, ("change", 1), &order(date))).await?;
        assert_eq!((refused.status, refused.problem()), (422, "idempotency-key-reused"), "{refused}");
        let anew = world.send(Ask::amend("tenant", &id, ("anew", 1), &order(date))).await?;
        assert_eq!((anew.status, anew.field("dueDate")), (200, want), "{anew}");
    }
    Ok(())
}
