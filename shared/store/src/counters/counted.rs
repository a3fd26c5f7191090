//! A head's image in the stream, as far as counters need it.
//!
//! No other attribute is read. A head written by a later version, with unknown attributes, still counts.

use payments_model::{BusinessDate, Money, Status};
use serde_dynamo::{AttributeValue, Item};

use crate::item::parse_money;
use crate::key::due::DueSort;

/// A payment as counters see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Its due date.
    pub due_date: BusinessDate,
    /// Its status.
    pub status: Status,
    /// Its amount.
    pub money: Money,
}

/// An image that cannot be counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the image cannot be counted: {why}")]
pub struct Uncountable {
    /// The due date, if it can be read.
    pub due_date: Option<BusinessDate>,
    /// The fault.
    pub why: &'static str,
}

/// Reads an image of a head.
///
/// # Errors
/// [`Uncountable`] if the image is damaged.
pub fn counted(image: &Item) -> Result<Counted, Uncountable> {
    let text = |name: &str| match image.get(name) {
        Some(AttributeValue::S(text)) => Some(text.as_str()),
        _ => None,
    };
    let due = text("due").and_then(|due| due.parse::<DueSort>().ok());
    let uncountable = |why| Uncountable { due_date: due.map(|due| due.due_date), why };
    let due = due.ok_or_else(|| uncountable("the due key is missing or invalid"))?;
    if text("status") != Some(due.status.as_str()) {
        return Err(uncountable("the status is not that of the due key"));
    }
    let amount = match image.get("amountMinor") {
        Some(AttributeValue::N(amount)) => amount.parse().ok(),
        _ => None,
    };
    let money = amount.zip(text("currency")).and_then(|(amount, code)| parse_money(amount, code).ok());
    let money = money.ok_or_else(|| uncountable("the amount or the currency is missing or invalid"))?;
    Ok(Counted { due_date: due.due_date, status: due.status, money })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(change: &[(&str, AttributeValue)]) -> Item {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let head = [
            ("status", text("PENDING")),
            ("due", text("PENDING#2026-12-01#2026-12-01T09:00:00Z#626e8292-8e84-575a-b684-0af73927405b")),
            ("amountMinor", AttributeValue::N("1999".to_owned())),
            ("currency", text("GBP")),
            ("somethingNew", AttributeValue::Bool(true)),
        ];
        let all = head.iter().chain(change).map(|(name, value)| ((*name).to_owned(), value.clone()));
        all.collect::<std::collections::HashMap<_, _>>().into()
    }

    #[test]
    fn a_head_counts_by_its_date_status_and_amount() {
        let counted = counted(&image(&[])).unwrap();
        assert_eq!(counted.due_date.to_string(), "2026-12-01");
        assert_eq!((counted.status, counted.money.amount.get()), (Status::Pending, 1_999));
    }

    #[test]
    fn a_damaged_image_is_uncountable_and_keeps_its_date() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        for (name, value, dated) in [
            ("status", text("PROCESSED"), true),
            ("status", AttributeValue::Null(true), true),
            ("amountMinor", AttributeValue::N("0.5".to_owned()), true),
            ("amountMinor", text("1999"), true),
            ("currency", text("pounds"), true),
            ("due", text("PENDING#2026-12-01"), false),
            ("due", AttributeValue::N("7".to_owned()), false),
        ] {
            let refused = counted(&image(&[(name, value.clone())])).unwrap_err();
            assert_eq!(refused.due_date.is_some(), dated, "{name}: {value:?}");
        }
    }
}
