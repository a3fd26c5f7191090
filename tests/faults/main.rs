//! What must hold when things go wrong: crashes between any two calls, stale reads, repeated and
//! disordered deliveries, races, poison, and hot shards.

mod aggregation;
mod counts;
mod crash_points;
mod dice;
mod gate;
mod late;
mod ledger;
mod line;
mod night;
mod poison;
mod races;
mod recount;
mod reread;
mod rig;
mod service;
mod staleness;
mod storm;
mod sweeper;
mod time;
mod weakened;
mod weakness;
