//! The switch, as the outcome and the metrics of a run show it.

use metrique_writer::Entry;
use payments_model::{Switch, SwitchChange, UtcSecond};
use serde::Serialize;

/// The switch, as a run saw it last.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Entry)]
#[serde(rename_all = "camelCase")]
#[entry(rename_all = "PascalCase")]
pub struct SwitchSeen {
    /// 1 if the switch stops claims and redrives.
    #[serde(skip_serializing_if = "is_zero")]
    pub stopped: u64,
    /// The age of the stop, or of the oldest hold, in seconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub held_seconds: u64,
    /// 1 if the switch could not be read, which stops the run, too.
    #[serde(skip_serializing_if = "is_zero")]
    pub switch_unreadable: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The changes by which the switch holds payments: those of the holds, and the stop.
pub(crate) fn changes(switch: &Switch) -> impl Iterator<Item = &SwitchChange> {
    let stop = switch.change.as_ref().filter(|_| switch.stopped);
    switch.holds.iter().map(|hold| &hold.change).chain(stop)
}

impl SwitchSeen {
    pub(crate) fn new(switch: &Switch, now: UtcSecond) -> Self {
        let age = |change: &SwitchChange| (now.as_chrono() - change.at.as_chrono()).num_seconds();
        let oldest = changes(switch).map(age).max().and_then(|age| u64::try_from(age).ok());
        let (stopped, held_seconds) = (u64::from(switch.stopped), oldest.unwrap_or_default());
        Self { stopped, held_seconds, switch_unreadable: 0 }
    }
}
