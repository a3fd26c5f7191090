//! A bank to test: the functions over an engine of their own, a clock that tests set, and a wire
//! that tests can watch and break.

mod ask;
mod counting;
mod world;

pub use ask::{Ask, Reply};
pub use counting::Counting;
pub use world::{Outside, World};
