//! Moves of due dates: the reason, and the version of the calendar that decided.

use crate::business_days::closed_days::Calendar;
use crate::business_days::rule::MoveReason;

/// The reason why a payment is not due when its client asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateMove {
    /// The reason.
    pub reason: MoveReason,
    /// The calendar; `None` if a restore built the details anew, from events that do not name it.
    pub calendar: Option<CalendarVersion>,
}

/// A calendar as it once was. Calendars change and are removed, and payments are explained for
/// years, so it may be unknown today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarVersion {
    id: String,
    version: String,
}

impl CalendarVersion {
    /// A calendar as it is.
    #[must_use]
    pub fn current(calendar: &Calendar) -> Self {
        Self { id: calendar.id().to_owned(), version: calendar.version().to_owned() }
    }

    /// A calendar as it was when this was stored.
    #[must_use]
    pub fn from_stored(id: String, version: String) -> Self {
        Self { id, version }
    }

    /// The calendar's id, such as `T2`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The version of its data.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }
}
