//! A law that changes a time zone's clocks: payments that were stored before are claimed at their instants.

use chrono::TimeDelta;
use payments_model::UtcSecond;
use payments_tests::prelude::*;

#[tokio::test]
async fn a_payment_of_the_old_law_is_claimed_at_its_instant_and_not_before() -> Result<()> {
    for (old, new, scheduled_for, due_at) in [
        // Since the change the next date begins earlier, and its payments are behind this one.
        ("Etc/GMT+8", "Etc/GMT+7", "2026-11-26T23:55:00-08:00", "2026-11-27T07:55:00Z"),
        // The next date begins later: the payment's date is not today's yet.
        ("Etc/GMT-1", "UTC", "2026-11-27", "2026-11-26T23:00:00Z"),
        ("Etc/GMT-3", "UTC", "2026-11-27", "2026-11-26T21:00:00Z"),
        ("UTC", "UTC", "2026-11-27", "2026-11-27T00:00:00Z"),
    ] {
        let world = World::with(|environment| environment.time_zone = old.to_owned()).await?;
        let id = world.create("payer", "one", &order(scheduled_for)).await?;
        let functions = world.functions_with(|environment| environment.time_zone = new.to_owned()).await?;
        let just_before = due_at.parse::<UtcSecond>()?.saturating_add(TimeDelta::seconds(-1)).to_string();
        for (at, want) in [(just_before.as_str(), "SCHEDULED"), (due_at, "PENDING")] {
            world.set_clock(at)?;
            invoke(|event| functions.sweeper.handle(event), json!({ "action": "sweep" })).await?;
            let found = world.payment("payer", &id).await?;
            assert_eq!(found.field("status"), want, "{old} to {new}, at {at}: {found}");
        }
    }
    Ok(())
}
