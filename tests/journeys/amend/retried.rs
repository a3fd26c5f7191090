//! A retried amendment whose first try ended between its writes: its date was decided then, and details never change.

use crate::redate::bank;
use payments_tests::prelude::*;

/// Pounds have this calendar, with a cut-off at 16:00 by its clock.
fn rail(environment: &mut Environment, calendar: &str) {
    environment.calendars = format!("GBP={calendar}");
    environment.cut_offs = format!("{calendar}=16:00");
    environment.date_rule = "following".to_owned();
}

/// Amends a payment at an instant with this calendar, without its head, and advances the time to
/// another instant. Returns a function that retries the amendment under a key.
async fn retried(
    change: &Value,
    (calendar, first): (&str, &str),
    again: &str,
) -> Result<(World, impl Fn(&str) -> Ask)> {
    let world = World::with(|environment| rail(environment, "GB")).await?;
    world.set_clock("2026-11-24T10:00:00Z")?;
    let id = world.create("tenant", "rent", &order("2026-12-22")).await?;
    world.set_clock(first)?;
    let refused = Fate::Refuse(400, "AccessDeniedException");
    let recorder = Recorder::with_fate(move |call| if call.operation == "UpdateItem" { refused } else { Fate::Pass });
    let crashing = bank(&world, &recorder, |environment| rail(environment, calendar)).await?;
    let change = change.clone();
    let amend = move |key: &str| Ask::amend("tenant", &id, (key, 1), &change);
    let crashed = world.send_to(&crashing, amend("change")).await?;
    ensure!(crashed.status >= 500, "{crashed}");
    world.set_clock(again)?;
    Ok((world, amend))
}

/// The amendment is completed while its date takes payments. Otherwise it needs a new key. An
/// amendment that keeps the date is completed even if the date has passed.
#[tokio::test]
async fn it_is_completed_while_its_date_takes_payments_or_is_that_in_force() -> Result<()> {
    let preceding = order_with("2026-11-26", json!({ "dateRule": "preceding" }));
    for (change, calendar, first, again, completed, anew) in [
        // The lead time is ten minutes.
        (order("2026-11-24"), "GB", "2026-11-24T15:49:00Z", "2026-11-24T15:50:00Z", Ok("2026-11-24"), None),
        (order("2026-12-29"), "GB", "2026-11-24T15:49:00Z", "2026-11-24T18:00:00Z", Ok("2026-12-29"), None),
        (
            order("2026-11-24"),
            "GB",
            "2026-11-24T15:49:00Z",
            "2026-11-24T18:00:00Z",
            Err("idempotency-key-reused"),
            Some("2026-11-25"),
        ),
        // T2 is open on that holiday.
        (
            order("2026-12-28"),
            "T2",
            "2026-11-24T12:00:00Z",
            "2026-11-24T13:00:00Z",
            Err("idempotency-key-reused"),
            Some("2026-12-29"),
        ),
        // The first try was moved back from Thanksgiving to a date that has passed since. Today's
        // calendar allows today.
        (preceding.clone(), "FED", "2026-11-24T12:00:00Z", "2026-11-25T12:00:00Z", Ok("2026-11-25"), None),
        (preceding, "FED", "2026-11-24T12:00:00Z", "2026-11-26T08:00:00Z", Err("date-passed"), None),
        (
            order_with("2026-12-22", json!({ "amountMinor": 6 })),
            "GB",
            "2026-12-22T10:00:00Z",
            "2026-12-23T12:00:00Z",
            Ok("2026-12-22"),
            None,
        ),
    ] {
        let (world, amend) = retried(&change, (calendar, first), again).await?;
        match completed {
            Ok(date) => {
                let reply = world.send(amend("change")).await?.with_status(200)?;
                let seen = (reply.field("dueDate"), &reply.body["amountMinor"]);
                assert_eq!(seen, (date, &change["amountMinor"]), "{again}: {reply}");
            }
            Err(problem) => drop(world.refused(amend("change"), 422, problem).await?),
        }
        if let Some(date) = anew {
            let reply = world.send(amend("anew")).await?.with_status(200)?;
            assert_eq!(reply.field("dueDate"), date, "{again}: {reply}");
        }
    }
    Ok(())
}
