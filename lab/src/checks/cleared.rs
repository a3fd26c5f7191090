//! The law of cleared data: details and their sealed row say the same, and no data is cleared too early.

use std::collections::{BTreeMap, BTreeSet};

use aws_smithy_types::base64;
use chrono::{DateTime, TimeDelta, Utc};
use payments_machine::layers::attributes::{Key, number, text};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::facts::heads::Tables;
use crate::laws::amendments as count;
use crate::time::CLOCKS_AGREE;

/// The least bytes of stored data that are cleared.
const LEAST_CLEARED: usize = 256;

/// The notes of clears: the parts of a date, and the instant before which nothing is cleared.
pub(crate) const NOTES: &str = "CLEARED";
const NOT_BEFORE: &str = "NOT-BEFORE";

/// A sealed payment, and its place in the parts.
pub(crate) struct Sealed<'p> {
    /// The place, as cleared details name it.
    pub(crate) place: String,
    /// The payment as the API shows it, with its `versions`.
    pub(crate) row: &'p Value,
    /// The instant at which the part was written.
    pub(crate) at: DateTime<Utc>,
}

impl Sealed<'_> {
    pub(crate) fn id(&self) -> &str {
        self.row["paymentId"].as_str().unwrap_or_default()
    }

    /// The content of details of this name, as the row has it.
    fn version(&self, name: &str) -> Option<&Value> {
        let version = count(name) + 1;
        match self.row["versions"].as_array() {
            None => (version == 1).then_some(self.row),
            Some(versions) => versions.iter().find(|it| it["version"] == version),
        }
    }

    /// The details that were in force, with their names, the last ones first.
    fn chain<'t>(&self, head: &'t Value, tables: &'t Tables) -> Vec<(&'t str, Option<&'t Value>)> {
        let (mut chain, mut name) = (Vec::new(), text(head, "details"));
        loop {
            let sort = if name.is_empty() { "DETAILS".to_owned() } else { format!("DETAILS#{name}") };
            let details = tables.history.get(&(format!("PAY#{}", self.id()), sort));
            chain.push((name, details));
            let Some(details) = details.filter(|_| !name.is_empty()) else { return chain };
            name = text(details, "previous");
        }
    }
}

/// Whether the place of a row has replaced the data of details.
pub(crate) fn is_cleared(details: &Value) -> bool {
    text(details, "codec") == "file"
}

/// The bytes of the stored data of details. The place of a row has none.
fn stored_bytes(details: &Value) -> usize {
    let frame = details["frame"]["B"].as_str().and_then(|frame| base64::decode(frame).ok());
    frame.map_or_else(|| text(details, "data").len(), |frame| frame.len())
}

/// Checks that the details of sealed payments say what their rows say. All cleared details must be among them.
pub(crate) fn check_details(sealed: &[Sealed<'_>], heads: &BTreeMap<&str, &Value>, tables: &Tables) -> Vec<String> {
    let (mut found, mut named) = (Vec::new(), 0);
    for payment in sealed {
        let Some(head) = heads.get(payment.id()) else { continue };
        for (name, details) in payment.chain(head, tables) {
            let Some((details, version)) = details.zip(payment.version(name)) else {
                found.push(format!("{} is sealed without its details {name:?}", payment.id()));
                continue;
            };
            named += usize::from(is_cleared(details));
            let differs = differences(details, version, &payment.place);
            if !differs.is_empty() {
                let (id, names) = (payment.id(), differs.join(", "));
                found.push(format!("{id} has details {name:?} with another {names} than its row: {details}"));
            }
        }
    }
    let cleared = tables.history.iter().filter(|((pk, _), item)| pk.starts_with("PAY#") && is_cleared(item)).count();
    if cleared != named {
        found.push(format!("{named} details name a row, and {cleared} are cleared"));
    }
    found
}

/// The fields in which details differ from what their row says.
fn differences(details: &Value, version: &Value, place: &str) -> Vec<&'static str> {
    let said = |name: &str| version[name].as_str().unwrap_or_default();
    let texts = ["payeeAccountId", "currency", "scheduledFor", "reference", "dueAt", "dueDate"];
    let mut differs: Vec<&str> = texts.into_iter().filter(|name| said(name) != text(details, name)).collect();
    if version["amountMinor"] != number(details, "amountMinor") {
        differs.push("amountMinor");
    }
    // As its client wrote it.
    let data = version.get("data").map(Value::to_string);
    let is_same = match (data, text(details, "codec")) {
        (None, _) => ["data", "frame", "row"].iter().all(|name| details.get(*name).is_none()),
        (Some(data), "file") => {
            let hash = base64::encode(Sha256::digest(&data));
            text(details, "row") == place && details["hash"]["B"] == *hash && stored_bytes(details) == 0
        }
        (Some(data), "zstd") => number(details, "dataBytes") == data.len() as u64,
        (Some(data), _) => text(details, "data") == data,
    };
    if !is_same {
        differs.push("data");
    }
    differs
}

