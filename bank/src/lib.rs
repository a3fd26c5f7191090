//! All functions of the bank, linked with the machine.

mod functions;
mod operations;
mod simulated;

pub use functions::{Dependencies, Functions, read_configuration};
pub use operations::OneMachine;
pub use simulated::SimulatedBank;
