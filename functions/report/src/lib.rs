//! `report`: writes each settlement to one report file, exactly once.
//!
//! A settlement is unreported while it is in the `unreported` index. A run gathers the index into an
//! attempt, commits the attempt by one conditional write, publishes its files, and removes from the index
//! exactly what the published file holds. After a crash anywhere, the next run completes it.
//!
//! | module | holds |
//! |---|---|
//! | `job` | the runs of one invocation, one after another |
//! | `gather` | unreported settlements of all shards, oldest first |
//! | `attempt` | the files of a run while they are written |
//! | `upload` | the upload of one file |
//! | `summary` | counts and sums |
//! | `publish` | the publication of a committed run's files |
//! | `drain` | the removal of published settlements from the index |
//! | `stored` | a stored file, read piece by piece |
//! | `retry` | retries of failed calls |

mod attempt;
mod config;
mod drain;
mod error;
mod function;
mod gather;
mod job;
mod outcome;
mod publish;
mod retry;
mod stored;
mod summary;
mod upload;

pub use config::{Config, MaxRows, MaxRowsError};
pub use error::ReportError;
pub use function::{Action, FILE_CALL, Report, Request};
pub use outcome::ReportOutcome;
