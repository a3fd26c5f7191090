//! A payment: its id, its three forms, its statuses, its settlement and its amendments.

pub(crate) mod amendment;
pub(crate) mod forms;
pub mod payment_id;
pub mod settlement;
pub(crate) mod slot;
pub(crate) mod transition;
