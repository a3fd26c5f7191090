//! The event files, run: each is what API Gateway sends, goes through its function's own handler in
//! a bank of its own, and its answer is written down.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use insta::{Settings, assert_snapshot};
use payments_http::routes::{DEFAULT_FUNCTION, by_key};
use payments_model::settlement::FailureReason;
use payments_model::{Actor, Head, State};
use payments_store::{HeadKey, HeadSort, Moved};
use payments_tests::{Reply, World};

/// When the events arrive.
const NOW: &str = "2026-11-20T09:00:00Z";

/// When what they find was put in, and what became of it.
const AN_HOUR_AGO: &str = "2026-11-20T08:00:00Z";
const HALF_AN_HOUR_AGO: &str = "2026-11-20T08:30:00Z";

/// How far ahead these banks take payments: the events ask for June 2090, so that the files work
/// for a long time, also where the clock is a real one.
const HORIZON_DAYS: u32 = 25_000;

/// What an event finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    /// An empty bank.
    Nothing,
    /// The payment of `ingest-create`, `SCHEDULED`.
    OnePayment,
    /// The two payments of `ingest-batch`; the first is also `ingest-create`'s.
    TwoPayments,
    /// The same, and the first one cancelled.
    OneOfTwoCancelled,
    /// The payment of `ingest-create`, swept.
    Pending,
    /// The same, settled.
    Processed,
    /// The same, refused by the transaction service.
    Failed,
}

/// What each event finds. One that is not named here finds nothing and must not read anything.
const GIVEN: [(Given, &[&str]); 7] = [
    (
        Given::Nothing,
        &[
            "ingest-batch-mixed",
            "ingest-cancel-unknown",
            "ingest-create-date-beyond-horizon",
            "ingest-create-date-passed",
            "query-account-get-unknown",
            "query-account-list-account-unknown",
        ],
    ),
    (
        Given::OnePayment,
        &[
            "ingest-batch-same-key",
            "ingest-cancel",
            "ingest-cancel-empty-object",
            "ingest-cancel-other-account",
            "ingest-create-again",
            "ingest-create-key-reused",
            "query-account-get",
            "query-account-get-other-account",
        ],
    ),
    (
        Given::TwoPayments,
        &[
            "ingest-batch-again",
            "query-account-list",
            "query-account-list-data",
            "query-account-list-page-1",
            "query-account-list-page-2",
            "query-account-list-cursor-alone",
        ],
    ),
    (
        Given::OneOfTwoCancelled,
        &[
            "ingest-cancel-again",
            "ingest-create-again-after-cancel",
            "query-account-get-cancelled",
            "query-account-list-status",
        ],
    ),
    (Given::Pending, &["ingest-cancel-pending"]),
    (Given::Processed, &["ingest-cancel-processed", "query-account-get-processed"]),
    (Given::Failed, &["query-account-get-failed"]),
];

/// The operations whose result depends on what is there.
const READS: [&str; 4] = ["GetItem", "Query", "BatchGetItem", "UpdateItem"];

#[tokio::test]
async fn every_ingest_event_is_answered_as_written_down() -> Result<()> {
    run_all("ingest").await
}

#[tokio::test]
async fn every_query_account_event_is_answered_as_written_down() -> Result<()> {
    run_all("query-account").await
}

#[test]
fn every_event_file_belongs_to_a_function() -> Result<()> {
    let functions = names(Path::new("../functions"), "")?;
    for name in names(Path::new("../events"), ".json")? {
        assert!(functions.contains(function_of(&name)?), "events/{name}.json begins with no function's name");
    }
    Ok(())
}

#[test]
fn every_event_file_is_run() -> Result<()> {
    let run: BTreeSet<String> =
        ["ingest", "query-account"].iter().map(|name| names_of(name)).collect::<Result<Vec<_>>>()?.concat().into_iter().collect();
    Ok(())
}
