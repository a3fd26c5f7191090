//! A trouble as a card: its urgency, the time until which somebody has to act, and the entry of its alarm.

use maud::{Markup, html};
use payments_model::{BusinessDate, UtcSecond};

use crate::guides::{Place, Within};
use crate::times::Times;

/// A trouble.
pub(super) struct Trouble {
    /// The view that mends it.
    pub(super) view: &'static str,
    /// The address at which it is mended.
    pub(super) target: String,
    /// The entry of its alarm, which decides about its urgency.
    pub(super) runbook: Place,
    /// The end of the time to act, if it is known.
    pub(super) until: Option<Until>,
    /// A number and a word: `3 dead letters`.
    pub(super) title: String,
    /// One sentence more.
    pub(super) more: Markup,
}

/// The end of the time to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// The beginning of a date.
    Date(BusinessDate),
    At(UtcSecond),
}

impl Trouble {
    /// The place among other troubles: that of its alarm in the table.
    pub(super) fn rank(&self) -> usize {
        self.runbook.priority().0
    }

    pub(super) fn shown(&self, times: Times) -> Markup {
        let due = due(self.runbook.priority().1, self.until, times);
        html! {
            li class=(if due.is_some() { "" } else { "now" }) data-view=(self.view) {
                a href=(self.target) { b { (self.title) } " " em { (due.as_deref().unwrap_or("Now")) } " " span { (self.more) } }
                (self.runbook)
            }
        }
    }
}

/// The time until which somebody has to act, in words. `None` is now.
fn due(within: Within, until: Option<Until>, times: Times) -> Option<String> {
    let today = times.zone.date_of(times.now);
    match (within, until) {
        (Within::Now, _) => None,
        // The table says "now if it is today or tomorrow".
        (Within::BeforeDate, Some(Until::Date(date))) => {
            (date > today.plus_days(1)).then(|| format!("Before {}", times.date(date)))
        }
        (_, Some(Until::At(at))) if at <= times.now => None,
        (_, Some(Until::At(at))) if times.zone.date_of(at) == today => {
            Some(format!("By {} today", times.brief_text(at)))
        }
        (Within::Days(_), Some(Until::At(at))) => Some(format!("By {}", times.date(times.zone.date_of(at)))),
        (Within::Hours(1), _) => Some("Within 1 hour".to_owned()),
        (Within::Hours(hours), _) => Some(format!("Within {hours} hours")),
        (Within::Days(days), _) => Some(format!("Within {days} days")),
        (Within::Today | Within::BeforeDate, _) => Some("Today".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_says_by_when_somebody_has_to_act() {
        let times = Times { zone: "Europe/London".parse().unwrap(), now: "2026-11-26T12:00:00Z".parse().unwrap() };
        let date = |text: &str| Some(Until::Date(text.parse().unwrap()));
        let at = |text: &str| Some(Until::At(text.parse().unwrap()));
        for (within, until, want) in [
            (Within::Now, None, None),
            (Within::Now, at("2026-12-26T12:00:00Z"), None),
            (Within::Hours(1), None, Some("Within 1 hour")),
            (Within::Hours(23), None, Some("Within 23 hours")),
            (Within::Today, None, Some("Today")),
            (Within::Today, at("2026-11-26T14:00:00Z"), Some("By 14:00 today")),
            (Within::Today, at("2026-12-31T00:00:00Z"), Some("Today")),
            (Within::Today, at("2026-11-26T12:00:00Z"), None),
            (Within::Days(2), None, Some("Within 2 days")),
            (Within::Days(2), at("2026-11-28T09:00:00Z"), Some("By Sat 28 Nov")),
            (Within::Days(2), at("2026-11-25T09:00:00Z"), None),
            (Within::BeforeDate, date("2026-12-14"), Some("Before Mon 14 Dec")),
            (Within::BeforeDate, date("2026-11-27"), None),
            (Within::BeforeDate, date("2026-11-26"), None),
            (Within::BeforeDate, None, Some("Today")),
        ] {
            assert_eq!(due(within, until, times).as_deref(), want, "{within:?} {until:?}");
        }
    }
}
