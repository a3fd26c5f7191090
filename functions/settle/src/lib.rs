//! `settle`: settles payments by the transaction service's settlement results, each payment once.

mod batch;
mod config;
mod function;
mod message;
mod message_end;

pub use config::Config;
pub use function::Settle;
