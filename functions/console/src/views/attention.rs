//! The troubles that need an operator. Every view shows them, and they lead to the views that mend them.

mod endpoints;
mod runs;
mod switch;
mod trouble;

use chrono::TimeDelta;
use futures::future::try_join;
use maud::{Markup, html};
use payments_http::{Problem, Request};
use payments_model::{Finding, State, Status, Switch};
use payments_store::{DateCounters, StoreError};

use crate::config::Paused;
use crate::function::Console;
use crate::guides::{
    API_ERRORS, CANCELLED_PROCESSED, CONFLICTING_RESULTS, COUNTS_DRIFTED, FOUR_EYES_BYPASSED, PAUSE, PAYMENTS_OVERDUE,
    Place,
};
use crate::html::{amount, grouped, link, payment_address, person_of, word};
use crate::operations::BankQueue;
use crate::runs::Runs;
use crate::times::Times;
use crate::told::standing;
use crate::views::attention::trouble::{Trouble, Until};
use crate::views::queues::{entry, letters};

/// The dates before today whose payments should all be claimed. Recounts and alarms find older ones.
const OVERDUE_DAYS: u32 = 31;

/// The most findings that are counted, and those that have a link.
const FINDINGS: u16 = 20;
const FINDINGS_SHOWN: usize = 6;

/// The time within which somebody repairs the counters of a date: `docs/alarms.md`, CountsDrifted.
const DRIFT_MENDED: TimeDelta = TimeDelta::days(2);

/// The troubles of one kind; an error if they could not be read.
type Found = Result<Vec<Trouble>, &'static str>;

impl Console {
    /// The strip of troubles, the most urgent first. It reads no shard of an index: the switch, the last run of each job, the open findings, the
    /// counters and held dates of the last month, the webhook endpoints with their places and the head of the log, the findings of the recount, the actions of
    /// the last hours, the sizes of the queues without a receiver, and the gate of the requests.
    pub(crate) async fn attention(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        request.query(&[])?;
        let times = self.times();
        let switch = self.known_switch().await;
        let held = switch.as_ref().ok().and_then(Option::as_ref);
        let (findings, letters, gate, endpoints, log, drift, runs, overdue, asked) = tokio::join!(
            self.contradictions(),
            self.dead_letters(),
            self.gate(),
            self.endpoints_and_states(),
            self.store.log_head(),
            self.drifted_dates(times),
            self.last_runs(),
            self.overdue(held, times),
            self.asked_for(times)
        );
        let is_known = runs.as_ref().is_ok_and(Runs::is_complete);
        let runs = runs.map_err(|error| unknown("Last runs", &error)).unwrap_or_default();
        // Without the head of the log, the endpoints have no number of events.
        let log = log.unwrap_or_else(|error| {
            unknown("Events that wait", &error);
            None
        });
        let endpoints = endpoints.map_err(|error| unknown("Webhook endpoints", &error));
        let endpoints = endpoints.map(|endpoints| endpoints::troubles(endpoints, log.as_ref(), &runs, times));
        let of_runs = runs::troubles(&runs, self.config.paused, times);
        let switch = switch.map_err(|error| unknown("Switch", &error)).map(|switch| switch::troubles(switch, times));
        let mut troubles: Vec<Trouble> = self.pause().into_iter().collect();
        for found in [switch, gate, overdue, Ok(of_runs), asked, findings, letters, endpoints, drift] {
            troubles.extend(found.unwrap_or_else(|what| vec![unread(what)]));
        }
        if !is_known {
            troubles.push(unread("Last runs"));
        }
        troubles.sort_by_key(Trouble::rank);
        Ok(html! {
            @if troubles.is_empty() {
                p id="attn" { b { "Nothing needs attention." } " " span class="quiet" { "Checked " (times.brief(times.now)) "." } }
            } @else {
                p id="attn" class="b" { "Needs attention" }
                ul { @for trouble in &troubles { (trouble.shown(times)) } }
            }
        })
    }

