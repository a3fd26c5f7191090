//! The bill of a month: quantities that a day on one machine records, scaled to a workload, at list prices.

mod bill;
mod days;
pub mod document;
mod play;
mod prices;
mod quantities;
mod recorded;
mod sealed;
mod stored;
mod workload;

pub use bill::{ASSUMPTIONS, Bill, Line, MONTHS, Stage, cents, grouped};
pub use play::{Content, Kind, Part};
pub use prices::{DOLLAR, Price, Prices};
pub use quantities::Quantities;
pub use sealed::{CLEARED_AFTER, SEALED_AFTER, cleared, parts_archived_after};
pub use stored::Stored;
pub use workload::Workload;
