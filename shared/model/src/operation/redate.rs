//! The request of a redate: its calendars, its dates, and whether payments are moved.

use std::collections::BTreeMap;
use std::iter::successors;

use serde::Deserialize;

use super::action::ActionName;
use super::second::{ALONE, Consent, Ticket, parsed};
use crate::business_days::closed_days::Calendar;
use crate::business_days::settings::BusinessDays;
use crate::calendar::instant::{BusinessDate, UtcSecond};

/// The most dates of one run: six weeks, of which twelve days are Saturdays and Sundays. A look
/// without dates covers as many, from the earliest possible date on.
pub const MAX_DATES: u32 = 42;

/// The days before today on which payments can be looked at and moved. The sweep claims payments of
/// those days, unless it is paused.
pub const DAYS_BACK: u32 = 7;

/// The request of an operator, `{"calendar":"T2","from":"2026-12-28","to":"2026-12-28","action":"move"}`, or of the schedule,
/// `{"action":"look"}`. Both dates are included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The action.
    #[serde(default)]
    pub action: Action,
    /// The calendar. Without it, every calendar in use.
    #[serde(default)]
    pub calendar: Option<String>,
    /// The first date.
    #[serde(default, deserialize_with = "parsed")]
    pub from: Option<BusinessDate>,
    /// The last date.
    #[serde(default, deserialize_with = "parsed")]
    pub to: Option<BusinessDate>,
    /// The ticket of a move of more payments than one person moves, which nobody approved in the console.
    #[serde(default, deserialize_with = "parsed")]
    pub ticket: Option<Ticket>,
    /// The action of the console that two persons agreed on.
    #[serde(default, deserialize_with = "parsed")]
    pub approval: Option<ActionName>,
    /// The most payments on which they agreed.
    #[serde(default)]
    pub most: Option<u64>,
}

/// The function's actions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Count the payments that a move would move.
    #[default]
    Look,
    /// Move payments.
    Move,
}

/// The reason why a request is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A move lacks its calendar or its dates.
    #[error(
        "a move needs a calendar and dates; send {{\"action\":\"move\",\"calendar\":\"T2\",\"from\":\"YYYY-MM-DD\",\"to\":\"YYYY-MM-DD\"}}"
    )]
    NotNamed,
    /// No currency has the calendar.
    #[error("no currency has the calendar {0:?}; the calendars in use are {1}")]
    NoCalendar(String, String),
    /// No currency has any calendar.
    #[error("no calendar is in use, because the parameter Calendars is empty; name the calendar there, and deploy")]
    NoCalendars,
    /// The first date is after the last.
    #[error("\"from\" ({0}) is after \"to\" ({1}); give the earlier date as \"from\"")]
    Reversed(BusinessDate, BusinessDate),
    /// The first date is too long ago.
    #[error("\"from\" ({0}) is more than {DAYS_BACK} days ago; give {1} or a later date")]
    TooLongAgo(BusinessDate, BusinessDate),
    /// The range is too long.
    #[error("{0} dates are too many for one run; give \"from\" and \"to\" with at most {MAX_DATES} dates")]
    TooMany(i64),
    /// The payments are more than one person moves, or than two agreed on.
    #[error(
        "the dates have more than {0} scheduled payments in the calendar's currencies, which need two persons: ask for the move in the console, or send \"ticket\", which sets off FourEyesBypassed"
    )]
    Alone(u64),
}

/// The plan of a run: its calendars, the dates on which one of them is closed, and the action.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The calendars by their ids.
    pub calendars: BTreeMap<&'static str, &'static Calendar>,
    /// The dates, in order.
    pub dates: Vec<BusinessDate>,
    /// The action.
    pub action: Action,
    /// The consent to a move.
    pub consent: Consent,
    /// The most payments on which two persons agreed.
    agreed: u64,
}

/// The name of a move as an action of the console.
pub const ACTION: &str = "redate";

