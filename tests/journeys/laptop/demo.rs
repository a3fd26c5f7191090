//! `cargo local demo`, and the triggers that it and `cargo local` run on.

use chrono::TimeDelta;
use payments_boot::Clock;
use payments_local::demo::{self, Progress, Settings};
use payments_machine::client::{Client, Request};
use payments_machine::payload::DataKind;
use payments_machine::transaction_service::TransactionServiceSettings;
use payments_machine::triggers::Triggers;
use payments_machine::{EngineChoice, Stack};
use payments_tests::prelude::*;

const DAY: Settings = Settings { payments: 200, seed: 1, data_bytes: None, data_kind: DataKind::Structured };

/// Simulates a day that must go well, and writes a line now and then, as without a terminal.
async fn play(settings: Settings) -> Result<Value> {
    let (reports, (sends, lines)) = (tempfile::tempdir()?, std::sync::mpsc::channel());
    let progress = Progress::in_lines(move |line| drop(sends.send(line.to_owned())))?;
    let summary = demo::run(&settings, reports.path(), &progress).await?;
    summary.check()?;
    let lines: Vec<String> = lines.try_iter().collect();
    for (begins, ends) in [
        ("2026-11-20 01:00  the feed     ", " created, 0 settled, 0 reported".to_owned()),
        ("2026-11-20 12:00  the day      ", " reported".to_owned()),
        ("2026-11-20 21:00  the evening  ", format!("{0} reported", settings.payments)),
        ("2026-11-21 00:00  the night    ", format!("{0} created, {0} settled, {0} reported", settings.payments)),
        ("2026-11-22 14:00  heads expire", String::new()),
        ("reading every payment", String::new()),
    ] {
        let is_there = lines.iter().any(|line| line.starts_with(begins) && line.ends_with(&ends));
        assert!(is_there, "{begins}…{ends}: {lines:?}");
    }
    // The bar counts these and three more of each payment.
    let counts = summary.counts;
    assert_eq!(demo::steps(settings.payments), 4 * settings.payments + counts.claimed + counts.settled());
    let again = demo::run(&settings, reports.path(), &Progress::hidden()?).await.err().context("a used folder")?;
    assert!(again.to_string().contains("give --reports a new folder"), "{again}");
    Ok(summary.json())
}

#[tokio::test]
async fn a_day_settles_every_payment_and_a_seed_repeats_it() -> Result<()> {
    let mut day = play(DAY).await?;
    let count = |path: &str| day.pointer(path).and_then(Value::as_u64).with_context(|| format!("{path} in {day}"));
    let (processed, failed) = (count("/byStatus/PROCESSED")?, count("/byStatus/FAILED")?);
    assert_eq!(processed + failed, 200);
    assert!(failed > 0, "some fail: {day}");
    for path in ["/byStatus/SCHEDULED", "/byStatus/PENDING", "/byStatus/CANCELLED", "/duplicateOutcomes"] {
        assert_eq!(count(path)?, 0, "{path}");
    }
    assert_eq!((count("/requestsSent")?, count("/transactionIds")?), (200, processed));
    assert!(count("/repeatedResults")? > 0, "some results come twice: {day}");
    assert_eq!(count("/writeUnitTotals/pending")?, 3 * 200);
    // A failed payment has no transaction id in an index. One that was moved is in one more.
    let (amended, moved) = (count("/amended")?, count("/moved")?);
    assert!(0 < moved && moved < amended, "{day}");
    assert_eq!(count("/writeUnitTotals/settled")?, 7 * processed + 6 * failed + moved);
    assert_eq!(day["writeUnits"]["pending"], json!(3));
    assert_eq!(day["countersEqualRecount"], json!(true));
    assert_eq!((count("/reported")?, count("/archived")?, count("/leftInHotTable")?), (200, 200, 0));
    assert_eq!(count("/altered")?, 0);
    assert_eq!((count("/movedOffWeekend")?, count("/movedOffHoliday")?, count("/sealed")?), (20, 20, 200));
    assert_eq!(count("/webhookEvents")?, 3 * 200 + amended, "created, claimed, settled, and perhaps amended");
    // Each run of the report commits and finishes its job, one unit each.
    assert_eq!(count("/writeUnitTotals/reported")?, 2 * 200 + 2 * count("/reportFiles")?);
    for path in ["/writeUnits/insert", "/writeUnits/settled", "/writeUnits/perPayment", "/writeUnits/counters"] {
        assert!(day.pointer(path).is_some_and(Value::is_number), "{path} in {day}");
    }
    for phase in ["ingest", "sweep", "dispatch", "settle", "count", "report"] {
        assert!(day["seconds"][phase].is_number(), "{phase} in {day}");
    }

    let mut again = play(DAY).await?;
    for day in [&mut day, &mut again] {
        day["seconds"].take();
        day["reports"].take();
        // Creates are concurrent, so the order of their records, and with it the dates of a batch, is the machine's.
        day["writeUnits"]["counters"].take();
        day["writeUnitTotals"]["counters"].take();
        // So is the time at which a receiver answers.
        day["webhookMessages"].take();
    }
    assert_eq!(day, again);
    Ok(())
}

