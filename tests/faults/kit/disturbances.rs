//! Disturbances of reads and deliveries that AWS permits although nothing has failed.
//! Reads are stale, results are duplicated and reordered, and stream records are delivered again, one by one in any
//! order or as a range.
//!
//! A month has them anywhere; here they come to the very reads and records of a case.

use anyhow::Result;
use fastrand::Rng;
use payments_delivery::{Position, Record, SequenceNumber, ShardId};

use super::fixture::{Fixture, dispatch};
use super::staleness::Lag;
use payments_tests::counting::aggregate;

/// The most changes that a read lags behind: about as many as one case makes.
const MOST_LAG: usize = 8;

/// The position of the stream mapping.
pub(crate) type Place = Option<(ShardId, Option<SequenceNumber>)>;

/// Reads lag from now on.
pub(crate) fn begin(fixture: &Fixture, seed: u64) {
    fixture.faults.lag(Lag::up_to(MOST_LAG, seed));
}

/// Reads show the present again.
pub(crate) fn end(fixture: &Fixture) {
    fixture.faults.lag(Lag::default());
}

/// The stream mapping's position now.
pub(crate) async fn place(fixture: &Fixture) -> Result<Place> {
    let mut mapping = fixture.dispatching.lock().await;
    mapping.ready().await?;
    Ok(mapping.checkpoints().into_iter().next())
}

/// Delivers all records since then once more, one by one and in another order. Returns how many.
pub(crate) async fn redeliver_since(fixture: &Fixture, place: &Place, random: &mut Rng) -> Result<usize> {
    let Some((shard, checkpoint)) = place else { return Ok(0) };
    let from = checkpoint.clone().map_or(Position::TrimHorizon, Position::After);
    let mut records = fixture.source.read_all(shard, from).await?;
    count_again(fixture, shard, &records, random).await?;
    random.shuffle(&mut records);
    let mut mapping = fixture.dispatching.lock().await;
    let mut delivered = 0;
    for record in records {
        let number = record.sequence_number();
        delivered += mapping.redeliver(shard, number, number, |event| dispatch(&fixture.functions, event)).await?;
    }
    Ok(delivered)
}

/// Counts everything, then delivers a range of these records to the aggregator once more.
async fn count_again(fixture: &Fixture, shard: &ShardId, records: &[Record], random: &mut Rng) -> Result<()> {
    fixture.aggregate_all().await?;
    if records.is_empty() {
        return Ok(());
    }
    let from = random.usize(..records.len());
    let (from, to) = (&records[from], &records[random.usize(from..records.len())]);
    let (from, to) = (from.sequence_number(), to.sequence_number());
    let mut mapping = fixture.aggregating.lock().await;
    mapping.redeliver(shard, from, to, |event| aggregate(&fixture.functions, event)).await?;
    Ok(())
}
