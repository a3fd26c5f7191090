//! The switch: whether all claims and sends are stopped, the holds of due dates, and their meaning for a payment.

pub(crate) mod plans;
mod undos;

use futures::future::try_join;
use maud::{Markup, html};
use payments_model::{BusinessDate, Switch, SwitchChange};
use payments_store::StoreError;

use crate::function::Console;
use crate::guides::{DAY_HELD, INCIDENT, SWITCH_UNREADABLE};
use crate::html::{fact, foreign, link};
use crate::panel::{hidden, opens, panel};
use crate::times::Times;

/// The meaning of a stop to a payment, by its place.
const MEANINGS: [(&str, &str); 5] = [
    ("Scheduled", "It is not claimed. It can be amended and cancelled."),
    ("Claimed, not sent", "It stays pending. After the resume, a redrive sends its request."),
    ("In the request queue", "The transaction service still receives it."),
    ("Received by the service", "The service decides, and may pay it."),
    ("Settled", "It stays settled. Results are recorded as ever."),
];

/// The panel of the switch, with its actions.
pub(crate) fn switched(switch: Option<&Switch>, times: Times) -> Markup {
    let Some(known) = switch else {
        let says = html! { p class="pad" { span class="pill stop" { "Unreadable" } " Nothing is claimed or sent. See " (SWITCH_UNREADABLE) "." } };
        return panel(&html! { "Switch" }, &html! {}, &says);
    };
    let stop = known.change.as_ref().filter(|_| known.stopped);
    let content = html! {
        dl class="facts" {
            (fact("Claims and sends", &html! {
                @match stop {
                    Some(stop) => { span class="pill stop" { "Stopped" } " " (changed(stop, times)) },
                    None => "not stopped",
                }
            }))
            @for hold in &known.holds {
                @let (from, to) = (hold.from.to_string(), hold.to.to_string());
                (fact("Held", &html! {
                    (times.date(hold.from)) @if hold.to > hold.from { " to " (times.date(hold.to)) } " " (changed(&hold.change, times)) " "
                    (opens("release-dates", "Release…", "", &[("from", &from), ("to", &to)]))
                }))
            }
        }
        div class="pad row" {
            @if stop.is_some() { (opens("resume", "Resume…", "danger", &[])) } @else { (opens("stop", "Stop…", "danger", &[])) }
        }
        form data-action="hold-dates" class="pad" {
            div class="fields" {
                label { "From" input name="from" type="date" required; }
                label { "To" input name="to" type="date" required; }
                div class="row all" { button { "Hold dates…" } }
            }
            (hidden("step", "preview"))
        }
        p class="pad" { a href=(link("undos", &[])) { "Undo a wrong feed…" } }
        details class="pad" {
            summary { "What a stop means for a payment, by its place" }
            dl class="facts" { @for (place, meaning) in MEANINGS { (fact(place, &html! { (meaning) })) } }
        }
    };
    panel(&html! { "Switch" }, &html! { "See " (INCIDENT) }, &content)
}

/// The holds of a date.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HeldBy {
    pub(crate) switch: bool,
    pub(crate) limit: bool,
    /// Whether what is known of its limit allows a release.
    pub(crate) is_known: bool,
}

/// The notice that its limit holds a date, with the button that releases it.
pub(crate) fn beyond_limit(date: BusinessDate, times: Times) -> Markup {
    html! {
        div class="notice" {
            p { "MaxDay holds what is not claimed of " (times.date(date)) ". If these payments are right, release them. See " (DAY_HELD) "." }
            (opens("release-day", "Release…", "danger", &[("date", &date.to_string())]))
        }
    }
}

impl Console {
    /// Reads the switch. `None` if its item cannot be read.
    pub(crate) async fn known_switch(&self) -> Result<Option<Switch>, StoreError> {
        match self.store.switch().await {
            Err(error @ StoreError::Unreadable { .. }) => {
                tracing::error!(%error, "the switch cannot be read, which means stopped");
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    /// Whether the switch holds a date, and whether its limit does: two reads.
    pub(crate) async fn held_by(&self, date: BusinessDate) -> Result<HeldBy, StoreError> {
        let (switch, limited) = try_join(self.known_switch(), self.store.days_held(date, date)).await?;
        let switch = switch.is_some_and(|switch| switch.is_held(date));
        Ok(HeldBy { switch, limit: limited.contains_key(&date), is_known: limited.values().all(Result::is_ok) })
    }
}

/// The operator, the time and the reason of a change.
pub(crate) fn changed(change: &SwitchChange, times: Times) -> Markup {
    html! { "by " (change.by.name()) ", " (times.aged(change.at)) ": " (foreign(&change.reason)) }
}
