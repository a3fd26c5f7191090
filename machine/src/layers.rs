//! Layers between the AWS SDK and an engine. A layer gets a try of a call, and changes, answers or passes on the try.
//!
//! Layers sit below the SDK, so retries, timeouts and error types are the SDK's own. A stack of layers is one line,
//! such as `Layers::over(engine).with(weaken).with(fault).with(record)`. In this stack, a try passes `weaken` first,
//! then `fault`, then `record`, and then reaches the engine. The reply passes the layers in the opposite order.

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

pub use call::{Answer, Call, Fate, Layer, Layers, Next, Reply, WRITES, client_over, names, own_quota};
