//! Journeys: the system from outside, one module each.

mod access;
mod alarms;
mod amend;
mod archive;
mod bodies;
mod business_days;
mod characters;
mod client;
mod console;
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
mod golden;
mod heads;
mod idle;
mod list;
mod local;
mod log;
mod queries;
mod recount;
mod redate;
mod reference;
mod report;
mod sandbox;
mod slots;
mod triggers;
mod units;
mod unreadable;

use payments_allocator as _;
