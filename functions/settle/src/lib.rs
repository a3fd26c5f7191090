//! `settle`: settles payments by the transaction service's settlement results, each payment once.

mod config;
mod function;
mod message_end;
mod pace;

pub use config::Config;
pub use function::Settle;
