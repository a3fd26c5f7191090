//! The log: changes of payments as events, in segments with consecutive numbers, in a table of its own.
//!
//! | item | pk | sk |
//! |---|---|---|
//! | head of the log | `LOG#HEAD` | `HEAD` |
//! | segment | `LOG#<epoch>` | its number, 12 digits |
//! | consumer | `LOG#CONSUMERS` | its name: `journal`, `webhook#<id>` or `bus#<name>` |
//!
//! A segment holds the events of one of the aggregator's commits, in their order. The transaction that puts a segment
//! also moves the log's head, on the condition that the head is as it was read. So the numbers of segments are
//! consecutive, and a missing number is a hole: a reader that finds a hole knows that the log is damaged. A segment can
//! be read for at least 35 days. The log's head has the number of each day's first segment, from which a segment's age
//! is computed. So no reader takes a missing segment for an expired segment.

pub(crate) mod append;
pub(crate) mod consumer;
pub(crate) mod epoch;
pub(crate) mod head;
pub(crate) mod image;
pub(crate) mod position;
pub(crate) mod read;
pub(crate) mod search;
pub(crate) mod segment;
