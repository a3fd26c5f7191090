//! A world to test: the functions over their own engine, a clock that tests set, and a recorder of their calls.
//!
//! An error fails the test in which it occurs.

mod answers;
mod ask;
mod asserts;
mod bus;
pub mod contract;
pub mod counting;
mod crash_points;
mod database;
pub mod events;
pub mod given;
mod invocations;
mod log_lines;
pub mod orders;
pub mod prelude;
mod role;
mod role_check;
pub mod tables;
mod template;
mod world;

pub use ask::{Ask, Reply};
pub use asserts::{assert_fails, assert_has};
pub use bus::Bus;
pub use contract::Contract;
pub use counting::Counting;
pub use crash_points::{CrashPoint, CrashPoints, TROUBLES, Way, note_case};
pub use invocations::{interrupted, invoke, invoke_until, scheduled};
pub use log_lines::LogLines;
pub use payments_lab::world::receivers::{Message, Reaction, Receivers};
pub use role::{Permission, Role};
pub use role_check::with_role;
pub use template::{deployed, template};
pub use world::{Outside, World};
