//! `daily-due-sweeper`: claims payments when they are due, and redrives those that stay pending.

mod config;
mod function;
mod guard;
mod lateness;
mod outcome;
mod pace;
mod redrive;
mod remaining;
mod reserved;
mod reserving;
mod still_held;
mod sweep;
mod switch_seen;

pub use config::Config;
pub use function::{Action, REDRIVE_EVERY, Request, SWEEP_EVERY, Sweeper};
pub use outcome::{RedriveOutcome, SweepOutcome, SweeperOutcome};
pub use switch_seen::SwitchSeen;
