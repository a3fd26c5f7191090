//! A law that changes a time zone's clocks: payments that were stored before are claimed at their instants.

use anyhow::Result;
use daily_due_sweeper::{Action, Request};
use lambda_runtime::LambdaEvent;
use payments_bank::Functions;
use payments_tests::tables::{NO_DEADLINE, context};
use payments_tests::{Ask, World};
use serde_json::json;

async fn sweep(functions: &Functions) -> Result<()> {
    let event = LambdaEvent::new(Request { action: Action::Sweep }, context(NO_DEADLINE));
    functions.sweeper.handle(event).await.map(drop).map_err(anyhow::Error::from_boxed)
}

#[tokio::test]
async fn a_payment_of_the_old_law_is_claimed_at_its_instant_and_not_before() -> Result<()> {
    for (old, new, scheduled_for, due_at) in [
        // Since the change the next date begins earlier, and its payments are behind this one.
        ("Etc/GMT+8", "Etc/GMT+7", "2026-11-26T23:55:00-08:00", "2026-11-27T07:55:00Z"),
        // It begins later: the payment's date is not today's yet.
        ("Etc/GMT-1", "UTC", "2026-11-27", "2026-11-26T23:00:00Z"),
        ("Etc/GMT-3", "UTC", "2026-11-27", "2026-11-26T21:00:00Z"),
        ("UTC", "UTC", "2026-11-27", "2026-11-27T00:00:00Z"),
    ] {
        let mut world = World::with(|environment| environment.time_zone = old.to_owned()).await?;
        let body =
            json!({ "payeeAccountId": "shop", "amountMinor": 5, "currency": "GBP", "scheduledFor": scheduled_for });
        let id = world.create("payer", "one", &body).await?;
        world.environment.time_zone = new.to_owned();
        let functions = world.functions_in(&world.dependencies(world.client().await))?;
        let due: payments_model::UtcSecond = due_at.parse()?;
        let just_before = due.saturating_add(chrono::TimeDelta::seconds(-1)).to_string();
        for (at, want) in [(just_before.as_str(), "SCHEDULED"), (due_at, "PENDING")] {
            world.set_clock(at)?;
            sweep(&functions).await?;
            let found = world.send(Ask::get(&format!("/accounts/payer/payments/{id}"))).await?;
            assert_eq!(found.field("status"), want, "{old} to {new}, at {at}: {found}");
        }
    }
    Ok(())
}
