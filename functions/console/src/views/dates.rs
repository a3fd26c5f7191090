//! Dates: links to them, and what the bank's calendars say of them.

use payments_model::business_days::Calendar;
use payments_model::{BusinessDate, BusinessDays, MoveReason, Status};

use crate::html::link;
use crate::times::Times;

/// The dates ahead that one view shows. All lanes of these dates are about 250 KB.
pub(crate) const DATES: u32 = 31;

/// The most days to look for an open date.
const LOOKED_AHEAD: u32 = 31;

/// A link to the view of a date.
pub(crate) fn day_link(date: BusinessDate) -> String {
    link("day", &[("date", &date.to_string())])
}

/// A link to the payments of a date in a status.
pub(crate) fn list_link(date: BusinessDate, status: Status) -> String {
    link("list", &[("date", &date.to_string()), ("status", status.as_str())])
}

/// The reason why a date is not simply open: calendars are closed on it, or do not cover it. A bank without calendars has none.
pub(crate) fn mark(days: &BusinessDays, date: BusinessDate, times: Times) -> Option<String> {
    let calendars: Vec<_> = days.calendars().values().map(|(rail, _)| rail.calendar).collect();
    let first = calendars.first()?;
    if first.closed_for(date) == Some(MoveReason::Weekend) {
        return Some("closed: weekend".to_owned());
    }
    // Calendars with the same reason share one mark.
    let mut marks: Vec<(String, Vec<&str>)> = Vec::new();
    for calendar in &calendars {
        let Some(mark) = mark_in(calendar, date, times) else { continue };
        match marks.iter_mut().find(|(known, _)| *known == mark) {
            Some((_, ids)) => ids.push(calendar.id()),
            None => marks.push((mark, vec![calendar.id()])),
        }
    }
    let named = marks.iter().map(|(mark, ids)| {
        if ids.len() == calendars.len() { mark.clone() } else { format!("{} {mark}", ids.join(", ")) }
    });
    Some(named.collect::<Vec<_>>().join("; ")).filter(|marks| !marks.is_empty())
}

/// The reason why a date is not simply open in one calendar.
fn mark_in(calendar: &Calendar, date: BusinessDate, times: Times) -> Option<String> {
    let covers = calendar.covers();
    if date < *covers.start() {
        return Some(format!("unknown: the calendar begins {}", times.date(*covers.start())));
    }
    if date > *covers.end() {
        return Some(format!("unknown: the calendar ends {}", times.date(*covers.end())));
    }
    let holiday = calendar.closed().iter().find(|closed| closed.date == date)?;
    Some(format!("closed: {}", holiday.name))
}

/// The first date after `date` that is open in all calendars, if there is one within a month.
pub(crate) fn next_open(days: &BusinessDays, date: BusinessDate, times: Times) -> Option<BusinessDate> {
    if days.calendars().is_empty() {
        return None;
    }
    (1..=LOOKED_AHEAD)
        .map(|ahead| date.plus_days(ahead))
        .find(|ahead| *ahead > date && mark(days, *ahead, times).is_none())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use payments_model::DateRule;

    use super::*;

    fn days(calendars: &str) -> BusinessDays {
        let (zone, calendars) = ("Europe/London".parse().unwrap(), calendars.parse().unwrap());
        BusinessDays::new(zone, calendars, Default::default(), DateRule::Refuse, TimeDelta::zero()).unwrap()
    }

    fn times() -> Times {
        Times { zone: "Europe/London".parse().unwrap(), now: "2026-11-26T12:00:00Z".parse().unwrap() }
    }

    #[test]
    fn a_date_is_open_closed_or_unknown() {
        for (calendars, date, want) in [
            ("GBP=GB", "2026-12-24", ""),
            ("GBP=GB", "2026-12-25", "closed: Christmas Day"),
            ("GBP=GB", "2026-12-26", "closed: weekend"),
            ("GBP=GB,EUR=T2", "2026-12-25", "closed: Christmas Day"),
            ("GBP=GB,EUR=T2", "2026-12-28", "GB closed: Boxing Day (observed)"),
            ("GBP=GB,EUR=T2,USD=FED", "2026-04-06", "GB, T2 closed: Easter Monday"),
        ] {
            assert_eq!(mark(&days(calendars), date.parse().unwrap(), times()).unwrap_or_default(), want, "{date}");
        }
    }

    #[test]
    fn a_date_outside_the_calendars_is_not_open() {
        let known = days("GBP=GB");
        let covers = known.calendars().values().next().unwrap().0.calendar.covers();
        // A Monday long after, and one long before.
        for (date, word) in [("2099-01-05", "ends"), ("2001-01-01", "begins")] {
            let date: BusinessDate = date.parse().unwrap();
            assert!(!covers.contains(&date));
            let mark = mark(&known, date, times()).unwrap();
            assert!(mark.starts_with(&format!("unknown: the calendar {word} ")), "{mark}");
            assert_eq!(next_open(&known, date, times()), None);
        }
    }

    #[test]
    fn the_next_open_date_is_open_everywhere() {
        let both = days("GBP=GB,EUR=T2");
        for (date, want) in [("2026-12-24", "2026-12-29"), ("2026-12-28", "2026-12-29"), ("2026-11-27", "2026-11-30")] {
            assert_eq!(next_open(&both, date.parse().unwrap(), times()), Some(want.parse().unwrap()), "{date}");
        }
        let without: BusinessDays = days_without();
        assert_eq!(mark(&without, "2026-12-26".parse().unwrap(), times()), None);
        assert_eq!(next_open(&without, BusinessDate::MAX, times()), None);
        assert_eq!(next_open(&both, BusinessDate::MAX, times()), None);
    }

    fn days_without() -> BusinessDays {
        let zone = "UTC".parse().unwrap();
        BusinessDays::new(zone, Default::default(), Default::default(), DateRule::Refuse, TimeDelta::zero()).unwrap()
    }
}
