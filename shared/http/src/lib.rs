//! HTTP as the functions see it: API Gateway v2 events in, JSON or problem+json out.
//!
//! | module | holds |
//! |---|---|
//! | [`routes`] | the one table of routes |
//! | [`access`] | who may do what, decided before any handler |
//! | [`request`] | what a request carries, parsed |
//! | [`json`] | JSON bodies, and what to say when they are none |
//! | [`problem`] | every way to say no |
//! | [`answer`] | answers, and the boundary that logs and renders |
//! | [`cursor`] | where a list goes on |
//! | [`view`] | payments and their numbers as the API shows them |

pub mod access;
pub mod answer;
pub mod cursor;
pub mod json;
pub mod problem;
pub mod request;
pub mod routes;
pub mod view;

pub use access::{Access, Scope};
pub use answer::Answer;
pub use cursor::{AccountCursor, DueCursor};
pub use problem::{Kind, Problem};
pub use request::{PageLimit, Query, Request};
pub use routes::Route;
pub use view::{CountsView, DueView, PaymentView};
