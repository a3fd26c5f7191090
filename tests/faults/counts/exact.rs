//! The counters equal a recount, however the stream was delivered; and without the checkpoint they do
//! not, so that the test is known to see.

use std::cell::RefCell;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::{DeleteRequest, WriteRequest};
use payments_delivery::Record;
use payments_local::Functions;
use proptest::collection::vec;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tokio::runtime::Runtime;

use super::deliveries::{Deliveries, Move, POLLERS, Seen};
use super::past;
use crate::recount;
use crate::rig::Rig;
use crate::weakness::Weakness;

/// How many pasts there are.
const PASTS: u64 = 3;

/// How often each is delivered.
const DELIVERIES: u32 = 10;

/// The most moves of a delivery. What they leave over is delivered on a calm day.
const MOST_MOVES: usize = 48;

/// A bank with a past, and two sandboxes of Lambda that count it.
struct Bank {
    rig: Rig,
    sandboxes: Vec<Functions>,
    past: Vec<Record>,
    seen: RefCell<Seen>,
}

impl Bank {
    async fn with_past(seed: u64) -> Result<Self> {
        let rig = Rig::set_up().await?;
        let mut sandboxes = Vec::new();
        for task in 0..POLLERS {
            sandboxes.push(rig.functions_of_task(task).await?);
        }
        let past = past::happen(&rig, seed).await?;
        Ok(Self { rig, sandboxes, past, seen: RefCell::default() })
    }

    /// Delivers the past to an aggregator that has counted nothing yet, and tells what is wrong then.
    async fn deliver(&self, moves: &[Move], weakness: Option<Weakness>) -> Result<Vec<String>> {
        self.forget_counts().await?;
        self.rig.line.weaken(weakness);
        let mut deliveries = Deliveries::begin(&self.rig, &self.sandboxes, &self.past, &self.seen)?;
        deliveries.play(moves).await?;
        deliveries.finish().await?;
        self.rig.line.weaken(None);
        recount::differences(&self.rig).await
    }

    async fn close(self) -> Result<()> {
        let Self { rig, sandboxes, .. } = self;
        drop(sandboxes);
        rig.close().await
    }

    async fn forget_counts(&self) -> Result<()> {
        let table = &self.rig.world.environment.tables.payments;
        let scan = self.rig.client.scan().table_name(table).into_paginator().items().send();
        let mut deletes = Vec::new();
        for item in scan.collect::<Result<Vec<_>, _>>().await? {
            if !item["pk"].as_s().is_ok_and(|pk| pk.starts_with("ACCT#")) {
                let key = ["pk", "sk"].map(|name| (name.to_owned(), item[name].clone()));
                let delete = DeleteRequest::builder().set_key(Some(key.into())).build()?;
                deletes.push(WriteRequest::builder().delete_request(delete).build());
            }
        }
        for some in deletes.chunks(25) {
            self.rig.client.batch_write_item().request_items(table, some.to_vec()).send().await?;
        }
        Ok(())
    }
}

/// What came of many deliveries: nothing, or the least moves that break something.
type Delivered = Result<(), TestError<Vec<Move>>>;

/// Delivers a bank's past in many ways.
fn deliver(runtime: &Runtime, bank: &Bank, weakness: Option<Weakness>, shrinks: u32) -> Delivered {
    let config =
        Config { cases: DELIVERIES, failure_persistence: None, max_shrink_iters: shrinks, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    runner.run(&vec(Move::any(), MOST_MOVES / 2..MOST_MOVES), |moves| {
        let wrong = runtime.block_on(bank.deliver(&moves, weakness));
        let wrong = wrong.map_err(|error| TestCaseError::fail(format!("{error:#}")))?;
        if wrong.is_empty() { Ok(()) } else { Err(TestCaseError::fail(wrong.join("; "))) }
    })
}

fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

#[test]
fn counters_equal_a_recount_however_the_stream_is_delivered() -> Result<()> {
    let runtime = runtime()?;
    for seed in 0..PASTS {
        let bank = runtime.block_on(Bank::with_past(seed))?;
        deliver(&runtime, &bank, None, 200).with_context(|| format!("past {seed}"))?;
        let lines = bank.rig.metrics.take();
        let [counted, skipped, conflicts] =
            ["Counted", "Skipped", "Conflicts"].map(|name| bank.rig.metric(&lines, name));
        let seen = bank.seen.borrow();
        println!("past {seed}: {} changes, {seen:?}, {skipped} skipped, {conflicts} conflicts", bank.past.len());
        let enough = seen.kills > 5 && seen.failures > 5 && seen.races > 5 && seen.again > 5 && conflicts > 5;
        assert!(enough && skipped > counted / 2, "too little went wrong: {counted} counted, {seen:?}");
        drop(seen);
        runtime.block_on(bank.close())?;
    }
    Ok(())
}