/// The plan of a move on which two persons agree: the calendar's closed dates, and at most so many payments.
#[must_use]
pub fn fields(
    calendar: &str,
    (from, to): (BusinessDate, BusinessDate),
    (dates, payments): (usize, u64),
) -> Vec<(&'static str, String)> {
    vec![
        ("calendar", calendar.to_owned()),
        ("from", from.to_string()),
        ("to", to.to_string()),
        ("dates", dates.to_string()),
        ("payments", payments.to_string()),
    ]
}

impl Plan {
    /// The most payments that a run moves; `None` without a limit.
    #[must_use]
    pub fn most(&self) -> Option<u64> {
        match self.consent {
            Consent::Alone => Some(ALONE),
            Consent::Approved(..) => Some(self.agreed),
            Consent::Ticket(_) => None,
        }
    }
}

impl Request {
    /// Returns the plan of the request, in a bank with these business days.
    ///
    /// # Errors
    /// The request lacks a field, has too many, or names a calendar or dates that this bank does
    /// not have.
    pub fn plan(&self, days: &BusinessDays, now: UtcSecond) -> Result<Plan, RequestError> {
        let is_named = self.calendar.is_some() && self.from.is_some() && self.to.is_some();
        if self.action == Action::Move && !is_named {
            return Err(RequestError::NotNamed);
        }
        let in_use = days.calendars();
        let mut calendars: BTreeMap<_, _> = in_use.iter().map(|(id, (rail, _))| (*id, rail.calendar)).collect();
        if let Some(wanted) = &self.calendar {
            if calendars.is_empty() {
                return Err(RequestError::NoCalendars);
            }
            calendars.retain(|id, _| id == wanted);
            if calendars.is_empty() {
                let ids = Vec::from_iter(in_use.into_keys()).join(", ");
                return Err(RequestError::NoCalendar(wanted.clone(), ids));
            }
        }
        let today = days.date_of(now);
        let is_closed = |date: &BusinessDate| calendars.values().any(|calendar| calendar.is_closed(*date));
        let dates: Vec<_> = self.dates(today)?.filter(is_closed).collect();
        let agreed = self.most.unwrap_or(ALONE);
        let asked = self.calendar.as_deref().zip(self.from.zip(self.to));
        let fields = asked.map(|(calendar, between)| fields(calendar, between, (dates.len(), agreed)));
        let plan = (ACTION, fields.as_deref().unwrap_or_default());
        let consent = Consent::from_fields(self.ticket.as_ref(), self.approval, plan);
        Ok(Plan { calendars, dates, action: self.action, consent, agreed })
    }

