//! Requests of every form: their order of faults, their characters and sizes, and what a failing DynamoDB makes of them.

mod bodies;
mod characters;
mod docs;
mod extremes;
mod faults;
mod queries;