#[tokio::test]
async fn payments_of_8_kb_cost_their_budget() -> Result<()> {
    for (data_kind, details) in [(DataKind::Incompressible, 8), (DataKind::Prose, 4), (DataKind::Structured, 2)] {
        assert_budget(data_kind, details).await?;
    }
    Ok(())
}

/// Simulates a day with payments whose details cost so many units.
async fn assert_budget(data_kind: DataKind, details: u64) -> Result<()> {
    let day = play(Settings { payments: 20, data_bytes: Some(7_400), data_kind, ..DAY }).await?;
    let total = |phase: &str| day["writeUnitTotals"][phase].as_u64().unwrap_or(0);
    let (processed, failed) = (&day["byStatus"]["PROCESSED"], &day["byStatus"]["FAILED"]);
    let (processed, failed) = (processed.as_u64().unwrap_or(0), failed.as_u64().unwrap_or(0));
    assert_eq!((processed + failed, total("insert"), total("pending")), (20, (details + 2) * 20, 3 * 20), "{day}");
    let [amended, moved, units] =
        ["amended", "moved", "amendmentWriteUnits"].map(|name| day[name].as_u64().unwrap_or(0));
    assert_eq!(total("settled"), 7 * processed + 6 * failed + moved);
    assert_eq!(units, (details + 2) * amended + 2 * moved, "{day}");
    let runs = 2 * day["reportFiles"].as_u64().unwrap_or(0);
    assert_eq!(total("reported") - runs, 2 * 20);
    // A processed payment costs 14 units in its whole life, and those of its details.
    let life: u64 = ["insert", "pending", "settled", "reported"].map(total).iter().sum();
    assert_eq!(life - runs, (14 + details) * processed + (13 + details) * failed + moved);
    Ok(())
}

#[tokio::test]
async fn a_tick_runs_what_is_due_and_lists_it() -> Result<()> {
    let start = chrono::DateTime::from_timestamp(1_795_168_800, 0).context("an instant")?;
    let clock = Clock::simulated(move || start, |_| {});
    let stack = Stack::on(EngineChoice::Memory).clock(&clock).start().await?;
    let functions = Functions::on(&stack, &stack.environment.client())?;
    let service = TransactionServiceSettings {
        failures_per_thousand: 0,
        repeats_per_thousand: 0,
        ..TransactionServiceSettings::seeded(1)
    };
    let mut triggers =
        Triggers::new(&stack, Arc::new(functions.clone()), service).await?.with_period("sweep", TimeDelta::minutes(1));
    assert_eq!(triggers.tick(start).await.to_string(), "", "there is nothing to do");

    let body = json!({ "payeeAccountId": "b", "amountMinor": 5, "currency": "GBP", "scheduledFor": "2026-11-20" });
    let client = Client::for_functions(Arc::new(functions), clock)?;
    let put = client.send_until(&Request::create("a", "coffee", &body), |_| true).await?;
    assert_eq!(put.status, 201, "{put:?}");
    for (seconds, told) in [
        (59, ""),
        (60, "sweep: 1 claimed, 0 left · dispatch: 1 sent"),
        (61, ""),
        (150, "transaction service: 1 answered · settle: 1 processed, 0 failed · counts of 2026-11-20: 1 PROCESSED"),
        (151, ""),
        (8_000, "report: 1 payments"),
    ] {
        assert_eq!(triggers.tick(start + TimeDelta::seconds(seconds)).await.to_string(), told, "after {seconds} s");
    }
    stack.stop().await
}
