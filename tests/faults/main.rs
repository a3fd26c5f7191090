//! Faults: crashes between any two calls, stale reads, repeated and disordered deliveries, races, poison and hot
//! shards.
//!
//! A simulated month (`lab`) draws its faults, and their times. The tests here do what a month cannot: they fail each
//! call of a trigger in turn, order calls as a test says, damage items, read costs and metrics, or hit one second. The
//! laws, the reads of the past, the weaknesses and the random source are the month's.

mod aggregation;
mod contradictions;
mod counts;
mod crash_points;
mod damage_log;
mod deadlines;
mod in_between;
mod kit;
mod late;
mod night;
mod paces;
mod poison;
mod races;
mod recount;
mod redate;
mod reread;
mod sweeper;
mod undo;
mod weakened;

use payments_allocator as _;
