//! The payments that a run names, in its outcome and its log.

use payments_tests::LogLines;
use payments_tests::prelude::*;

use super::Announced;

/// The lines of payments that stay do not use up those of payments that cannot be read.
#[tokio::test]
async fn a_payment_that_cannot_be_read_is_named_beside_a_hundred_that_stay() -> Result<()> {
    let announced = Announced::new().await?;
    announced.create_many(100, "refuse").await?;
    let damaged = announced.create("following").await?;
    let head = announced.world.head_of("tenant", &damaged).await?;
    announced.world.update(&head, "SET amountMinor = :other", &[(":other", number(6))]).await?;
    let (log, guard) = LogLines::start();
    let outcome = announced.run("look").await?;
    drop(guard);
    assert_eq!((outcome.left.refuse, outcome.examples_left.len()), (100, 10));
    assert_eq!((outcome.unreadable, &outcome.examples_unreadable), (1, &vec![damaged.clone()]));
    let lines = log.take()?;
    let named = |message: &str| {
        lines.iter().filter(|line| line["message"].as_str().is_some_and(|it| it.starts_with(message))).count()
    };
    assert_eq!((named("a payment stays due"), named("a payment of a closed date cannot")), (100, 1));
    assert!(lines.iter().any(|line| line["payment_id"] == json!(damaged)), "{damaged}");
    let line: Value = serde_json::from_str(&announced.world.outside.metrics.take().remove(0))?;
    assert_has(&line, &json!({ "LeftOnClosedDate": 100, "WaitingForRedate": 0 }));
    Ok(())
}
