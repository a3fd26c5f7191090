//! `settle`: settles payments by the transaction service's settlement results, each payment once.
//!
//! The first read of a head is eventually consistent. Only a settlement ends PENDING. So a head that
//! the read shows as pending is still pending, or the long-term table has its settlement. If the
//! read shows no pending head, `settle` reads the head again, consistently. If a redrive happens
//! after the read, the settled head keeps the dispatch attempt that was read.

mod batch;
mod config;
mod function;
mod message;
mod message_end;

pub use config::Config;
pub use function::Settle;
