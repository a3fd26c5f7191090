//! Requests of every form: the order of their faults, their characters and sizes, and answers while DynamoDB fails.

mod bodies;
mod characters;
mod docs;
mod extremes;
mod faults;
mod queries;
