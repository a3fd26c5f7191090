//! Business days: the calendars of payment rails, rules for closed dates, and cut-offs.
//!
//! A calendar belongs to a rail, such as T2. A bank maps its currencies to calendars; a currency without one has no
//! closed dates. `docs/dates.md` has a table of examples.

pub(crate) mod calendar_file;
pub(crate) mod closed_days;
pub(crate) mod compiled;
pub(crate) mod date_move;
pub(crate) mod due;
pub(crate) mod rule;
pub(crate) mod settings;

pub use calendar_file::CalendarFileError;
pub use closed_days::{Calendar, ClosedDate};
pub use compiled::calendars;
pub use date_move::{CalendarVersion, DateMove};
pub use due::{DateRefusal, Due, Stays};
pub use rule::{DateRule, DateRuleError, MoveReason, MoveReasonError};
pub use settings::{BusinessDays, BusinessDaysError, CurrencyCalendars, CutOffs, Rail};

#[cfg(test)]
mod tests;
