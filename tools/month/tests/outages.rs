//! Planned outages: each raises its own alarms in time, the runbook's actions end them, and no guarantee is broken.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use payments_month::{Outage, Settings, play};

/// Plays a short month with an outage, and says what is wrong with it.
fn wrong(outage: Outage, days: u32, payments: usize) -> Result<Vec<String>> {
    let settings = Settings { seed: 3, days, payments, faults: false, weakness: None, outage: Some(outage) };
    let month = play(&settings)?;
    let (began, expected) = (month.outage_at.context("no outage")?, outage.expected());
    let mut wrong: Vec<String> = month.violations.clone();
    let own: BTreeSet<&str> = expected.must.iter().map(|(alarm, _)| *alarm).chain(expected.may).collect();
    for (alarm, times) in &month.alarms {
        if !own.contains(alarm.as_str()) || times.iter().any(|raised| raised.from < began) {
            wrong.push(format!("{alarm} went off: {times:?}"));
        }
        if times.iter().any(|raised| raised.to.is_none()) {
            wrong.push(format!("{alarm} stays on: {times:?}"));
        }
    }
    for (alarm, within) in expected.must {
        let first = month.alarms.get(alarm).and_then(|times| times.iter().find_map(|raised| raised.by_both));
        if first.is_none_or(|at| at - began > within) {
            wrong.push(format!("{alarm} went off at {first:?}, and not within {} minutes", within.num_minutes()));
        }
    }
    Ok(wrong.into_iter().map(|wrong| format!("{outage:?}: {wrong}")).collect())
}

/// Plays outages, each in a month of its own, and fails if anything is wrong in one of them.
fn all(outages: &[Outage], days: u32, payments: usize) -> Result<()> {
    let mut found = Vec::new();
    for outage in outages {
        found.extend(wrong(*outage, days, payments)?);
    }
    ensure!(found.is_empty(), "{found:#?}");
    Ok(())
}

#[test]
fn what_stands_still_is_resumed() -> Result<()> {
    use Outage as O;
    all(
        &[O::StreamStandsStill, O::DispatchDisabled, O::SettleDisabled, O::NoSweeps, O::NoRedrives, O::ServiceAway],
        2,
        12,
    )
}

#[test]
fn what_no_longer_runs_at_night_is_resumed() -> Result<()> {
    all(&[Outage::NoArchive, Outage::NoRecount, Outage::ArchiveFails], 3, 8)
}

#[test]
fn what_fails_is_mended() -> Result<()> {
    all(&[Outage::ReportsFail, Outage::ApiFails], 2, 12)?;
    all(&[Outage::WritesThrottled], 2, 40)
}

#[test]
fn what_the_transaction_service_gets_wrong_changes_nothing() -> Result<()> {
    all(&[Outage::UnknownResults, Outage::Contradictions, Outage::CancelledProcessed], 2, 12)
}

#[test]
fn what_is_damaged_by_hand_is_corrected_by_hand() -> Result<()> {
    use Outage as O;
    all(&[O::ScheduledDamaged, O::PendingDamaged, O::SettledDamaged, O::AmountDamaged, O::Disagreement], 2, 12)
}

/// The only outage that loses something: what the counters never saw. A recount and a repair make up for it.
#[test]
fn counters_are_repaired_after_records_were_trimmed() -> Result<()> {
    all(&[Outage::RecordsTrimmed], 2, 16)
}

#[test]
fn every_outage_is_played_here() -> Result<()> {
    let source = include_str!("outages.rs");
    for outage in Outage::ALL {
        let name = format!("{outage:?}");
        ensure!(source.contains(&format!("O::{name}")) || source.contains(&format!("Outage::{name}")), "{name}");
    }
    Ok(())
}
