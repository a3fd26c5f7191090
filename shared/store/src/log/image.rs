//! What a record of the table's stream means for the log.

use payments_model::{IrregularEvent, Logged, UtcSecond, VersionBefore};
use serde_dynamo::{AttributeValue, Item};

use crate::item::parse_head;
use crate::key;

/// Returns what a change of a head means for the log, by its images in the stream. It was read at `now` at `place` of the stream.
pub fn logged(before: Option<&Item>, after: Option<&Item>, now: UtcSecond, place: &str) -> Logged {
    // Archived, or expired.
    let Some(after) = after else { return Logged::Nothing };
    let irregular = |why| {
        let key = key::parse_head_key(text(after, "pk"), text(after, "sk")).ok();
        let payment = key.map(|key| key::due_payment(&key, text(after, "due")));
        Logged::Irregular(IrregularEvent { payment, at: now, place: place.to_owned(), why })
    };
    let before = match before.map(version_of) {
        None => None,
        Some(Some(before)) => Some(before),
        Some(None) => return irregular("what it was before cannot be read"),
    };
    match parse_head(after.clone()) {
        Ok(head) => Logged::of(before, &head, now, place),
        Err(_) => irregular("it cannot be read"),
    }
}

fn text<'i>(image: &'i Item, name: &str) -> &'i str {
    if let Some(AttributeValue::S(text)) = image.get(name) { text } else { "" }
}

fn version_of(image: &Item) -> Option<VersionBefore> {
    let AttributeValue::N(version) = image.get("version")? else { return None };
    let payee = text(image, "payeeAccountId").parse().ok();
    Some(VersionBefore { version: version.parse().ok()?, status: text(image, "status").parse().ok()?, payee })
}
