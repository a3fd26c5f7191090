//! What does not work at the moment: outages break it, and actions of the runbook mend it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A part of the world that can be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The event source mapping of a package's function is disabled.
    Mapping(&'static str),
    /// A schedule does not come.
    Schedule(&'static str),
    /// Every invocation of a package's function fails.
    Function(&'static str),
    /// The transaction service is away.
    Service,
    /// The report store rejects every call.
    Reports,
    /// DynamoDB throttles every write of a head in the hot table.
    Writes,
}

/// What is broken. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Broken(Arc<Mutex<BTreeSet<Part>>>);

impl Broken {
    fn parts(&self) -> MutexGuard<'_, BTreeSet<Part>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a part is broken.
    pub(crate) fn is(&self, part: Part) -> bool {
        self.parts().contains(&part)
    }

    /// Breaks a part.
    pub(crate) fn break_part(&self, part: Part) {
        self.parts().insert(part);
    }

    /// Mends the parts of which this is true.
    pub(crate) fn mend(&self, is_mended: impl Fn(&Part) -> bool) {
        self.parts().retain(|part| !is_mended(part));
    }
}
