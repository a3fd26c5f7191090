//! The counters equal a recount, however the stream is delivered. Without the checkpoint they do not, which shows
//! that the test can see it.

use std::cell::RefCell;

use anyhow::{Context as _, Result};
use payments_bank::Functions;
use payments_delivery::Record;
use payments_lab::Weakness;
use payments_machine::Fate;
use proptest::collection::vec;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tokio::runtime::Runtime;

use super::deliveries::{Deliveries, Move, POLLERS, Seen};
use super::past;
use crate::kit::fault_plan::of_calls;
use crate::kit::fixture::Fixture;
use crate::recount;

/// The number of pasts.
const PASTS: u8 = 3;

/// The number of deliveries of each past.
const DELIVERIES: u32 = 16;

/// The most moves of a delivery. The records that they leave are delivered without faults.
const MOST_MOVES: usize = 96;

/// A system with a past, and two Lambda sandboxes that count it.
struct PastFixture {
    fixture: Fixture,
    sandboxes: Vec<Functions>,
    records: Vec<Record>,
    seen: RefCell<Seen>,
}

impl PastFixture {
    async fn with_past(seed: u64) -> Result<Self> {
        let fixture = Fixture::start().await?;
        let mut sandboxes = Vec::new();
        for task in 0..POLLERS {
            sandboxes.push(fixture.functions_of_task(task).await?);
        }
        let records = past::happen(&fixture, seed).await?;
        Ok(Self { fixture, sandboxes, records, seen: RefCell::default() })
    }

    /// Delivers the past to an aggregator that has counted nothing yet. Returns the differences afterwards.
    async fn deliver(&self, moves: &[Move], weakness: Option<Weakness>) -> Result<Vec<String>> {
        self.fixture.forget_counts().await?;
        self.fixture.faults.weaken(weakness);
        let mut deliveries = Deliveries::begin(&self.fixture, &self.sandboxes, &self.records, &self.seen)?;
        deliveries.play(moves).await?;
        deliveries.finish().await?;
        self.fixture.faults.weaken(None);
        recount::differences(&self.fixture).await
    }

    /// Counts the engine's own stream from its beginning.
    async fn assert_counters_exact(&self) -> Result<()> {
        self.fixture.forget_counts().await?;
        self.fixture.assert_counters_exact().await
    }
}

/// The result of many deliveries: nothing, or the fewest moves that break something.
type Delivered = Result<(), TestError<Vec<Move>>>;

/// Delivers a past in many ways, which a seed decides.
fn deliver(
    runtime: &Runtime,
    past: &PastFixture,
    weakness: Option<Weakness>,
    seed: u8,
    most_moves: usize,
) -> Delivered {
    let config = Config { cases: DELIVERIES, failure_persistence: None, max_shrink_iters: 64, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    TestRunner::new_with_rng(config, rng).run(&vec(Move::any(), 0..most_moves), |moves| {
        let wrong = runtime.block_on(past.deliver(&moves, weakness));
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
        let past = runtime.block_on(PastFixture::with_past(seed.into()))?;
        deliver(&runtime, &past, None, seed, MOST_MOVES).with_context(|| format!("past {seed}"))?;
        let [counted, skipped, conflicts] = past.fixture.measured(["Counted", "Skipped", "Conflicts"]);
        let seen = past.seen.borrow();
        println!("past {seed}: {} changes, {seen:?}, {skipped} skipped, {conflicts} conflicts", past.records.len());
        let Seen { kills, failures, races, again, .. } = *seen;
        let least = u64::try_from(kills.min(failures).min(races).min(again))?.min(conflicts);
        assert!(least > 8 && skipped > counted / 2, "too little went wrong: {seen:?}");
        drop(seen);
        runtime.block_on(past.assert_counters_exact())?;
    }
    Ok(())
}

#[test]
fn without_the_checkpoint_the_counters_differ_from_a_recount() -> Result<()> {
    let runtime = runtime()?;
    let past = runtime.block_on(PastFixture::with_past(0))?;
    let Err(TestError::Fail(why, moves)) = deliver(&runtime, &past, Some(Weakness::NoCheckpoint), 0, 16) else {
        anyhow::bail!("the test does not see that records are counted twice")
    };
    println!("without the checkpoint, by {moves:?}: {}", why.message().chars().take(160).collect::<String>());
    assert!(why.message().contains("the counters show") && moves.len() <= 6, "{moves:?}: {why}");
    runtime.block_on(past.assert_counters_exact())
}

/// Each weakness has the effect of a crash in the middle of a commit, if the commit were two writes.
#[tokio::test]
async fn a_checkpoint_that_moves_in_another_write_counts_twice_or_never() -> Result<()> {
    for (weakness, want) in [
        (Some(Weakness::CheckpointOutside), Some("the counters show 6 2026-11-20 SCHEDULED, and there are 3")),
        (Some(Weakness::NoCounters), Some("the counters show 0 2026-11-20 SCHEDULED, and there are 3")),
        (None, None),
    ] {
        let fixture = Fixture::start().await?;
        fixture.created(3).await?;
        fixture.faults.weaken(weakness);
        fixture.faults.inject(of_calls("TransactWriteItems", Fate::KillAfter));
        assert!(fixture.faults.until_killed(fixture.aggregate_step()).await.is_none());
        fixture.faults.clear();
        fixture.faults.weaken(None);
        let wrong = fixture.miscounted().await?;
        assert_eq!(wrong.first().map(String::as_str), want, "{weakness:?}: {wrong:?}");
    }
    Ok(())
}
