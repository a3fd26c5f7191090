//! The billing report: every settlement in exactly one published file, whatever happens.

mod crashes;
pub(crate) mod faulty_store;
mod races;
pub(crate) mod settlements;
mod stale_index;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::DateTime;
use insta::assert_snapshot;
use payments_tests::prelude::*;

use settlements::{
    Bill, SETTLED_AT, TODAY, body, files, invoke, many, measured, published_files, reported_ids, run, settled,
    unreported, unzipped,
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
    let want = [vec!["GetItem"], vec!["Query"; 10], vec!["UpdateItem"]].concat();
    assert_eq!(of_an_empty_table, want, "the last run, each shard, and the outcome");
    assert_eq!(files(&world).await?.len(), 0);
    for tag in 0..2 {
        many(&world, SETTLED_AT, 40, tag).await?;
        let with_work = calls().await?;
        // A few reads, and one write for each payment; the commit is two more, and the outcome one.
        assert!(with_work.iter().filter(|operation| *operation == "UpdateItem").count() <= 43, "{with_work:?}");
        assert!(with_work.len() <= of_an_empty_table.len() * 3 + 60, "{} calls", with_work.len());
        assert_eq!(calls().await?, of_an_empty_table, "with {} reported payments in the table", 40 * (tag + 1));
    }
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
