//! Exact counts: whatever Lambda and DynamoDB do between the stream and the counters, those equal a
//! recount once the stream is drained.

mod crashes;
mod deliveries;
mod exact;
mod fault;
mod made;
mod past;
mod poison;
mod shards;
mod units;
