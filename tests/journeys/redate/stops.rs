//! A redate that ends before its last payment: a repeated run continues.

use super::{Announced, HOLIDAY, ask};
use payments_tests::prelude::*;

/// A write that is throttled too often ends the shard; the next run moves what is left, each payment once.
#[tokio::test]
async fn repeating_a_throttled_run_goes_on() -> Result<()> {
    for operation in ["PutItem", "UpdateItem", "BatchGetItem", "Query"] {
        let announced = Announced::new().await?;
        announced.create_many(3, "following").await?;
        let throttled = Fate::Refuse(400, "ThrottlingException");
        let outcome = announced.move_meeting(throttled, move |call| call.operation == operation).await?;
        let ends = (outcome.moved, outcome.is_complete, outcome.next.as_deref());
        assert_eq!(ends, (0, false, Some(HOLIDAY)), "{operation}");
        let outcome = announced.run("move").await?;
        assert_eq!((outcome.moved, outcome.is_complete), (3, true), "{operation}");
        for payment in announced.world.heads("tenant").await? {
            assert_eq!(payment["version"].as_n().map(String::as_str), Ok("2"), "{operation}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_run_without_time_calls_nothing_and_says_where_to_continue() -> Result<()> {
    let announced = Announced::new().await?;
    announced.create("following").await?;
    announced.world.forget();
    let request = json!({ "action": "move", "calendar": "GB", "from": "2026-12-20", "to": "2026-12-31" });
    let outcome = ask(&announced.after, &request, 0).await?;
    assert_eq!((outcome.is_complete, outcome.next.as_deref()), (false, Some("2026-12-20")));
    assert!(announced.world.recorder.take_operations().is_empty());
    assert_eq!(ask(&announced.after, &request, NO_DEADLINE).await?.moved, 1);
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
    announced.create_many(20, "following").await?;
    let began = announced.world.now().as_chrono();
    assert_eq!(announced.run("look").await?.waiting, 20);
    assert_eq!((announced.world.now().as_chrono() - began).num_seconds(), 0, "a look writes nothing");
    assert_eq!(announced.run("move").await?.moved, 20);
    assert_eq!((announced.world.now().as_chrono() - began).num_seconds(), 10);
    Ok(())
}
