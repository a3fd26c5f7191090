//! `settle`: settles payments by the transaction service's settlement results, each payment once.
//!
//! The first read of a head is eventually consistent. Only settlement leaves PENDING, so a head
//! that was pending still is, or the long-term table has its settlement. If the head was not
//! pending, `settle` reads it again, consistently. If a redrive happens in between, the settlement
//! keeps the dispatch attempt that was read.

mod batch;
mod config;
mod function;
mod message;
mod message_end;

pub use config::Config;
pub use function::Settle;
