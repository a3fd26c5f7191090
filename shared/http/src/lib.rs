//! HTTP as the functions see it: API Gateway v2 events in, JSON or problem+json out.
//!
//! | module | holds |
//! |---|---|
//! | [`routes`] | the table of routes |
//! | [`scope`] | the scopes of access tokens |
//! | [`access`] | authorization, before any handler |
//! | `client` | the client of a token |
//! | [`request`] | requests: route, parameters, headers, body and caller, parsed |
//! | [`key_header`] | the header `Idempotency-Key` |
//! | [`json`] | JSON bodies, and the problems with them |
//! | [`echo`] | texts of a request that its answer repeats |
//! | [`form`] | forms of HTML pages |
//! | [`pointer`](mod@pointer) | places in the body of a request |
//! | [`problem`] | the kinds of problem, and their JSON |
//! | [`answer`] | answers, and the boundary that logs and renders |
//! | [`cursor`] | the cursors of lists |
//! | [`view`] | the JSON of payments and counts |

pub mod access;
pub mod answer;
mod client;
pub mod cursor;
pub mod echo;
pub mod form;
pub mod json;
pub mod key_header;
pub mod pointer;
pub mod problem;
mod problem_kind;
mod problem_page;
pub mod query;
pub mod request;
pub mod routes;
pub mod scope;
pub mod view;

pub use access::Access;
pub use answer::{Answer, serve};
pub use cursor::{AccountCursor, CursorKind, DueCursor};
pub use echo::bounded;
pub use form::{Form, invalid_field};
pub use pointer::Pointer;
pub use problem::{Problem, ProblemKind};
pub use query::Query;
pub use request::{PageLimit, Request};
pub use routes::{HttpFunction, Route};
pub use scope::Scope;
pub use view::{CountsView, EndpointsChanged, PaymentView, Unreadable, VersionsView};
