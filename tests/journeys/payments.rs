//! One payment from its creation to its end: what is stored, when it is due, and what it costs.

mod business_days;
mod create;
mod details;
mod heads;
mod laws;
mod reference;
mod slots;
mod units;
