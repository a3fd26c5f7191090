//! The metric of what a list leaves out.

use metrique_writer::Entry;
use payments_http::LeftOut;

use crate::QueryAccount;

/// The metrics of a list that is not whole. Others emit none.
#[derive(Entry)]
#[entry(rename_all = "PascalCase")]
struct Tally {
    /// Payments that cannot be read.
    unparsed: u64,
}

impl QueryAccount {
    /// Emits how many payments a list left out, if any.
    pub(crate) fn count(&self, left_out: &LeftOut) {
        if !left_out.is_empty() {
            self.metrics.emit(self.clock.instant(), &Tally { unparsed: left_out.count() });
        }
    }
}
