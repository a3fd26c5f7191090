//! The capacity use of a payment's life in several designs, and a model of DynamoDB's limits on a virtual clock.

mod backends;
mod buckets;
mod capacity_use;
mod design;
mod document;
mod feed;
mod life;
mod other_designs;
mod partitions;
mod throttle;
