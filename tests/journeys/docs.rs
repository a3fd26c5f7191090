//! Holds `docs/problems.md` to the code: every problem is in it, and several faults of one request
//! are reported in its order.

use std::path::Path;

use anyhow::{Context as _, Result};
use payments_http::Kind;
use payments_http::problem::TYPE_BASE;
use payments_tests::{Ask, World};

#[test]
fn every_problem_is_documented_in_the_order_of_reporting() -> Result<()> {
    let document = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/problems.md"))?;
    assert!(document.contains(TYPE_BASE));
    let (_, table) = document.split_once("\n## Every problem\n").context("no table of problems")?;
    let (table, _) = table.split_once("\n## ").context("no end of the table")?;
    let documented: Vec<(&str, &str)> = table.lines().filter_map(row).collect();
    let kinds = Kind::ALL.map(|kind| (kind.facts().0.to_string(), format!("`{}`", kind.facts().1)));
    let kinds: Vec<(&str, &str)> = kinds.iter().map(|(status, slug)| (status.as_str(), slug.as_str())).collect();
    assert_eq!(documented, kinds);
    Ok(())
}

/// The status and type of a table's row.
fn row(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.strip_prefix("| ")?.split(" | ");
    let (status, slug) = (cells.next()?, cells.next()?);
    status.parse::<u16>().is_ok().then_some((status, slug))
}

#[tokio::test]
async fn of_several_faults_the_first_in_that_order_is_reported() -> Result<()> {
    let world = World::open().await?;
    let used = body("landlord", "1", "GBP", "2026-12-01", 1);
    assert_eq!(world.send(create("tenant", "used", &used)).await?.status, 201);
    let (bad, long) = ("a%231", "{".repeat(70_000));
    // Each row heals the fault of the row above it and keeps those of the rows below.
    for (kind, ask) in [
        (Kind::NoSuchRoute, create(&format!("{bad}/b"), "", &long).header("Content-Type", "text/plain")),
        (Kind::UnsupportedMediaType, create(bad, "", &long).header("Content-Type", "text/plain")),
        (Kind::BodyTooLarge, create(bad, "", &long)),
        (Kind::InvalidParameter, create(bad, "", "{")),
        (Kind::InvalidIdempotencyKey, create("tenant", "", "{")),
        (Kind::NotJson, create("tenant", "used", "{")),
        (Kind::InvalidShape, create("tenant", "used", &body("tenant", "\"x\"", "?", "?", 9_000))),
        (Kind::InvalidPayee, create("tenant", "used", &body("tenant", "1.5", "?", "?", 9_000))),
        (Kind::InvalidAmount, create("tenant", "used", &body("landlord", "1.5", "?", "?", 9_000))),
        (Kind::InvalidCurrency, create("tenant", "used", &body("landlord", "2", "?", "?", 9_000))),
        (Kind::InvalidDate, create("tenant", "used", &body("landlord", "2", "GBP", "?", 9_000))),
        (Kind::PaymentTooLarge, create("tenant", "used", &body("landlord", "2", "GBP", "2026-12-01", 9_000))),
        (Kind::IdempotencyKeyReused, create("tenant", "used", &body("landlord", "2", "GBP", "2026-12-01", 1))),
    ] {
        let reply = world.send(ask).await?;
        assert_eq!(reply.problem(), kind.facts().1, "{reply}");
    }
    world.close().await
}

#[tokio::test]
async fn the_fine_print_of_the_order_is_true() -> Result<()> {
    let world = World::open().await?;
    let used = body("landlord", "1", "GBP", "2026-12-01", 1);
    assert_eq!(world.send(create("tenant", "used", &used)).await?.status, 201);
    for (kind, ask) in [
        (Kind::InvalidShape, create("tenant", "new", r#"{"urgent":true,"#)),
        (Kind::DatePassed, create("tenant", "new", &body("landlord", "2", "GBP", "2026-11-19", 9_000))),
        (Kind::DateBeyondHorizon, create("tenant", "new", &body("landlord", "2", "GBP", "2036-11-19", 9_000))),
        (Kind::IdempotencyKeyReused, create("tenant", "used", &body("landlord", "2", "GBP", "2026-11-19", 9_000))),
        (Kind::InvalidParameter, Ask::cancel("a%231", "p").header("Content-Type", "text/plain").text("{")),
    ] {
        let reply = world.send(ask).await?;
        assert_eq!(reply.problem(), kind.facts().1, "{reply}");
    }
    world.close().await
}

fn create(account: &str, key: &str, body: &str) -> Ask {
    Ask::post(&format!("/accounts/{account}/payments")).header("Idempotency-Key", key).text(body)
}

fn body(payee: &str, amount: &str, currency: &str, date: &str, data: usize) -> String {
    let data = "x".repeat(data);
    format!(
        r#"{{"payeeAccountId":"{payee}","amountMinor":{amount},"currency":"{currency}","scheduledFor":"{date}","data":"{data}"}}"#
    )
}
