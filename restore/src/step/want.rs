//! The expected value of a fact.

use std::fmt;

use payments_model::UtcSecond;
use serde_json::Value;

use crate::changes::ExpectedChanges;
use crate::list;
use crate::value::{LONGEST, includes, is_restored, seconds};

/// The expected value of a fact.
#[derive(Debug, Clone)]
pub(crate) enum Want {
    /// This value. An object may have more fields, and a list more values.
    Is(Value),
    /// At least this number.
    AtLeast(u64),
    /// A text that has one of these.
    Has(&'static [&'static str]),
    /// A text that ends like this.
    Ends(&'static str),
    /// Less than this number, or missing.
    Below(u64),
    /// Any value.
    There,
    /// No value.
    Missing,
    /// A window of a table's backups that has this instant.
    Covers(UtcSecond),
    /// An instant that is not later than this one.
    Until(UtcSecond),
    /// An instant that is not earlier than this one.
    Since(UtcSecond),
    /// This instant.
    At(UtcSecond),
    /// The whole audit trail of a month: the items of this partition.
    Trail(String),
    /// A table that was restored from the one with this ARN to this instant, or no table.
    Restored(Value, Option<UtcSecond>),
    /// The changes of a change set that only imports tables.
    Imports(ExpectedChanges),
}

impl Want {
    pub(super) fn is_met(&self, found: &Value) -> bool {
        match self {
            Self::Is(wanted) => includes(found, wanted),
            Self::AtLeast(number) => found.as_u64().is_some_and(|it| it >= *number),
            Self::Has(parts) => found.as_str().is_some_and(|it| parts.iter().any(|part| it.contains(part))),
            Self::Ends(end) => found.as_str().is_some_and(|it| it.ends_with(end)),
            Self::Below(number) => found.is_null() || found.as_f64().is_some_and(|it| it < *number as f64),
            Self::There => !found.is_null(),
            Self::Missing => found.is_null(),
            Self::Covers(instant) => {
                let [from, to] =
                    ["EarliestRestorableDateTime", "LatestRestorableDateTime"].map(|it| seconds(&found[it]));
                let instant = instant.as_chrono().timestamp();
                from.is_some_and(|from| from <= instant) && to.is_some_and(|to| instant <= to)
            }
            Self::Until(instant) => seconds(found).is_some_and(|it| it <= instant.as_chrono().timestamp()),
            Self::Since(instant) => seconds(found).is_some_and(|it| it >= instant.as_chrono().timestamp()),
            Self::At(instant) => seconds(found) == Some(instant.as_chrono().timestamp()),
            Self::Trail(partition) => list::is_trail(found, partition),
            Self::Restored(source, to) => found.is_null() || is_restored(found, source, *to),
            Self::Imports(expected) => !found.is_null() && expected.unexpected(found).is_empty(),
        }
    }
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(wanted) if wanted.to_string().len() > LONGEST => f.write_str("as in the command"),
            Self::Is(wanted) => wanted.fmt(f),
            Self::AtLeast(number) => write!(f, "at least {number}"),
            Self::Has(parts) => f.write_str(&parts.join(" or ")),
            Self::Ends(end) => write!(f, "…{end}"),
            Self::Below(number) => write!(f, "below {number}"),
            Self::There => f.write_str("there"),
            Self::Missing => f.write_str("missing"),
            Self::Covers(instant) => write!(f, "a window with {instant}"),
            Self::Until(instant) => write!(f, "not later than {instant}"),
            Self::Since(instant) => write!(f, "not earlier than {instant}"),
            Self::At(instant) => write!(f, "{instant}"),
            Self::Trail(partition) => write!(f, "the whole list Items of {partition}"),
            Self::Restored(source, None) => write!(f, "missing, or restored from {source}"),
            Self::Restored(source, Some(to)) => write!(f, "missing, or restored from {source} to {to}"),
            Self::Imports(expected) => expected.fmt(f),
        }
    }
}
