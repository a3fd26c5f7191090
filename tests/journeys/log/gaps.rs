//! What the log may lack is marked in it: what the stream dropped, and what a repair found.

use anyhow::Result;
use chrono::TimeDelta;
use lambda_runtime::LambdaEvent;
use payments_tests::tables::{NO_DEADLINE, context};
use payments_tests::{Counting, World};

use super::*;

/// The types of all events, and the gaps among them.
async fn types(world: &World) -> Result<(Vec<String>, Vec<Value>)> {
    let events = events(&all(world, 1_000).await?)?;
    let gaps = events.iter().filter(|event| event["type"] == "log.gap").cloned().collect();
    Ok((events.iter().map(|event| event["type"].as_str().unwrap_or_default().to_owned()).collect(), gaps))
}

#[tokio::test]
async fn a_record_that_is_almost_dropped_marks_a_gap_before_it() -> Result<()> {
    let world = World::open().await?;
    let mut counting = Counting::of(&world).await?;
    for (n, age, gaps) in [(0, TimeDelta::hours(23), 0), (1, TimeDelta::hours(24), 1)] {
        create(&world, 2, 2 * n).await?;
        drop(world.outside.metrics.take());
        counting.count_made_at(world.functions(), world.now().saturating_add(-age)).await?;
        assert_eq!(world.metric("LogGaps")?, gaps);
    }
    let (types, gaps) = types(&world).await?;
    let scheduled = "payment.scheduled";
    assert_eq!(types, [scheduled, scheduled, "log.gap", scheduled, scheduled]);
    assert_eq!((&gaps[0]["until"], gaps[0].get("since")), (&json!("2026-11-19T09:00:00Z"), None));
    assert_eq!(gaps[0]["id"], "3622140-gap-2");
    // A new mapping reads all of it again, and marks nothing twice.
    Counting::of(&world)
        .await?
        .count_made_at(world.functions(), world.now().saturating_add(-TimeDelta::hours(24)))
        .await?;
    assert_eq!(all(&world, 1_000).await?.len(), 5);
    Ok(())
}

/// A stream shard that ended and was dropped leaves no old record behind. But what is not counted is drift.
#[tokio::test]
async fn what_the_counters_lack_is_a_gap_once_they_are_repaired() -> Result<()> {
    let world = World::open().await?;
    let mut counting = Counting::of(&world).await?;
    create(&world, 1, 0).await?;
    counting.count(world.functions()).await?;
    create(&world, 1, 1).await?;
    counting.skip().await?;
    let run = |action: &'static str| {
        let request = json!({ "action": action, "from": "2026-12-01", "to": "2026-12-03" });
        let world = &world;
        async move {
            let event = LambdaEvent::new(serde_json::from_value(request)?, context(NO_DEADLINE));
            world.functions().recount.handle(event).await.map_err(anyhow::Error::msg)
        }
    };
    for (n, now, action, repaired, marked) in [
        // It can be late.
        (2, "2026-11-20T10:00:00Z", "recount", 0, 0),
        (3, "2026-11-21T12:00:00Z", "repair", 1, 1),
        (4, "2026-11-22T12:00:00Z", "repair", 0, 1),
    ] {
        world.set_clock(now)?;
        assert_eq!(run(action).await?.repaired, repaired);
        create(&world, 1, n).await?;
        counting.count(world.functions()).await?;
        assert_eq!(types(&world).await?.1.len(), marked);
    }
    let (_, gaps) = types(&world).await?;
    assert_eq!((gaps[0].get("since"), &gaps[0]["until"]), (None, &json!("2026-11-20T10:00:10Z")));
    Ok(())
}
