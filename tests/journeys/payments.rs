//! One payment from its creation to its end: its items, its due times, and its cost.

mod business_days;
mod create;
mod details;
mod guards;
mod heads;
mod laws;
mod reference;
mod slots;
mod units;
