//! What names an action in the audit trail, and a month of it.

use std::fmt;
use std::str::FromStr;

use payments_model::{ActionId, BusinessDate, UtcSecond};

/// A month of the trail: that of an action's preview, in UTC.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditMonth(String);

/// Why a text is not a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a month as YYYY-MM, such as 2026-12")]
pub struct AuditMonthError;

/// What names an action: when it was previewed, and its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionName {
    /// When it was previewed.
    pub previewed_at: UtcSecond,
    /// Its id.
    pub id: ActionId,
}

impl AuditMonth {
    /// The month of an instant.
    pub fn of(at: UtcSecond) -> Self {
        Self(at.to_string().chars().take(7).collect())
    }
}

impl FromStr for AuditMonth {
    type Err = AuditMonthError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        format!("{text}-01").parse::<BusinessDate>().map(|_| Self(text.to_owned())).map_err(|_| AuditMonthError)
    }
}

impl fmt::Display for AuditMonth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
