//! The law of counters: they show the numbers that follow from the heads of both tables.

use std::collections::BTreeMap;

use payments_machine::layers::attributes::{Key, text};
use serde_json::Value;

use crate::facts::heads::Tables;

/// Numbers by date and status, such as `2026-12-01 PENDING` or `2026-12-01 PENDING GBP`, without zeros.
pub type Numbers = BTreeMap<String, i128>;

/// The statuses, in no order.
const STATUSES: [&str; 5] = ["SCHEDULED", "PENDING", "PROCESSED", "FAILED", "CANCELLED"];

/// Returns the right numbers, which count each payment once, whichever tables have its head. A head that only the
/// long-term table has counts as archived.
#[must_use]
pub fn recounted(tables: &Tables) -> Numbers {
    let mut numbers = Numbers::new();
    for (key, head) in tables.heads() {
        // The attribute `due` has the status, the date, the due time and the payment's id.
        let date = text(head, "due").split('#').nth(1).unwrap_or_default();
        let (status, currency) = (text(head, "status"), text(head, "currency"));
        let mut add = |what: String, number: i128| *numbers.entry(what).or_default() += number;
        add(format!("{date} {status}"), 1);
        add(format!("{date} {status} {currency}"), whole(&head["amountMinor"]));
        add(format!("{date} archived"), i128::from(!tables.hot.contains_key(key)));
    }
    numbers.retain(|_, number| *number != 0);
    numbers
}

/// Returns the numbers that the counters show, and the numbers without a date that the checkpoints hold.
#[must_use]
pub fn shown(hot: &BTreeMap<Key, Value>) -> Numbers {
    let mut numbers = Numbers::new();
    for ((pk, sk), item) in hot {
        let date = match pk.as_str() {
            "CHECKPOINT#counts" => "?",
            pk if pk.starts_with("COUNTS#") => sk,
            _ => continue,
        };
        for (name, value) in item.as_object().into_iter().flatten() {
            if let Some(what) = counted(name) {
                *numbers.entry(format!("{date} {what}")).or_default() += whole(value);
            }
        }
    }
    numbers.retain(|_, number| *number != 0);
    numbers
}

/// Returns the name of the number that an attribute holds; `None` if the attribute holds no number. The attribute is named
/// after a status, `archived` or `unparsed`, or is a sum such as `GBP.sch`.
fn counted(name: &str) -> Option<String> {
    if STATUSES.contains(&name) || ["archived", "unparsed"].contains(&name) {
        return Some(name.to_owned());
    }
    let (currency, short) = name.split_once('.')?;
    let status = STATUSES.into_iter().find(|status| status.to_ascii_lowercase().starts_with(short))?;
    Some(format!("{status} {currency}"))
}

fn whole(value: &Value) -> i128 {
    value["N"].as_str().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Returns the differences between the shown numbers and the right numbers.
#[must_use]
pub fn between(shown: &Numbers, right: &Numbers) -> Vec<String> {
    let mut all: Vec<&String> = shown.keys().chain(right.keys()).collect();
    all.sort_unstable();
    all.dedup();
    let number = |numbers: &Numbers, what: &String| numbers.get(what).copied().unwrap_or(0);
    let numbers = all.into_iter().map(|what| (what, number(shown, what), number(right, what)));
    let differ = numbers.filter(|(_, shown, right)| shown != right);
    differ.map(|(what, shown, right)| format!("the counters show {shown} {what}, and there are {right}")).collect()
}
