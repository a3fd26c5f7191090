//! The filter of a reader of the log.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::account::AccountId;
use crate::log::kind::EventKind;
use crate::payment::transition::Status;

/// The most accounts of a filter. With 48 bytes each they are 2.4 KB of an item.
pub const MAX_FILTER_ACCOUNTS: usize = 50;

/// A filter by type and by account. Without types, all types pass; without accounts, all accounts.
///
/// Amendments pass where new payments do: a reader that acts on scheduled payments must know their new content. Events
/// without a new version of a payment always pass the types: gaps, restores and irregular changes mean that a reader's
/// knowledge may be wrong. Events without an account pass the accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// The statuses whose events pass.
    pub statuses: BTreeSet<Status>,
    /// The accounts, of which one pays or is paid, or was to be paid before an amendment.
    pub accounts: BTreeSet<AccountId>,
}

/// The fields of an event by which it is filtered and divided.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventFields {
    /// The id.
    pub id: String,
    /// The type, such as `payment.processed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The account that pays.
    pub account_id: Option<String>,
    /// The account that is paid.
    pub payee_account_id: Option<String>,
    /// The values before an amendment.
    pub previous: Option<PreviousFields>,
    /// The payment.
    pub payment_id: Option<String>,
}

/// The fields before an amendment by which its event is filtered.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreviousFields {
    /// The account that was paid, if that changed.
    pub payee_account_id: Option<String>,
}

/// A text that is not a type of events for a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a type is payment.scheduled, payment.pending, payment.processed, payment.failed or payment.cancelled")]
pub struct EventTypeError;

/// The type of the events of payments that get this status.
#[must_use]
pub fn event_type(status: Status) -> String {
    EventKind::from_status(status).to_string()
}

/// The status that the payments of events of a type get.
///
/// # Errors
/// [`EventTypeError`] for another type.
pub fn status_of_type(kind: &str) -> Result<Status, EventTypeError> {
    Status::ALL.into_iter().find(|status| event_type(*status) == kind).ok_or(EventTypeError)
}

impl EventFilter {
    /// Whether an event passes.
    #[must_use]
    pub fn passes(&self, event: &EventFields) -> bool {
        let of_type = match status_of_type(&event.kind) {
            Err(EventTypeError) if event.kind == EventKind::Amended.as_str() => {
                self.statuses.is_empty() || self.statuses.contains(&Status::Scheduled)
            }
            Ok(status) => self.statuses.is_empty() || self.statuses.contains(&status),
            Err(EventTypeError) => true,
        };
        let before = event.previous.as_ref().and_then(|previous| previous.payee_account_id.as_ref());
        let accounts = [event.account_id.as_ref(), event.payee_account_id.as_ref(), before].into_iter().flatten();
        let mut accounts = accounts.peekable();
        let of_account = self.accounts.is_empty()
            || accounts.peek().is_none()
            || accounts.any(|account| self.accounts.iter().any(|own| own.as_str() == account));
        of_type && of_account
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, account: Option<&str>, payee: Option<&str>) -> EventFields {
        let text = |text: Option<&str>| text.map(str::to_owned);
        EventFields {
            id: "7-a-1".to_owned(),
            kind: kind.to_owned(),
            account_id: text(account),
            payee_account_id: text(payee),
            previous: None,
            payment_id: None,
        }
    }

    #[test]
    fn a_filter_takes_its_types_and_accounts_and_what_may_correct_them() {
        let all = EventFilter::default();
        let settled = EventFilter { statuses: [Status::Processed, Status::Failed].into(), ..EventFilter::default() };
        let own = EventFilter { accounts: ["shop".parse().unwrap()].into(), ..EventFilter::default() };
        for (kind, account, payee, of_settled, of_own) in [
            ("payment.processed", Some("payer"), Some("shop"), true, true),
            ("payment.failed", Some("shop"), Some("payer"), true, true),
            ("payment.pending", Some("payer"), Some("other"), false, false),
            ("payment.restored", Some("payer"), Some("other"), true, false),
            ("payment.irregular", None, None, true, true),
            ("log.gap", None, None, true, true),
            ("payment.later-kind", Some("shop"), None, true, true),
        ] {
            let event = event(kind, account, payee);
            assert_eq!(
                (all.passes(&event), settled.passes(&event), own.passes(&event)),
                (true, of_settled, of_own),
                "{kind}"
            );
        }
        // An amendment passes with new payments, and for the former payee.
        let scheduled = EventFilter { statuses: [Status::Scheduled].into(), ..EventFilter::default() };
        let amended = event(EventKind::Amended.as_str(), Some("payer"), Some("other"));
        assert_eq!((scheduled.passes(&amended), settled.passes(&amended), own.passes(&amended)), (true, false, false));
        let previous = Some(PreviousFields { payee_account_id: Some("shop".to_owned()) });
        let taken = EventFields { previous, ..amended };
        assert!(own.passes(&taken));
    }

    #[test]
    fn each_status_has_a_type() {
        for status in Status::ALL {
            assert_eq!(status_of_type(&event_type(status)), Ok(status));
        }
        assert_eq!(status_of_type("payment.restored"), Err(EventTypeError));
        assert_eq!(status_of_type("PAYMENT.PENDING"), Err(EventTypeError));
    }
}
