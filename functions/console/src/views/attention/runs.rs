//! Troubles of jobs: those that their last runs found, and runs that fail, are incomplete, or do not begin.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use maud::{Markup, html};
use payments_model::Currency;
use payments_store::{Job, LastRun};

use super::trouble::{Trouble, Until};
use crate::config::Paused;
use crate::guides::{
    ARCHIVE_ERRORS, ARCHIVE_OVERDUE, BUS_MISSED, DATES_UNREADABLE, FUNCTION_ERRORS, JOURNAL_BEHIND, JOURNAL_MISSED,
    PAYMENTS_OVERDUE, PAYMENTS_STUCK_PENDING, Place, RECOUNT_ERRORS, RECOUNT_UNFINISHED, REDATE_ERRORS,
    REDATE_UNFINISHED, REDRIVE_FAILURES, REDRIVE_UNFINISHED, REPORT_ERRORS, REPORT_FAILURES, REPORTS_LATE, SEAL_BEHIND,
    SEAL_DIFFERS, SEAL_ERRORS, SWEEP_FAILURES, WAITING_FOR_REDATE, WEBHOOKS_MISSED, WRITE_THROTTLES,
};
use crate::html::{grouped, link, money};
use crate::runs::{Runs, name, number, waiting_dates};
use crate::times::Times;

/// The troubles of the last runs.
pub(super) fn troubles(runs: &Runs, paused: Paused, times: Times) -> Vec<Trouble> {
    let of = |run| state(run, paused, times).into_iter().chain(found_by(run, runs, times));
    runs.all().flat_map(of).collect()
}

/// The trouble of a job that does not run, fails, or leaves something out.
fn state(run: &LastRun, paused: Paused, times: Times) -> Option<Trouble> {
    let is_paused = paused != Paused::None && run.job != Job::Publish;
    let damage = damage(run.job).iter().find(|(field, _)| told(run, field) > 0);
    let (state, runbook, more) = if let Some((period, runbook)) = period(run.job)
        && run.ended_at.saturating_add(period) < times.now
        && !is_paused
    {
        ("does not run", runbook, html! { "It ended last " (times.at(run.ended_at)) })
    } else if run.failed.is_some() {
        ("failed", failed(run.job), html! { "It ended " (times.brief(run.ended_at)) ". Its error is in Bank" })
    } else if let Some((_, runbook)) = damage {
        ("is incomplete", *runbook, html! { "It ended " (times.brief(run.ended_at)) " without some. Bank says which" })
    } else {
        return None;
    };
    let title = format!("{} {state}", name(run.job));
    Some(Trouble { view: "bank", target: link("bank", &[]), runbook, until: None, title, more })
}

fn told(run: &LastRun, field: &str) -> u64 {
    run.outcome.as_ref().map_or(0, |outcome| number(outcome, field))
}

/// The time within which a job ends again, if nothing is paused: three periods or more. Alarms watch the other jobs.
fn period(job: Job) -> Option<(TimeDelta, Place)> {
    match job {
        Job::Sweep => Some((TimeDelta::minutes(20), PAYMENTS_OVERDUE)),
        Job::Redrive => Some((TimeDelta::hours(3), REDRIVE_FAILURES)),
        Job::Report => Some((TimeDelta::minutes(50), REPORTS_LATE)),
        Job::Publish => Some((TimeDelta::minutes(10), JOURNAL_BEHIND)),
        Job::Archive | Job::Recount | Job::Look | Job::Move | Job::Seal => None,
    }
}

/// The alarm of a run that fails.
fn failed(job: Job) -> Place {
    match job {
        Job::Sweep => FUNCTION_ERRORS,
        Job::Redrive => REDRIVE_UNFINISHED,
        Job::Report => REPORT_ERRORS,
        Job::Publish => JOURNAL_BEHIND,
        Job::Archive => ARCHIVE_ERRORS,
        Job::Recount => RECOUNT_ERRORS,
        Job::Look | Job::Move => REDATE_ERRORS,
        Job::Seal => SEAL_ERRORS,
    }
}

/// The fields of a job's outcome that are zero unless something needs a person, each with its alarm.
fn damage(job: Job) -> &'static [(&'static str, Place)] {
    match job {
        Job::Sweep => &[("shardsGivenUp", WRITE_THROTTLES), ("failed", SWEEP_FAILURES)],
        Job::Redrive => &[("failed", REDRIVE_FAILURES), ("shardsUnfinished", REDRIVE_UNFINISHED)],
        Job::Report => &[("failed", REPORT_FAILURES)],
        Job::Archive => &[("failed", ARCHIVE_OVERDUE), ("shardsGivenUp", ARCHIVE_OVERDUE)],
        Job::Recount => &[("unreadableEntries", DATES_UNREADABLE), ("datesLeft", RECOUNT_UNFINISHED)],
        Job::Look | Job::Move => &[("unreadable", REDATE_UNFINISHED)],
        Job::Seal => &[("unreadable", SEAL_BEHIND), ("sealBehind", SEAL_BEHIND), ("sealDiffers", SEAL_DIFFERS)],
        Job::Publish => {
            &[("journalMissed", JOURNAL_MISSED), ("busMissed", BUS_MISSED), ("webhooksMissed", WEBHOOKS_MISSED)]
        }
    }
}

/// The trouble that a job found.
fn found_by(run: &LastRun, runs: &Runs, times: Times) -> Option<Trouble> {
    let field = match run.job {
        Job::Redrive => "stuck",
        Job::Look => "waiting",
        _ => return None,
    };
    let number = Some(told(run, field)).filter(|number| *number > 0)?;
    let counted = html! { "Counted " (times.brief(run.ended_at)) };
    Some(if run.job == Job::Redrive {
        Trouble {
            view: "waiting",
            target: link("waiting", &[]),
            runbook: PAYMENTS_STUCK_PENDING,
            until: None,
            title: format!("{} stuck", grouped(number.into())),
            more: html! { (sums(run, number)) "All requests sent, none follows. " (counted) },
        }
    } else {
        let first = waiting_dates(runs).into_iter().next();
        Trouble {
            view: "ahead",
            target: link("ahead", &[]),
            runbook: WAITING_FOR_REDATE,
            until: first.map(Until::Date),
            title: format!("{} to redate", grouped(number.into())),
            more: html! { "Scheduled on closed dates" @if let Some(first) = first { ", the first " (times.date(first)) } ". " (counted) },
        }
    })
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