    fn pause(&self) -> Option<Trouble> {
        let (title, what) = match self.config.paused {
            Paused::None => return None,
            Paused::Sending => {
                ("Sending is paused", "Nothing is claimed, sent or reported. After a day, a redrive sends what waits")
            }
            Paused::Settling => (
                "Sending and settling are paused",
                "Nothing is claimed, sent or reported, and results wait. After a day, a redrive sends what waits",
            ),
        };
        let (title, more) = (title.to_owned(), html! { (what) });
        Some(Trouble { view: "bank", target: link("bank", &[]), runbook: PAUSE, until: None, title, more })
    }

    /// The results that contradict their payments, until an operator closes each.
    async fn contradictions(&self) -> Found {
        let open =
            self.store.open_findings(None, FINDINGS).await.map_err(|error| unknown("Contradicting results", &error))?;
        let number = open.findings.len();
        let mut findings = Vec::new();
        for finding in open.findings {
            match finding {
                Ok(finding) => findings.push(finding),
                Err(error) => tracing::error!(%error, "a finding cannot be read"),
            }
        }
        findings.sort_by_key(|finding| entry_of(finding).priority().0);
        let is_all = open.next.is_none() && findings.len() == number;
        // One for each payment, whose view has all of its findings.
        let mut payments: Vec<(Finding, usize)> = Vec::new();
        for finding in findings {
            match payments.iter_mut().find(|(known, _)| known.key == finding.key) {
                Some((_, others)) => *others += 1,
                None => payments.push((finding, 1)),
            }
        }
        payments.truncate(FINDINGS_SHOWN);
        let unseen = number - payments.iter().map(|(_, number)| number).sum::<usize>();
        let mut troubles: Vec<Trouble> = payments.into_iter().map(contradiction).collect();
        if unseen > 0 || open.next.is_some() {
            let title = format!("{unseen}{} more contradictions", if open.next.is_some() { " or" } else { "" });
            let more = html! { "They follow when these are closed; some may be unreadable" };
            // Unless all were read, one of the others may be the worst.
            let runbook = troubles.last().filter(|_| is_all).map_or(CANCELLED_PROCESSED, |last| last.runbook);
            troubles.push(Trouble { view: "waiting", target: link("alarms", &[]), runbook, until: None, title, more });
        }
        Ok(troubles)
    }

    async fn dead_letters(&self) -> Found {
        const WHAT: &str = "Dead letters";
        let states = BankQueue::UNRECEIVED.map(|queue| async move { (queue, self.operations.queue(queue).await) });
        let (mut parts, mut queues) = (Vec::new(), Vec::new());
        let mut all = 0;
        for (queue, state) in futures::future::join_all(states).await {
            let state = state.map_err(|error| {
                tracing::error!(%queue, ?error, "a queue is unknown to the strip of troubles");
                WHAT
            })?;
            if state.waiting > 0 {
                all += state.waiting;
                parts.push(format!("{} {}", grouped(state.waiting.into()), letters(queue)));
                queues.push(entry(queue));
            }
        }
        let Some(runbook) = queues.into_iter().min_by_key(|entry| entry.priority().0) else { return Ok(Vec::new()) };
        let title = format!("{} dead letter{}", grouped(all.into()), if all == 1 { "" } else { "s" });
        // SQS does not tell the age of its oldest message.
        let more = html! { (parts.join(", ")) ". SQS deletes each 14 days after it was sent" };
        Ok(vec![Trouble { view: "queues", target: link("queues", &[]), runbook, until: None, title, more }])
    }

    /// The gate of the request queue, if it is closed.
    async fn gate(&self) -> Found {
        let state = self.operations.queue(BankQueue::Requests).await.map_err(|error| {
            tracing::error!(?error, "the gate is unknown to the strip of troubles");
            "Gate of the request queue"
        })?;
        Ok(switch::gate(&state).into_iter().collect())
    }

