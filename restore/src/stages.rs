//! The stages of a restore, in the order of docs/restore.md. Each returns its steps.

mod cancels;
mod clients;
mod epoch;
mod files;
mod import;
mod start;
mod switch;
mod tables;
mod template;

pub use cancels::{Lost, LostError, cancels, listed, lost, scheduled, told};
pub use clients::{Allowed, clients};
pub use epoch::{
    before_begin, before_files, before_finish, ensure_closed, ensure_ended, ensure_usable, published, stream,
};
pub use files::{ensure_copied, files};
pub use import::{changes, import};
pub use start::{Start, start};
pub use switch::resume;
pub use tables::{endpoints, tables};
pub use template::template;

use std::time::Duration;

use payments_model::UtcSecond;
use serde_json::json;

use crate::call::Call;
use crate::note::Kind;
use crate::step::{Act, Fact, Read, Step, Want};

/// For what is done at once, and may take a while to be seen.
const SOON: Duration = Duration::from_secs(15 * 60);

/// For a restore, a change of a large table, and an update of the stack.
const HOURS: Duration = Duration::from_secs(24 * 60 * 60);

/// A fact of a command of the AWS CLI.
fn fact(name: impl Into<String>, call: Call, part: &str, want: Want, remedy: impl Into<String>) -> Fact {
    Fact { name: name.into(), read: Read::Run(call), part: part.to_owned(), of: None, want, remedy: remedy.into() }
}

/// A step that runs one command.
fn step(what: impl Into<String>, call: Call, done: Vec<Fact>) -> Step {
    let act = Act::Run(vec![call]);
    Step { what: what.into(), needs: Vec::new(), act, done, failed: None, within: SOON }
}

/// A step that waits for these facts.
fn wait(what: impl Into<String>, done: Vec<Fact>) -> Step {
    Step { what: what.into(), needs: Vec::new(), act: Act::Wait, done, failed: None, within: SOON }
}

fn describe_table(table: &str) -> Call {
    Call::aws_with("dynamodb describe-table --table-name {}", &[table])
}

/// The latest backup of the long-term table is not from before the hot table's instant.
fn latest(table: &str, hot: UtcSecond) -> Fact {
    let call = Call::aws_with("dynamodb describe-continuous-backups --table-name {}", &[table]);
    let part = "/ContinuousBackupsDescription/PointInTimeRecoveryDescription/LatestRestorableDateTime";
    let remedy = "run this again in a few minutes, or start again with an earlier --to";
    fact(format!("the latest backup of {table}"), call, part, Want::Since(hot), remedy)
}

/// The backups of a table have an instant, or at least exist.
fn window(table: &str, to: Option<UtcSecond>, kind: Kind) -> Fact {
    let call = Call::aws_with("dynamodb describe-continuous-backups --table-name {}", &[table]);
    let part = "/ContinuousBackupsDescription/PointInTimeRecoveryDescription";
    let want = to.map_or_else(|| Want::Is(json!({"PointInTimeRecoveryStatus": "ENABLED"})), Want::Covers);
    let remedy = format!("choose an instant to which the {} table can be restored, and start again", kind.word());
    fact(format!("the backups' window of {table}"), call, part, want, remedy)
}
