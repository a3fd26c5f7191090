//! The calendars against published lists, and due dates against `docs/dates.md` and `due_dates.txt`.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::business_days::closed_days::is_weekend;
use crate::calendar::instant::{BusinessDate, UtcSecond};
use crate::calendar::scheduled_for::ScheduledFor;
use crate::currency::Currency;

/// The bank of a row: one currency, EUR, with this calendar.
fn bank(zone: &str, calendar: &str, cut_off: Option<&str>, lead_minutes: i64) -> BusinessDays {
    let calendars: CurrencyCalendars = format!("EUR={calendar}").parse().unwrap();
    let cut_offs = cut_off.map(|time| format!("{calendar}={time}").parse().unwrap()).unwrap_or_default();
    let lead = chrono::TimeDelta::minutes(lead_minutes);
    BusinessDays::new(zone.parse().unwrap(), calendars, cut_offs, DateRule::None, lead).unwrap()
}

fn eur() -> Currency {
    "EUR".parse().unwrap()
}

/// The content of the last three columns of a row.
fn outcome(due: Result<Due, DateRefusal>) -> [String; 3] {
    let none = || "–".to_owned();
    match due {
        Ok(Due { at, date, moved }) => {
            [at.to_string(), date.to_string(), moved.map_or_else(none, |moved| moved.reason.to_string())]
        }
        Err(DateRefusal::Closed { reason, next, .. }) => [none(), format!("next {next}"), reason.to_string()],
        Err(DateRefusal::Uncovered { .. }) => [none(), none(), "not covered".to_owned()],
    }
}

#[test]
fn due_dates_are_those_of_the_tables() {
    let tables = [include_str!("../../../../docs/dates.md"), include_str!("due_dates.txt")];
    let rows = tables.iter().flat_map(|table| table.lines()).filter(|line| line.matches('|').count() == 11);
    let (mut seen, mut wrong) = (0, Vec::new());
    for row in rows.filter(|row| !row.starts_with("|-") && !row.starts_with("| bank ")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [zone, calendar, cut_off, lead, rule, created, asked, want @ ..] = cells.as_slice() else {
            panic!("{row}")
        };
        let cut_off = Some(*cut_off).filter(|cell| *cell != "–");
        let bank = bank(zone, calendar, cut_off, lead.parse().unwrap());
        let rule: DateRule = rule.parse().unwrap();
        let due = bank.due(asked.parse().unwrap(), eur(), Some(rule), created.parse().unwrap());
        if let Ok(due) = &due {
            assert_eq!(bank.date_of(due.at), due.date, "{row}");
        }
        let got = outcome(due);
        if got != *want {
            wrong.push(format!("{row} is {got:?}"));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen >= 80, "only {seen} rows");
}

/// A published list: its range, and its dates without weekends.
fn published(text: &str) -> (BusinessDate, BusinessDate, BTreeSet<BusinessDate>) {
    let header = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap();
    let dates = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.parse().unwrap());
    (header("# from: "), header("# to: "), dates.filter(|date| !is_weekend(*date)).collect())
}

#[test]
fn calendars_equal_the_published_lists() {
    for (calendar, list) in [
        ("T2", include_str!("../../calendars/published/T2.txt")),
        ("FED", include_str!("../../calendars/published/FED.txt")),
        ("GB", include_str!("../../calendars/published/GB.txt")),
    ] {
        let calendar = calendars().unwrap().iter().find(|found| found.id() == calendar).unwrap();
        let (from, to, want) = published(list);
        let closed = calendar.closed().iter().map(|closed| closed.date).filter(|date| (from..=to).contains(date));
        assert_eq!(closed.collect::<BTreeSet<_>>(), want, "{}", calendar.id());
        assert!(calendar.covers().contains(&from) && calendar.covers().contains(&to), "{}", calendar.id());
        // The dates that a calendar calls published are those compared here, unless it is a rule.
        let until = calendar.projected_from().map(|date| date.minus_days(1));
        assert!(until.is_none_or(|until| until == to), "{}: {until:?}", calendar.id());
    }
}

