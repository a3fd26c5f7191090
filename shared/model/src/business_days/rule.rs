//! Rules for payments whose date is closed, and reasons why a payment was moved.

use std::fmt;
use std::str::FromStr;

/// The rule for a payment whose date is closed, or whose cut-off has passed.
///
/// ```
/// # use payments_model::*;
/// # use payments_model::business_days::{CurrencyCalendars, CutOffs};
/// let euros: CurrencyCalendars = "EUR=T2".parse()?;
/// let zone = "Europe/Berlin".parse()?;
/// let days = BusinessDays::new(zone, euros, CutOffs::default(), DateRule::None, chrono::TimeDelta::zero())?;
/// let (now, eur) = ("2026-11-20T09:00:00Z".parse()?, "EUR".parse()?);
///
/// // 1 May 2027 is a Saturday.
/// let due = |rule| days.due("2027-05-01".parse().unwrap(), eur, Some(rule), now);
/// assert_eq!(due(DateRule::None).unwrap().date.to_string(), "2027-05-01");
/// assert_eq!(due(DateRule::Following).unwrap().date.to_string(), "2027-05-03");
/// assert_eq!(due(DateRule::Preceding).unwrap().date.to_string(), "2027-04-30");
/// assert!(due(DateRule::Refuse).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DateRule {
    /// The payment is due on that date all the same.
    None,
    /// The payment moves to the next open date.
    Following,
    /// The payment moves to the last open date before, or to the next one if that date or its cut-off has passed.
    Preceding,
    /// The payment is rejected.
    Refuse,
}

/// Why a text is not a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a date rule is none, following, preceding or refuse")]
pub struct DateRuleError;

impl DateRule {
    /// Every rule.
    pub const ALL: [Self; 4] = [Self::None, Self::Following, Self::Preceding, Self::Refuse];

    /// The text in requests and items.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Following => "following",
            Self::Preceding => "preceding",
            Self::Refuse => "refuse",
        }
    }
}

impl FromStr for DateRule {
    type Err = DateRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|rule| rule.as_str() == text).ok_or(DateRuleError)
    }
}

impl fmt::Display for DateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The reason why a payment is not due when its client asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MoveReason {
    /// The date is a Saturday or a Sunday.
    Weekend,
    /// The date is another closed date of the calendar.
    Holiday,
    /// The date is open, but its cut-off has passed.
    CutOff,
}

/// Why a text is not a reason to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the reason to move is not weekend, holiday or cut-off")]
pub struct MoveReasonError;

impl MoveReason {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Weekend, Self::Holiday, Self::CutOff];

    /// The text in responses and items.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Weekend => "weekend",
            Self::Holiday => "holiday",
            Self::CutOff => "cut-off",
        }
    }
}

impl FromStr for MoveReason {
    type Err = MoveReasonError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text).ok_or(MoveReasonError)
    }
}

impl fmt::Display for MoveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
