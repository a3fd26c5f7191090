//! A client of the API for scheduled payments: typed, with safe retries and exact numbers.
//!
//! [`Bank`] has a method for each operation. `clients/README.md` has the rules of retries.

mod amendments;
mod bank;
mod batches;
mod builder;
mod errors;
mod events;
mod model;
#[cfg(feature = "plain-http")]
mod over_http;
mod pages;
mod retries;
mod sender;
mod tokens;
mod transport;
mod values;
mod verify;
mod webhooks;

pub use amendments::{Amended, PaymentVersion};
pub use bank::{AccountFilter, Bank, DueFilter, Order};
pub use builder::Builder;
pub use errors::{BoxError, Error, Fault, Problem};
pub use events::{Event, EventPage, PreviousFields};
pub use model::{
    AccountBatchEntry, Actor, BatchEntry, Calendar, ClosedDate, Created, DayCounts, DuePayment, EntryResult, Payment,
    PaymentOrder, TrailEntry,
};
#[cfg(feature = "plain-http")]
pub use over_http::Http;
pub use pages::Pages;
pub use retries::{Retries, SystemTimer, Timer, Tries};
pub use tokens::{ClientCredentials, Token};
pub use transport::Transport;
pub use values::{Data, DateRule, ScheduledFor, Status};
pub use verify::{TOLERANCE, WebhookError, verify};
pub use webhooks::{
    Delivery, DeliveryError, Endpoint, EndpointOrder, EndpointSecret, Failing, MissedEvents, SkippedEvent,
};

/// Compiles the example of `clients/README.md`.
#[cfg(all(doctest, feature = "http"))]
#[doc = include_str!("../../README.md")]
struct Readme;

/// Compiles the example of `docs/events.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/events.md")]
struct Events;
