//! The request of a recount: its dates, and whether counters are corrected.

use std::iter::successors;

use chrono::TimeDelta;
use serde::Deserialize;

use super::action::ActionName;
use super::second::{Consent, Ticket, parsed};
use crate::calendar::instant::{BusinessDate, UtcSecond};
use crate::calendar::zone::BusinessZone;

/// The days back that a recount covers without `from`: longer than settlement, report, expiry and archive take, so each
/// date is recounted once more after its last change. A payment that is settled after its redrive of the 127th hour
/// expires a day after its report, and DynamoDB deletes it within days.
const DEFAULT_DAYS_BACK: TimeDelta = TimeDelta::days(14);

/// The days after today that a recount covers without `to`: as many as counts without `to`.
const DEFAULT_DAYS_AHEAD: u32 = 90;

/// The most dates of one run: a leap year.
const MAX_DATES: i64 = 366;

/// The age at which a finding can be repaired. The stream keeps its records for 24 hours. A change
/// that is not counted by then never will be, so a difference that remains is drift and not delay.
pub const REPAIRABLE_AFTER: TimeDelta = TimeDelta::hours(25);

/// The request of a schedule or an operator: `{"action":"recount"}`, with optional dates, or
/// `{"action":"repair","from":"2026-12-01","to":"2026-12-01","ticket":"INC-4711"}`, with both dates. Both are included. The
/// console names the approved action instead of a ticket.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The action.
    pub action: Action,
    /// The first date.
    #[serde(default, deserialize_with = "parsed")]
    pub from: Option<BusinessDate>,
    /// The last date.
    #[serde(default, deserialize_with = "parsed")]
    pub to: Option<BusinessDate>,
    /// The ticket of a repair that nobody approved in the console.
    #[serde(default, deserialize_with = "parsed")]
    pub ticket: Option<Ticket>,
    /// The action of the console that two persons agreed on.
    #[serde(default, deserialize_with = "parsed")]
    pub approval: Option<ActionName>,
    /// The drift on which they agreed.
    #[serde(default)]
    pub drift: Option<String>,
}

/// The name of a repair as an action of the console.
pub const REPAIR: &str = "repair-counters";

/// The plan of a repair on which two persons agree: the drift of these dates.
#[must_use]
pub fn fields((from, to): (BusinessDate, BusinessDate), drift: &str) -> Vec<(&'static str, String)> {
    vec![("from", from.to_string()), ("to", to.to_string()), ("drift", drift.to_owned())]
}

/// A date's part of the drift on which two persons agree. `digest` is of all its counts and sums.
#[must_use]
pub fn drift_of(date: BusinessDate, words: &str, found_at: UtcSecond, digest: &str) -> String {
    format!("{date}: {words}, found {found_at}, {digest}")
}

/// Puts the parts of dates together.
#[must_use]
pub fn drift(parts: &[String]) -> String {
    parts.join("; ")
}

/// Whether a drift has the finding of a date.
#[must_use]
pub fn is_in_drift(drift: &str, date: BusinessDate, found_at: UtcSecond) -> bool {
    let (begins, has) = (format!("{date}: "), format!(", found {found_at}, "));
    drift.split("; ").any(|part| part.starts_with(&begins) && part.contains(&has))
}

/// The function's actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Compare the counters with the payments.
    Recount,
    /// Recount, and correct counters whose drift was found at least 25 hours ago.
    Repair,
}

/// The reason why the dates of a request are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A repair has no dates.
    #[error("a repair needs dates; send {{\"action\":\"repair\",\"from\":\"YYYY-MM-DD\",\"to\":\"YYYY-MM-DD\"}}")]
    NoDates,
    /// A repair has neither an approval nor a ticket.
    #[error(
        "a repair needs two persons: ask for it in the console, or send \"ticket\", which sets off FourEyesBypassed"
    )]
    Alone,
    /// The first date is after the last.
    #[error("\"from\" ({0}) is after \"to\" ({1}); give the earlier date as \"from\"")]
    Reversed(BusinessDate, BusinessDate),
    /// The range is too long.
    #[error("{1} to {2} are {0} dates, too many for one run; give \"from\" and \"to\" with at most {MAX_DATES} dates")]
    TooMany(i64, BusinessDate, BusinessDate),
}

impl Request {
    /// The consent to a repair.
    #[must_use]
    pub fn consent(&self) -> Consent {
        let fields = self.from.zip(self.to).map(|dates| fields(dates, self.drift.as_deref().unwrap_or_default()));
        Consent::from_fields(self.ticket.as_ref(), self.approval, (REPAIR, fields.as_deref().unwrap_or_default()))
    }

