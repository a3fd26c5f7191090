//! The billing report: every settlement in exactly one published file, whatever happens.

mod crashes;
mod faulty_store;
mod races;
pub(crate) mod settlements;
mod stale_index;

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::DateTime;
use insta::assert_snapshot;
use payments_bank::Functions;
use payments_machine::{Fate, Recorder};
use payments_model::MAX_AMOUNT_MINOR;
use payments_tests::World;
use payments_tests::tables::Units;
use serde_json::{Value, json};

use settlements::{
    Bill, files, invoke, many, measured, published, reported_ids, rows, run, settle, settled, unreported,
};

/// Three settlements of two payees, in two statuses and two currencies.
const BILLS: [Bill; 3] = [
    Bill { account: "tenant-1", payee: "landlord", amount: 120_000, currency: "GBP", outcome: Ok("TX-1") },
    Bill {
        account: "tenant-2",
        payee: "landlord",
        amount: 95_050,
        currency: "GBP",
        outcome: Err("insufficient funds"),
    },
    Bill { account: "tenant-1", payee: "gym", amount: 3_999, currency: "EUR", outcome: Ok("TX-2") },
];

/// Makes CRLF visible.
fn visible(csv: &str) -> String {
    csv.replace('\r', "␍")
}

#[tokio::test]
async fn the_first_report_lists_each_settlement_once() -> Result<()> {
    let world = World::open().await?;
    settled(&world, "2026-11-20T09:20:00Z", &BILLS).await?;
    world.set_clock("2026-11-20T10:00:00Z")?;
    let answer = run(&world).await?;
    assert_snapshot!(serde_json::to_string_pretty(&answer)?, @r#"
    {
      "alreadyDrained": 0,
      "drained": 3,
      "failed": 0,
      "moreWaits": false,
      "oldestUnreportedSeconds": 2400,
      "published": [
        "reports/2026-11-20T092000Z--2026-11-20T092000Z-run-000001.summary.json",
        "reports/2026-11-20T092000Z--2026-11-20T092000Z-run-000001.csv.gz"
      ],
      "reported": 3,
      "runsCommitted": 1,
      "skipped": 0
    }
    "#);
    let files = files(&world).await?;
    let names: Vec<&str> = files.keys().map(String::as_str).filter(|name| name.starts_with("reports/")).collect();
    assert_snapshot!(names.join("\n"), @r#"
    reports/2026-11-20T092000Z--2026-11-20T092000Z-run-000001.csv.gz
    reports/2026-11-20T092000Z--2026-11-20T092000Z-run-000001.summary.json
    "#);
    assert_snapshot!(visible(&settlements::unzipped(&files[names[0]])?), @r#"
    paymentId,accountId,payeeAccountId,amountMinor,currency,dueAt,dueDate,status,transactionId,failureCode,failureReason,settledAt,reference␍
    4a4a943c-4c6b-5dac-a4d9-52fac7182040,tenant-1,landlord,120000,GBP,2026-11-20T00:00:00Z,2026-11-20,PROCESSED,TX-1,,,2026-11-20T09:20:00Z,␍
    9113225e-6b26-5e66-b41f-9b7ee1a8bfc6,tenant-1,gym,3999,EUR,2026-11-20T00:00:00Z,2026-11-20,PROCESSED,TX-2,,,2026-11-20T09:20:00Z,␍
    b1059a51-c5ab-5259-b5e4-d09f4618fc92,tenant-2,landlord,95050,GBP,2026-11-20T00:00:00Z,2026-11-20,FAILED,,AM04,insufficient funds,2026-11-20T09:20:00Z,␍
    "#);
    assert_snapshot!(String::from_utf8(files[names[1]].clone())?, @r#"
    {
      "run": 1,
      "report": "reports/2026-11-20T092000Z--2026-11-20T092000Z-run-000001.csv.gz",
      "rows": 3,
      "firstSettledAt": "2026-11-20T09:20:00Z",
      "lastSettledAt": "2026-11-20T09:20:00Z",
      "payees": [
        {
          "payeeAccountId": "gym",
          "status": "PROCESSED",
          "currency": "EUR",
          "count": 1,
          "sumMinor": 3999
        },
        {
          "payeeAccountId": "landlord",
          "status": "PROCESSED",
          "currency": "GBP",
          "count": 1,
          "sumMinor": 120000
        },
        {
          "payeeAccountId": "landlord",
          "status": "FAILED",
          "currency": "GBP",
          "count": 1,
          "sumMinor": 95050
        }
      ]
    }
    "#);
    assert_eq!(files.len(), 4, "two files, as attempt and published: {:?}", files.keys());
    assert_eq!(unreported(&world).await?, BTreeSet::new());
    assert_snapshot!(measured(&world)?, @r#"{"Drained":3,"Function":"captured","OldestUnreportedSeconds":2400,"ReportFailed":0,"ReportFileAltered":0,"Reported":3,"RunsCommitted":1,"Skipped":0}"#);
    Ok(())
}

#[tokio::test]
async fn an_empty_run_writes_nothing() -> Result<()> {
    let world = World::open().await?;
    world.create("tenant", "rent", &settlements::body(&BILLS[0], "2026-12-01")).await?;
    drop((world.recorder.take_operations(), world.recorder.take_capacity_use()));
    let answer = run(&world).await?;
    assert_eq!((&answer["runsCommitted"], &answer["moreWaits"]), (&json!(0), &json!(false)), "{answer}");
    assert_eq!(files(&world).await?.len(), 0);
    let operations = world.recorder.take_operations();
    assert!(operations.iter().all(|operation| operation == "GetItem" || operation == "Query"), "{operations:?}");
    Ok(())
}

#[tokio::test]
async fn the_cost_of_a_run_depends_on_unreported_payments_only() -> Result<()> {
    let world = World::open().await?;
    let calls = async || {
        drop(world.recorder.take_operations());
        run(&world).await?;
        let mut operations = world.recorder.take_operations();
        operations.sort_unstable();
        anyhow::Ok(operations)
    };
    let of_an_empty_table = calls().await?;
    assert_eq!(of_an_empty_table.iter().filter(|operation| *operation == "Query").count(), 10, "one for each shard");
    for tag in 0..2 {
        settlements::many(&world, "2026-11-20T09:20:00Z", 40, tag).await?;
        let with_work = calls().await?;
        // A few reads, and one write for each payment; the commit is two more.
        assert!(with_work.iter().filter(|operation| *operation == "UpdateItem").count() <= 42, "{with_work:?}");
        assert!(with_work.len() <= of_an_empty_table.len() * 3 + 60, "{} calls", with_work.len());
        assert_eq!(calls().await?, of_an_empty_table, "with {} reported payments in the table", 40 * (tag + 1));
    }
    Ok(())
}

#[tokio::test]
async fn later_reports_hold_only_new_settlements() -> Result<()> {
    let world = World::open().await?;
    let first = settled(&world, "2026-11-20T09:20:00Z", &BILLS).await?;
    run(&world).await?;
    let before = files(&world).await?;
    let more = [Bill { account: "tenant-3", outcome: Ok("TX-3"), ..BILLS[0] }];
    let second = settled(&world, "2026-11-20T10:40:00Z", &more).await?;
    let answer = run(&world).await?;
    assert_eq!((&answer["reported"], &answer["drained"]), (&json!(1), &json!(1)), "{answer}");
    let after = files(&world).await?;
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)), "what is published stays");
    let by_report: Vec<Vec<String>> =
        published(&world).await?.iter().map(|(_, csv)| rows(csv)).collect::<Result<_>>()?;
    let by_report: Vec<BTreeSet<String>> = by_report.into_iter().map(|ids| ids.into_iter().collect()).collect();
    assert_eq!(by_report, [first.into_iter().collect(), second.into_iter().collect()]);
    // The third run has nothing to report.
    assert_eq!(run(&world).await?["runsCommitted"], 0);
    assert_eq!(files(&world).await?, after);
    Ok(())
}

#[tokio::test]
async fn only_settled_payments_are_reported() -> Result<()> {
    let world = World::open().await?;
    let cancelled = world.create("tenant", "rent", &settlements::body(&BILLS[0], "2026-12-01")).await?;
    world.cancel("tenant", &cancelled).await?;
    // Pending, and scheduled.
    world.create("tenant", "due", &settlements::body(&BILLS[0], "2026-11-20")).await?;
    world.sweep().await?;
    world.create("tenant", "later", &settlements::body(&BILLS[0], "2026-12-01")).await?;
    let settled = settled(&world, "2026-11-20T09:20:00Z", &BILLS[..1]).await?;
    run(&world).await?;
    assert_eq!(reported_ids(&world).await?, settled);
    Ok(())
}

#[tokio::test]
async fn awkward_reasons_are_quoted_as_rfc_4180_says() -> Result<()> {
    let world = World::open().await?;
    let reasons = [
        "no, not now",
        "\"closed\"",
        "line one\nline two\r\nline three",
        "=HYPERLINK(\"x\")",
        "Kontoinhaber verstorben – 口座 ✝",
        " padded ",
        "",
    ];
    let bill = |reason| Bill { outcome: Err(reason), ..BILLS[0] };
    let bills: Vec<Bill> = reasons.into_iter().map(bill).collect();
    settled(&world, "2026-11-20T09:20:00Z", &bills).await?;
    run(&world).await?;
    let csv = published(&world).await?.remove(0).1;
    // Only what needs quotes is quoted; every line ends in CRLF.
    assert!(csv.ends_with("Z,\r\n"), "{csv}");
    assert!(csv.contains(r#",,AM04,"no, not now",2026"#), "{csv}");
    assert!(csv.contains(r#",,AM04,"""closed""",2026"#), "{csv}");
    assert!(csv.contains(r#",,AM04,"=HYPERLINK(""x"")",2026"#), "{csv}");
    assert!(csv.contains(",,AM04,\"line one\nline two\r\nline three\",2026"), "{csv}");
    assert!(csv.contains(",,AM04,Kontoinhaber verstorben – 口座 ✝,2026"), "{csv}");
    assert!(csv.contains(",,AM04, padded ,2026") && csv.contains(",,AM04,,2026"), "{csv}");
    // A reader gets the reasons back.
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let read: BTreeSet<String> = reader.records().map(|row| Ok(row?[10].to_owned())).collect::<Result<_>>()?;
    assert_eq!(read, reasons.into_iter().map(str::to_owned).collect());
    Ok(())
}

#[tokio::test]
async fn sums_are_exact_beyond_the_largest_amount() -> Result<()> {
    let world = World::open().await?;
    let bill = Bill { amount: MAX_AMOUNT_MINOR, ..BILLS[0] };
    settled(&world, "2026-11-20T09:20:00Z", &[bill, bill, bill]).await?;
    run(&world).await?;
    let files = files(&world).await?;
    let (_, summary) =
        files.iter().find(|(name, _)| name.starts_with("reports/") && name.ends_with(".json")).context("a summary")?;
    let want = format!("\"sumMinor\": {}", 3 * MAX_AMOUNT_MINOR);
    assert!(String::from_utf8(summary.clone())?.contains(&want), "{}", String::from_utf8_lossy(summary));
    Ok(())
}

#[tokio::test]
async fn rows_are_ordered_by_settlement() -> Result<()> {
    let world = World::open().await?;
    let mut all = Vec::new();
    for minute in [50, 10, 30] {
        all.extend(many(&world, &format!("2026-11-20T09:{minute}:00Z"), 30, minute).await?);
    }
    run(&world).await?;
    let csv = published(&world).await?.remove(0).1;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let keys: Vec<(String, String)> =
        reader.records().map(|row| row.map(|row| (row[11].to_owned(), row[0].to_owned()))).collect::<Result<_, _>>()?;
    assert!(keys.is_sorted(), "{keys:?}");
    assert_eq!(keys.len(), all.len());
    Ok(())
}

#[tokio::test]
async fn a_thousand_shards_are_walked_page_by_page() -> Result<()> {
    let world = World::open().await?;
    // They are in ten shards, thirty in each; with a thousand shards a page holds twenty.
    let all = many(&world, "2026-11-20T09:20:00Z", 300, 0).await?;
    let get = |package: &str, name: &str| match name {
        "READ_SHARDS" => Some("1000".to_owned()),
        _ => world.environment.get(package, name),
    };
    let dependencies = world.dependencies_over(&world.recorder).await;
    let functions = Functions::new(get, |_| Ok(dependencies.clone()))?;
    drop(world.recorder.take_operations());
    let answer = invoke(&functions, "wide", settlements::END_OF_TIME).await.map_err(anyhow::Error::msg)?;
    assert_eq!((&answer["reported"], &answer["moreWaits"]), (&json!(300), &json!(false)), "{answer}");
    assert_eq!(reported_ids(&world).await?, all);
    let queries = world.recorder.take_operations().iter().filter(|operation| *operation == "Query").count();
    assert!((1_010..1_040).contains(&queries), "{queries}");
    Ok(())
}

#[tokio::test]
async fn a_backlog_is_committed_in_bounded_pieces() -> Result<()> {
    let world = World::with(|environment| environment.max_report_rows = 70).await?;
    let all = many(&world, "2026-11-20T09:20:00Z", 245, 0).await?;
    let answer = run(&world).await?;
    assert_eq!(
        (&answer["runsCommitted"], &answer["reported"], &answer["drained"], &answer["moreWaits"]),
        (&json!(4), &json!(245), &json!(245), &json!(false)),
        "{answer}"
    );
    assert_eq!(reported_ids(&world).await?, all);
    let lengths: Vec<usize> =
        published(&world).await?.iter().map(|(_, csv)| Ok(rows(csv)?.len())).collect::<Result<_>>()?;
    assert_eq!(lengths, [70, 70, 70, 35]);
    assert_eq!(unreported(&world).await?, BTreeSet::new());
    Ok(())
}

#[tokio::test]
async fn a_run_that_reports_everything_says_that_nothing_waits() -> Result<()> {
    let world = World::with(|environment| environment.max_report_rows = 20).await?;
    many(&world, "2026-11-20T09:20:00Z", 40, 0).await?;
    let answer = run(&world).await?;
    assert_eq!((&answer["runsCommitted"], &answer["moreWaits"]), (&json!(2), &json!(false)), "{answer}");
    Ok(())
}

#[tokio::test]
async fn a_run_without_time_leaves_everything_to_the_next() -> Result<()> {
    let world = World::open().await?;
    let all = many(&world, "2026-11-20T09:20:00Z", 20, 0).await?;
    let answer = invoke(world.functions(), "late", "2026-11-20T09:20:00Z").await.map_err(anyhow::Error::msg)?;
    assert_eq!((&answer["runsCommitted"], &answer["moreWaits"]), (&json!(0), &json!(true)), "{answer}");
    assert_eq!(files(&world).await?.len(), 0);
    assert_eq!(run(&world).await?["reported"], all.len());
    Ok(())
}

#[tokio::test]
async fn throttling_leaves_the_rest_and_a_denied_call_is_an_error() -> Result<()> {
    let throttle = Fate::Refuse(400, "ProvisionedThroughputExceededException");
    for operation in ["GetItem", "Query", "BatchGetItem", "UpdateItem"] {
        let world = World::open().await?;
        let all = many(&world, "2026-11-20T09:20:00Z", 20, 0).await?;
        for (fate, is_error) in [(throttle, false), (Fate::Refuse(400, "AccessDeniedException"), true)] {
            let recorder = Recorder::with_fate(move |call| if call.operation == operation { fate } else { Fate::Pass });
            let answer = invoke(&world.functions_over(&recorder).await?, "troubled", settlements::END_OF_TIME).await;
            match answer {
                Err(error) => assert!(is_error && error.contains("rejected"), "{operation}: {error}"),
                Ok(answer) => assert!(!is_error && answer["moreWaits"] == true, "{operation}: {answer}"),
            }
        }
        let answer = run(&world).await?;
        assert_eq!(answer["moreWaits"], false, "{operation}: {answer}");
        assert_eq!(reported_ids(&world).await?, all, "{operation}");
    }
    Ok(())
}

#[tokio::test]
async fn an_unreadable_head_stops_no_other() -> Result<()> {
    let world = World::open().await?;
    let all = settled(&world, "2026-11-20T09:20:00Z", &BILLS).await?;
    settlements::damage(&world, "tenant-2").await?;
    let answer = run(&world).await?;
    assert_eq!(
        (&answer["reported"], &answer["failed"], &answer["moreWaits"]),
        (&json!(2), &json!(1), &json!(false)),
        "{answer}"
    );
    assert_eq!(reported_ids(&world).await?.len(), all.len() - 1);
    Ok(())
}

#[tokio::test]
async fn reporting_costs_two_units_and_changes_nothing_but_the_index_and_the_expiry() -> Result<()> {
    let world = World::open().await?;
    let all = many(&world, "2026-11-20T09:20:00Z", 150, 0).await?;
    let before = settlements::heads_without(&world, "unreported").await?;
    drop(world.recorder.take_capacity_use());
    run(&world).await?;
    let row = |operation: &str, place: &str, units: usize| {
        Ok(((operation.to_owned(), place.to_owned()), u64::try_from(units)?))
    };
    // One for the commit, one for the mark.
    let want = [row("UpdateItem", "payments", all.len() + 2), row("UpdateItem", "payments/unreported", all.len())];
    assert_eq!(world.take_write_units(), want.into_iter().collect::<Result<Units>>()?);
    let mut after = settlements::heads_without(&world, "unreported").await?;
    // 25 hours after the date is over everywhere, which is later than the report.
    let expires = DateTime::parse_from_rfc3339("2026-11-22T13:00:00Z")?.timestamp().to_string();
    for head in &mut after {
        assert_eq!(head.remove("expires_at"), Some(AttributeValue::N(expires.clone())));
    }
    assert_eq!(after, before);
    Ok(())
}

#[tokio::test]
async fn a_repeated_settlement_result_is_not_reported_again() -> Result<()> {
    let world = World::open().await?;
    let ids = settled(&world, "2026-11-20T09:20:00Z", &BILLS[..1]).await?;
    run(&world).await?;
    let again: Vec<Value> =
        ids.iter().map(|id| json!({
            "v": 1, "kind": "settlement", "paymentId": id, "amountMinor": BILLS[0].amount, "currency": BILLS[0].currency, "payeeAccountId": BILLS[0].payee,
            "status": "PROCESSED", "transactionId": "TX-1",
        })).collect();
    settle(&world, &again).await?;
    assert_eq!(run(&world).await?["runsCommitted"], 0);
    assert_eq!(reported_ids(&world).await?, ids);
    Ok(())
}
