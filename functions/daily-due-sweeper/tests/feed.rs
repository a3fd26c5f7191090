//! `daily-due-sweeper` in a bank that expects a feed: each sweep says whether today's is missing.

use anyhow::{Context as _, Result};
use daily_due_sweeper::{Config, SweepOutcome, Sweeper, SweeperOutcome};
use payments_boot::Lookup;
use payments_machine::given::Given;
use payments_model::{DayCounts, Money, Status};
use serde_json::json;

/// A machine at a time whose bank expects two payments by half past nine in London.
async fn expecting(now: &str, calendars: &str) -> Result<Given> {
    Given::at(now, |environment| {
        (environment.feed_by, environment.feed_payments) = ("09:30".to_owned(), "2".to_owned());
        environment.calendars = calendars.to_owned();
    })
    .await
}

async fn sweep(given: &Given) -> Result<SweepOutcome> {
    let sweeper = given.function("daily-due-sweeper", Config::read, Sweeper::new)?;
    let swept = sweeper.handle(given.scheduled_event(json!({ "action": "sweep" }))?).await;
    let SweeperOutcome::Sweep(outcome) = swept.map_err(anyhow::Error::from_boxed)? else {
        anyhow::bail!("the outcome is a redrive's");
    };
    Ok(outcome)
}

fn counts(statuses: &[Status]) -> Result<DayCounts> {
    let (mut counts, money) = (DayCounts::default(), Money { amount: "500".parse()?, currency: "GBP".parse()? });
    statuses.iter().for_each(|status| counts.enter(*status, money));
    Ok(counts)
}

#[tokio::test]
async fn a_day_that_has_too_few_payments_by_the_time_of_its_feed_lacks_it() -> Result<()> {
    use Status::{Cancelled, Pending, Processed, Scheduled};
    const CALENDARS: &str = "EUR=T2,GBP=GB";
    for (now, calendars, statuses, is_missing) in [
        // In summer, half past nine is half past eight in UTC.
        ("2026-07-01T08:29:00Z", CALENDARS, &[][..], false),
        ("2026-07-01T08:30:00Z", CALENDARS, &[], true),
        ("2026-07-01T08:30:00Z", CALENDARS, &[Scheduled], true),
        ("2026-07-01T08:30:00Z", CALENDARS, &[Pending, Processed], false),
        ("2026-07-01T08:30:00Z", CALENDARS, &[Scheduled, Cancelled, Cancelled], true),
        ("2026-07-01T22:59:00Z", CALENDARS, &[Scheduled], true),
        ("2026-07-01T23:00:00Z", CALENDARS, &[], false),
        // A Saturday; Easter Monday; a bank holiday in London alone.
        ("2026-07-04T12:00:00Z", CALENDARS, &[], false),
        ("2026-07-04T12:00:00Z", "", &[], true),
        ("2026-04-06T12:00:00Z", CALENDARS, &[], false),
        ("2026-08-31T12:00:00Z", CALENDARS, &[], true),
        ("2026-08-31T12:00:00Z", "GBP=GB", &[], false),
    ] {
        let given = expecting(now, calendars).await?;
        given.counted(now[..10].parse()?, counts(statuses)?).await?;
        let outcome = sweep(&given).await?;
        assert_eq!(outcome.feed_missing, Some(is_missing.into()), "{now} {calendars} {statuses:?}");
        let raised = given.raised()?.contains(&"FeedMissing 1".to_owned());
        assert_eq!(raised, is_missing, "{now} {calendars} {statuses:?}");
    }
    Ok(())
}

#[tokio::test]
async fn without_counters_or_an_expected_feed_nothing_is_said() -> Result<()> {
    let given = expecting("2026-11-20T12:00:00Z", "").await?;
    let damaged = json!({ "pk": { "S": "COUNTS#0" }, "sk": { "S": "2026-11-20" }, "SCHEDULED": { "S": "two" } });
    let engine = given.stack.direct().context("the engine is embedded")?;
    engine.call("PutItem", &json!({ "TableName": "payments", "Item": damaged }))?;
    assert_eq!(sweep(&given).await?.feed_missing, None);
    let given = Given::at("2026-11-20T12:00:00Z", |_| {}).await?;
    assert_eq!(sweep(&given).await?.feed_missing, None);
    Ok(())
}

#[tokio::test]
async fn half_an_expected_feed_is_an_error() -> Result<()> {
    for (by, payments, want) in [
        ("09:30", "", "FEED_PAYMENTS is not set"),
        ("", "2", "FEED_BY is not set"),
        ("9:30", "2", "FEED_BY is \"9:30\": \"9:30\" is not a time as hh:mm, from 04:00 to 23:59"),
        ("09:30", "two", "FEED_PAYMENTS is \"two\""),
    ] {
        let given = Given::at("2026-11-20T12:00:00Z", |_| {}).await?;
        let read = Config::read(&Lookup::new(&|name| match name {
            "FEED_BY" => Some(by.to_owned()),
            "FEED_PAYMENTS" => Some(payments.to_owned()),
            name => given.stack.environment.get("daily-due-sweeper", name),
        }));
        let error = read.expect_err(want).to_string();
        assert!(error.contains(want), "{error}");
    }
    Ok(())
}
