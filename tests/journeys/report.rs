//! The billing report: every settlement in exactly one published file, whatever happens.

mod crashes;
mod faulty_store;
mod races;
pub(crate) mod settlements;
mod stale_index;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::DateTime;
use insta::assert_snapshot;
use payments_boot::Lookup;
use payments_model::MAX_AMOUNT_MINOR;
use payments_tests::prelude::*;

use settlements::{
    Bill, SETTLED_AT, TODAY, body, column, files, ids_by_report, invoke, invoke_until, many, measured, published,
    published_files, reported_ids, run, settled, unreported, unzipped,
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

#[tokio::test]
async fn the_first_report_lists_each_settlement_once() -> Result<()> {
    let world = World::open().await?;
    settled(&world, SETTLED_AT, &BILLS).await?;
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
    let files = published_files(&world).await?;
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_snapshot!(names.join("\n"), @r#"
    reports/2026-11-20T092000Z--2026-11-20T092000Z-run-000001.csv.gz
    reports/2026-11-20T092000Z--2026-11-20T092000Z-run-000001.summary.json
    "#);
    // The ends of lines are made visible.
    assert_snapshot!(unzipped(&files[names[0]])?.replace('\r', "␍"), @r#"
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
    assert_eq!(settlements::files(&world).await?.len(), 4, "two files, as attempt and published");
    assert_eq!(unreported(&world).await?, BTreeSet::new());
    assert_snapshot!(measured(&world)?, @r#"{"Drained":3,"Function":"captured","OldestUnreportedSeconds":2400,"ReportFailed":0,"ReportFileAltered":0,"Reported":3,"RunsCommitted":1,"Skipped":0}"#);
    Ok(())
}

#[tokio::test]
async fn the_cost_of_a_run_depends_on_unreported_payments_only() -> Result<()> {
    let world = World::open().await?;
    let calls = async || {
        world.forget();
        run(&world).await?;
        let mut operations = world.recorder.take_operations();
        operations.sort_unstable();
        anyhow::Ok(operations)
    };
    let of_an_empty_table = calls().await?;
    assert_eq!(of_an_empty_table, [vec!["GetItem"], vec!["Query"; 10]].concat(), "the last run, and each shard");
    assert_eq!(files(&world).await?.len(), 0);
    for tag in 0..2 {
        many(&world, SETTLED_AT, 40, tag).await?;
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
    let first = settled(&world, SETTLED_AT, &BILLS).await?;
    run(&world).await?;
    let before = files(&world).await?;
    let more = [Bill { account: "tenant-3", outcome: Ok("TX-3"), ..BILLS[0] }];
    let second = settled(&world, "2026-11-20T10:40:00Z", &more).await?;
    assert_has(&run(&world).await?, &json!({ "reported": 1, "drained": 1 }));
    let after = files(&world).await?;
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)), "what is published stays");
    assert_eq!(ids_by_report(&world).await?, [first, second]);
    // The third run has nothing to report.
    assert_has(&run(&world).await?, &json!({ "runsCommitted": 0, "moreWaits": false }));
    assert_eq!(files(&world).await?, after);
    Ok(())
}

#[tokio::test]
async fn only_settled_payments_are_reported_and_each_once_if_its_result_is_repeated() -> Result<()> {
    let world = World::open().await?;
    let order = |date| body(&BILLS[0], date);
    let cancelled = world.create("tenant", "rent", &order("2026-12-01")).await?;
    world.cancel("tenant", &cancelled).await?;
    // Pending, and scheduled.
    world.create("tenant", "due", &order(TODAY)).await?;
    world.sweep().await?;
    world.create("tenant", "later", &order("2026-12-01")).await?;
    let settled = settled(&world, SETTLED_AT, &BILLS[..1]).await?;
    run(&world).await?;
    assert_eq!(reported_ids(&world).await?, settled);
    world.settle(&[processed(&settled[0], &order(TODAY), "TX-1")]).await?;
    assert_eq!(run(&world).await?["runsCommitted"], 0);
    assert_eq!(reported_ids(&world).await?, settled);
    Ok(())
}

#[tokio::test]
async fn awkward_reasons_are_quoted_as_rfc_4180_says() -> Result<()> {
    let world = World::open().await?;
    // Only what needs quotes is quoted.
    let reasons = [
        ("no, not now", r#""no, not now""#),
        ("\"closed\"", r#""""closed""""#),
        ("line one\nline two\r\nline three", "\"line one\nline two\r\nline three\""),
        ("=HYPERLINK(\"x\")", r#""=HYPERLINK(""x"")""#),
        ("Kontoinhaber verstorben – 口座 ✝", "Kontoinhaber verstorben – 口座 ✝"),
        (" padded ", " padded "),
        ("", ""),
    ];
    let bills = reasons.map(|(reason, _)| Bill { outcome: Err(reason), ..BILLS[0] });
    settled(&world, SETTLED_AT, &bills).await?;
    run(&world).await?;
    let csv = published(&world).await?.remove(0);
    assert!(csv.ends_with("Z,\r\n"), "{csv}");
    for (reason, quoted) in reasons {
        assert!(csv.contains(&format!(",,AM04,{quoted},2026")), "{reason}: {csv}");
    }
    // A reader gets the reasons back.
    let read: BTreeSet<String> = column(&csv, 10)?.into_iter().collect();
    assert_eq!(read, reasons.map(|(reason, _)| reason.to_owned()).into());
    Ok(())
}

#[tokio::test]
async fn sums_are_exact_beyond_the_largest_amount() -> Result<()> {
    let world = World::open().await?;
    settled(&world, SETTLED_AT, &[Bill { amount: MAX_AMOUNT_MINOR, ..BILLS[0] }; 3]).await?;
    run(&world).await?;
    let files = published_files(&world).await?;
    let (_, summary) = files.iter().find(|(name, _)| name.ends_with(".json")).context("a summary")?;
    let summary = String::from_utf8_lossy(summary);
    assert!(summary.contains(&format!("\"sumMinor\": {}", 3 * MAX_AMOUNT_MINOR)), "{summary}");
    Ok(())
}

#[tokio::test]
async fn rows_are_ordered_by_settlement() -> Result<()> {
    let world = World::open().await?;
    for minute in [50, 10, 30] {
        many(&world, &format!("2026-11-20T09:{minute}:00Z"), 30, minute).await?;
    }
    run(&world).await?;
    let csv = published(&world).await?.remove(0);
    let keys: Vec<_> = column(&csv, 11)?.into_iter().zip(column(&csv, 0)?).collect();
    assert!(keys.is_sorted() && keys.len() == 90, "{keys:?}");
    Ok(())
}

#[tokio::test]
async fn a_thousand_shards_are_walked_page_by_page() -> Result<()> {
    let world = World::open().await?;
    // They are in ten shards, thirty in each; with a thousand shards a page holds twenty.
    let all = many(&world, SETTLED_AT, 300, 0).await?;
    let get = |name: &str| match name {
        "READ_SHARDS" => Some("1000".to_owned()),
        _ => world.environment.get(name),
    };
    let dependencies = world.dependencies_over(&world.recorder).await;
    let functions = Functions::new(&Lookup::new(&get), |_| Ok(dependencies.clone()))?;
    world.forget();
    assert_has(&invoke(&functions, "wide").await?, &json!({ "reported": 300, "moreWaits": false }));
    let queries = world.recorder.take_operations().iter().filter(|operation| *operation == "Query").count();
    assert!((1_010..1_040).contains(&queries), "{queries}");
    assert_eq!(reported_ids(&world).await?, all);
    Ok(())
}

#[tokio::test]
async fn a_backlog_is_committed_in_bounded_pieces() -> Result<()> {
    for (max, lengths) in [(70, &[70, 70, 70, 35][..]), (20, &[20, 20])] {
        let world = World::with(|environment| environment.max_report_rows = max).await?;
        let count: usize = lengths.iter().sum();
        let all = many(&world, SETTLED_AT, count, 0).await?;
        let pieces = lengths.len();
        let want = json!({ "runsCommitted": pieces, "reported": count, "drained": count, "moreWaits": false });
        assert_has(&run(&world).await?, &want);
        assert_eq!(reported_ids(&world).await?, all, "{max}");
        assert_eq!(ids_by_report(&world).await?.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
        assert_eq!(unreported(&world).await?, BTreeSet::new(), "{max}");
    }
    Ok(())
}

#[tokio::test]
async fn a_run_without_time_leaves_everything_to_the_next() -> Result<()> {
    let world = World::open().await?;
    let all = many(&world, SETTLED_AT, 20, 0).await?;
    let answer = invoke_until(world.functions(), "late", SETTLED_AT).await?;
    assert_has(&answer, &json!({ "runsCommitted": 0, "moreWaits": true }));
    assert_eq!(files(&world).await?.len(), 0);
    assert_eq!(run(&world).await?["reported"], all.len());
    Ok(())
}

#[tokio::test]
async fn throttling_leaves_the_rest_and_a_denied_call_is_an_error() -> Result<()> {
    for operation in ["GetItem", "Query", "BatchGetItem", "UpdateItem"] {
        let world = World::open().await?;
        let all = many(&world, SETTLED_AT, 20, 0).await?;
        for (code, is_error) in [("ProvisionedThroughputExceededException", false), ("AccessDeniedException", true)] {
            let fate = Fate::Refuse(400, code);
            let troubled = world.functions_meeting(fate, move |call| call.operation == operation).await?;
            match invoke(&troubled, "troubled").await {
                Err(error) => assert!(is_error && error.to_string().contains("rejected"), "{operation}: {error}"),
                Ok(answer) => assert!(!is_error && answer["moreWaits"] == true, "{operation}: {answer}"),
            }
        }
        assert_has(&run(&world).await?, &json!({ "moreWaits": false }));
        assert_eq!(reported_ids(&world).await?, all, "{operation}");
    }
    Ok(())
}

#[tokio::test]
async fn an_unreadable_head_stops_no_other() -> Result<()> {
    let world = World::open().await?;
    settled(&world, SETTLED_AT, &BILLS).await?;
    let damaged = world.heads("tenant-2").await?.remove(0);
    world.update(&damaged, "SET version = :seven", &[(":seven", number(7))]).await?;
    assert_has(&run(&world).await?, &json!({ "reported": 2, "failed": 1, "moreWaits": false }));
    assert_eq!(reported_ids(&world).await?.len(), 2);
    Ok(())
}

/// The heads of the payers of [`many`], without what says that they are not reported.
async fn heads(world: &World) -> Result<Vec<Item>> {
    let mut heads = Vec::new();
    for payer in 0..5 {
        heads.extend(world.heads(&format!("payer-{payer}")).await?);
    }
    heads.iter_mut().for_each(|head| drop(head.remove("unreported")));
    Ok(heads)
}

#[tokio::test]
async fn reporting_costs_two_units_and_changes_nothing_but_the_index_and_the_expiry() -> Result<()> {
    let world = World::open().await?;
    many(&world, SETTLED_AT, 150, 0).await?;
    let before = heads(&world).await?;
    world.forget();
    run(&world).await?;
    // One for the commit, one for the mark.
    assert_eq!(world.take_write_units(), units("UpdateItem", [("payments", 152), ("payments/unreported", 150)]));
    let mut after = heads(&world).await?;
    // 25 hours after the date is over everywhere, which is later than the report.
    let expires = DateTime::parse_from_rfc3339("2026-11-22T13:00:00Z")?.timestamp().to_string();
    for head in &mut after {
        assert_eq!(head.remove("expires_at"), Some(AttributeValue::N(expires.clone())));
    }
    assert_eq!(after, before);
    Ok(())
}
