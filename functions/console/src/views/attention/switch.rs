//! The troubles of the switch: a stop, holds of due dates, a damaged item.

use maud::html;
use payments_model::Switch;

use crate::actions::switch::dates_in_words;
use crate::guides::{HELD_FOR_LONG, PAYMENTS_STOPPED, Place, SWITCH_UNREADABLE};
use crate::html::{foreign, link};
use crate::times::Times;
use crate::views::attention::trouble::Trouble;

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
