//! The dates on which banks in England are closed, as a client knows them.
//!
//! Weekends, and the holidays of the months that are played.

use chrono::{DateTime, Datelike as _, NaiveDate, SecondsFormat, Utc, Weekday};

use crate::facts::zone::Zone;

/// The actor that moves payments off closed dates for the bank, in heads and details.
pub(crate) const REDATE: &str = "b:redate";

/// The holidays on weekdays of 120 days of each begin.
const HOLIDAYS: [&str; 7] =
    ["2026-04-03", "2026-04-06", "2026-05-04", "2026-05-25", "2026-12-25", "2026-12-28", "2027-01-01"];

/// Whether the banks are closed on a date.
pub(crate) fn is_closed(date: NaiveDate) -> bool {
    matches!(date.weekday(), Weekday::Sat | Weekday::Sun) || HOLIDAYS.contains(&date.to_string().as_str())
}

/// Returns the first instant of the next open date that has not passed, if a payment is due on a closed one.
pub(crate) fn opens_after(due: DateTime<Utc>, now: DateTime<Utc>, tz: &Zone) -> Option<String> {
    let from = tz.date_of(due).filter(|date| is_closed(*date))?.max(tz.date_of(now)?);
    let open = from.iter_days().find(|date| !is_closed(*date))?;
    Some(tz.start_of(open)?.to_rfc3339_opts(SecondsFormat::Secs, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn easter_and_weekends_are_closed_in_the_banks_zone() -> anyhow::Result<()> {
        let (london, tokyo) = (&Zone::read("Europe/London")?, &Zone::read("Asia/Tokyo")?);
        let after_at = |due: &str, now: &str, tz: &Zone| {
            opens_after(due.parse().unwrap_or_default(), now.parse().unwrap_or_default(), tz)
        };
        let after = |due: &str, tz: &Zone| after_at(due, due, tz);
        let tuesday = Some("2026-04-06T23:00:00Z".to_owned());
        assert_eq!(after("2026-04-03T10:00:00Z", london), tuesday);
        assert_eq!(after("2026-04-06T22:59:59Z", london), tuesday);
        assert_eq!(after("2026-04-06T23:00:00Z", london), None);
        // A payment that was not swept moves to today, if today is open.
        for (now, want) in
            [("2026-04-06T23:05:00Z", "2026-04-06T23:00:00Z"), ("2026-04-11T09:00:00Z", "2026-04-12T23:00:00Z")]
        {
            assert_eq!(after_at("2026-04-03T10:00:00Z", now, london).as_deref(), Some(want));
        }
        assert_eq!(after("2026-10-17T15:00:00Z", tokyo), Some("2026-10-18T15:00:00Z".to_owned()));
        assert_eq!(after("2026-10-16T14:59:59Z", tokyo), None);
        Ok(())
    }
}
