//! Redates whose details are lost: the details are built anew.
//!
//! The content of a redate is that of the details before, and its event has the due time. The content of a client's
//! amendment is in its details alone. So a client's details are not built anew.

use std::collections::HashMap;

use chrono::{Datelike as _, Weekday};
use payments_model::{BusinessDate, DateMove, DetailsKey, Due, Head, MoveReason};
use payments_store::StoredDetails;

use super::known::{Known, Version};

/// Details that redates follow, as they are stored.
pub(crate) type Contents = HashMap<DetailsKey, StoredDetails>;

/// The details of a redate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Redate {
    /// Details that are stored and have the same content.
    pub(crate) content: StoredDetails,
    pub(crate) details: payments_model::Details,
}

impl Known {
    /// The keys of the details of the log's redates.
    pub(crate) fn redates(&self) -> impl Iterator<Item = DetailsKey> + '_ {
        let payment_id = self.payment.payment_id;
        let redates = self.versions.iter().filter(|version| version.by.is_redate());
        let names = redates.filter_map(|version| version.amendment.as_ref());
        names.map(move |amended| DetailsKey { payment_id, amendment: Some(amended.name) })
    }
}

/// Builds the details of a redate that follows a head, if the content is known. The redate's id proves that it follows
/// this version and these details, and moves the payment to this time.
pub(crate) fn rebuilt(head: &Head, version: &Version, contents: &Contents, earlier: &[Redate]) -> Option<Redate> {
    let name = version.amendment.as_ref().filter(|_| version.by.is_redate())?.name;
    let ((at, date), key) = (version.due?, head.details_key());
    let (content, before) = match earlier.iter().find(|redate| redate.details.details_key() == key) {
        Some(earlier) => (&earlier.content, &earlier.details),
        None => contents.get(&key).map(|content| (content, content.known()))?,
    };
    let why = before.moved.as_ref().map_or_else(|| reason(before.due_date), |moved| moved.reason);
    let moved = Some(DateMove { reason: why, calendar: None });
    let details = before.redated(head, Due { at, date, moved }, version.at);
    let is_it = details.amendment.map(|amendment| amendment.name) == Some(name) && head.differences(before).is_empty();
    is_it.then(|| Redate { content: content.clone(), details })
}

/// The reason why a date was closed, by its weekday: events lack it.
fn reason(closed: BusinessDate) -> MoveReason {
    match closed.as_chrono().weekday() {
        Weekday::Sat | Weekday::Sun => MoveReason::Weekend,
        _ => MoveReason::Holiday,
    }
}
