//! The capacity use of a payment's life in several designs, and models of DynamoDB's limits on a virtual clock.

mod agreement;
mod backends;
mod capacity_use;
mod creates;
mod day;
mod design;
mod life;
mod log;
mod measured;
mod other_designs;
mod partitions;
mod prices;
mod results;
mod sealed;
mod sealing;
mod second;
mod stacks;
mod sweeps;

use payments_machine::layers::throttle::placement;