    /// Returns the dates in order.
    ///
    /// # Errors
    /// The dates are missing, in the wrong order or too many, or a repair has no consent.
    pub fn dates(&self, zone: BusinessZone, now: UtcSecond) -> Result<Vec<BusinessDate>, RequestError> {
        if self.action == Action::Repair && (self.from.is_none() || self.to.is_none()) {
            return Err(RequestError::NoDates);
        }
        if self.action == Action::Repair && self.consent() == Consent::Alone {
            return Err(RequestError::Alone);
        }
        let today = zone.date_of(now);
        // Clocks do not change at noon, so whole days lead from date to date.
        let noon = zone.start_of(today).saturating_add(TimeDelta::hours(12));
        let from = self.from.unwrap_or_else(|| zone.date_of(noon.saturating_add(-DEFAULT_DAYS_BACK)));
        let to = self.to.unwrap_or_else(|| today.plus_days(DEFAULT_DAYS_AHEAD));
        if from > to {
            return Err(RequestError::Reversed(from, to));
        }
        let dates = to.days_since(from) + 1;
        if dates > MAX_DATES {
            return Err(RequestError::TooMany(dates, from, to));
        }
        Ok(successors(Some(from), |date| (*date < to).then(|| date.plus_days(1))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(request: &str, now: &str) -> String {
        let request: Request = match serde_json::from_str(request) {
            Ok(request) => request,
            Err(error) => return error.to_string(),
        };
        match request.dates("Europe/London".parse().unwrap(), now.parse().unwrap()) {
            Ok(dates) => format!("{} to {}: {}", dates[0], dates[dates.len() - 1], dates.len()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_recount_has_default_dates_and_a_repair_names_its_own() {
        let now = "2026-11-20T02:00:00Z";
        for (request, want) in [
            (r#"{"action":"recount"}"#, "2026-11-06 to 2027-02-18: 105"),
            (r#"{"action":"recount","from":null}"#, "2026-11-06 to 2027-02-18: 105"),
            (r#"{"action":"recount","from":"2026-11-20"}"#, "2026-11-20 to 2027-02-18: 91"),
            (r#"{"action":"recount","to":"2026-11-20"}"#, "2026-11-06 to 2026-11-20: 15"),
            (
                r#"{"action":"repair","from":"2026-12-01","to":"2026-12-01","ticket":"INC-1"}"#,
                "2026-12-01 to 2026-12-01: 1",
            ),
            (
                r#"{"action":"repair","from":"2027-01-01","to":"2028-01-01","approval":"2026-11-20T02:00:00Z_00000000-0000-5000-8000-000000000001"}"#,
                "2027-01-01 to 2028-01-01: 366",
            ),
        ] {
            assert_eq!(dates(request, now), want, "{request}");
        }
    }

    #[test]
    fn the_default_start_is_two_weeks_back_also_when_clocks_change() {
        for (now, want) in [
            ("2026-10-25T00:30:00Z", "2026-10-11"),
            ("2026-11-07T23:59:59Z", "2026-10-24"),
            ("2026-11-08T00:00:00Z", "2026-10-25"),
            ("2027-03-27T23:59:59Z", "2027-03-13"),
            ("2027-03-28T22:59:59Z", "2027-03-14"),
            ("2027-04-10T23:00:00Z", "2027-03-28"),
        ] {
            assert!(dates(r#"{"action":"recount"}"#, now).starts_with(want), "{now}");
        }
    }

    #[test]
    fn errors_say_what_to_send() {
        for (request, want) in [
            ("{}", "missing field `action`"),
            (r#"{"action":"recout"}"#, "unknown variant `recout`, expected `recount` or `repair`"),
            (
                r#"{"action":"recount","date":"2026-12-01"}"#,
                "unknown field `date`, expected one of `action`, `from`, `to`, `ticket`, `approval`, `drift`",
            ),
            (
                r#"{"action":"recount","from":"1 December"}"#,
                "expected an existing date as YYYY-MM-DD, such as 2026-12-01",
            ),
            (
                r#"{"action":"recount","from":"2026-11-31"}"#,
                "expected an existing date as YYYY-MM-DD, such as 2026-12-01",
            ),
            (
                r#"{"action":"repair","from":"2026-12-01","to":"2026-12-01"}"#,
                "a repair needs two persons: ask for it in the ",
            ),
            (r#"{"action":"repair","ticket":"a\nb"}"#, "a ticket is 1 to 100 characters of printable ASCII"),
            (r#"{"action":"repair","approval":"x"}"#, "an action's name is the time of its preview and its id"),
            (r#"{"action":"repair"}"#, r#"a repair needs dates; send {"action":"repair","from":"YYYY-MM-DD","to":"#),
            (r#"{"action":"repair","to":"2026-12-01"}"#, "a repair needs dates; send "),
            (
                r#"{"action":"repair","from":"2026-12-02","to":"2026-12-01","ticket":"INC-1"}"#,
                "\"from\" (2026-12-02) is after \"to\" (2026-12-01); give ",
            ),
            (
                r#"{"action":"recount","from":"2026-01-01"}"#,
                "2026-01-01 to 2027-02-18 are 414 dates, too many for one run; give ",
            ),
            (
                r#"{"action":"repair","from":"2027-01-01","to":"2028-01-02","ticket":"INC-1"}"#,
                "2027-01-01 to 2028-01-02 are 367 dates, too many for one run; give \"from\" and \"to\" with at most 366 dates",
            ),
        ] {
            let said = dates(request, "2026-11-20T02:00:00Z");
            assert!(said.starts_with(want), "{request}: {said}");
        }
    }
}
