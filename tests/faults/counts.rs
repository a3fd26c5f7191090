//! Exact counts: once the stream is drained, the counters equal a recount, whatever Lambda and DynamoDB did before.

mod crashes;
mod deliveries;
mod exact;
mod fault;
mod made;
mod past;
mod poison;
mod shards;
mod units;