    /// The payments that the limit of their date holds, and those of past dates that are neither claimed nor held, by the counters.
    async fn overdue(&self, switch: Option<&Switch>, times: Times) -> Found {
        let today = self.today();
        let from = today.minus_days(OVERDUE_DAYS);
        let read = try_join(self.store.counters(from, today), self.store.days_held(from, today)).await;
        let (counters, limited) = read.map_err(|error| unknown("Overdue payments", &error))?;
        let scheduled = |counters: &DateCounters| counters.counts.count(Status::Scheduled).max(0);
        let left = counters.iter().map(|(date, counters)| (*date, scheduled(counters))).filter(|(_, count)| *count > 0);
        let is_late = |date| date < today && !switch.is_some_and(|switch| switch.is_held(date));
        let (mut troubles, mut late) = (Vec::new(), Vec::new());
        for (date, error) in limited.iter().filter_map(|(date, held)| Some((date, held.as_ref().err()?))) {
            unknown("Claims of a date", error);
            troubles.push(switch::unknown_claims(*date));
        }
        for (date, count) in left {
            match limited.get(&date) {
                Some(Ok(since)) => troubles.push(switch::beyond_limit(date, *since, count, times)),
                Some(Err(_)) => {}
                None if is_late(date) => late.push((date, count)),
                None => {}
            }
        }
        let Some((first, _)) = late.first() else { return Ok(troubles) };
        let title = format!("{} overdue", grouped(late.iter().map(|(_, count)| i128::from(*count)).sum()));
        let more = html! { "Due before today and not claimed, the first on " (times.date(*first)) };
        let (target, runbook) = (link("waiting", &[]), PAYMENTS_OVERDUE);
        troubles.push(Trouble { view: "waiting", target, runbook, until: None, title, more });
        Ok(troubles)
    }

    /// The actions that wait for a second person.
    async fn asked_for(&self, times: Times) -> Found {
        let waiting = self.waiting_for_second().await.map_err(|error| unknown("Actions to approve", &error))?;
        let Some(first) = waiting.asked.last() else { return Ok(Vec::new()) };
        let number = waiting.asked.len();
        let title = format!("{number}{} to approve", if waiting.more { " or more" } else { "" });
        let more = html! { (person_of(&first.intent.by)) " asked at " (times.minute(first.intent.at)) ". It " (standing(first, times).more) };
        let (target, runbook) = (link("audit", &[]), FOUR_EYES_BYPASSED);
        Ok(vec![Trouble { view: "audit", target, runbook, until: None, title, more }])
    }

    async fn drifted_dates(&self, times: Times) -> Found {
        let findings = self.recount_findings().await.map_err(|error| unknown("Miscounted dates", &error))?;
        let Some(first) = findings.keys().next() else { return Ok(Vec::new()) };
        let title = match findings.len() {
            1 => "1 date miscounted".to_owned(),
            several => format!("{several} dates miscounted"),
        };
        let more = html! { (times.date(*first)) @if findings.len() > 1 { " and others" } ": the counters differ from a recount" };
        let found_at =
            findings.values().filter_map(|found| found.evidence.as_ref()).map(|evidence| evidence.found_at).min();
        let until = found_at.map(|at| Until::At(at.saturating_add(DRIFT_MENDED)));
        Ok(vec![Trouble { view: "bank", target: link("bank", &[]), runbook: COUNTS_DRIFTED, until, title, more }])
    }
}

/// Logs why a part is unknown, and returns its name.
fn unknown(what: &'static str, error: &StoreError) -> &'static str {
    tracing::error!(what, %error, "a part is unknown to the strip of troubles");
    what
}

/// The trouble that a part could not be read.
fn unread(what: &'static str) -> Trouble {
    let more = html! { "They could not be read. The function's log says why" };
    let (target, title) = (link("bank", &[]), format!("{what} unknown"));
    Trouble { view: "bank", target, runbook: API_ERRORS, until: None, title, more }
}

/// The alarm of a finding. Money that moved for a cancelled payment is wrong.
fn entry_of(finding: &Finding) -> Place {
    let told = State::from(finding.told.settlement.clone()).status();
    let is_wrong = finding.stands.status() == Status::Cancelled && told == Status::Processed;
    if is_wrong { CANCELLED_PROCESSED } else { CONFLICTING_RESULTS }
}

/// The trouble of a finding.
fn contradiction((finding, number): (Finding, usize)) -> Trouble {
    let runbook = entry_of(&finding);
    let (stands, told) = (finding.stands.status(), State::from(finding.told.settlement).status());
    let more = html! { (word(stands)) ", then a result that says " (word(told)) ". " (amount(finding.money)) };
    let title = if number == 1 { "1 contradiction".to_owned() } else { format!("{number} contradictions") };
    let target = payment_address(&finding.key);
    Trouble { view: "waiting", target, runbook, until: None, title, more }
}
