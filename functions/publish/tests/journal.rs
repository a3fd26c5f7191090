//! `publish` alone over the machine: the journal has every event of the log once and in its order, or stands still.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use futures::TryStreamExt as _;
use lambda_runtime::LambdaEvent;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode};
use payments_files::JournalObject;
use payments_machine::given::Given;
use payments_store::{LogHead, LogPosition};
use publish::webhook::Sender;
use publish::{Publish, PublishOutcome, Request, Webhooks};
use serde_json::{Value, json};

const JOURNAL: &str = "journal";

/// `publish` on a machine, and the events that the log got.
struct Alone {
    given: Given,
    publish: Publish,
    logged: Vec<Value>,
}

impl Alone {
    async fn start() -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
        let master = given.stack.webhook_master.clone();
        let webhooks = Webhooks { sender: Arc::new(Sender::loopback()), master, clock: None };
        let (files, clock) = (Arc::clone(&given.stack.reports), given.stack.clock.clone());
        let publish = Publish::new(given.store.clone(), files, webhooks, clock, given.stack.metrics.clone());
        Ok(Self { given, publish, logged: Vec::new() })
    }

    /// Appends a segment of this many events to the log.
    async fn segment(&mut self, events: usize) -> Result<()> {
        let first = self.logged.len();
        let events: Vec<Value> = (first..first + events).map(|n| json!({ "id": n.to_string() })).collect();
        self.given.segment(&events).await?;
        self.logged.extend(events);
        Ok(())
    }

    async fn run(&self) -> Result<PublishOutcome> {
        let event = LambdaEvent::new(Request::Tick, self.given.context());
        self.publish.handle(event).await.map_err(anyhow::Error::from_boxed)
    }

    async fn head(&self) -> Result<LogHead> {
        self.given.store.log_head().await?.context("no log")
    }

    /// The files of the journal, in order.
    async fn files(&self) -> Result<Vec<JournalObject>> {
        let (store, epoch) = (&self.given.stack.reports, self.head().await?.epoch);
        let mut paths: Vec<_> = store.list(None).map_ok(|meta| meta.location).try_collect().await?;
        paths.sort();
        let mut files = Vec::new();
        for path in paths {
            let number = path.filename().and_then(|name| name.strip_suffix(".jsonl.gz")).context("no file's name")?;
            let first = LogPosition { epoch, number: number.parse()?, offset: 0 };
            files.push(JournalObject::decode(first, &store.get(&path).await?.bytes().await?)?);
        }
        Ok(files)
    }

    /// The journal must have the events of the log, in files of which each begins where the one before it ends.
    async fn assert_whole(&self) -> Result<()> {
        let files = self.files().await?;
        assert!(files.windows(2).all(|pair| pair[0].after == pair[1].first), "{files:?}");
        let events = files.iter().flat_map(|file| &file.events);
        let events: Vec<Value> = events.map(|event| serde_json::from_str(event)).collect::<Result<_, _>>()?;
        assert_eq!(events, self.logged);
        Ok(())
    }
}

/// A read of the log has twelve segments at most.
#[tokio::test]
async fn a_file_goes_on_where_a_read_of_the_log_ends() -> Result<()> {
    let mut alone = Alone::start().await?;
    for _ in 0..14 {
        alone.segment(1).await?;
    }
    alone.run().await?;
    assert_eq!(alone.files().await?.len(), 1);
    alone.assert_whole().await
}

#[tokio::test]
async fn each_run_writes_what_is_new() -> Result<()> {
    let mut alone = Alone::start().await?;
    let nothing = PublishOutcome::default();
    let written = |events| PublishOutcome { journaled_events: events, journal_files: 1, ..PublishOutcome::default() };
    assert_eq!(alone.run().await?, nothing);
    alone.segment(3).await?;
    alone.segment(2).await?;
    assert_eq!(alone.run().await?, written(5));
    assert_eq!(alone.run().await?, nothing);
    alone.segment(1).await?;
    assert_eq!(alone.run().await?, written(1));
    // More than a month without changes.
    alone.given.pass(TimeDelta::days(38));
    assert_eq!(alone.run().await?, nothing);
    alone.assert_whole().await
}

#[tokio::test]
async fn a_run_that_is_far_behind_goes_on_where_the_files_end() -> Result<()> {
    let mut alone = Alone::start().await?;
    let store = alone.given.store.clone();
    let mut first = None;
    for _ in 0..4 {
        alone.segment(1).await?;
        alone.run().await?;
        first = first.or(store.log_consumer(JOURNAL).await?);
    }
    // Its place is lost, as after a restore of the log's table: it finds one file after the other.
    let (first, last) = (first.context("no place")?, store.log_consumer(JOURNAL).await?);
    assert!(store.move_log_consumer(JOURNAL, last, first).await?);
    alone.segment(1).await?;
    assert_eq!(alone.run().await?.journal_files, 1);
    alone.assert_whole().await?;
    // Runs at the same time write each file once.
    alone.segment(1).await?;
    let (one, other) = tokio::join!(alone.run(), alone.run());
    assert_eq!(one?.journal_files + other?.journal_files, 1);
    alone.assert_whole().await
}

#[tokio::test]
async fn a_journal_that_disagrees_with_the_log_stands_still() -> Result<()> {
    let mut alone = Alone::start().await?;
    let (store, reports) = (alone.given.store.clone(), Arc::clone(&alone.given.stack.reports));
    alone.segment(1).await?;
    let next = alone.head().await?.end();
    let end = LogPosition { number: next.number + 1, ..next };
    // The log was restored to an earlier time, and its numbers are used again.
    let put = async |bytes: Option<&'static str>| -> Result<()> {
        let object = JournalObject { first: next, after: end, events: vec!["{}".to_owned()] };
        let bytes = bytes.map_or_else(|| object.encode(), |bytes| Ok(bytes.into()))?;
        reports.put_opts(&JournalObject::path(next), bytes.into(), PutMode::Overwrite.into()).await?;
        Ok(())
    };
    put(None).await?;
    alone.run().await?;
    alone.segment(1).await?;
    for (bytes, want) in [(None, "has other events than the log"), (Some("none"), "was changed")] {
        put(bytes).await?;
        let error = alone.run().await.err().context("it goes on")?;
        assert!(error.to_string().contains(want), "{error}");
        assert_eq!(store.log_consumer(JOURNAL).await?, Some(next));
    }
    assert!(store.move_log_consumer(JOURNAL, Some(next), LogPosition { number: 9, ..next }).await?);
    let error = alone.run().await.err().context("it goes on")?;
    assert!(error.to_string().contains("before the place 3622140.9.0 of the journal"), "{error}");
    Ok(())
}
