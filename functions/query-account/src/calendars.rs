//! The calendars that the bank uses: their closed dates and cut-offs. No table is read.

use payments_http::{Answer, Problem, ProblemKind, Request};
use payments_model::business_days::{ClosedDate, Rail};
use payments_model::{Currency, UtcSecond};
use serde::Serialize;

use crate::function::QueryAccount;

/// The answer to a list.
#[derive(Serialize)]
struct CalendarsView {
    calendars: Vec<CalendarView>,
}

/// A calendar, and how the bank uses it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CalendarView {
    calendar_id: &'static str,
    calendar_version: &'static str,
    name: &'static str,
    time_zone: String,
    currencies: Vec<String>,
    /// The bank's rule for requests without one.
    date_rule: &'static str,
    from: String,
    to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    projected_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_off: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cut_off: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<Vec<ClosedView>>,
}

#[derive(Serialize)]
struct ClosedView {
    date: String,
    name: &'static str,
}

impl QueryAccount {
    /// Lists the calendars, without their closed dates.
    pub(crate) fn calendars(&self, request: &Request<'_>) -> Result<Answer, Problem> {
        request.query(&[])?;
        let (calendars, now) = (self.config.business_days.calendars(), self.clock.now());
        let calendars = calendars.into_values().map(|(rail, currencies)| self.view(&rail, &currencies, now));
        Answer::json(200, &CalendarsView { calendars: calendars.collect() })
    }

    /// Returns one calendar with its closed dates.
    pub(crate) fn calendar(&self, request: &Request<'_>) -> Result<Answer, Problem> {
        request.query(&[])?;
        let mut calendars = self.config.business_days.calendars();
        let Some((rail, currencies)) = calendars.remove(request.calendar()) else {
            let ids: Vec<&str> = calendars.into_keys().collect();
            let detail = if ids.is_empty() {
                "The bank uses no calendars: every day is open.".to_owned()
            } else {
                format!("The bank uses no such calendar; its calendars are {}.", ids.join(", "))
            };
            return Err(Problem::new(ProblemKind::NoSuchCalendar, detail));
        };
        let closed = rail.calendar.closed().iter();
        let closed = closed.map(|ClosedDate { date, name }| ClosedView { date: date.to_string(), name });
        let view = self.view(&rail, &currencies, self.clock.now());
        Answer::json(200, &CalendarView { closed: Some(closed.collect()), ..view })
    }

    fn view(&self, rail: &Rail, currencies: &[Currency], now: UtcSecond) -> CalendarView {
        let (calendar, days) = (rail.calendar, &self.config.business_days);
        CalendarView {
            calendar_id: calendar.id(),
            calendar_version: calendar.version(),
            name: calendar.name(),
            time_zone: calendar.zone().to_string(),
            currencies: currencies.iter().map(ToString::to_string).collect(),
            date_rule: days.rule().as_str(),
            from: calendar.covers().start().to_string(),
            to: calendar.covers().end().to_string(),
            projected_from: calendar.projected_from().map(|date| date.to_string()),
            cut_off: rail.cut_off.map(|cut_off| cut_off.to_string()),
            next_cut_off: days.next_last_call(rail, now).map(|last| last.to_string()),
            closed: None,
        }
    }
}
