//! What the data model costs, and what it can take: a ledger of units by step, and a model of
//! DynamoDB's partition keys on a virtual clock.

mod buckets;
mod design;
mod document;
mod fixture;
mod ledger;
mod life;
mod line;
mod meter;
mod partitions;
mod stage;