/// Checks the instants at which data was cleared: `days` after its part was written, and not while a restore forbids it.
pub(crate) fn check_times(
    sealed: &[Sealed<'_>],
    times: &BTreeMap<Key, DateTime<Utc>>,
    (days, tables): (TimeDelta, &Tables),
) -> Vec<String> {
    let of = |(pk, _): &Key| sealed.iter().find(|it| pk.strip_prefix("PAY#") == Some(it.id()));
    let forbidden = not_before(tables).map(|until| until - days + CLOCKS_AGREE..until - CLOCKS_AGREE);
    let wrong = times.iter().filter_map(|(key, at)| match of(key) {
        None => Some(format!("{} was cleared at {at} and is in no part", key.0)),
        Some(it) if *at < it.at + days - CLOCKS_AGREE => {
            Some(format!("{} was cleared at {at}, and its part was written at {}", it.id(), it.at))
        }
        Some(it) if forbidden.as_ref().is_some_and(|times| times.contains(at)) => {
            Some(format!("{} was cleared at {at}, and a restore forbids it", it.id()))
        }
        Some(_) => None,
    });
    wrong.collect()
}

/// The instant before which a restore forbids clears.
pub(crate) fn not_before(tables: &Tables) -> Option<DateTime<Utc>> {
    let note = tables.history.get(&(NOTES.to_owned(), NOT_BEFORE.to_owned()))?;
    text(note, "at").parse().ok()
}

/// Checks, after a last run at an instant, that no data is left that is old enough, and each clear that began is done.
pub(crate) fn check_end(
    sealed: &[Sealed<'_>],
    heads: &BTreeMap<&str, &Value>,
    (tables, days, ran): (&Tables, TimeDelta, DateTime<Utc>),
) -> Vec<String> {
    if not_before(tables).is_some_and(|until| ran < until) {
        return Vec::new();
    }
    let is_left = |(_, details): &(&str, Option<&Value>)| details.is_some_and(|it| stored_bytes(it) >= LEAST_CLEARED);
    let old = sealed.iter().filter(|it| it.at + days <= ran);
    let left = old.filter(|it| heads.get(it.id()).is_some_and(|head| it.chain(head, tables).iter().any(is_left)));
    let mut found: Vec<String> = left.map(|it| format!("{} was not cleared: {}", it.id(), it.place)).collect();
    let notes = tables.history.iter().filter(|((pk, sk), _)| pk == NOTES && sk != NOT_BEFORE);
    let numbers = |set: &Value| -> BTreeSet<String> {
        set["NS"].as_array().into_iter().flatten().map(Value::to_string).collect()
    };
    let undone = notes.filter(|(_, note)| numbers(&note["begun"]) != numbers(&note["done"]));
    found.extend(undone.map(|(_, note)| format!("a clear began and is not done: {note}")));
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const AT: &str = "2026-03-14T04:10:00Z";

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    /// A payment of one amendment, with its head and all its details cleared.
    fn amended() -> (Value, Tables) {
        let version = |version: u64, data: &Value| {
            json!({
                "version": version, "payeeAccountId": "payee", "amountMinor": 7, "currency": "GBP",
                "scheduledFor": "2026-03-12", "dueAt": "2026-03-12T08:00:00Z", "dueDate": "2026-03-12", "data": data,
            })
        };
        let data = ["first", "second"].map(|note| json!({ "note": note.repeat(90) }));
        let mut row = version(2, &data[1]);
        (row["paymentId"], row["versions"]) = ("a".into(), json!([version(1, &data[0]), version(2, &data[1])]));
        let mut history = BTreeMap::new();
        for (sort, data) in [("DETAILS", &data[0]), ("DETAILS#2#change", &data[1])] {
            let item = json!({
                "payeeAccountId": { "S": "payee" }, "amountMinor": { "N": "7" }, "currency": { "S": "GBP" },
                "scheduledFor": { "S": "2026-03-12" }, "dueAt": { "S": "2026-03-12T08:00:00Z" },
                "dueDate": { "S": "2026-03-12" }, "codec": { "S": "file" }, "row": { "S": "2026-03-12/1/0" },
                "hash": { "B": base64::encode(Sha256::digest(data.to_string())) },
            });
            history.insert(("PAY#a".to_owned(), sort.to_owned()), item);
        }
        (row, Tables { history, hot: BTreeMap::new() })
    }

    fn sealed(row: &Value) -> [Sealed<'_>; 1] {
        [Sealed { place: "2026-03-12/1/0".to_owned(), row, at: at(AT) }]
    }

    #[test]
    fn details_say_what_their_row_says() {
        let head = json!({ "details": { "S": "2#change" } });
        let heads = BTreeMap::from([("a", &head)]);
        let (row, tables) = amended();
        assert_eq!(check_details(&sealed(&row), &heads, &tables), [""; 0]);
        assert_eq!(check_details(&[], &heads, &tables).len(), 1, "no row has their data");
        for name in ["payeeAccountId", "amountMinor", "dueAt", "row", "hash", "codec"] {
            let (row, mut tables) = amended();
            let details = tables.history.values_mut().next_back().unwrap();
            details[name] = json!({ "S": "2026-03-12/1/1" });
            assert!(!check_details(&sealed(&row), &heads, &tables).is_empty(), "{name}");
        }
        let key = ("PAY#a".to_owned(), "DETAILS".to_owned());
        let text = row["versions"][0]["data"].to_string();
        for (stored, problems) in [
            (json!({ "data": { "S": text.clone() } }), 0),
            (json!({ "data": { "S": "{}" } }), 1),
            (json!({ "codec": { "S": "zstd" }, "dataBytes": { "N": text.len().to_string() } }), 0),
            (json!({ "codec": { "S": "zstd" }, "dataBytes": { "N": "1" } }), 1),
        ] {
            let (row, mut tables) = amended();
            let details = tables.history.get_mut(&key).and_then(Value::as_object_mut).unwrap();
            details.retain(|name, _| !["codec", "row", "hash"].contains(&name.as_str()));
            details.extend(stored.as_object().cloned().unwrap());
            assert_eq!(check_details(&sealed(&row), &heads, &tables).len(), problems, "{stored}");
        }
    }

    #[test]
    fn data_is_cleared_when_its_part_is_old_and_no_restore_forbids_it() {
        let (row, mut tables) = amended();
        let key = ("PAY#a".to_owned(), "DETAILS".to_owned());
        let problems = |time: &str, tables: &Tables| {
            let times = BTreeMap::from([(key.clone(), at(time))]);
            check_times(&sealed(&row), &times, (TimeDelta::days(2), tables)).len()
        };
        assert_eq!(["2026-03-16T04:09:00Z", "2026-03-16T04:10:00Z"].map(|time| problems(time, &tables)), [1, 0]);
        let note = json!({ "at": { "S": "2026-03-18T09:00:00Z" } });
        tables.history.insert((NOTES.to_owned(), NOT_BEFORE.to_owned()), note);
        let times = ["2026-03-16T08:59:00Z", "2026-03-16T09:01:00Z", "2026-03-18T08:59:00Z", "2026-03-18T09:00:00Z"];
        assert_eq!(times.map(|time| problems(time, &tables)), [0, 1, 1, 0]);
        let times = BTreeMap::from([(key.clone(), at("2026-03-19T00:00:00Z"))]);
        assert_eq!(check_times(&[], &times, (TimeDelta::days(2), &tables)).len(), 1, "it is in no part");
    }

    #[test]
    fn in_the_end_no_old_data_is_left_and_no_clear_is_under_way() {
        let head = json!({ "details": { "S": "2#change" } });
        let heads = BTreeMap::from([("a", &head)]);
        let (row, mut tables) = amended();
        let problems =
            |ran: &str, tables: &Tables| check_end(&sealed(&row), &heads, (tables, TimeDelta::days(2), at(ran))).len();
        let late = "2026-03-16T04:10:00Z";
        assert_eq!(problems(late, &tables), 0);
        let key = ("PAY#a".to_owned(), "DETAILS".to_owned());
        tables.history.insert(key, json!({ "data": { "S": "x".repeat(LEAST_CLEARED) } }));
        assert_eq!(["2026-03-16T04:09:59Z", late].map(|ran| problems(ran, &tables)), [0, 1]);
        let note = |done: &[&str]| json!({ "begun": { "NS": ["1", "2"] }, "done": { "NS": done } });
        let dated = (NOTES.to_owned(), "2026-03-12".to_owned());
        for (done, found) in [(&["1"][..], 2), (&["1", "2"], 1)] {
            tables.history.insert(dated.clone(), note(done));
            assert_eq!(problems(late, &tables), found);
        }
        let note = json!({ "at": { "S": "2026-03-17T00:00:00Z" } });
        tables.history.insert((NOTES.to_owned(), NOT_BEFORE.to_owned()), note);
        assert_eq!(problems(late, &tables), 0, "a restore forbids it");
    }
}
