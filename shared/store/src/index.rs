//! Reads by an index: what is due, what an account has, and the payment of a transaction id.

pub(crate) mod account;
pub(crate) mod due;
pub(crate) mod merge;
pub(crate) mod transaction;
