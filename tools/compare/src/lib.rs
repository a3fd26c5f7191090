//! The throughput of the functions, compared with bare loops of the same calls.
//!
//! Each pair does the same work twice: in a function's handler, and in a bare loop of the same calls with the same
//! client, in turns and on the same engine. `cargo compare` measures the pairs, `cargo sweep-rate` how fast many due
//! payments are swept.

mod calls;
pub mod check;
pub mod fixture;
mod ingest;
mod list;
pub mod pair;
pub mod round;
mod settle;
mod sweep;
pub mod table;
