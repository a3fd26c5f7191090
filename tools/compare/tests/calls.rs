//! Both sides of each pair make the same calls; otherwise their ratio would mean nothing. No test depends on how long
//! anything takes.

use anyhow::{Context as _, Result};
use payments_compare::check::same_calls;
use payments_compare::fixture::Fixture;
use payments_compare::pair::Pair;
use payments_compare::round::Round;
use payments_machine::Engine;
use payments_machine::payload::DataKind;

/// The calls for twenty payments, or pages of them. A sweep also queries each of ten shards.
const CALLS: [(Pair, usize); 5] =
    [(Pair::Ingest, 40), (Pair::Batch, 40), (Pair::Sweep, 30), (Pair::Settle, 80), (Pair::List, 40)];

#[tokio::test]
async fn both_sides_make_the_same_calls() -> Result<()> {
    let kinds = DataKind::ALL.map(|kind| (Pair::Ingest, 40, kind));
    for (pair, want, kind) in CALLS.map(|(pair, want)| (pair, want, DataKind::default())).into_iter().chain(kinds) {
        let engine = Engine::start(0, None).await?;
        let made = same_calls(pair, &engine.url(), kind, 20).await.with_context(|| pair.properties().name)?;
        assert_eq!(made, want, "{}, {kind:?}", pair.properties().name);
    }
    Ok(())
}

#[tokio::test]
async fn each_round_works_on_new_payments() -> Result<()> {
    let engine = Engine::start(0, None).await?;
    let fixture = Fixture::over(&engine.url(), DataKind::default(), None).await?;
    for pair in Pair::ALL {
        pair.begin(&fixture).await?;
        for _ in 0..2 {
            let round = Round::of(pair, &fixture, 10).await?;
            assert!(round.took.iter().all(|took| !took.is_zero()), "{}", pair.properties().name);
        }
    }
    Ok(())
}
