//! Reads by an index: due payments, an account's payments, and the payment of a transaction id.

pub(crate) mod account;
pub(crate) mod archived;
pub(crate) mod due;
pub(crate) mod merge;
pub(crate) mod transaction;
