//! What the data model costs, and what it can take: a ledger of units by step, and a model of
//! DynamoDB's partition keys on a virtual clock.

mod buckets;
mod capacity_use;
mod design;
mod document;
mod feed;
mod life;
mod other_designs;
mod partitions;
mod stage;
mod throttle;
