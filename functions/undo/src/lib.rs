//! `undo`: cancels the payments of an approved plan, such as those of a wrong feed.
//!
//! A plan is a file that names payments as they were, and holds their due dates first. A run touches those payments alone.
//! Both can be repeated: a run that is killed anywhere, or begins again after a restore, ends the same way.

mod config;
mod error;
mod function;
mod hold;
mod ids;
mod logged;
mod outcome;
mod part;
mod plan;
mod run;
mod select;

pub use config::Config;
pub use function::{RESERVED, Undo};
pub use outcome::{PlanOutcome, RunOutcome, Total, UndoOutcome};
