//! `dispatch`: sends the requests of claimed and redriven payments to the transaction service's queue.
//!
//! It is the outbox relay. A stream record only names a payment. A request is sent if a consistent read of
//! the head still shows the payment pending at that dispatch attempt. So a payment that is not pending is never
//! sent. A request can be sent again, with the same id and content: Lambda delivers a batch again if one of its
//! records fails. The long-term table is read too from the second attempt on, and if the payment was claimed late, as after
//! a restore: if it has the settlement already, the head in the hot table follows it, and nothing is sent.

mod attempt;
mod config;
mod function;
mod response;

pub use config::Config;
pub use function::Dispatch;
