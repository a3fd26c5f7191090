//! Faults: crashes between any two calls, stale reads, repeated and disordered deliveries, races, poison and hot
//! shards.
//!
//! A simulated month (`lab`) draws what fails, and when. What is here does what a month cannot: it fails each
//! call of a trigger in turn, orders calls as a test says, damages items, reads costs and metrics, or hits one second.
//! The laws, the reads of the past, the weaknesses and the random source are the month's.

mod aggregation;
mod contradictions;
mod counts;
mod crash_points;
mod damage_log;
mod deadlines;
mod in_between;
mod kit;
mod late;
mod lateness;
mod night;
mod paces;
mod poison;
mod races;
mod recount;
mod redate;
mod reread;
mod sweeper;
mod weakened;

use payments_allocator as _;
