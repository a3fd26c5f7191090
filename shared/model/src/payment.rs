//! A payment: its id, its three forms, its statuses, its settlement, its amendments, and contradicting results.

pub(crate) mod amendment;
pub(crate) mod data;
pub(crate) mod finding;
pub(crate) mod forms;
pub(crate) mod limits;
pub mod payment_id;
pub mod settlement;
pub(crate) mod slot;
pub(crate) mod transition;
