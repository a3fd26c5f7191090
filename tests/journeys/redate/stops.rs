//! How a redate ends before its last payment, and that repeating it goes on.

use anyhow::Result;
use payments_machine::{Call, Fate, Recorder};
use payments_tests::tables::NO_DEADLINE;
use serde_json::json;

use super::{Announced, HOLIDAY, ask, bank, england, run};

#[tokio::test]
async fn a_run_without_time_says_where_to_continue() -> Result<()> {
    let announced = Announced::new().await?;
    announced.create("following").await?;
    drop(announced.world.recorder.take_operations());
    let request = json!({ "action": "move", "calendar": "GB", "from": "2026-12-20", "to": "2026-12-31" });
    let outcome = ask(&announced.after, &request, 0).await?;
    assert_eq!((outcome.is_complete, outcome.next.as_deref()), (false, Some("2026-12-20")));
    assert!(announced.world.recorder.take_operations().is_empty());
    assert_eq!(announced.world.metric("RedateUnfinished")?, 1);
    assert_eq!(ask(&announced.after, &request, NO_DEADLINE).await?.moved, 1);
    Ok(())
}

/// A write that is throttled too often ends the shard; the next run moves what is left, each payment once.
#[tokio::test]
async fn repeating_a_throttled_run_goes_on() -> Result<()> {
    for operation in ["PutItem", "UpdateItem", "BatchGetItem", "Query"] {
        let announced = Announced::new().await?;
        for n in 0..3 {
            announced.create_as(&format!("rent-{n}"), &json!({ "dateRule": "following" })).await?;
        }
        let throttles = move |call: &Call| call.operation == operation;
        let recorder =
            Recorder::with_fate(
                move |call| {
                    if throttles(call) { Fate::Refuse(400, "ThrottlingException") } else { Fate::Pass }
                },
            );
        let throttled = bank(&announced.world, &recorder, england).await?;
        let outcome = run(&throttled, "move").await?;
        assert_eq!(
            (outcome.moved, outcome.is_complete, outcome.next.as_deref()),
            (0, false, Some(HOLIDAY)),
            "{operation}"
        );
        let outcome = announced.run("move").await?;
        assert_eq!((outcome.moved, outcome.is_complete), (3, true), "{operation}");
        for payment in announced.world.heads("tenant").await? {
            assert_eq!(payment["version"].as_n().map(String::as_str), Ok("2"), "{operation}");
        }
    }
    Ok(())
}

/// Two writes for each payment, at the pace of the archive.
#[tokio::test]
async fn a_run_keeps_its_pace() -> Result<()> {
    let announced = Announced::with(|environment| {
        environment.shards = 1;
        environment.moves_per_second = 2;
    });
    let announced = announced.await?;
    for n in 0..20 {
        announced.create_as(&format!("rent-{n}"), &json!({ "dateRule": "following" })).await?;
    }
    let began = announced.world.now().as_chrono();
    assert_eq!(announced.run("look").await?.waiting, 20);
    assert_eq!((announced.world.now().as_chrono() - began).num_seconds(), 0, "a look writes nothing");
    assert_eq!(announced.run("move").await?.moved, 20);
    assert_eq!((announced.world.now().as_chrono() - began).num_seconds(), 10);
    Ok(())
}
