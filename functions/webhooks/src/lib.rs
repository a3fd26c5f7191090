//! `webhooks`: the endpoints to which `publish` delivers events, and the operators' actions on them.
//!
//! `webhooks` sends nothing itself. A request of an operator is stored in the endpoint's items, and
//! the next run of `publish` performs it: within a minute.
//!
//! | module | holds |
//! |---|---|
//! | `audited` | the audit trail |
//! | `choice` | the body of a PUT |
//! | `endpoints` | create, change, show, delete |
//! | `operate` | test, replay, skip, rotate |
//! | `view` | the JSON of an endpoint |

mod audited;
mod choice;
mod config;
mod endpoints;
mod function;
mod operate;
mod view;

pub use choice::MAX_DESCRIPTION_CHARS;
pub use config::Config;
pub use function::Webhooks;
