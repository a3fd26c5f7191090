//! Exact counts: whatever Lambda and DynamoDB do between the stream and the counters, those equal a
//! recount once the stream is drained.

mod deliveries;
mod exact;
mod mishap;
mod past;
mod shards;
