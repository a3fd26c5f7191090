//! `publish`: brings the log's events to the files of the journal, to webhook endpoints and to an event bus.
//!
//! The journal's files stay when the log's events expire or the log is lost. A file is named after the
//! place of its first event, and is written only if no file has that name. Each file says where the
//! next file begins, and a run that finds a file continues where that file ends. So the files form
//! one chain without overlap, no matter which runs write them and how often.
//!
//! A schedule invokes the function each minute. The stream of the log's table also invokes it for new segments, so
//! endpoints and the bus get events within seconds. The journal, the endpoints and the bus do not wait for each other.
//!
//! | module | holds |
//! |---|---|
//! | `run` | from the log to the files |
//! | `endpoints` | from the log to all endpoints |
//! | `deliver` | from the log to one endpoint |
//! | `round` | the events that are sent at once, and their bodies |
//! | `backoff` | the retries of an endpoint |
//! | `feed` | from the log to the event bus |
//! | `bus` | the event bus |
//! | `event_bridge` | Amazon EventBridge |
//! | `webhooks` | the sender of webhooks, with the master secret and the clock for its signatures |
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
mod waiting;
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
