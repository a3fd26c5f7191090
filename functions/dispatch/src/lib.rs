//! `dispatch`: sends the requests of claimed and redriven payments to the transaction service's queue.
//!
//! `dispatch` is the outbox relay. A stream record only names a payment. A request is sent if a
//! consistent read of the head still shows the payment pending at that dispatch attempt, so a
//! payment that is not pending is never sent. A request can be sent again, with the same id and
//! content: Lambda delivers a batch again if one of its records fails. From the second attempt on,
//! and if the payment was claimed late, as after a restore, the long-term table is read, too. If it
//! has the settlement already, the head in the hot table gets it, and nothing is sent.

mod attempt;
mod config;
mod function;
mod response;

pub use config::Config;
pub use function::Dispatch;
