//! Faults: crashes between any two calls, stale reads, repeated and disordered deliveries, races, poison and hot
//! shards.

mod aggregation;
mod counts;
mod crash_points;
mod damage_log;
mod deadlines;
mod disturbances;
mod fault_injector;
mod fault_plan;
mod fixture;
mod formats;
mod invariants;
mod late;
mod lateness;
mod night;
mod paces;
mod poison;
mod races;
mod recount;
mod reread;
mod staleness;
mod sweeper;
mod task_scheduler;
mod time;
mod transaction_service;
mod weakened;
