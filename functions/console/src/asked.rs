//! Actions that need a second person: what waits.

use chrono::TimeDelta;
use payments_http::Problem;
use payments_model::ActionName;
use payments_store::{Asked, AuditMonth, Standing, StoreError, WAITS};

use crate::function::Console;

/// Lifetime of a preview. A later confirmation could act on a state that has changed, and the trail
/// would have the action at a wrong place.
pub(crate) const CONFIRMED_WITHIN: TimeDelta = TimeDelta::minutes(15);

/// The most actions that wait and are shown.
const MOST_WAITING: usize = 10;

/// The actions that wait for a second person.
pub(crate) struct Waiting {
    /// The newest first, at most ten.
    pub(crate) asked: Vec<Asked>,
    /// Whether there may be others.
    pub(crate) more: bool,
}

impl Console {
    /// An action that needs a second person, with its decision: two reads, strongly consistent.
    pub(crate) async fn asked(&self, name: ActionName) -> Result<Option<Asked>, Problem> {
        let Some(entry) = self.store.audit_entry(name).await? else { return Ok(None) };
        Ok(Asked::new(entry, self.store.approval(name).await?))
    }

    /// The actions that wait for a second person: one read, at a month's end two, and one for each that waits.
    pub(crate) async fn waiting_for_second(&self) -> Result<Waiting, StoreError> {
        let now = self.clock.now();
        // An action is confirmed within minutes of its preview, after which it is named.
        let from = now.saturating_add(-WAITS).saturating_add(-CONFIRMED_WITHIN);
        let (first, last) = (AuditMonth::from_second(from), AuditMonth::from_second(now));
        let mut waiting = Waiting { asked: Vec::new(), more: false };
        for month in [(first != last).then_some(first), Some(last)].into_iter().flatten() {
            let (entries, is_all) = self.store.audit_since(&month, from).await?;
            waiting.more |= !is_all;
            for entry in entries {
                let Ok(Some(mut asked)) = entry.map(|entry| Asked::new(entry, None)) else { continue };
                if !matches!(asked.standing(now), Standing::Waits(_)) {
                    continue;
                }
                if waiting.asked.len() == MOST_WAITING {
                    waiting.more = true;
                    break;
                }
                asked.decision = self.store.approval(asked.intent.name).await?;
                if asked.decision.is_none() {
                    waiting.asked.push(asked);
                }
            }
        }
        Ok(waiting)
    }
}
