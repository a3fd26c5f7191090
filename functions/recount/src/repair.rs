//! A repair: the consent to it, and the findings that the consent covers.

use payments_model::recount::is_in_drift;
use payments_model::{BusinessDate, UtcSecond};

/// A repair, with the consent to it.
#[derive(Debug)]
pub(crate) enum Repair {
    /// Two persons agreed on this drift.
    Approved(String),
    /// Somebody gave a ticket.
    Ticket(String),
}

impl Repair {
    /// Whether it covers a date's finding.
    pub(crate) fn covers(&self, date: BusinessDate, found_at: UtcSecond) -> bool {
        match self {
            Self::Approved(drift) => is_in_drift(drift, date, found_at),
            Self::Ticket(_) => true,
        }
    }
}
