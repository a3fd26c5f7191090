//! The bank: the last run of each function and its start, findings of the recount, the last report, and the log.

use std::collections::BTreeMap;

use maud::{Markup, html};
use payments_http::{Problem, Request};
use payments_model::{BusinessDate, DayCounts, Status};
use payments_store::{Job, LogHead, ReportRun, StoreError, StoredEvidence};

use crate::config::Paused;
use crate::function::Console;
use crate::guides::{COUNTS_DRIFTED, EVENTS_MISSING, PAUSE, RECOUNT_STOPPED, RECOUNT_UNFINISHED, REPORT_ERRORS};
use crate::html::{copied, fact, grouped, heading, link, top, word};
use crate::panel::{ACTIONS, cards, empty, hidden, opens, panel};
use crate::runs::{Runs, end, last, name, purpose};
use crate::times::Times;
use crate::views::switch::switched;

/// The number of days back and ahead for which the recount's findings are shown. An operator can
/// recount other dates; only the function's log has those findings.
const DAYS_BACK: u32 = 400;
const DAYS_AHEAD: u32 = 800;

/// The jobs, and the actions and buttons that start them.
const JOBS: [(Job, Option<(&str, &str)>); 8] = [
    (Job::Sweep, Some(("start-sweep", "Sweep…"))),
    (Job::Redrive, Some(("start-redrive", "Redrive…"))),
    (Job::Report, Some(("start-report", "Report…"))),
    (Job::Archive, Some(("start-archive", "Archive…"))),
    // Its form is below: it has dates.
    (Job::Recount, None),
    (Job::Look, Some(("look-for-redates", "Count…"))),
    (Job::Move, None),
    (Job::Publish, None),
];

impl Console {
    /// The view of the bank. It reads the switch, the last runs, the report's last run, the recount's findings, and the head of the log.
    pub(crate) async fn bank(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        request.query(&[])?;
        let times = self.times();
        let (findings, runs) = (self.recount_findings().await?, self.last_runs().await?);
        let (report, log) = (self.store.last_report_run().await?, self.store.log_head().await?);
        let switch = self.known_switch().await?;
        Ok(html! {
            (top(&heading("Bank"), times))
            (self.paused_notice())
            div class="cols" {
                div class="stack" {
                    (last_runs(&runs, times))
                    (found(&findings, &runs, times))
                    (self.forms())
                }
                div class="stack" {
                    (panel(&html! { "Now" }, &html! {}, &html! {
                        dl class="facts" {
                            (fact("Time", &times.at(times.now)))
                            (fact("Paused", &paused(self.config.paused)))
                            (fact("Shards", &html! { (self.config.read_shards.get()) " are read" }))
                        }
                    }))
                    (switched(switch.as_ref(), times))
                    (panel(&html! { "Last report" }, &html! { a href=(link("reports", &[])) { "All reports" } }, &reported(report.as_ref(), times)))
                    (panel(&html! { "Event log" }, &html! {}, &event_log(log.as_ref(), times)))
                }
            }
        })
    }

    /// The dates whose counters differ from a recount.
    pub(crate) async fn recount_findings(&self) -> Result<BTreeMap<BusinessDate, StoredEvidence>, StoreError> {
        let today = self.today();
        self.store.evidence(today.minus_days(DAYS_BACK), today.plus_days(DAYS_AHEAD)).await
    }

    /// The notice of a pause.
    pub(crate) fn paused_notice(&self) -> Markup {
        let (what, more) = match self.config.paused {
            Paused::None => return html! {},
            Paused::Sending => ("Sending is paused", "Nothing is swept, sent, reported, archived or recounted."),
            Paused::Settling => (
                "Sending and settling are paused",
                "Nothing is swept, sent, reported, archived or recounted, and settlement results wait in their queue.",
            ),
        };
        html! { div class="notice" { h2 { (what) } p { (more) " See " (PAUSE) "." } } }
    }

    /// The forms of actions that need more than a button.
    fn forms(&self) -> Markup {
        let calendars = self.config.business_days.calendars();
        let dates = |is_required: bool| {
            html! {
                label { "From" input name="from" type="date" required[is_required]; }
                label { "To" input name="to" type="date" required[is_required]; }
            }
        };
        let form = |action: &str, says: &str, class: &str, fields: &Markup| {
            html! {
                form data-action=(action) class="pad" {
                    div class="fields" { (fields) div class="row all" { button class=[(!class.is_empty()).then_some(class)] { (says) } } }
                    (hidden("step", "preview"))
                }
            }
        };
        let select = html! {
            label { "Calendar" select name="calendar" required { @for id in calendars.keys() { option value=(id) { (id) } } } }
            (dates(true))
        };
        html! {
            div class="stack acts" {
                (panel(&html! { "Move payments of closed dates" }, &html! { "Count them first" }, &html! {
                    @if calendars.is_empty() { (empty(&html! { "No calendar is in use, so no date is closed." })) }
                    @else { (form("redate", "Redate…", "danger", &select)) }
                }))
                (panel(&html! { "Recount" }, &html! { "Without dates, those of each night" }, &form("start-recount", "Recount…", "", &dates(false))))
                (panel(&html! { "Repair counters" }, &html! { "A second person approves it" }, &form("repair-counters", "Repair…", "danger", &dates(true))))
                (panel(&html! { "Cancel payments by id" }, &html! { "Up to 100" }, &html! {
                    form data-action="cancel" class="pad" {
                        label { "Ids, one a line" textarea name="payments" rows="4" maxlength="8000" required {} }
                        (hidden("step", "preview"))
                        div class="row" { button class="danger" { "Cancel payments…" } }
                    }
                }))
            }
        }
    }
}

