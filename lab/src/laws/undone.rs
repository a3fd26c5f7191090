//! The law of undos: what a run cancelled is cancelled, and what it left is as it says.

use std::collections::BTreeSet;

use payments_files::UndoEnd;
use payments_machine::layers::attributes::text;
use payments_model::UndoId;
use serde_json::Value;

use crate::facts::heads::{Tables, id_of, is_of_head};

/// Checks the end of a planned payment against its status in the tables after the run. Returns the violation, if there is one.
pub(crate) fn check_end(planned: Option<&str>, end: UndoEnd, status: Option<&str>) -> Option<String> {
    let was_claimed = !matches!(planned, None | Some("SCHEDULED"));
    let is_right = match end {
        UndoEnd::Cancelled => status == Some("CANCELLED") && !was_claimed,
        UndoEnd::AlreadyCancelled => status == Some("CANCELLED"),
        // The payment may be claimed, settled or cancelled since.
        UndoEnd::Amended => status.is_some(),
        UndoEnd::Claimed => !matches!(status, None | Some("CANCELLED")),
        UndoEnd::Processed => status == Some("PROCESSED"),
        UndoEnd::Failed => status == Some("FAILED"),
        UndoEnd::NeverCreated => status.is_none(),
        UndoEnd::Lost | UndoEnd::Unreadable => false,
    };
    (!is_right).then(|| format!("was {planned:?}, ended as {end} and is {status:?}"))
}

/// Checks that a run lists each planned payment that was sent before it.
pub(crate) fn check_claimed(planned: &BTreeSet<String>, sent: &BTreeSet<String>, claimed: &str) -> Vec<String> {
    let listed: BTreeSet<&str> = claimed.lines().filter_map(|line| line.split(',').next()).collect();
    let missing = planned.intersection(sent).filter(|id| !listed.contains(id.as_str()));
    missing.map(|id| format!("{id} was sent before its undo, which does not list it")).collect()
}

/// Checks that an exact plan of a client and a time has each payment that the client created then, unless it changed recently: its
/// create may have been completed then. `client` is the selection, or null.
pub(crate) fn check_exact(
    client: &Value,
    planned: &BTreeSet<String>,
    tables: &Tables,
    recent: &BTreeSet<String>,
) -> Vec<String> {
    let [Some(name), Some(from), Some(to)] = ["name", "from", "to"].map(|field| client[field].as_str()) else {
        return Vec::new();
    };
    let is_selected = |head: &Value| {
        let created = &head["trail"]["L"][0]["M"];
        let at = text(created, "at");
        text(created, "by") == format!("c:{name}") && (from..=to).contains(&at) && text(head, "status") != "CANCELLED"
    };
    let heads = tables.heads().into_iter().filter(|((_, sk), head)| is_selected(head) && !recent.contains(sk));
    let missing = heads.map(|((_, sk), _)| id_of(sk)).filter(|id| !planned.contains(*id));
    missing.map(|id| format!("{id} is missing in an exact plan of {client}")).collect()
}

/// Checks that an undo has changed planned payments alone.
pub(crate) fn check_others(id: &UndoId, planned: &BTreeSet<String>, tables: &Tables) -> Vec<String> {
    let by = id.actor();
    let heads = tables.hot.iter().chain(&tables.history).filter(|((pk, _), _)| is_of_head(pk));
    let changed = heads.filter(|(_, head)| head.to_string().contains(by.as_str()));
    let others = changed.map(|((_, sk), _)| id_of(sk)).filter(|id| !planned.contains(*id));
    others.map(|other| format!("{other} is in no plan of the undo {id}, which changed it")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_sent_is_listed() {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
        let (planned, sent) = (set(&["a", "b"]), set(&["a", "b", "c"]));
        assert_eq!(check_claimed(&planned, &sent, "paymentId\r\na,x\r\nb,x\r\n").len(), 0);
        assert_eq!(check_claimed(&planned, &sent, "paymentId\r\nc,a\r\nb,x\r\n").len(), 1);
    }

    #[test]
    fn an_exact_plan_lacks_nothing() {
        let client = json!({ "name": "feed", "from": "2026-12-01T08:00:00Z", "to": "2026-12-01T09:00:00Z" });
        let head = |by: &str, at: &str| {
            let created = json!({ "M": { "by": { "S": by }, "at": { "S": at } } });
            json!({ "status": { "S": "SCHEDULED" }, "trail": { "L": [created] } })
        };
        let key = ("ACCT#tenant".to_owned(), "2026-12-01T00:00:00Z#a".to_owned());
        for (by, at, is_missing) in [
            ("c:feed", "2026-12-01T09:00:00Z", true),
            ("c:feed", "2026-12-01T09:00:01Z", false),
            ("c:app", "2026-12-01T09:00:00Z", false),
        ] {
            let tables = Tables { hot: [(key.clone(), head(by, at))].into(), ..Tables::default() };
            let check = |planned: &[&str], recent: &[&str]| {
                let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
                check_exact(&client, &set(planned), &tables, &set(recent)).len()
            };
            let found = [check(&[], &[]), check(&["a"], &[]), check(&[], &[&key.1])];
            assert_eq!(found, [usize::from(is_missing), 0, 0], "{by} {at}");
        }
    }

    #[test]
    fn an_undo_changes_what_is_planned() {
        let id: UndoId = "0123456789abcdef".parse().unwrap();
        let key = |id: &str| ("ACCT#tenant".to_owned(), format!("2026-12-01T00:00:00Z#{id}"));
        let head = json!({ "moved": { "S": "b:undo/0123456789abcdef" } });
        let tables = Tables { hot: [(key("a"), head)].into(), history: Default::default() };
        let planned = |id: &str| BTreeSet::from([id.to_owned()]);
        assert_eq!(check_others(&id, &planned("a"), &tables), [""; 0]);
        assert_eq!(check_others(&id, &planned("b"), &tables).len(), 1);
    }

    #[test]
    fn an_end_agrees_with_the_tables() {
        let scheduled = Some("SCHEDULED");
        for (planned, end, status, is_right) in [
            (scheduled, UndoEnd::Cancelled, Some("CANCELLED"), true),
            (None, UndoEnd::Cancelled, Some("CANCELLED"), true),
            (scheduled, UndoEnd::Cancelled, Some("PENDING"), false),
            (scheduled, UndoEnd::Cancelled, None, false),
            (Some("PENDING"), UndoEnd::Cancelled, Some("CANCELLED"), false),
            (Some("PENDING"), UndoEnd::Claimed, Some("PROCESSED"), true),
            (scheduled, UndoEnd::Claimed, Some("CANCELLED"), false),
            (scheduled, UndoEnd::Processed, Some("PROCESSED"), true),
            (scheduled, UndoEnd::Failed, Some("PROCESSED"), false),
            (None, UndoEnd::NeverCreated, None, true),
            (None, UndoEnd::NeverCreated, scheduled, false),
            (scheduled, UndoEnd::Lost, None, false),
        ] {
            assert_eq!(check_end(planned, end, status).is_none(), is_right, "{planned:?} {end} {status:?}");
        }
    }
}
