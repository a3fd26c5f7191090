//! Both sides of each pair make the same calls, or their ratio would say nothing. Nothing here looks at how
//! long anything takes.

use anyhow::{Context as _, Result};
use payments_compare::Pair;
use payments_compare::bank::Bank;
use payments_compare::check::same_calls;
use payments_compare::round::Round;
use payments_local::Engine;

/// The calls of twenty payments, or pages of them; a sweep has a query for each of ten shards beside.
const CALLS: [(Pair, usize); 5] =
    [(Pair::Ingest, 40), (Pair::Batch, 40), (Pair::Sweep, 30), (Pair::Settle, 60), (Pair::List, 20)];

#[tokio::test]
async fn both_sides_make_the_same_calls() -> Result<()> {
    for (pair, want) in CALLS {
        let engine = Engine::start(0, None).await?;
        let made = same_calls(pair, &engine.url(), 20).await.with_context(|| pair.name())?;
        assert_eq!(made, want, "{}", pair.name());
        engine.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_round_does_its_work_on_fresh_payments_each_time() -> Result<()> {
    let engine = Engine::start(0, None).await?;
    let bank = Bank::over(&engine.url(), None).await?;
    for pair in Pair::ALL {
        pair.begin(&bank).await?;
        for _ in 0..2 {
            let round = Round::of(pair, &bank, 10).await?;
            assert!(round.took.iter().all(|took| !took.is_zero()), "{}", pair.name());
        }
    }
    engine.stop().await
}
