//! The troubles that need an operator. Every view shows them, and they lead to the views that mend them.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use maud::{Markup, html};
use payments_http::{Problem, Request};
use payments_model::{Currency, Finding, State, Status};
use payments_store::{DateCounters, DisabledBy, Job, LastRun, StoreError};

use crate::config::Paused;
use crate::function::Console;
use crate::html::{amount, grouped, link, money, payment_address, person_of, word};
use crate::operations::BankQueue;
use crate::runs::name;
use crate::times::Times;
use crate::told::standing;

/// The dates before today whose payments should all be claimed. Recounts and alarms find older ones.
const OVERDUE_DAYS: u32 = 31;

/// The time for which the strip shows that an endpoint missed events. Webhooks shows it for good.
const MISSED_SHOWN: TimeDelta = TimeDelta::days(7);

/// The most findings that are counted, and those that have a link.
const FINDINGS: u16 = 20;
const FINDINGS_SHOWN: usize = 6;

/// A trouble.
struct Trouble {
    /// The view that mends it.
    view: &'static str,
    /// The address at which it is mended.
    target: String,
    urgency: Urgency,
    /// A number and a word: `3 dead letters`.
    title: String,
    /// One sentence more.
    more: Markup,
}

/// The time within which somebody has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    Now,
    Today,
}

/// The troubles of one kind; an error if they could not be read.
type Found = Result<Vec<Trouble>, &'static str>;

impl Console {
    /// The strip of troubles. It reads no shard of an index: the last run of each job, the open findings, the counters of the last dates, the webhook
    /// endpoints with their places, the findings of the recount, the actions of the last hours, and the sizes of the queues without a receiver.
    pub(crate) async fn attention(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        request.query(&[])?;
        let times = self.times();
        let (findings, letters, endpoints, drift, runs, overdue, asked) = tokio::join!(
            self.contradictions(),
            self.dead_letters(),
            self.endpoints_in_trouble(times),
            self.drifted_dates(times),
            self.troubles_of_runs(times),
            self.overdue(times),
            self.asked_for(times)
        );
        let mut troubles: Vec<Trouble> = self.pause().into_iter().collect();
        let mut unknown = Vec::new();
        for found in [overdue, runs, asked, findings, letters, endpoints, drift] {
            match found {
                Ok(found) => troubles.extend(found),
                Err(what) => unknown.push(what),
            }
        }
        troubles.sort_by_key(|trouble| trouble.urgency);
        Ok(html! {
            @if troubles.is_empty() && unknown.is_empty() {
                p id="attn" { b { "Nothing needs attention." } " " span class="quiet" { "Checked " (times.brief(times.now)) "." } }
            } @else {
                p id="attn" class="b" { "Needs attention" }
                ul {
                    @for trouble in &troubles { (trouble.shown()) }
                    @for what in unknown { li { a href="#bank" { b { (what) " unknown" } em { "Now" } span { "They could not be read. The function's log says why" } } } }
                }
            }
        })
    }

    fn pause(&self) -> Option<Trouble> {
        let (title, what) = match self.config.paused {
            Paused::None => return None,
            Paused::Sending => ("Sending is paused", "Nothing is claimed, sent or reported"),
            Paused::Settling => {
                ("Sending and settling are paused", "Nothing is claimed, sent or reported, and results wait")
            }
        };
        let (title, more) = (title.to_owned(), html! { (what) });
        Some(Trouble { view: "bank", target: link("bank", &[]), urgency: Urgency::Now, title, more })
    }

    /// The results that contradict their payments, until an operator closes each.
    async fn contradictions(&self) -> Found {
        let open = self.store.open_findings(FINDINGS).await.map_err(|error| {
            tracing::error!(%error, "the findings are unknown to the strip of troubles");
            "Contradicting results"
        })?;
        let number = open.findings.len();
        let mut findings = Vec::new();
        for finding in open.findings {
            match finding {
                Ok(finding) => findings.push(finding),
                Err(error) => tracing::error!(%error, "a finding cannot be read"),
            }
        }
        // Money that moved for a cancelled payment comes first.
        findings.sort_by_key(|finding| finding.stands.status() != Status::Cancelled);
        let unseen = number - findings.len().min(FINDINGS_SHOWN);
        let mut troubles: Vec<Trouble> = findings.into_iter().take(FINDINGS_SHOWN).map(contradiction).collect();
        if unseen > 0 || open.more {
            let title = format!("{unseen}{} more contradictions", if open.more { " or" } else { "" });
            let (target, more) =
                (link("alarms", &[]), html! { "They follow when these are closed; some may be unreadable" });
            troubles.push(Trouble { view: "waiting", target, urgency: Urgency::Now, title, more });
        }
        Ok(troubles)
    }

