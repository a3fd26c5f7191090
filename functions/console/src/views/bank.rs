//! The bank: its pauses, the last report, findings of the recount, and the log.

use std::collections::BTreeMap;

use maud::{Markup, html};
use payments_http::{Problem, Request};
use payments_model::{BusinessDate, Status};
use payments_store::{LogHead, ReportRun, StoreError, StoredEvidence};

use crate::config::Paused;
use crate::function::Console;
use crate::guides::{COUNTS_DRIFTED, EVENTS_MISSING, PAUSE, RECOUNT_STOPPED, RECOUNT_UNFINISHED, REPORT_ERRORS};
use crate::html::{day, fact, grouped, heading, instant, link, top};

/// The number of days back and ahead for which the recount's findings are shown. An operator can
/// recount other dates; only the function's log has those findings.
const DAYS_BACK: u32 = 400;
const DAYS_AHEAD: u32 = 800;

impl Console {
    /// The view of the bank. It reads the report's last run, the recount's findings, and the head of the log.
    pub(crate) async fn bank(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        request.query(&[])?;
        let today = self.today();
        let findings = self.recount_findings().await?;
        let (run, log) = (self.store.last_report_run().await?, self.store.log_head().await?);
        Ok(html! {
            (top(&heading("Bank"), self.times()))
            dl {
                (fact("Time", &html! { (instant(self.clock.now())) ", " (day(today)) " at the bank" }))
                (fact("Paused by the parameter", &paused(self.config.paused)))
                (fact("Last report", &html! { (report(run.as_ref())) ". " a href=(link("reports", &[])) { "Reports" } }))
                (fact("Event log", &event_log(log.as_ref())))
                (fact("Shards read", &html! { (self.config.read_shards.get()) }))
            }
            h2 { "Findings of the recount" }
            (found(&findings))
            (actions())
        })
    }
}

/// The runs without a choice: the action, and the text of its button.
const RUNS: [(&str, &str); 5] = [
    ("start-sweep", "Sweep…"),
    ("start-redrive", "Redrive…"),
    ("start-report", "Report…"),
    ("start-archive", "Archive…"),
    ("look-for-redates", "Count for a redate…"),
];

/// The forms that preview the actions on the whole bank.
fn actions() -> Markup {
    let preview = html! { input type="hidden" name="step" value="preview"; };
    let dates = |of: &str, labels: [&str; 2], required: bool| {
        html! {
            @for (name, label) in ["from", "to"].into_iter().zip(labels) {
                label for={ (of) "-" (name) } { (label) }
                input id={ (of) "-" (name) } name=(name) type="date" required[required];
            }
        }
    };
    html! {
        div class="acts" {
            h2 { "Cancel payments" }
            form data-action="cancel" {
                label for="payments" { "Ids of payments, one a line" }
                textarea id="payments" name="payments" rows="4" cols="38" maxlength="8000" required {}
                (preview)
                button { "Cancel…" }
            }
            h2 { "Start what a schedule starts" }
            div class="row" { @for (action, says) in RUNS { form data-action=(action) { (preview) button { (says) } } } }
            form data-action="start-recount" { (dates("recount", ["Dates from", "to (or neither)"], false)) (preview) button { "Recount…" } }
            h2 { "Move payments of closed dates" }
            form data-action="redate" {
                label for="calendar" { "Calendar" }
                input id="calendar" name="calendar" maxlength="20" size="5" required;
                (dates("redate", ["Closed dates from", "to"], true))
                (preview)
                button { "Redate…" }
            }
        }
    }
}

impl Console {
    /// The dates whose counters differ from a recount.
    pub(crate) async fn recount_findings(&self) -> Result<BTreeMap<BusinessDate, StoredEvidence>, StoreError> {
        let today = self.today();
        self.store.evidence(today.minus_days(DAYS_BACK), today.plus_days(DAYS_AHEAD)).await
    }

    /// The notice of a pause, for other views.
    pub(crate) fn paused_notice(&self) -> Markup {
        match self.config.paused {
            Paused::None => html! {},
            other => html! { p { "Paused: " (paused(other)) ". See " (PAUSE) "." } },
        }
    }
}

fn paused(paused: Paused) -> Markup {
    match paused {
        Paused::None => html! { "nothing" },
        Paused::Sending => {
            html! { span class="warn" { "sending" } ": nothing is swept, sent, reported, archived or recounted" }
        }
        Paused::Settling => {
            html! { span class="warn" { "settling" } ": the same, and settlement results wait in their queue" }
        }
    }
}

/// The last run of the report.
pub(crate) fn report(run: Option<&ReportRun>) -> Markup {
    let Some(run) = run else { return html! { "none yet" } };
    html! {
        "number " (run.number) ", committed " (instant(run.committed_at)) ": " (grouped(run.rows.into())) " settlements from "
        (instant(run.first_settled_at)) " to " (instant(run.last_settled_at)) ", " code { (run.csv.published) }
        @if !run.finished { ". " span class="warn" { "Not published yet" } ": the next run finishes it. See " (REPORT_ERRORS) }
    }
}

fn event_log(log: Option<&LogHead>) -> Markup {
    let Some(log) = log else { return html! { "none" } };
    html! {
        "epoch " (log.epoch) ", next segment " (grouped(log.next.into()))
        @if log.missed.is_some() { ". " span class="warn" { "Changes are missing" } ": the next segment says so. See " (EVENTS_MISSING) }
    }
}

fn found(findings: &BTreeMap<BusinessDate, StoredEvidence>) -> Markup {
    html! {
        @if findings.is_empty() { p { "None. This does not say that a recount ran: see the log of recount, and the alarms " (RECOUNT_STOPPED) " and " (RECOUNT_UNFINISHED) "." } } @else {
            div class="scroll" tabindex="0" { table {
                caption { "Dates whose counters differed from a recount. See " (COUNTS_DRIFTED) "." }
                thead { tr { th scope="col" { "Date" } th scope="col" { "First found" } th scope="col" { "Recounted" } } }
                tbody { @for (date, finding) in findings { (finding_row(*date, finding)) } }
            } }
        }
    }
}

fn finding_row(date: BusinessDate, finding: &StoredEvidence) -> Markup {
    let text = date.to_string();
    html! { tr {
        th scope="row" { a href=(link("day", &[("date", &text)])) { (day(date)) } }
        @match &finding.evidence {
            Some(evidence) => {
                td { (instant(evidence.found_at)) }
                td { @for status in Status::ALL { (status.as_str()) " " (grouped(evidence.recounted.count(status).into())) " " } }
            }
            None => { td { "unknown" } td class="warn" { "it cannot be read" } }
        }
    } }
}
