//! A world to test: the functions over their own engine, a clock that tests set, and a recorder of their calls.
//!
//! Errors fail the test that meets them.

mod answers;
mod ask;
mod asserts;
mod bus;
mod cases;
pub mod contract;
pub mod counting;
mod crash_points;
mod database;
pub mod event_files;
pub mod given;
mod interruption;
mod invocations;
mod log_lines;
pub mod orders;
pub mod prelude;
pub mod requests;
mod role;
mod role_check;
pub mod tables;
mod template;
pub mod trigger_events;
mod world;

pub use ask::{Ask, Reply};
pub use asserts::{assert_fails, assert_has};
pub use bus::Bus;
pub use cases::note_case;
pub use contract::Contract;
pub use counting::Counting;
pub use crash_points::{CrashPoint, CrashPoints, TROUBLES, Way};
pub use interruption::interrupted;
pub use invocations::{invoke, invoke_until, scheduled};
pub use log_lines::LogLines;
pub use payments_lab::world::receivers::{Message, Reaction, Receivers};
pub use role::{Permission, Role};
pub use role_check::with_role;
pub use template::{deployed, template};
pub use world::{Outside, World};
