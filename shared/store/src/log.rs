//! The log: changes of payments as events, in segments that are numbered without a gap, in a table of its own.
//!
//! | item | pk | sk |
//! |---|---|---|
//! | head of the log | `LOG#HEAD` | `HEAD` |
//! | segment | `LOG#<epoch>` | its number, 12 digits |
//! | consumer | `LOG#CONSUMERS` | its name: `journal`, `webhook#<id>` or `bus#<name>` |
//!
//! A segment holds the events of one of the aggregator's commits, in their order. The transaction
//! that puts a segment also moves the log's head, on condition that the head is as it was read. So
//! numbers are consecutive, and a hole shows a reader that something is wrong. A segment can be
//! read for 35 days at least. Its age is computed from the head, which has the number with which
//! each day began: a missing segment is never mistaken for an expired one.

pub(crate) mod append;
pub(crate) mod consumer;
pub(crate) mod epoch;
pub(crate) mod head;
pub(crate) mod image;
pub(crate) mod position;
pub(crate) mod read;
pub(crate) mod segment;
