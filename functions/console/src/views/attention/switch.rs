//! The troubles of the switch and of limits: a stop, holds of due dates, a damaged item. And a closed gate.

use maud::html;
use payments_model::{BusinessDate, Switch, UtcSecond};

use crate::actions::switch::dates_in_words;
use crate::guides::{DAY_HELD, HELD_FOR_LONG, PAYMENTS_STOPPED, Place, REQUESTS_WAITING, SWITCH_UNREADABLE};
use crate::html::{day, foreign, grouped, link};
use crate::operations::QueueState;
use crate::times::Times;
use crate::views::attention::trouble::Trouble;
use crate::views::dates::day_link;

/// A stop, and the holds. Without a switch, its item is damaged.
pub(super) fn troubles(switch: Option<Switch>, times: Times) -> Vec<Trouble> {
    let trouble = |runbook: Place, title: String, more: maud::Markup| {
        let target = link("bank", &[]);
        Trouble { view: "bank", target, runbook, until: None, title, more }
    };
    let Some(switch) = switch else {
        let more = html! { "Nothing is claimed or sent. Its item is damaged" };
        return vec![trouble(SWITCH_UNREADABLE, "Stopped: the switch cannot be read".to_owned(), more)];
    };
    let stop = switch.change.as_ref().filter(|_| switch.stopped).map(|stop| {
        let title = format!("Stopped by {} since {}", stop.by.name(), times.brief_text(stop.at));
        trouble(PAYMENTS_STOPPED, title, foreign(&stop.reason))
    });
    let holds = switch.holds.iter().map(|hold| {
        let title = format!("Payments due {} are held", dates_in_words(hold.from, hold.to));
        let (by, since) = (hold.change.by.name(), times.brief_text(hold.change.at));
        trouble(HELD_FOR_LONG, title, html! { "By " (by) " since " (since) ": " (foreign(&hold.change.reason)) })
    });
    stop.into_iter().chain(holds).collect()
}

/// A date whose limit holds its payments.
pub(super) fn beyond_limit(date: BusinessDate, since: UtcSecond, count: i64, times: Times) -> Trouble {
    let title = format!("Payments due {} are held by MaxDay", dates_in_words(date, date));
    let more = html! { (grouped(count.into())) " scheduled, since " (times.brief_text(since)) };
    Trouble { view: "day", target: day_link(date), runbook: DAY_HELD, until: None, title, more }
}

/// A date whose claims cannot be read, so the sweep claims nothing of it.
pub(super) fn unknown_claims(date: BusinessDate) -> Trouble {
    let title = format!("Claims of {} unknown", day(date));
    let more = html! { "Nothing more of the date is claimed. Correct the item CLAIMS / " (date) " of the hot table" };
    Trouble { view: "day", target: day_link(date), runbook: DAY_HELD, until: None, title, more }
}

/// The gate of the request queue, if it is closed.
pub(super) fn gate(requests: &QueueState) -> Option<Trouble> {
    let more = html! { "The transaction service receives nothing. About " (grouped(requests.waiting.into())) " requests wait" };
    let (title, target) = ("The gate of the request queue is closed".to_owned(), link("queues", &[]));
    let trouble = Trouble { view: "queues", target, runbook: REQUESTS_WAITING, until: None, title, more };
    requests.is_closed.then_some(trouble)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_gate_is_a_trouble_and_an_open_one_is_none() {
        let requests = |is_closed| QueueState { waiting: 5, is_closed, ..QueueState::default() };
        assert!(gate(&requests(false)).is_none());
        let trouble = gate(&requests(true)).unwrap();
        assert!(trouble.more.into_string().contains("About 5 requests wait"));
    }
}