    async fn dead_letters(&self) -> Found {
        const WHAT: &str = "Dead letters";
        let states = BankQueue::UNRECEIVED.map(|queue| async move { (queue, self.operations.queue(queue).await) });
        let mut parts = Vec::new();
        let mut all = 0;
        for (queue, state) in futures::future::join_all(states).await {
            let state = state.map_err(|error| {
                tracing::error!(%queue, ?error, "a queue is unknown to the strip of troubles");
                WHAT
            })?;
            if state.waiting > 0 {
                all += state.waiting;
                parts.push(format!("{} {}", grouped(state.waiting.into()), super::queues::letters(queue)));
            }
        }
        let title = format!("{} dead letter{}", grouped(all.into()), if all == 1 { "" } else { "s" });
        let (target, more) = (link("queues", &[]), html! { (parts.join(", ")) });
        Ok((all > 0)
            .then_some(Trouble { view: "queues", target, urgency: Urgency::Today, title, more })
            .into_iter()
            .collect())
    }

    /// The payments of the last dates that are not claimed, by the counters.
    async fn overdue(&self, times: Times) -> Found {
        let today = self.today();
        let counters = self.store.counters(today.minus_days(OVERDUE_DAYS), today.minus_days(1)).await;
        let counters = counters.map_err(|error| {
            tracing::error!(%error, "the counters are unknown to the strip of troubles");
            "Overdue payments"
        })?;
        let scheduled = |counters: &DateCounters| counters.counts.count(Status::Scheduled).max(0);
        let late = counters.iter().map(|(date, counters)| (*date, scheduled(counters))).filter(|(_, count)| *count > 0);
        let late: Vec<_> = late.collect();
        let Some((first, _)) = late.first() else { return Ok(Vec::new()) };
        let title = format!("{} overdue", grouped(late.iter().map(|(_, count)| i128::from(*count)).sum()));
        let more = html! { "Due before today and not claimed, the first on " (times.date(*first)) };
        Ok(vec![Trouble { view: "waiting", target: link("waiting", &[]), urgency: Urgency::Now, title, more }])
    }

    /// The troubles that the last runs of jobs found, and the runs that failed.
    async fn troubles_of_runs(&self, times: Times) -> Found {
        let unknown = |error: &StoreError| {
            tracing::error!(%error, "the last runs are unknown to the strip of troubles");
            "Last runs"
        };
        let runs = self.store.last_runs().await.map_err(|error| unknown(&error))?;
        let mut troubles = Vec::new();
        for run in runs {
            let run = run.map_err(|error| unknown(&error))?;
            troubles.extend(self.state(&run, times));
            troubles.extend(found_by(&run, times));
        }
        Ok(troubles)
    }

    /// The trouble of a job that does not run, fails, or leaves something out.
    fn state(&self, run: &LastRun, times: Times) -> Option<Trouble> {
        let number = |field: &str| run.outcome.as_ref().and_then(|outcome| outcome[field].as_u64()).unwrap_or(0);
        let is_paused = self.config.paused != Paused::None && run.job != Job::Publish;
        let is_late = period(run.job).is_some_and(|period| run.ended_at.saturating_add(period) < times.now);
        let (state, more) = if is_late && !is_paused {
            ("does not run", html! { "It ended last " (times.at(run.ended_at)) })
        } else if run.failed.is_some() {
            ("failed", html! { "It ended " (times.brief(run.ended_at)) ". Its error is in Bank" })
        } else if DAMAGE.iter().any(|field| number(field) > 0) {
            ("is incomplete", html! { "It ended " (times.brief(run.ended_at)) " without some. Bank says which" })
        } else {
            return None;
        };
        let title = format!("{} {state}", name(run.job));
        Some(Trouble { view: "bank", target: link("bank", &[]), urgency: Urgency::Today, title, more })
    }

    /// The actions that wait for a second person.
    async fn asked_for(&self, times: Times) -> Found {
        let waiting = self.waiting_for_second().await.map_err(|error| {
            tracing::error!(%error, "the actions that wait for a second person are unknown to the strip of troubles");
            "Actions that wait for a second person"
        })?;
        let Some(first) = waiting.asked.last() else { return Ok(Vec::new()) };
        let number = waiting.asked.len();
        let title = format!("{number}{} to approve", if waiting.more { " or more" } else { "" });
        let more = html! { (person_of(&first.intent.by)) " asked at " (times.minute(first.intent.at)) ". It " (standing(first, times).more) };
        Ok(vec![Trouble { view: "audit", target: link("audit", &[]), urgency: Urgency::Now, title, more }])
    }

    async fn drifted_dates(&self, times: Times) -> Found {
        let findings = self.recount_findings().await.map_err(|error| {
            tracing::error!(%error, "the findings of the recount are unknown to the strip of troubles");
            "Miscounted dates"
        })?;
        let Some(first) = findings.keys().next() else { return Ok(Vec::new()) };
        let title = match findings.len() {
            1 => "1 date miscounted".to_owned(),
            several => format!("{several} dates miscounted"),
        };
        let more = html! { (times.date(*first)) @if findings.len() > 1 { " and others" } ": the counters differ from a recount" };
        Ok(vec![Trouble { view: "bank", target: link("bank", &[]), urgency: Urgency::Today, title, more }])
    }

