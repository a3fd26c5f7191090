//! The meaning of a record of the table's stream for the log.

use payments_model::{IrregularEvent, Logged, UtcSecond, VersionBefore};
use serde_dynamo::{AttributeValue, Item};

use crate::key;
use crate::key::due::due_payment;
use crate::payment::head_item::parse_head;

/// Returns the meaning of a head's change for the log, by its images in the stream. The change was
/// read at `now` at `place` of the stream.
pub fn logged(before: Option<&Item>, after: Option<&Item>, now: UtcSecond, place: &str) -> Logged {
    // Archived, or expired.
    let Some(after) = after else { return Logged::Nothing };
    let irregular = |reason| {
        let key = key::parse_head_key(text(after, "pk"), text(after, "sk")).ok();
        let payment = key.map(|key| due_payment(&key, text(after, "due")));
        Logged::Irregular(IrregularEvent { payment, at: now, place: place.to_owned(), reason })
    };
    let version = match before.map(version_of) {
        None => None,
        Some(Some(version)) => Some(version),
        Some(None) => return irregular("what it was before cannot be read"),
    };
    let Ok(head) = parse_head(after.clone()) else { return irregular("it cannot be read") };
    // Only an amendment's event has the values before it.
    let before = before.filter(|_| head.amended.is_some() && head.moved.is_empty());
    let before = before.and_then(|before| parse_head(before.clone()).ok()).map(Box::new);
    Logged::from_change(version.map(|version| VersionBefore { head: before, ..version }), &head, now, place)
}

fn text<'i>(image: &'i Item, name: &str) -> &'i str {
    if let Some(AttributeValue::S(text)) = image.get(name) { text } else { "" }
}

fn version_of(image: &Item) -> Option<VersionBefore> {
    let AttributeValue::N(version) = image.get("version")? else { return None };
    Some(VersionBefore { version: version.parse().ok()?, status: text(image, "status").parse().ok()?, head: None })
}
