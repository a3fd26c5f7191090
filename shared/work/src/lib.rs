//! The one driver of paced work: rounds of calls until nothing is left, the deadline comes, or calls keep failing.
//! Beside it, the switch, which stops some of it.

mod consent;
mod drive;
mod halt;
mod retried;
mod retries;
mod round;
mod scheduled_run;
mod switch;

pub use consent::{NoConsent, require_consent};
pub use drive::{Work, drive};
pub use halt::Halt;
pub use retried::retried;
pub use retries::{Retries, Waits};
pub use round::{Round, at_once};
pub use scheduled_run::ScheduledRun;
pub use switch::{SWITCH_WORKS_WITHIN, SwitchReader};
