//! Payments: their two items, and the writes that create, amend, claim, settle, cancel and archive payments.

pub(crate) mod archive;
pub(crate) mod cancel;
pub(crate) mod data;
pub(crate) mod details_item;
pub(crate) mod finding;
pub(crate) mod head_item;
pub(crate) mod insert;
pub(crate) mod lookup;
pub(crate) mod record;
pub(crate) mod redate;
pub(crate) mod redrive;
pub(crate) mod settlement;
pub(crate) mod transition;
