//! Instants and dates as people of the bank write them: in its time zone, with the weekday.

use chrono::{Datelike as _, NaiveDateTime};
use maud::{Markup, html};
use payments_model::{BusinessDate, BusinessZone, UtcSecond};

/// The bank's time zone, and the present.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) zone: BusinessZone,
    pub(crate) now: UtcSecond,
}

impl Times {
    /// An instant: `Thu 26 Nov, 00:00`, with UTC in its title. The year is added if it is another one.
    pub(crate) fn at(self, at: UtcSecond) -> Markup {
        let local = self.zone.local(at);
        html! { time datetime=(at) title=(at) { (self.day(local)) ", " (local.format("%H:%M").to_string()) } }
    }

    /// An instant with its age: `Thu 26 Nov, 00:00` and `3 h ago`.
    pub(crate) fn aged(self, at: UtcSecond) -> Markup {
        html! { (self.at(at)) " " span class="quiet" { (self.age(at)) } }
    }

    /// The time of a day, with seconds: `03:10:24`.
    pub(crate) fn clock(self, at: UtcSecond) -> Markup {
        html! { time datetime=(at) title=(at) { (self.zone.local(at).format("%H:%M:%S").to_string()) } }
    }

    /// An instant of today as `02:58`, another one with its date.
    pub(crate) fn brief(self, at: UtcSecond) -> Markup {
        html! { time datetime=(at) title=(at) { (self.brief_text(at)) } }
    }

    /// The same without markup.
    pub(crate) fn brief_text(self, at: UtcSecond) -> String {
        let local = self.zone.local(at);
        let clock = local.format("%H:%M").to_string();
        if local.date() == self.zone.local(self.now).date() { clock } else { format!("{}, {clock}", self.day(local)) }
    }

    /// The time of a day in minutes: `03:10`.
    pub(crate) fn minute(self, at: UtcSecond) -> Markup {
        html! { time datetime=(at) title=(at) { (self.zone.local(at).format("%H:%M").to_string()) } }
    }

    /// The day of an instant: `Thu 26 Nov`, or `Thu 26 Nov, today`.
    pub(crate) fn day_of(self, at: UtcSecond) -> String {
        let (local, today) = (self.zone.local(at), self.zone.local(self.now).date());
        if local.date() == today { format!("{}, today", self.day(local)) } else { self.day(local) }
    }

    /// A date: `Thu 26 Nov`. The year is added if it is another one than now.
    pub(crate) fn date(self, date: BusinessDate) -> String {
        self.day(date.as_chrono().and_time(chrono::NaiveTime::MIN))
    }

    fn day(self, local: NaiveDateTime) -> String {
        let is_of_this_year = local.year() == self.zone.local(self.now).year();
        local.format(if is_of_this_year { "%a %-d %b" } else { "%a %-d %b %Y" }).to_string()
    }

    /// The time since an instant, or until it: `3 h ago`, `in 5 min`.
    pub(crate) fn age(self, at: UtcSecond) -> String {
        let seconds = (self.now.as_chrono() - at.as_chrono()).num_seconds();
        if seconds < 0 { format!("in {}", span(-seconds)) } else { format!("{} ago", span(seconds)) }
    }

    /// The time of a view, and the zone of all its times.
    pub(crate) fn read(self) -> Markup {
        html! { span { "Read " (self.clock(self.now)) ", " (zone_name(self.zone)) } }
    }
}

/// A number of seconds in the unit that people would use: minutes up to 90, hours up to 48, and days, each rounded.
pub(crate) fn span(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{} s", seconds.max(0)),
        120..=5_400 => format!("{} min", seconds / 60),
        5_401..172_800 => format!("{} h", (seconds + 1_800) / 3_600),
        _ => format!("{} days", (seconds + 43_200) / 86_400),
    }
}

/// The zone by the name of its city: `London time`.
fn zone_name(zone: BusinessZone) -> String {
    let name = zone.to_string();
    match name.rsplit_once('/') {
        Some((_, city)) => format!("{} time", city.replace('_', " ")),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> Times {
        Times { zone: "Europe/London".parse().unwrap(), now: "2026-07-01T12:00:00Z".parse().unwrap() }
    }

    #[test]
    fn instants_are_of_the_banks_zone() {
        let times = times();
        for (at, want) in [
            // The day before, by UTC.
            ("2026-06-30T23:00:00Z", "Wed 1 Jul, 00:00"),
            ("2026-01-01T00:00:00Z", "Thu 1 Jan, 00:00"),
            ("2025-12-31T23:59:00Z", "Wed 31 Dec 2025, 23:59"),
        ] {
            let shown = times.at(at.parse().unwrap()).into_string();
            assert_eq!(shown, format!("<time datetime=\"{at}\" title=\"{at}\">{want}</time>"));
        }
        assert_eq!(times.date("2027-07-01".parse().unwrap()), "Thu 1 Jul 2027");
        assert!(times.read().into_string().contains(">13:00:00</time>, London time"));
        assert!(times.brief("2026-06-30T23:00:00Z".parse().unwrap()).into_string().contains(">00:00<"));
        assert!(times.brief("2026-06-30T22:00:00Z".parse().unwrap()).into_string().contains(">Tue 30 Jun, 23:00<"));
    }

    #[test]
    fn an_age_has_one_unit() {
        let times = times();
        for (at, want) in [
            ("2026-07-01T12:00:05Z", "in 5 s"),
            ("2026-07-01T12:00:00Z", "0 s ago"),
            ("2026-07-01T11:58:01Z", "119 s ago"),
            ("2026-07-01T11:58:00Z", "2 min ago"),
            ("2026-07-01T10:30:00Z", "90 min ago"),
            ("2026-07-01T10:29:59Z", "2 h ago"),
            ("2026-07-01T10:00:00Z", "2 h ago"),
            ("2026-07-01T09:30:01Z", "2 h ago"),
            ("2026-06-29T12:00:01Z", "48 h ago"),
            ("2026-06-29T12:00:00Z", "2 days ago"),
            ("2026-07-03T12:00:00Z", "in 2 days"),
        ] {
            assert_eq!(times.age(at.parse().unwrap()), want);
        }
    }
}