fn paused(paused: Paused) -> Markup {
    match paused {
        Paused::None => html! { "nothing" },
        Paused::Sending => html! { span class="pill warn" { "Sending" } },
        Paused::Settling => html! { span class="pill warn" { "Sending and settling" } },
    }
}

fn last_runs(runs: &Runs, times: Times) -> Markup {
    let columns = [("Job", ""), ("Ended", ""), ("Outcome", ""), ("Start", ACTIONS)];
    let row = |job: Job, start: Option<(&str, &str)>| {
        let run = runs.job(job);
        html! { tr {
            th scope="row" { (name(job)) small { (purpose(job)) } }
            @match run {
                Some(run) => {
                    td class="end" { (times.brief(run.ended_at)) small { (times.age(run.ended_at)) } }
                    td class="all" { (end(run)) }
                }
                None => {
                    td class="end quiet" { @if runs.may_be_unreadable(job) { "unreadable" } @else { "not yet" } }
                    td class="none" {}
                }
            }
            @match start {
                Some((action, says)) => { td class="act" { span class="row" { (opens(action, says, "", &[])) } } },
                None => { td class="none" {} },
            }
        } }
    };
    let rows = html! { @for (job, start) in JOBS { @if start.is_some() || job == Job::Recount || runs.job(job).is_some() { (row(job, start)) } } };
    panel(
        &html! { "Last runs" },
        &html! { "A second run beside a scheduled one can double the pace" },
        &cards("The last run of each job", &columns, &rows),
    )
}

/// The last run of the report.
pub(crate) fn reported(run: Option<&ReportRun>, times: Times) -> Markup {
    let Some(run) = run else { return empty(&html! { b { "No report yet:" } " nothing was settled." }) };
    let name = run.csv.published.rsplit('/').next().unwrap_or_default();
    let name = name.split('.').next().unwrap_or_default();
    html! {
        dl class="facts" {
            (fact("Report", &html! {
                a class="b" href=(link("report", &[("name", name)])) { (run.number) }
                @if !run.finished { " " span class="pill warn" { "Not published yet" } small { "the next run finishes it. See " (REPORT_ERRORS) } }
            }))
            (fact("Committed", &times.aged(run.committed_at)))
            (fact("Settlements", &html! { (grouped(run.rows.into())) }))
            (fact("Settled", &html! { "from " (times.at(run.first_settled_at)) " to " (times.at(run.last_settled_at)) }))
            (fact("File", &copied(&run.csv.published)))
        }
    }
}

fn event_log(log: Option<&LogHead>, times: Times) -> Markup {
    let Some(log) = log else { return empty(&html! { b { "The log is empty:" } " no payment was created." }) };
    let segments = |next: u64| format!("{} segments", grouped(next.saturating_sub(1).into()));
    let (kept, _) = log.kept_at(log.start(times.now)).unzip();
    html! {
        dl class="facts" {
            (fact("Epoch", &html! { span class="id" { (log.epoch) } " " span class="quiet" { (segments(log.next)) } }))
            @for (epoch, next) in &log.ended {
                (fact("Ended", &html! { span class="id" { (epoch) } " " span class="quiet" { (segments(*next)) ", ended by a restore" } }))
            }
            @if let Some(kept) = kept { (fact("Kept since", &html! { (times.date(times.zone.date_of(kept))) })) }
            @if let Some(missed) = &log.missed {
                (fact("Missing", &html! {
                    span class="pill stop" { "Changes are missing" }
                    small {
                        @if let Some(since) = missed.since { "since " (times.at(since)) " " }
                        "until " (times.at(missed.until)) "; the next segment says so. See " (EVENTS_MISSING)
                    }
                }))
            }
        }
    }
}

fn found(findings: &BTreeMap<BusinessDate, StoredEvidence>, runs: &Runs, times: Times) -> Markup {
    let columns = [("Date", ""), ("First found", ""), ("Recounted", "")];
    let content = html! {
        @if findings.is_empty() {
            (empty(&html! { @if runs.job(Job::Recount).is_some() { b { "No date is miscounted." } " " } (last(runs, Job::Recount, times)) " If none runs, see " (RECOUNT_STOPPED) " and " (RECOUNT_UNFINISHED) "." }))
        } @else {
            (cards("Dates whose counters differ from a recount", &columns, &html! { @for (date, finding) in findings { (finding_row(*date, finding, times)) } }))
        }
    };
    panel(
        &html! { "Findings of the recount" },
        &html! { @if !findings.is_empty() { "See " (COUNTS_DRIFTED) } },
        &content,
    )
}

/// The payments of a date by status.
pub(crate) fn counts_in_words(counts: &DayCounts) -> String {
    let known = Status::ALL.iter().map(|status| (counts.count(*status), word(*status).to_lowercase()));
    let known = known.filter(|(count, _)| *count != 0);
    let known: Vec<_> = known.map(|(count, word)| format!("{} {word}", grouped(count.into()))).collect();
    if known.is_empty() { "no payment".to_owned() } else { known.join(", ") }
}

fn finding_row(date: BusinessDate, finding: &StoredEvidence, times: Times) -> Markup {
    let text = date.to_string();
    html! { tr {
        th scope="row" { a href=(link("day", &[("date", &text)])) { (times.date(date)) } }
        @match &finding.evidence {
            Some(evidence) => {
                td class="end" { (times.at(evidence.found_at)) small { (times.age(evidence.found_at)) } }
                td class="all" { (counts_in_words(&evidence.recounted)) }
            }
            None => { td class="end quiet" { "unknown" } td class="all" { span class="pill warn" { "Unreadable" } } }
        }
    } }
}