#[test]
fn every_rule_covers_the_horizon_from_this_year_on() {
    for calendar in calendars().unwrap() {
        assert_eq!(calendar.covers().start().to_string(), "2026-01-01", "{}", calendar.id());
        assert!(*calendar.covers().end() >= "2030-12-31".parse().unwrap(), "{}", calendar.id());
        assert!(!calendar.name().is_empty() && !calendar.source().is_empty());
    }
}

#[test]
fn settings_name_what_is_wrong() {
    let calendars = |text: &str| text.parse::<CurrencyCalendars>().map_err(|error| error.to_string());
    assert!(calendars("EUR=T2,GBP=GB,USD=FED").is_ok());
    for (text, want) in [
        ("EUR", "\"EUR\" is not of the form currency=calendar, such as EUR=T2; separate entries with commas"),
        ("EUR=T2,", "\"\" is not of the form currency=calendar, such as EUR=T2; separate entries with commas"),
        ("EUR=T3", "there is no calendar \"T3\"; the calendars are FED, GB, T2"),
        ("EUR=T2,EUR=GB", "EUR has two entries; leave one"),
        ("eur=T2", "\"eur\" is not a currency: a currency is a three-letter code of ISO 4217 in capitals, such as GBP"),
    ] {
        assert_eq!(calendars(text).expect_err(text), want);
    }
    let cut_offs = |text: &str| text.parse::<CutOffs>().map_err(|error| error.to_string());
    assert!(cut_offs("T2=04:00,FED=23:59").is_ok());
    let time = |time: &str| format!("{time:?} is not a time as hh:mm, from 04:00 to 23:59");
    for text in ["03:59", "24:00", "4:00", "16:00:00", "16", "noon", ""] {
        assert_eq!(cut_offs(&format!("T2={text}")).expect_err(text), time(text));
    }
    assert_eq!(cut_offs("T2=16:00,T2=17:00").expect_err("twice"), "T2 has two entries; leave one");
    let joined = |zone: &str, calendars: &str, cut_offs: &str, lead| {
        let zone = zone.parse().unwrap();
        let calendars = calendars.parse().unwrap();
        let cut_offs = cut_offs.parse().unwrap();
        let lead = chrono::TimeDelta::minutes(lead);
        BusinessDays::new(zone, calendars, cut_offs, DateRule::Following, lead).map_err(|error| error.to_string())
    };
    assert!(joined("Europe/London", "EUR=T2", "T2=16:00", 30).is_ok());
    let before = "on 2026-01-02 the cut-off of T2 comes before the bank's day begins, or within the lead time; choose a later one";
    assert_eq!(joined("Pacific/Honolulu", "EUR=T2", "T2=10:59", 0).expect_err("early"), before);
    assert!(joined("Pacific/Honolulu", "EUR=T2", "T2=12:00", 0).is_ok());
    assert_eq!(joined("Europe/Berlin", "EUR=T2", "T2=04:00", 241).expect_err("lead"), before);
    // A cut-off of a calendar that no currency has.
    assert!(joined("Europe/London", "EUR=T2", "GB=16:00", 0).is_ok());
}

#[test]
fn the_next_last_call_is_that_of_an_open_day() {
    for (cut_off, now, want) in [
        (Some("16:00"), "2026-11-24T10:00:00Z", Some("2026-11-24T15:50:00Z")),
        (Some("16:00"), "2026-11-24T15:50:00Z", Some("2026-11-24T15:50:00Z")),
        (Some("16:00"), "2026-11-27T15:50:01Z", Some("2026-11-30T15:50:00Z")),
        (Some("16:00"), "2026-12-24T20:00:00Z", Some("2026-12-29T15:50:00Z")),
        (Some("16:00"), "2035-12-31T20:00:00Z", None),
        (None, "2026-11-24T10:00:00Z", None),
    ] {
        let bank = bank("Europe/London", "GB", cut_off, 10);
        let last = bank.next_last_call(bank.rail(eur()).unwrap(), now.parse().unwrap());
        assert_eq!(last.map(|last| last.to_string()).as_deref(), want, "{now}");
    }
}

