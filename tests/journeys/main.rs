//! Journeys: the system from outside, one module each.

mod access;
mod alarms;
mod amend;
mod api;
mod archive;
mod console;
mod events;
mod golden;
mod laptop;
mod lists;
mod log;
mod payments;
mod recount;
mod redate;
mod report;
mod runs;
mod sealed;
mod triggers;

use payments_allocator as _;
