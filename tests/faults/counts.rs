//! Exact counts: once the stream is drained, the counters equal a recount, whatever Lambda and DynamoDB did before.
//!
//! A month has one stream; here the same past is delivered in many ways, and one that is miscounted is shrunk.

mod crashes;
mod deliveries;
mod exact;
mod fault;
mod made;
mod past;
mod poison;
mod shards;
mod units;
