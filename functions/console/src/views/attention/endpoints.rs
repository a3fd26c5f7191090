//! Troubles of webhook endpoints: those that are disabled, failing, or without some events.

use chrono::TimeDelta;
use maud::html;
use payments_model::UtcSecond;
use payments_store::{DisabledBy, LogHead};

use super::trouble::{Trouble, Until};
use crate::guides::{Place, WEBHOOK_DISABLED, WEBHOOKS_BEHIND, WEBHOOKS_MISSED};
use crate::html::link;
use crate::runs::Runs;
use crate::times::Times;
use crate::views::endpoints::{Behind, Endpoints};

/// The time for which the strip shows that an endpoint missed events. Webhooks shows it for good.
const MISSED_SHOWN: TimeDelta = TimeDelta::days(7);

/// An endpoint in trouble.
struct Bad {
    id: String,
    since: Option<UtcSecond>,
    /// The events that wait for it, if they are known.
    behind: Option<Behind>,
}

/// The troubles of all endpoints, one of each kind.
pub(super) fn troubles(
    (endpoints, mut states): Endpoints,
    log: Option<&LogHead>,
    runs: &Runs,
    times: Times,
) -> Vec<Trouble> {
    let [mut disabled, mut missed, mut failing] = [const { Vec::new() }; 3];
    for (id, endpoint) in endpoints {
        let (Ok(endpoint), Some(Ok(state))) = (endpoint, states.remove(&id)) else {
            failing.push(Bad { id, since: None, behind: None });
            continue;
        };
        let bad = |since| Bad { id: id.clone(), since, behind: Some(Behind::new(&id, &state, log, runs)) };
        if let Some((by, at)) = endpoint.disabled(&state) {
            // An operator knows of the endpoints that an operator disabled.
            if by != DisabledBy::Operator {
                disabled.push(bad(Some(at)));
            }
        } else if let Some(at) = state.progress.missed.as_ref().map(|missed| missed.at)
            && times.now < at.saturating_add(MISSED_SHOWN)
        {
            missed.push(bad(Some(at)));
        } else if state.progress.failures > 0 {
            failing.push(bad(state.progress.failing_since));
        }
    }
    [
        trouble(disabled, "disabled", WEBHOOK_DISABLED, times),
        trouble(missed, "without some events", WEBHOOKS_MISSED, times),
        trouble(failing, "failing", WEBHOOKS_BEHIND, times),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The trouble of some endpoints. The one whose events are lost first is described.
fn trouble(mut bad: Vec<Bad>, word: &str, runbook: Place, times: Times) -> Option<Trouble> {
    let lost_at = |bad: &Bad| bad.behind.as_ref().and_then(|behind| behind.kept_until);
    bad.sort_by_key(|bad| (lost_at(bad).is_none(), lost_at(bad)));
    let first = bad.first()?;
    let title = match bad.len() {
        1 => format!("1 endpoint {word}"),
        several => format!("{several} endpoints {word}"),
    };
    let behind = first.behind.as_ref().filter(|behind| behind.segments > 0);
    let more = html! {
        (first.id) @if let Some(since) = first.since { ", " (times.age(since)) } @if bad.len() > 1 { ", and others" }
        @if let Some(behind) = behind { ". " (behind.waiting(times)) }
        @if let Some(until) = lost_at(first) { ", lost from " (times.date(times.zone.date_of(until))) " on" }
    };
    let until = lost_at(first).map(Until::At);
    Some(Trouble { view: "endpoints", target: link("endpoints", &[]), runbook, until, title, more })
}
