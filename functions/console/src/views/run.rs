//! The run that an operator started, as soon as it has ended. The dialog of the start asks for it.

use chrono::TimeDelta;
use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::{Problem, Request};
use payments_model::UtcSecond;
use payments_store::Job;

use crate::actions::CLOCKS_DIFFER;
use crate::function::Console;
use crate::runs::end;

/// Time after which a run that was started has ended or was dropped: Lambda waits for five minutes, and a run lasts up to fifteen.
const ENDED_WITHIN: TimeDelta = TimeDelta::minutes(20);

impl Console {
    /// The last run of a job, if it began at an instant or later: one read.
    pub(crate) async fn run(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let query = request.query(&["job", "since"])?;
        let missing = |name| invalid_parameter(name, &"it is missing");
        let job = query.text("job")?.ok_or_else(|| missing("job"))?;
        let job = Job::from_name(job).ok_or_else(|| invalid_parameter("job", &"no job has this name"))?;
        let since: UtcSecond = query.get("since")?.ok_or_else(|| missing("since"))?;
        let (runs, times) = (self.last_runs().await?, self.times());
        let run = runs.job(job).filter(|run| run.began_at.saturating_add(CLOCKS_DIFFER) >= since);
        let has_waited = since.saturating_add(ENDED_WITHIN) < times.now;
        Ok(html! {
            @match run {
                Some(run) => { b { "Ended " (times.clock(run.ended_at)) } ": " (end(run)) }
                None if has_waited => { b { "It has not ended." } " If the function was busy for five minutes, it was dropped: the function’s log says whether it began." }
                None => { b data-pending { "It has not ended yet." } " " span class="quiet" { "Checked " (times.clock(times.now)) } }
            }
        })
    }
}