    async fn endpoints_in_trouble(&self, times: Times) -> Found {
        let (endpoints, mut states) = self.endpoints_and_states().await.map_err(|error| {
            tracing::error!(%error, "the webhook endpoints are unknown to the strip of troubles");
            "Webhook endpoints"
        })?;
        let [mut disabled, mut missed, mut failing] = [const { Vec::new() }; 3];
        for (id, endpoint) in endpoints {
            let (Ok(endpoint), Some(Ok(state))) = (endpoint, states.remove(&id)) else {
                failing.push((id.to_string(), None));
                continue;
            };
            if let Some((by, at)) = endpoint.disabled(&state) {
                // An operator knows of the endpoints that an operator disabled.
                if by != DisabledBy::Operator {
                    disabled.push((id.to_string(), Some(at)));
                }
            } else if let Some(at) = state.progress.missed.map(|missed| missed.at)
                && times.now < at.saturating_add(MISSED_SHOWN)
            {
                missed.push((id.clone(), Some(at)));
            } else if state.progress.failures > 0 {
                failing.push((id.to_string(), state.progress.failing_since));
            }
        }
        let trouble = |endpoints: Vec<(String, Option<_>)>, word: &str| {
            let (name, since) = endpoints.first()?;
            let title = match endpoints.len() {
                1 => format!("1 endpoint {word}"),
                several => format!("{several} endpoints {word}"),
            };
            let more = html! { (name) @if let Some(since) = since { ", " (times.age(*since)) } @if endpoints.len() > 1 { ", and others" } };
            Some(Trouble { view: "endpoints", target: link("endpoints", &[]), urgency: Urgency::Today, title, more })
        };
        Ok([trouble(disabled, "disabled"), trouble(missed, "without some events"), trouble(failing, "failing")]
            .into_iter()
            .flatten()
            .collect())
    }
}

/// The sums of the stuck payments, if the run names all of them.
fn sums(run: &LastRun, stuck: u64) -> Markup {
    let named = run.outcome.as_ref().and_then(|outcome| outcome["stuckPayments"].as_array());
    let named = named.filter(|named| u64::try_from(named.len()) == Ok(stuck));
    let mut sums: BTreeMap<Currency, i128> = BTreeMap::new();
    for told in named.into_iter().flatten() {
        let (minor, currency) =
            (told["amountMinor"].as_i64(), told["currency"].as_str().and_then(|text| text.parse().ok()));
        let Some((minor, currency)) = minor.zip(currency) else { return html! {} };
        *sums.entry(currency).or_default() += i128::from(minor);
    }
    html! { @for (currency, sum) in sums { (money(sum, currency)) ". " } }
}

/// The trouble of a finding.
fn contradiction(finding: Finding) -> Trouble {
    let (stands, told) = (finding.stands.status(), State::from(finding.told.settlement).status());
    let more = html! { (word(stands)) ", then a result that says " (word(told)) ". " (amount(finding.money)) };
    let (target, title) = (payment_address(&finding.key), "1 contradiction".to_owned());
    Trouble { view: "waiting", target, urgency: Urgency::Now, title, more }
}

/// The time within which a job ends again, if nothing is paused: three periods or more. Alarms watch the other jobs.
fn period(job: Job) -> Option<TimeDelta> {
    match job {
        Job::Sweep => Some(TimeDelta::minutes(20)),
        Job::Redrive => Some(TimeDelta::hours(3)),
        Job::Report => Some(TimeDelta::minutes(50)),
        Job::Publish => Some(TimeDelta::minutes(10)),
        Job::Archive | Job::Recount | Job::Look | Job::Move => None,
    }
}

/// The fields of outcomes that are zero unless something needs a person.
const DAMAGE: [&str; 7] =
    ["failed", "shardsGivenUp", "shardsUnfinished", "unreadable", "journalMissed", "busMissed", "webhooksMissed"];

/// The trouble that a job found.
fn found_by(run: &LastRun, times: Times) -> Option<Trouble> {
    let number =
        |field: &str| run.outcome.as_ref().and_then(|outcome| outcome[field].as_u64()).filter(|number| *number > 0);
    match run.job {
        Job::Redrive => number("stuck").map(|stuck| Trouble {
            view: "waiting",
            target: link("waiting", &[]),
            urgency: Urgency::Now,
            title: format!("{} stuck", grouped(stuck.into())),
            more: html! { (sums(run, stuck)) "All requests sent, none follows. Counted " (times.brief(run.ended_at)) },
        }),
        Job::Look => number("waiting").map(|waiting| Trouble {
            view: "ahead",
            target: link("ahead", &[]),
            urgency: Urgency::Today,
            title: format!("{} to redate", grouped(waiting.into())),
            more: html! { "Scheduled on closed dates. Counted " (times.brief(run.ended_at)) },
        }),
        _ => None,
    }
}

impl Trouble {
    fn shown(&self) -> Markup {
        let (class, word) = match self.urgency {
            Urgency::Now => ("now", "Now"),
            Urgency::Today => ("", "Today"),
        };
        html! {
            li class=(class) data-view=(self.view) {
                a href=(self.target) { b { (self.title) } " " em { (word) } " " span { (self.more) } }
            }
        }
    }
}
