//! Journeys: the system from outside, one module each.

mod access;
mod alarms;
mod archive;
mod bodies;
mod characters;
mod connection;
mod counts;
mod create;
mod demo;
mod description;
mod details;
mod docs;
mod due;
mod events;
mod extremes;
mod faults;
mod heads;
mod list;
mod local;
mod queries;
mod recount;
mod reference;
mod report;
mod triggers;
mod units;
mod unreadable;
