//! The parts that do not work at the moment: outages break them, and actions of docs/alarms.md mend them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::plans::outages::Outage;

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

/// The broken parts, each with its outage. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Broken(Arc<Mutex<BTreeMap<Part, Outage>>>);

impl Broken {
    fn parts(&self) -> MutexGuard<'_, BTreeMap<Part, Outage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a part is broken.
    pub(crate) fn is(&self, part: Part) -> bool {
        self.parts().contains_key(&part)
    }

    /// Breaks a part by an outage.
    pub(crate) fn break_part(&self, part: Part, outage: Outage) {
        self.parts().insert(part, outage);
    }

    /// Mends the parts of which this is true.
    pub(crate) fn mend(&self, is_mended: impl Fn(Part, Outage) -> bool) {
        self.parts().retain(|part, outage| !is_mended(*part, *outage));
    }
}
