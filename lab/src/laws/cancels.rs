//! The law of cancels: a payment is cancelled only if a client has asked for the cancel.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::facts::heads::id_of;
use payments_machine::layers::attributes::text;

/// Checks that a cancelled payment is among those whose cancel a client has `asked` for. Returns the violation, if there
/// is one.
pub(crate) fn check_cancel(before: &Value, after: &Value, asked: &BTreeSet<String>) -> Option<String> {
    let is_new = text(before, "status") != "CANCELLED" && text(after, "status") == "CANCELLED";
    let is_asked = asked.contains(id_of(text(after, "sk")));
    (is_new && !is_asked).then(|| "was cancelled, and nobody had asked for that".to_owned())
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::facts::heads::made;

    const AT: &str = "2026-03-12T08:00:00Z";

    #[test]
    fn nobody_is_cancelled_who_did_not_ask() {
        let (before, after) = (made("SCHEDULED", 1, AT), made("CANCELLED", 2, AT));
        assert!(check_cancel(&before, &after, &BTreeSet::new()).is_some());
        assert_eq!(check_cancel(&before, &after, &["7".to_owned()].into()), None);
        assert_eq!(check_cancel(&after, &after, &BTreeSet::new()), None);
        assert_eq!(check_cancel(&before, &made("PENDING", 2, AT), &BTreeSet::new()), None);
    }
}
