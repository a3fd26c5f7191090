//! The parts of fault tests: a bank whose calls fail, wait and are ordered as a test says, and the invariants.

pub(crate) mod disturbances;
pub(crate) mod fault_injector;
pub(crate) mod fault_plan;
pub(crate) mod fixture;
pub(crate) mod invariants;
pub(crate) mod staleness;
pub(crate) mod task_scheduler;
pub(crate) mod transaction_service;
