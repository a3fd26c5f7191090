//! All functions of the bank, linked with the machine.

mod functions;
mod operations;
mod simulated;

pub use functions::{Dependencies, Functions};
pub use operations::OneMachine;
pub use simulated::SimulatedBank;
