//! Layers between the AWS SDK and an engine: each sees every try of a call, changes it, answers it or sends it on.
//!
//! Layers sit below the SDK, so that retries, timeouts and error types are the real ones. A stack
//! is one line, such as `Layers::over(engine).with(weaken).with(fault).with(record)`: a call passes
//! them in this order.

pub mod attributes;
mod call;
pub mod fault;
pub mod lag;
pub mod random;
pub mod record;
pub mod sqs;
pub mod throttle;
pub mod trace;
pub mod weaken;

pub use call::{Answer, Call, Fate, Layer, Layers, Next, Reply, WRITES, client_over, names};
