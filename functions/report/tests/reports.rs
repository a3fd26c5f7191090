//! `report` alone over the machine: each settlement is in one published file, in the format of RFC 4180, in bounded
//! pieces.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use flate2::read::GzDecoder;
use futures::TryStreamExt as _;
use lambda_runtime::{Context, LambdaEvent};
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt as _};
use payments_boot::Lookup;
use payments_machine::given::Given;
use payments_machine::invocation::context;
use payments_machine::layers::client_over;
use payments_machine::{Environment, Recorder};
use payments_model::{Failure, MAX_AMOUNT_MINOR, Settlement};
use report::{Action, Config, Report, ReportOutcome, Request};

/// `report` on a machine, and the recorder of its calls.
struct Alone {
    given: Given,
    report: Report,
    recorder: Recorder,
}

impl Alone {
    async fn start() -> Result<Self> {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Environment)) -> Result<Self> {
        let given = Given::at("2026-11-20T09:20:00Z", change).await?;
        let recorder = given.stack.recorder();
        let report = report(&given, &recorder, given.config("report", Config::read)?);
        Ok(Self { given, report, recorder })
    }

    async fn run(&self) -> Result<ReportOutcome> {
        self.run_in(self.given.context()).await
    }

    async fn run_in(&self, context: Context) -> Result<ReportOutcome> {
        let event = LambdaEvent::new(Request { action: Action::Report }, context);
        self.report.handle(event).await.map_err(anyhow::Error::from_boxed)
    }

    /// Settles payments of different amounts, and returns their sorted ids.
    async fn settle(&self, tag: &str, count: u32) -> Result<Vec<String>> {
        let mut ids = BTreeSet::new();
        for n in 0..count {
            let (key, amount) = (format!("{tag}-{n}"), (n + 1).to_string().parse()?);
            let processed = Settlement::Processed(format!("TX-{key}").parse()?);
            let settled = self.given.settled_as(&key, processed, |instruction| instruction.money.amount = amount);
            ids.insert(settled.await?.payment_id.to_string());
        }
        Ok(ids.into_iter().collect())
    }

    /// The names and texts of the stored files that begin and end like this, in order.
    async fn files(&self, folder: &str, ending: &str) -> Result<Vec<(String, String)>> {
        let store = &self.given.stack.reports;
        let paths: Vec<_> = store.list(None).map_ok(|meta| meta.location).try_collect().await?;
        let mut files = Vec::new();
        for path in paths.iter().filter(|path| path.as_ref().starts_with(folder) && path.as_ref().ends_with(ending)) {
            let (bytes, mut text) = (store.get(path).await?.bytes().await?, String::new());
            match GzDecoder::new(&bytes[..]).header() {
                Some(_) => GzDecoder::new(&bytes[..]).read_to_string(&mut text)?,
                None => (&bytes[..]).read_to_string(&mut text)?,
            };
            files.push((path.to_string(), text));
        }
        files.sort();
        Ok(files)
    }

    /// The rows of the published reports.
    async fn rows(&self) -> Result<Vec<Vec<csv::StringRecord>>> {
        let files = self.files("reports/", ".csv.gz").await?.into_iter();
        let rows = files.map(|(_, csv)| csv::Reader::from_reader(csv.as_bytes()).records().collect::<Result<_, _>>());
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The sorted payment ids of each published report.
    async fn ids(&self) -> Result<Vec<Vec<String>>> {
        let ids = |rows: &Vec<csv::StringRecord>| {
            let mut ids: Vec<_> = rows.iter().map(|row| row[0].to_owned()).collect();
            ids.sort();
            ids
        };
        Ok(self.rows().await?.iter().map(ids).collect())
    }
}

fn report(given: &Given, recorder: &Recorder, config: Config) -> Report {
    let store = given.stack.store(client_over(&given.stack.client(), recorder.clone()));
    let reports = Arc::clone(&given.stack.reports);
    let attempts = Arc::new(PrefixStore::new(Arc::clone(&reports), "attempts"));
    Report::new(config, store, (reports, attempts), given.stack.clock.clone(), given.stack.metrics.clone())
}

#[tokio::test]
async fn an_empty_run_writes_its_outcome_alone() -> Result<()> {
    let alone = Alone::start().await?;
    alone.given.scheduled("rent", "2026-12-01").await?;
    let outcome = alone.run().await?;
    assert_eq!((outcome.runs_committed, outcome.more_waits), (0, false), "{outcome:?}");
    assert_eq!(alone.files("", "").await?, []);
    let operations = alone.recorder.take_operations();
    let (end, reads) = operations.split_last().context("no call")?;
    assert!(reads.iter().all(|operation| operation == "GetItem" || operation == "Query"), "{operations:?}");
    assert_eq!(end, "UpdateItem");
    Ok(())
}

#[tokio::test]
async fn later_reports_hold_only_new_settlements() -> Result<()> {
    let alone = Alone::start().await?;
    let first = alone.settle("first", 3).await?;
    alone.run().await?;
    let before = alone.files("", "").await?;
    alone.given.pass(TimeDelta::minutes(80));
    let second = alone.settle("second", 1).await?;
    let outcome = alone.run().await?;
    assert_eq!((outcome.reported, outcome.drained), (1, 1), "{outcome:?}");
    let after = alone.files("", "").await?;
    assert!(before.iter().all(|file| after.contains(file)), "what is published stays");
    assert_eq!(alone.ids().await?, [first, second]);
    // The third run has nothing to report.
    assert_eq!(alone.run().await?.runs_committed, 0);
    assert_eq!(alone.files("", "").await?, after);
    Ok(())
}

