//! Which payments a run names, in its outcome and its log.

use anyhow::Result;
use payments_tests::LogLines;
use payments_tests::tables::number;
use serde_json::{Value, json};

use super::Announced;

/// The lines of payments that stay do not use up those of payments that cannot be read.
#[tokio::test]
async fn a_payment_that_cannot_be_read_is_named_beside_a_hundred_that_stay() -> Result<()> {
    let announced = Announced::new().await?;
    for n in 0..100 {
        announced.create_as(&format!("rent-{n}"), &json!({ "dateRule": "refuse" })).await?;
    }
    let damaged = announced.create("following").await?;
    for head in announced.world.heads("tenant").await? {
        if head["sk"].as_s().is_ok_and(|sk| sk.ends_with(&damaged)) {
            announced.world.update(&head, "SET amountMinor = :other", &[(":other", number(6))]).await?;
        }
    }
    let (log, guard) = LogLines::start();
    let outcome = announced.run("look").await?;
    drop(guard);
    assert_eq!((outcome.left.refuse, outcome.examples_left.len()), (100, 10));
    assert_eq!((outcome.unreadable, &outcome.examples_unreadable), (1, &vec![damaged.clone()]));
    let lines = log.take()?;
    let named = |message: &str| {
        let of_message = lines.iter().filter(|line| line["message"].as_str().is_some_and(|it| it.starts_with(message)));
        of_message.count()
    };
    assert_eq!((named("a payment stays due"), named("a payment of a closed date cannot")), (100, 1));
    assert!(lines.iter().any(|line| line["payment_id"] == json!(damaged)), "{damaged}");
    let line: Value = serde_json::from_str(&announced.world.outside.metrics.take().remove(0))?;
    assert_eq!((&line["LeftOnClosedDate"], &line["WaitingForRedate"]), (&json!(100), &json!(0)));
    Ok(())
}
