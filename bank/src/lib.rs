//! All functions of the bank, linked with the machine.

mod functions;
mod operations;

pub use functions::{Dependencies, Functions, read_configuration};
pub use operations::OneMachine;
