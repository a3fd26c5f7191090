//! The keys of the audit trail: a month of it, and an action in it.

use std::fmt;
use std::str::FromStr;

use chrono::TimeDelta;
use payments_model::{ActionName, BusinessDate, UtcSecond};

use crate::key::KeyError;

/// A month of the trail: that of an action's preview, in UTC.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditMonth(String);

/// A text that is not a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a month as YYYY-MM, such as 2026-12")]
pub struct AuditMonthError;

impl AuditMonth {
    /// The month of an instant.
    pub fn from_second(at: UtcSecond) -> Self {
        Self(at.to_string().chars().take(7).collect())
    }

    /// The months from that of an instant to that of another.
    pub fn between(from: UtcSecond, to: UtcSecond) -> Vec<Self> {
        let (mut at, mut months) = (from, vec![Self::from_second(from)]);
        while at < to {
            at = at.saturating_add(TimeDelta::days(1)).min(to);
            months.push(Self::from_second(at));
        }
        months.dedup();
        months
    }
}

impl FromStr for AuditMonth {
    type Err = AuditMonthError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        format!("{text}-01").parse::<BusinessDate>().map(|_| Self(text.to_owned())).map_err(|_| AuditMonthError)
    }
}

impl fmt::Display for AuditMonth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The partition key of a month's actions of operators: `AUDIT#<YYYY-MM>`.
pub(crate) fn audit_partition(month: &AuditMonth) -> String {
    format!("AUDIT#{month}")
}

/// The partition key of a month's decisions of second persons: `APPROVAL#<YYYY-MM>`.
pub(crate) fn approval_partition(month: &AuditMonth) -> String {
    format!("APPROVAL#{month}")
}

/// The sort key of an action's intent: `<previewedAt>#<actionId>`.
pub(crate) fn audit_sort(name: ActionName) -> String {
    format!("{}#{}", name.previewed_at, name.id)
}

/// The sort key of an action's outcome, right after that of its intent: `<previewedAt>#<actionId>#outcome`.
pub(crate) fn audit_outcome_sort(name: ActionName) -> String {
    format!("{}#outcome", audit_sort(name))
}

/// Parses [`audit_sort`] and [`audit_outcome_sort`]. Also returns whether the key is that of an outcome.
pub(crate) fn parse_audit_sort(text: &str) -> Result<(ActionName, bool), KeyError> {
    let parse = || {
        let (intent, is_outcome) = text.strip_suffix("#outcome").map_or((text, false), |intent| (intent, true));
        let (at, id) = intent.split_once('#')?;
        Some((ActionName { previewed_at: at.parse().ok()?, id: id.parse().ok()? }, is_outcome))
    };
    parse().ok_or_else(|| KeyError(text.to_owned(), "audit sort"))
}
