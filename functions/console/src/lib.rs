//! `console`: shows the bank to its operators, in a browser.
//!
//! The page, its script and its style are public and show nothing of the bank. Each view is a part
//! of the page, which the script gets with the operator's token. Views only read, and SQS counts a
//! sample of a queue as a receive. Actions are confirmed and kept in an audit trail.
//!
//! | module | holds |
//! |---|---|
//! | `actions` | actions of operators: preview, confirmation, audit trail |
//! | `answer` | the answer to a request: the page, an asset, a view or an action |
//! | `asked` | actions that need a second person |
//! | `shell` | the page, its headers, script and style |
//! | `guides` | alarms, tasks and losses, rendered at build from `docs`, and the places to which views lead |
//! | `html` | parts of several views: amounts, times, links |
//! | `operations` | functions, queues and reports, which operators reach besides the tables |
//! | `panel` | panels of views, and tables whose rows are cards on a phone |
//! | `reasons` | reasons of failures, in words |
//! | `times` | instants and dates, in the bank's zone |
//! | `runs` | the last runs of the scheduled functions, in words |
//! | `told` | actions of the audit trail and their outcomes, in words |
//! | `views` | one module for each view |

mod actions;
mod answer;
mod asked;
#[cfg(feature = "aws")]
mod aws_operations;
mod config;
mod function;
pub mod gate;
mod guides;
mod html;
mod operations;
mod panel;
mod reasons;
mod resources;
mod runs;
mod shell;
mod times;
mod told;
mod views;

#[cfg(feature = "aws")]
pub use aws_operations::AwsOperations;
pub use config::{Config, Paused, SignIn};
pub use function::Console;
pub use operations::{
    BankQueue, LastMove, MoveBack, OperationError, Operations, QueueState, REPORTS, ReportFile, SampledMessage,
    Startable,
};
pub use resources::Resources;