#[test]
fn the_days_covered_are_those_of_the_calendar_that_ends_first() {
    let days = |calendars: &str| {
        let calendars: CurrencyCalendars = calendars.parse().unwrap();
        calendars.days_covered("2035-12-01".parse().unwrap())
    };
    assert_eq!((days("EUR=T2,GBP=GB"), CurrencyCalendars::default().days_covered(BusinessDate::MIN)), (Some(30), None));
}

/// A payment's rule, the requested date, its due time and reason, the time at which it is judged
/// again, and the outcome.
type Again = (&'static str, &'static str, (&'static str, Option<MoveReason>), &'static str, &'static str);

#[test]
fn a_payment_of_a_date_that_was_closed_is_due_again_by_its_rule() {
    let bank = bank("Europe/London", "GB", None, 0);
    let (weekend, cut_off) = (Some(MoveReason::Weekend), Some(MoveReason::CutOff));
    let rows: [Again; 15] = [
        ("following", "2026-12-28", ("2026-12-28", None), "2026-11-24T10:00:00Z", "2026-12-29T00:00:00Z holiday"),
        ("preceding", "2026-12-28", ("2026-12-28", None), "2026-11-24T10:00:00Z", "2026-12-24T00:00:00Z holiday"),
        ("none", "2026-12-28", ("2026-12-28", None), "2026-11-24T10:00:00Z", "stays None"),
        ("refuse", "2026-12-28", ("2026-12-28", None), "2026-11-24T10:00:00Z", "stays Refuse"),
        ("following", "2026-12-29", ("2026-12-29", None), "2026-11-24T10:00:00Z", "open"),
        ("following", "2036-01-05", ("2036-01-05", None), "2026-11-24T10:00:00Z", "open"),
        // The day before has passed, or is today.
        ("preceding", "2026-12-28", ("2026-12-28", None), "2026-12-28T10:00:00Z", "2026-12-29T00:00:00Z holiday"),
        ("preceding", "2026-12-28", ("2026-12-28", None), "2026-12-24T10:00:00Z", "2026-12-24T10:00:00Z holiday"),
        // The payment had moved to the holiday from a date that has not passed, and from one that has.
        ("following", "2026-12-26", ("2026-12-28", weekend), "2026-12-20T10:00:00Z", "2026-12-29T00:00:00Z weekend"),
        ("following", "2026-12-26", ("2026-12-28", weekend), "2026-12-27T10:00:00Z", "2026-12-29T00:00:00Z weekend"),
        // The cut-off that had moved the payment no longer applies. The payment must not be due in the past.
        ("following", "2026-12-24", ("2026-12-28", cut_off), "2026-12-26T10:00:00Z", "2026-12-29T00:00:00Z cut-off"),
        // Nothing was swept on the holiday. Today is open, or the next open date is.
        ("following", "2026-12-28", ("2026-12-28", None), "2026-12-29T00:05:00Z", "2026-12-29T00:00:00Z holiday"),
        ("preceding", "2026-12-28", ("2026-12-28", None), "2026-12-29T00:05:00Z", "2026-12-29T00:00:00Z holiday"),
        (
            "following",
            "2026-12-25T23:30:00Z",
            ("2026-12-25", None),
            "2026-12-26T10:00:00Z",
            "2026-12-29T00:00:00Z holiday",
        ),
        ("following", "2026-12-27", ("2026-12-27", None), "2026-12-30T10:00:00Z", "2026-12-30T00:00:00Z weekend"),
    ];
    let earlier = Some(CalendarVersion::from_stored("GB".to_owned(), "2025-11-24-00000000".to_owned()));
    let current = Some(CalendarVersion::current(bank.rail(eur()).unwrap().calendar));
    for (rule, asked, (date, reason), now, want) in rows {
        let date: BusinessDate = date.parse().unwrap();
        let moved = reason.map(|reason| DateMove { reason, calendar: earlier.clone() });
        let due = Due { at: bank.zone().start_of(date), date, moved };
        let asked = (asked.parse().unwrap(), eur(), Some(rule.parse().unwrap()));
        let again = match bank.due_again(due, asked, now.parse().unwrap()) {
            Ok(Some(Due { at, moved: Some(moved), .. })) => {
                assert_eq!(moved.calendar, current, "{rule} {date} {now}");
                format!("{at} {}", moved.reason)
            }
            Ok(Some(_)) => "moved for no reason".to_owned(),
            Ok(None) => "open".to_owned(),
            Err(stays) => format!("stays {stays:?}"),
        };
        assert_eq!(again, want, "{rule} {date} {now}");
    }
    let due = Due { at: "2026-12-28T00:00:00Z".parse().unwrap(), date: "2026-12-28".parse().unwrap(), moved: None };
    let dollars = (ScheduledFor::Date(due.date), "USD".parse().unwrap(), Some(DateRule::Following));
    assert_eq!(bank.due_again(due, dollars, "2026-11-24T10:00:00Z".parse().unwrap()), Ok(None));
}

#[test]
fn a_payment_that_was_not_swept_does_not_move_to_a_day_that_takes_no_more_payments() {
    let bank = bank("Europe/London", "GB", Some("16:00"), 10);
    let date: BusinessDate = "2026-12-28".parse().unwrap();
    for rule in [DateRule::Following, DateRule::Preceding] {
        for (now, want) in [("2026-12-29T15:50:00Z", "2026-12-29"), ("2026-12-29T15:50:01Z", "2026-12-30")] {
            let due = Due { at: bank.zone().start_of(date), date, moved: None };
            let again = bank.due_again(due, (ScheduledFor::Date(date), eur(), Some(rule)), now.parse().unwrap());
            assert_eq!(again.unwrap().unwrap().date.to_string(), want, "{rule} {now}");
        }
    }
}

fn banks() -> impl Strategy<Value = BusinessDays> {
    let zones = ["Europe/London", "America/New_York", "Asia/Tokyo", "Pacific/Kiritimati", "Pacific/Honolulu"];
    let (zones, ids) = (prop::sample::select(zones.to_vec()), prop::sample::select(vec!["T2", "FED", "GB"]));
    // By the clock of Berlin, Honolulu's day begins at 12:00.
    let cut_offs = prop::sample::select(vec![None, Some("13:30"), Some("16:00"), Some("23:59")]);
    (zones, ids, cut_offs, 0_i64..=60).prop_map(|(zone, id, cut_off, lead)| bank(zone, id, cut_off, lead))
}

fn rules() -> impl Strategy<Value = DateRule> {
    prop::sample::select(DateRule::ALL.to_vec())
}

/// An instant in 2026 to 2034, so that there is an open date after it.
fn instants() -> impl Strategy<Value = UtcSecond> {
    let second = |text: &str| text.parse::<UtcSecond>().unwrap().as_chrono().timestamp();
    (second("2026-01-02T12:00:00Z")..second("2034-12-01T00:00:00Z"))
        .prop_map(|second| UtcSecond::new(chrono::DateTime::from_timestamp(second, 0).unwrap()).unwrap())
}

/// The request, this many seconds after now: for the date, or the instant.
fn asked(bank: &BusinessDays, now: UtcSecond, seconds: i64, by_date: bool) -> ScheduledFor {
    let at = now.saturating_add(chrono::TimeDelta::seconds(seconds));
    if by_date { ScheduledFor::Date(bank.date_of(at)) } else { ScheduledFor::Instant(at.as_chrono().fixed_offset()) }
}

const FIFTY_DAYS: i64 = 50 * 86_400;

proptest! {
    #[test]
    fn a_payment_is_due_on_an_open_day_in_time_and_not_in_the_past(
        bank in banks(), rule in rules(), now in instants(), seconds in 0..FIFTY_DAYS, by_date: bool,
    ) {
        let asked = asked(&bank, now, seconds, by_date);
        let as_asked = Due::as_asked(asked, bank.zone());
        let rail = bank.rail(eur()).unwrap();
        let is_good = |due: &Due| {
            rail.calendar.closed_for(due.date).is_none()
                && bank.last_call(rail, due.date).is_none_or(|last| due.at.max(now) <= last)
        };
        match bank.due(asked, eur(), Some(rule), now) {
            Ok(due) if rule == DateRule::None => prop_assert_eq!(due, as_asked),
            Ok(due) => {
                prop_assert!(is_good(&due), "{:?}", due);
                prop_assert_eq!(bank.date_of(due.at), due.date);
                // A payment moves only if it must, and then to another time that is not earlier than now.
                prop_assert_eq!(due.moved.is_none(), is_good(&as_asked));
                prop_assert!(due.moved.is_none() == (due == as_asked));
                prop_assert!(due.moved.is_none() || due.at >= now);
                let calendar = due.moved.map(|moved| moved.calendar);
                prop_assert!(calendar.is_none_or(|by| by == Some(CalendarVersion::current(rail.calendar))));
                prop_assert!(due.date >= bank.date_of(now));
                prop_assert!(rule == DateRule::Preceding || due.date >= as_asked.date);
            }
            Err(DateRefusal::Closed { next, .. }) => {
                prop_assert!(rule == DateRule::Refuse && !is_good(&as_asked));
                prop_assert!(rail.calendar.closed_for(next).is_none() && next > as_asked.date);
                let following = bank.due(asked, eur(), Some(DateRule::Following), now);
                prop_assert_eq!(following.map(|due| due.date), Ok(next));
            }
            Err(refusal) => prop_assert!(false, "{:?}", refusal),
        }
    }

    #[test]
    fn what_is_due_again_is_due_on_an_open_day_and_no_later_than_following_says(
        bank in banks(), rule in prop::sample::select(vec![DateRule::Following, DateRule::Preceding]),
        now in instants(), seconds in -7 * 86_400..FIFTY_DAYS, by_date: bool,
    ) {
        let asked = asked(&bank, now, seconds, by_date);
        let due = Due::as_asked(asked, bank.zone());
        let (rail, today) = (bank.rail(eur()).unwrap(), bank.date_of(now));
        let again = bank.due_again(due.clone(), (asked, eur(), Some(rule)), now).unwrap();
        prop_assert_eq!(again.is_some(), rail.calendar.is_closed(due.date));
        let Some(again) = again else { return Ok(()) };
        prop_assert!(rail.calendar.closed_for(again.date).is_none() && again.date >= today, "{:?}", again);
        let reason = again.moved.map(|moved| moved.reason);
        prop_assert_eq!((bank.date_of(again.at), reason), (again.date, rail.calendar.closed_for(due.date)));
        let in_time = |date: &BusinessDate| bank.last_call(rail, *date).is_none_or(|last| now <= last);
        prop_assert!(in_time(&again.date));
        let first = rail.calendar.open_from(due.date.max(today)).unwrap();
        let following = if in_time(&first) { first } else { rail.calendar.open_from(first.plus_days(1)).unwrap() };
        // A move to the day before today is impossible.
        if rule == DateRule::Following || due.date < today {
            prop_assert_eq!(again.date, following);
        }
        prop_assert!(again.date <= following);
    }

    #[test]
    fn following_keeps_the_order(
        bank in banks(), now in instants(), a in 0..FIFTY_DAYS, more in 0..FIFTY_DAYS, by_date: bool,
    ) {
        let due = |seconds| bank.due(asked(&bank, now, seconds, by_date), eur(), Some(DateRule::Following), now).unwrap();
        let (earlier, later) = (due(a), due(a + more));
        prop_assert!(earlier.at <= later.at && earlier.date <= later.date);
    }

    #[test]
    fn preceding_is_on_no_later_day_than_following(
        bank in banks(), now in instants(), seconds in 0..FIFTY_DAYS, by_date: bool,
    ) {
        let due = |rule| bank.due(asked(&bank, now, seconds, by_date), eur(), Some(rule), now).unwrap();
        prop_assert!(due(DateRule::Preceding).date <= due(DateRule::Following).date);
    }
}