#[tokio::test]
async fn awkward_reasons_are_quoted_as_rfc_4180_says() -> Result<()> {
    let alone = Alone::start().await?;
    // Only texts that need quotes are quoted.
    let reasons = [
        ("no, not now", r#""no, not now""#),
        ("\"closed\"", r#""""closed""""#),
        ("line one\nline two\r\nline three", "\"line one\nline two\r\nline three\""),
        ("=HYPERLINK(\"x\")", r#""=HYPERLINK(""x"")""#),
        ("Kontoinhaber verstorben – 口座 ✝", "Kontoinhaber verstorben – 口座 ✝"),
        (" padded ", " padded "),
        ("", ""),
    ];
    for (n, (reason, _)) in reasons.into_iter().enumerate() {
        let failed = Settlement::Failed(Failure::new(Some("AM04"), reason));
        alone.given.settled_as(&n.to_string(), failed, |_| {}).await?;
    }
    alone.run().await?;
    let csv = alone.files("reports/", ".csv.gz").await?.remove(0).1;
    assert!(csv.ends_with("Z,\r\n"), "{csv}");
    for (reason, quoted) in reasons {
        assert!(csv.contains(&format!(",,AM04,{quoted},2026")), "{reason}: {csv}");
    }
    // A reader gets the reasons back.
    let rows = alone.rows().await?.concat();
    let read: BTreeSet<&str> = rows.iter().map(|row| &row[10]).collect();
    assert_eq!(read, reasons.map(|(reason, _)| reason).into());
    Ok(())
}

#[tokio::test]
async fn sums_are_exact_beyond_the_largest_amount() -> Result<()> {
    let alone = Alone::start().await?;
    for key in ["one", "two", "three"] {
        let (most, processed) = (MAX_AMOUNT_MINOR.to_string().parse()?, Settlement::Processed(key.parse()?));
        alone.given.settled_as(key, processed, |instruction| instruction.money.amount = most).await?;
    }
    alone.run().await?;
    let (_, summary) = alone.files("reports/", ".json").await?.pop().context("a summary")?;
    assert!(summary.contains(&format!("\"sumMinor\": {}", 3 * MAX_AMOUNT_MINOR)), "{summary}");
    Ok(())
}

#[tokio::test]
async fn rows_are_ordered_by_settlement() -> Result<()> {
    let alone = Alone::start().await?;
    // A clock that moves backwards.
    for minutes in [30, -40, 20] {
        alone.given.pass(TimeDelta::minutes(minutes));
        alone.settle(&minutes.to_string(), 30).await?;
    }
    alone.run().await?;
    let rows = alone.rows().await?.concat();
    let keys: Vec<(&str, &str)> = rows.iter().map(|row| (&row[11], &row[0])).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    assert_eq!(keys.len(), 90);
    Ok(())
}

#[tokio::test]
async fn a_thousand_shards_are_walked_page_by_page() -> Result<()> {
    let mut alone = Alone::start().await?;
    // The payments are in ten shards, thirty in each; with a thousand shards a page holds twenty.
    let all = alone.settle("rent", 300).await?;
    let get = |name: &str| match name {
        "READ_SHARDS" => Some("1000".to_owned()),
        _ => alone.given.stack.environment.get("report", name),
    };
    alone.report = report(&alone.given, &alone.recorder, Config::read(&Lookup::new(&get))?);
    let outcome = alone.run().await?;
    assert_eq!((outcome.reported, outcome.more_waits), (300, false), "{outcome:?}");
    assert_eq!(alone.ids().await?, [all]);
    let queries = alone.recorder.take_operations().iter().filter(|operation| *operation == "Query").count();
    assert!((1_010..1_040).contains(&queries), "{queries}");
    Ok(())
}

#[tokio::test]
async fn a_backlog_is_committed_in_bounded_pieces_and_a_run_that_has_all_says_that_nothing_waits() -> Result<()> {
    for (most, count, pieces) in [(70, 245, vec![70, 70, 70, 35]), (20, 40, vec![20, 20])] {
        let alone = Alone::with(|environment| environment.max_report_rows = most).await?;
        let all = alone.settle("rent", count).await?;
        let outcome = alone.run().await?;
        let counts = (outcome.runs_committed, outcome.reported, outcome.drained, outcome.more_waits);
        assert_eq!(counts, (u64::try_from(pieces.len())?, count.into(), count.into(), false), "{outcome:?}");
        let ids = alone.ids().await?;
        assert_eq!(ids.iter().map(Vec::len).collect::<Vec<_>>(), pieces);
        let mut ids = ids.concat();
        ids.sort();
        assert_eq!(ids, all);
        // The index is empty.
        assert_eq!(alone.run().await?.runs_committed, 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_run_without_time_leaves_everything_to_the_next() -> Result<()> {
    let alone = Alone::start().await?;
    let all = alone.settle("rent", 20).await?;
    let outcome = alone.run_in(context(alone.given.stack.clock.instant())).await?;
    assert_eq!((outcome.runs_committed, outcome.more_waits), (0, true), "{outcome:?}");
    assert_eq!(alone.files("", "").await?, []);
    alone.run().await?;
    assert_eq!(alone.ids().await?, [all]);
    Ok(())
}
