//! The next event of each endpoint that is behind, for the outcome that a run stores.

use std::collections::BTreeMap;

use payments_store::LogRead;
use payments_work::ScheduledRun;
use serde_json::Value;

use crate::function::Publish;

impl Publish {
    /// Returns the time of the next event of each endpoint that is behind: 1 read unit for each 4 KB of its segment. `None`
    /// if the endpoints or the log cannot be read in time.
    pub(crate) async fn waiting(&self, run: &ScheduledRun) -> Option<BTreeMap<String, String>> {
        // The places are read before the head, so none is beyond it.
        let states = run.last_call(async || self.store.webhook_states().await).await?;
        let head = run.last_call(async || self.store.log_head().await).await??;
        let mut waiting = BTreeMap::new();
        for (endpoint, state) in states {
            let Some(position) = state.ok().map(|state| state.position).filter(|it| *it < head.end()) else { continue };
            let page = async || self.store.log_page(&head, position, 1, 1, self.clock.now()).await;
            // If the log no longer has the events, or they cannot be read, that is another trouble.
            let Some(LogRead::Page(page)) = run.last_call(page).await else { continue };
            let event = page.entries.first().and_then(|entry| serde_json::from_str::<Value>(&entry.json).ok());
            let at = event.as_ref().and_then(|event| event["at"].as_str()).map(str::to_owned);
            waiting.extend(at.map(|at| (endpoint, at)));
        }
        Some(waiting)
    }
}
