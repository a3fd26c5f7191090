//! Where DynamoDB puts keys, and how its partitions split.
//!
//! It is the one model of partitions: the capacity tests hold the bank to it for an hour, `cargo month` for weeks.

mod placement;

pub use placement::{Partitions, SPACE, SPLITS_AFTER, position};
