//! The sort key of the `due` index.

use std::fmt;
use std::str::FromStr;

use payments_model::{BusinessDate, DuePayment, Head, HeadKey, PaymentId, Status, UtcSecond};

use crate::key::KeyError;

/// The sort key of the `due` index: `<STATUS>#<dueDate>#<dueAt>#<paymentId>`. Only within one status
/// is its order that of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DueSort {
    /// The payment's status.
    pub status: Status,
    /// The business date it falls due on.
    pub due_date: BusinessDate,
    /// The due time, which its head's slot does not say.
    pub due_at: UtcSecond,
    /// The payment's id.
    pub payment_id: PaymentId,
}

impl DueSort {
    /// The due key of a head.
    pub fn from_head(head: &Head) -> Self {
        let Head { due_date, due_at, payment_id, .. } = *head;
        Self { status: head.state.status(), due_date, due_at, payment_id }
    }

    /// The due key of the same payment in another status.
    #[must_use]
    pub fn in_status(self, status: Status) -> Self {
        Self { status, ..self }
    }

    /// The lower bound of the keys of `status` on `date`.
    pub fn start_of(status: Status, date: BusinessDate) -> String {
        format!("{status}#{date}")
    }

    /// The upper bound of the keys of `status` on `date`.
    pub fn end_of(status: Status, date: BusinessDate) -> String {
        // "~" sorts after "#", so after every key of the date.
        format!("{status}#{date}~")
    }

    /// The lower bound of the keys of `status`.
    pub fn start_of_status(status: Status) -> String {
        format!("{status}#")
    }

    /// The upper bound of the keys of `status` on `date` that are due until `at`, included.
    pub fn end_at(status: Status, date: BusinessDate, at: UtcSecond) -> String {
        // "~" sorts after "#", so after every key of the second.
        format!("{status}#{date}#{at}~")
    }

    /// The bounds of the keys of `status` on `date` that are due at `at`, of payments whose ids begin with these eight digits.
    pub fn bounds_of_ids(status: Status, date: BusinessDate, at: UtcSecond, digits: u32) -> (String, String) {
        let start = format!("{status}#{date}#{at}#{digits:08x}");
        // "~" sorts after "-", which follows the digits.
        let end = format!("{start}~");
        (start, end)
    }

    /// A text that sorts after this key and before every later one.
    pub fn just_after(&self) -> String {
        format!("{self}#")
    }
}

impl fmt::Display for DueSort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}#{}#{}", self.status, self.due_date, self.due_at, self.payment_id)
    }
}

impl FromStr for DueSort {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (status, rest) = text.split_once('#')?;
            let (due_date, rest) = rest.split_once('#')?;
            let (due_at, payment_id) = rest.split_once('#')?;
            Some(Self {
                status: status.parse().ok()?,
                due_date: due_date.parse().ok()?,
                due_at: due_at.parse().ok()?,
                payment_id: payment_id.parse().ok()?,
            })
        };
        parse().ok_or_else(|| KeyError(text.to_owned(), "due"))
    }
}

/// The payment of a head with this key and this due key. If the due key cannot be read, or is another payment's, it counts
/// as due as at first.
pub(crate) fn due_payment(key: &HeadKey, due: &str) -> DuePayment {
    let guessed = key.guessed_due();
    match due.parse::<DueSort>() {
        Ok(due) if due.payment_id == guessed.payment_id => DuePayment { due_at: due.due_at, ..guessed },
        _ => guessed,
    }
}
