//! `publish`: brings the events of the log to the journal, which is files, to webhook endpoints and to an event bus.
//!
//! The files are kept when the log no longer has the events, or is lost. A file is named after the
//! place of its first event, and is written only if no file has that name. It says where the next
//! one begins. So from any file on there is one chain of files without overlap, no matter which
//! runs write them and how often: a run that finds a file continues where that file ends.
//!
//! A schedule invokes the function each minute, and so does each new segment, which alone brings
//! events to the endpoints and the bus within seconds. Journal, endpoints and bus do not wait for
//! each other.
//!
//! | module | holds |
//! |---|---|
//! | `run` | from the log to the files |
//! | `endpoints` | from the log to all endpoints |
//! | `deliver` | from the log to one of them |
//! | `round` | the events that are sent at once, and their bodies |
//! | `backoff` | the retries of an endpoint |
//! | `feed` | from the log to the event bus |
//! | `bus` | the event bus |
//! | `event_bridge` | Amazon EventBridge |
//! | `webhooks` | the sender of webhooks and its secrets |
//! | [`webhook`] | the sending of webhooks |

mod backoff;
mod bus;
mod config;
mod deliver;
mod endpoints;
mod error;
#[cfg(feature = "aws")]
mod event_bridge;
mod feed;
mod function;
mod outcome;
mod round;
mod run;
pub mod webhook;
mod webhooks;

pub use backoff::GIVE_UP_AFTER;
pub use bus::{BUS_SOURCE, BusError, BusEvent, EventBus, MAX_BUS_EVENTS, Put};
pub use config::Config;
pub use deliver::LEASE;
pub use error::PublishError;
#[cfg(feature = "aws")]
pub use event_bridge::EventBridge;
pub use function::{Action, Publish, Request};
pub use outcome::{BusOutcome, PublishOutcome, WebhookOutcome};
pub use round::{MAX_BODIES, MAX_BODY_BYTES, MAX_EVENTS};
pub use webhooks::Webhooks;
