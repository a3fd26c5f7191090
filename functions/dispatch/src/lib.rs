//! `dispatch`: sends the requests of claimed and redriven payments to the transaction service's queue.
//!
//! `dispatch` is the outbox relay. A stream record only names a payment and a dispatch attempt. The request is sent if
//! a consistent read of the head still shows the payment pending at this attempt. So no request is sent for a payment
//! that is not pending. A request can be sent again, with the same id and content: Lambda delivers a batch again if one
//! of its records fails. From the second attempt on, and if the payment was claimed late, as after a restore,
//! `dispatch` also reads the long-term table. If the settlement is already there, `dispatch` settles the head in the
//! hot table and sends nothing.
//!
//! While the switch is on, records are skipped: their payments stay pending, and a redrive after the resume sends them.

mod attempt;
mod config;
mod function;
mod response;

pub use config::Config;
pub use function::Dispatch;
