//! A bank to test: the functions over an engine of their own, a clock that tests set, and a wire
//! that tests can watch and break.

mod ask;
pub mod contract;
mod counting;
pub mod given;
mod guard;
pub mod http_events;
mod role;
pub mod tables;
mod template;
pub mod trigger_events;
mod world;

pub use ask::{Ask, Reply};
pub use contract::Contract;
pub use counting::Counting;
pub use guard::with_role;
pub use role::{Permission, Role};
pub use template::{read_configuration, template};
pub use world::{Outside, World};