    /// Returns the dates in order. Some may have passed: payments are scheduled on them if the sweep was paused.
    fn dates(&self, today: BusinessDate) -> Result<impl Iterator<Item = BusinessDate> + use<>, RequestError> {
        let earliest = today.minus_days(DAYS_BACK);
        let from = self.from.unwrap_or(earliest);
        let to = self.to.unwrap_or_else(|| from.plus_days(MAX_DATES - 1));
        if from > to {
            return Err(RequestError::Reversed(from, to));
        }
        if from < earliest {
            return Err(RequestError::TooLongAgo(from, earliest));
        }
        let dates = to.days_since(from) + 1;
        if dates > i64::from(MAX_DATES) {
            return Err(RequestError::TooMany(dates));
        }
        Ok(successors(Some(from), move |date| (*date < to).then(|| date.plus_days(1))))
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::business_days::rule::DateRule;

    /// The answer of a stack with these calendars on Friday, 20 November 2026.
    fn plan(request: &str, calendars: &str) -> String {
        let request: Request = match serde_json::from_str(request) {
            Ok(request) => request,
            Err(error) => return error.to_string(),
        };
        let zone = "Europe/London".parse().unwrap();
        let calendars = if calendars.is_empty() { Default::default() } else { calendars.parse().unwrap() };
        let days = BusinessDays::new(zone, calendars, Default::default(), DateRule::None, TimeDelta::zero()).unwrap();
        match request.plan(&days, "2026-11-20T02:00:00Z".parse().unwrap()) {
            Ok(Plan { calendars, dates, .. }) => {
                let (ids, ends) = (Vec::from_iter(calendars.into_keys()).join(" "), [dates.first(), dates.last()]);
                let [first, last] = ends.map(|date| date.map_or_else(String::new, ToString::to_string));
                format!("{ids}: {} from {first} to {last}", dates.len())
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_plan_has_the_closed_dates_of_its_calendars() {
        for (request, calendars, want) in [
            (r#"{"action":"look"}"#, "EUR=T2,USD=FED", "FED T2: 13 from 2026-11-14 to 2026-12-20"),
            ("{}", "EUR=T2", "T2: 12 from 2026-11-14 to 2026-12-20"),
            (r#"{"calendar":"FED"}"#, "EUR=T2,USD=FED", "FED: 13 from 2026-11-14 to 2026-12-20"),
            (
                r#"{"calendar":"T2","from":"2026-11-13","to":"2026-11-19"}"#,
                "EUR=T2",
                "T2: 2 from 2026-11-14 to 2026-11-15",
            ),
            (r#"{"action":"look"}"#, "", ": 0 from  to "),
            (r#"{"calendar":"GB","from":"2026-12-25"}"#, "GBP=GB", "GB: 15 from 2026-12-25 to 2027-01-31"),
            (
                r#"{"action":"move","calendar":"GB","from":"2026-12-23","to":"2026-12-29"}"#,
                "GBP=GB",
                "GB: 4 from 2026-12-25 to 2026-12-28",
            ),
            (
                r#"{"calendar":"T2","from":"2035-12-28","to":"2036-01-06"}"#,
                "EUR=T2",
                "T2: 2 from 2035-12-29 to 2035-12-30",
            ),
        ] {
            assert_eq!(plan(request, calendars), want, "{request}");
        }
    }

    #[test]
    fn errors_say_what_to_send() {
        const MOVE: &str = r#"{"action":"move","calendar":"GB","from":"2026-12-28","to":"2026-12-28"}"#;
        for (request, want) in [
            (r#"{"action":"mave"}"#, "unknown variant `mave`, expected `look` or `move`"),
            (
                r#"{"date":"2026-12-28"}"#,
                "unknown field `date`, expected one of `action`, `calendar`, `from`, `to`, `ticket`, `approval`, `most`",
            ),
            (r#"{"from":"Christmas"}"#, "expected an existing date as YYYY-MM-DD, such as 2026-12-01"),
            (r#"{"action":"move"}"#, "a move needs a calendar and dates; send {\"action\":\"move\",\"calendar\":"),
            (r#"{"action":"move","from":"2026-12-28","to":"2026-12-28"}"#, "a move needs a calendar and dates; send "),
            (r#"{"calendar":"T2"}"#, "no currency has the calendar \"T2\"; the calendars in use are GB"),
            (r#"{"from":"2026-12-28","to":"2026-12-27"}"#, "\"from\" (2026-12-28) is after \"to\" (2026-12-27); give "),
            (
                r#"{"from":"2026-11-12"}"#,
                "\"from\" (2026-11-12) is more than 7 days ago; give 2026-11-13 or a later date",
            ),
            (
                r#"{"from":"2026-12-01","to":"2027-01-12"}"#,
                "43 dates are too many for one run; give \"from\" and \"to\" with at most 42 dates",
            ),
        ] {
            let said = plan(request, "GBP=GB");
            assert!(said.starts_with(want), "{request}: {said}");
        }
        assert_eq!(
            plan(MOVE, ""),
            "no calendar is in use, because the parameter Calendars is empty; name the calendar there, and deploy"
        );
    }
}
