//! A due date with its limit: its claimed and scheduled payments, and the numbers of a release.

use futures::future::try_join;
use maud::{Markup, html};
use payments_http::{Problem, ProblemKind};
use payments_model::{BusinessDate, DayLimit, DayTotal, MAX_RESERVED, Status, UtcSecond};
use payments_store::{DayRelease, StoreError};

use crate::function::Console;
use crate::html::{fact, grouped, limit_in_words, major, numbers_in_words};
use crate::panel::{cards, panel};
use crate::times::Times;
use crate::views::switch::changed;

/// A due date as it is now.
pub(super) struct Limited {
    /// The parameter `MaxDay`, if there is one.
    max_day: Option<DayLimit>,
    /// The last release.
    pub(super) release: Option<DayRelease>,
    /// The time since which the limit holds the date, if it does.
    held_since: Option<UtcSecond>,
    /// The reserved claims, or what the counters show if that is more.
    claimed: DayTotal,
    /// The payments that the counters show as scheduled.
    scheduled: DayTotal,
    /// Whether more claims are reserved than the counters show, and crashes explain: then those are counted as scheduled, too.
    is_uncounted: bool,
}

impl Console {
    /// Reads a date with its limit: its counters, claims and release. `None` if one of these is damaged.
    pub(super) async fn limited(&self, date: BusinessDate) -> Result<Option<Limited>, Problem> {
        let (release, (counts, known)) = match try_join(self.store.day_release(date), self.store.day_claims(date)).await
        {
            Err(error @ StoreError::Unreadable { .. }) => {
                tracing::error!(%date, %error, "a date with its limit cannot be read");
                return Ok(None);
            }
            read => read?,
        };
        let counted = DayTotal::claimed(&counts);
        let claimed = known.reserved.raised_to(&counted);
        let shards: u64 = self.config.read_shards.get().into();
        let is_uncounted =
            claimed.payments - counted.payments > (MAX_RESERVED as u64 * shards).max(claimed.payments / 100);
        let scheduled = DayTotal::from_counts(&counts, &[Status::Scheduled]);
        let max_day = self.config.max_day.clone();
        Ok(Some(Limited { max_day, release, held_since: known.held_since, claimed, scheduled, is_uncounted }))
    }
}

impl Limited {
    /// The claims once all payments of the date are claimed.
    fn need(&self) -> DayTotal {
        self.claimed.plus(&self.scheduled)
    }

    /// The parts of the need that exceed the limit.
    pub(super) fn excess(&self) -> DayLimit {
        self.max_day.as_ref().map(|limit| limit.exceeded_by(&self.need())).unwrap_or_default()
    }

    /// Why nothing is released, if that is so: a clause.
    pub(super) fn refusal(&self) -> Option<&'static str> {
        let Some(limit) = &self.max_day else { return Some("there is no MaxDay, so no limit holds a date") };
        let known = self.release.as_ref().map_or_else(|| limit.clone(), |known| limit.raised_to(&known.up_to));
        if self.held_since.is_none() {
            Some("its limit does not hold this date")
        } else if self.is_uncounted {
            Some(
                "the counters lack claims that were made; wait until they are counted (see CountsBehind), or deploy a higher MaxDay",
            )
        } else if known.admits(&self.need()) {
            Some("what is left fits by the counters, so no release is needed")
        } else if limit.raised_to(&self.excess().with_margin()).admits(&self.need()) {
            None
        } else {
            Some("a sum is larger than a release can be; deploy a MaxDay without its currency")
        }
    }

    /// Checks that the need is about what a preview showed: by less than the margin of a release more or fewer.
    pub(super) fn require_about(&self, shown: &DayLimit) -> Result<(), Problem> {
        let limit = self.max_day.clone().unwrap_or_default();
        let with_margin = |need: &DayLimit| limit.raised_to(&need.with_margin());
        let now = with_margin(&self.excess());
        // Nothing is released that MaxDay does not name: a later one may.
        if limit.names(shown) && with_margin(shown).admits(&self.need()) && now.raised_to(shown) == now {
            return Ok(());
        }
        let detail =
            format!("This date needs {} now, far from what was shown. Preview it again, and ask anew.", self.named());
        Err(Problem::new(ProblemKind::InvalidShape, detail))
    }

    /// The need in words, as far as it is limited.
    pub(super) fn named(&self) -> String {
        let (limit, need) = (self.max_day.clone().unwrap_or_default(), self.need());
        numbers_in_words(
            limit.payments().and(Some(need.payments)),
            limit.sums().map(|(currency, _)| (currency, need.sum(currency))),
        )
    }

    /// The numbers of the date, each beside its limit, and those up to which it is released.
    pub(super) fn shown(&self, up_to: Option<&DayLimit>, times: Times) -> Markup {
        let Some(limit) = &self.max_day else { return html! {} };
        let raised = up_to.map(|up_to| limit.raised_to(up_to));
        let columns =
            [("Of the date", ""), ("MaxDay", "num"), ("Claimed", "num"), ("Scheduled", "num"), ("Up to", "num")];
        let number = |name: &str, number: String| html! { td class="num all" data-l=(name) { (number) } };
        let row = |part: &str, [max, claimed, scheduled]: [String; 3], up_to: Option<String>| {
            html! { tr {
                th scope="row" { (part) }
                (number("MaxDay", max)) (number("Claimed", claimed)) (number("Scheduled", scheduled))
                td class="num all b" data-l="Up to" { (up_to.as_deref().unwrap_or("–")) }
            } }
        };
        let payments = limit.payments().map(|max| {
            let numbers = [max, self.claimed.payments, self.scheduled.payments].map(|number| grouped(number.into()));
            let raised = raised.as_ref().and_then(DayLimit::payments).map(|number| grouped(number.into()));
            row("Payments", numbers, raised)
        });
        let sums = limit.sums().map(|(currency, max)| {
            let in_major = |minor| major(minor, currency.decimals());
            let numbers = [max, self.claimed.sum(currency), self.scheduled.sum(currency)].map(in_major);
            let raised = raised.as_ref().and_then(|raised| raised.sums().find(|(known, _)| *known == currency));
            row(&currency.to_string(), numbers, raised.map(|(_, sum)| in_major(sum)))
        });
        let rows = html! { @for row in payments.into_iter().chain(sums) { (row) } };
        html! {
            (panel(&html! { "Limit of the date" }, &html! { "Scheduled: by the counters" }, &cards("Numbers of the date", &columns, &rows)))
            dl class="facts" {
                @if let Some(since) = self.held_since { (fact("Held since", &times.aged(since))) }
                @if let Some(known) = &self.release { (fact("Released before", &html! { "up to " (limit_in_words(&known.up_to)) " " (changed(&known.change, times)) })) }
            }
        }
    }
}
