//! The function, as its views see it.

use std::sync::Arc;

use object_store::ObjectStore;
use payments_boot::{Clock, Deadline, Metrics};
use payments_http::{Problem, ProblemKind};
use payments_model::BusinessDate;
use payments_sealed::SealedRows;
use payments_store::Store;

use crate::config::Config;
use crate::operations::Operations;
use crate::times::Times;

/// The function.
#[derive(Debug, Clone)]
pub struct Console {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) operations: Arc<dyn Operations>,
    pub(crate) sealed: SealedRows,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

impl Console {
    /// Creates the function. Sealed parts are in `files`.
    pub fn new(
        config: Config,
        store: Store,
        operations: Arc<dyn Operations>,
        files: Arc<dyn ObjectStore>,
        clock: Clock,
        metrics: Metrics,
    ) -> Self {
        let sealed = SealedRows::new(files, clock.clone());
        Self { config, store, operations, sealed, clock, metrics }
    }

    /// The bank's date now.
    pub(crate) fn today(&self) -> BusinessDate {
        self.config.business_days.date_of(self.clock.now())
    }

    /// The bank's zone and the present, for what a view shows.
    pub(crate) fn times(&self) -> Times {
        Times { zone: self.config.business_days.zone(), now: self.clock.now() }
    }

    /// The instant at which a request stops starting work.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::for_http(&self.clock)
    }
}

/// A page or an action that the console does not have.
pub(crate) fn no_such_page() -> Problem {
    Problem::new(ProblemKind::NoSuchRoute, "The console has no such page; check the address, or open /console.")
}
