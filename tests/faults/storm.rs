//! Bad weather: everything that AWS may do with triggers and reads though nothing has failed. Reads
//! lag, results repeat and overtake each other, stream records come again, one by one and in any
//! order, or stretch by stretch.

use anyhow::Result;
use payments_delivery::{Position, Record, SequenceNumber, ShardId};

use crate::aggregation::aggregate;
use crate::dice::Dice;
use crate::rig::{Rig, dispatch};
use crate::staleness::Lag;

/// How many changes reads lag behind at most: about what one case makes.
const MOST_LAG: usize = 8;

/// Where the stream mapping was at some time.
pub(crate) type Place = Option<(ShardId, Option<SequenceNumber>)>;

/// Reads lag from now on.
pub(crate) fn begin(rig: &Rig, seed: u64) {
    rig.line.staleness().set(Lag::up_to(MOST_LAG, seed));
}

/// Reads show the present again.
pub(crate) fn end(rig: &Rig) {
    rig.line.staleness().set(Lag::none());
}

/// Where the stream mapping is now.
pub(crate) async fn place(rig: &Rig) -> Result<Place> {
    let mut mapping = rig.dispatching.lock().await;
    mapping.ready().await?;
    Ok(mapping.checkpoints().into_iter().next())
}

/// Delivers what the stream has had since then once more, record by record, in another order.
/// Returns how many were delivered.
pub(crate) async fn redeliver_since(rig: &Rig, place: &Place, dice: &mut Dice) -> Result<usize> {
    let Some((shard, checkpoint)) = place else { return Ok(0) };
    let from = checkpoint.clone().map_or(Position::TrimHorizon, Position::After);
    let mut records = rig.source.read_all(shard, from).await?;
    count_again(rig, shard, &records, dice).await?;
    dice.shuffle(&mut records);
    let mut mapping = rig.dispatching.lock().await;
    let mut delivered = 0;
    for record in records {
        let number = record.sequence_number();
        delivered += mapping.redeliver(shard, number, number, |event| dispatch(&rig.functions, event)).await?;
    }
    Ok(delivered)
}

/// Has everything counted, and then a stretch of these records once more.
async fn count_again(rig: &Rig, shard: &ShardId, records: &[Record], dice: &mut Dice) -> Result<()> {
    rig.aggregate_all().await?;
    let from = dice.below(records.len());
    let to = from + dice.below(records.len() - from);
    let Some((from, to)) = records.get(from).zip(records.get(to)) else { return Ok(()) };
    let (from, to) = (from.sequence_number(), to.sequence_number());
    let mut mapping = rig.aggregating.lock().await;
    mapping.redeliver(shard, from, to, |event| aggregate(&rig.functions, event)).await?;
    Ok(())
}
