//! All functions of the bank, linked with the machine.

mod functions;
mod operations;

pub use functions::{Dependencies, Functions};
pub use operations::OneMachine;
