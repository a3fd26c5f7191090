//! The preview of a repair of counters: each date that drifted, with what is counted and what a recount found.

use maud::{Markup, html};
use payments_http::{CountsView, Problem, ProblemKind};
use payments_model::recount::{REPAIRABLE_AFTER, drift, drift_of};
use payments_model::{BusinessDate, DayCounts, PlanHash, UtcSecond};
use payments_store::Evidence;

use crate::actions::preview::counted;
use crate::function::Console;
use crate::guides::COUNTS_DRIFTED;
use crate::panel::{cards, panel};
use crate::times::Times;
use crate::views::bank::counts_in_words;

/// The most dates of one repair.
const MOST: usize = 31;

/// The drift of dates, in order.
pub(crate) struct Drift(Vec<Drifted>);

/// A date that drifted.
struct Drifted {
    date: BusinessDate,
    counters: DayCounts,
    evidence: Evidence,
}

impl Drifted {
    fn repairable_from(&self) -> UtcSecond {
        self.evidence.found_at.saturating_add(REPAIRABLE_AFTER)
    }

    /// The date's part of the plan. The digits at its end are of all counts and sums.
    fn line(&self) -> String {
        let Self { date, counters, evidence } = self;
        let views = [counters, &evidence.recounted].map(CountsView::new);
        let all = serde_json::to_string(&(views, evidence.moves)).unwrap_or_default();
        let facts = PlanHash::from_facts(&date.to_string(), &all);
        let (recounted, counters) = (counts_in_words(&evidence.recounted), counts_in_words(counters));
        let words = format!("{recounted} instead of {counters}");
        drift_of(*date, &words, evidence.found_at, facts.short())
    }
}

impl Drift {
    /// The plan on which two persons agree; `None` if no date can be repaired yet.
    pub(crate) fn plan(&self, now: UtcSecond) -> Option<String> {
        let can_repair = self.0.iter().any(|drifted| drifted.repairable_from() <= now);
        can_repair.then(|| self.lines())
    }

    fn lines(&self) -> String {
        drift(&self.0.iter().map(Drifted::line).collect::<Vec<_>>())
    }

    pub(crate) fn shown(&self, times: Times) -> Markup {
        if self.0.is_empty() {
            return html! { p class="notice" { "No recount found that the counters of these dates differ from their payments. Recount them first." } };
        }
        let columns = [("Date", ""), ("Counted", ""), ("Recounted", ""), ("Can be repaired", "")];
        let rows = html! { @for drifted in &self.0 { tr {
            th scope="row" { (times.date(drifted.date)) }
            td class="all" data-l="Counted" { (counts_in_words(&drifted.counters)) }
            td class="all" data-l="Recounted" { (counts_in_words(&drifted.evidence.recounted)) }
            td class="all" data-l="Can be repaired" { "from " (times.at(drifted.repairable_from())) }
        } } };
        html! {
            p { "The counters of a date become what its recount found, if nothing of that date changed since then. Do not repair while changes wait to be counted. See " (COUNTS_DRIFTED) "." }
            (panel(&html! { (counted(self.0.len(), "date")) }, &html! {}, &cards("Dates that drifted", &columns, &rows)))
        }
    }
}

impl Console {
    /// The drift of dates: the findings of the recount, and each lane of the counters.
    pub(crate) async fn drift(&self, from: BusinessDate, to: BusinessDate) -> Result<Drift, Problem> {
        self.recounted_dates(Some(from), Some(to))?;
        let (findings, mut counters) = (self.store.evidence(from, to).await?, self.store.counters(from, to).await?);
        if findings.len() > MOST {
            let detail =
                format!("{} dates drifted, too many for one repair; name at most {MOST} of them.", findings.len());
            return Err(Problem::new(ProblemKind::InvalidShape, detail));
        }
        let drifted = findings.into_iter().filter_map(|(date, found)| {
            let counters = counters.remove(&date).unwrap_or_default().counts;
            found.evidence.map(|evidence| Drifted { date, counters, evidence })
        });
        Ok(Drift(drifted.collect()))
    }

    /// Checks that the drift is as it was shown.
    pub(crate) async fn require_same_drift(
        &self,
        (from, to): (BusinessDate, BusinessDate),
        shown: Option<&str>,
    ) -> Result<(), Problem> {
        if shown == Some(self.drift(from, to).await?.lines().as_str()) {
            return Ok(());
        }
        let detail = "The counters, or what a recount found, changed since the preview. Preview the repair again.";
        Err(Problem::new(ProblemKind::InvalidShape, detail))
    }
}
