//! Short months, played in every run of the tests: they hold, they are the same each time, and weaknesses are found.

use anyhow::{Result, ensure};
use payments_month::{FaultCounts, FaultKind, RaisedAlarms, Settings, Weakness, play};

/// A month of a few days.
fn short(seed: u64) -> Settings {
    Settings { seed, days: 3, payments: 12, faults: true, weakness: None, outages: &[] }
}

#[test]
fn a_healthy_month_has_no_faults_and_every_payment_ends() -> Result<()> {
    let month = play(&Settings { faults: false, ..short(1) })?;
    assert_eq!(month.violations, [""; 0]);
    assert!(month.faults.values().all(|count| *count == 0), "{:?}", month.faults);
    assert_eq!(month.ends.values().sum::<u64>(), u64::try_from(month.asked)?, "{:?}", month.ends);
    assert_eq!(month.troubles, 0);
    assert_eq!(month.alarms, RaisedAlarms::new());
    Ok(())
}

#[test]
fn every_guarantee_holds_whatever_fails_and_a_seed_is_always_the_same_month() -> Result<()> {
    let first = play(&short(1))?;
    assert_eq!(first.violations, [""; 0]);
    let again = play(&short(1))?;
    assert_eq!((first.trace, first.faults.clone()), (again.trace, again.faults));
    let other = play(&short(2))?;
    assert_eq!(other.violations, [""; 0]);
    assert_ne!(again.seed, other.seed);
    let sum = |kind: &FaultKind| first.faults[kind] + other.faults[kind];
    let counts: FaultCounts = FaultKind::ALL.iter().map(|kind| (*kind, sum(kind))).collect();
    // Those that a day has many of.
    for kind in [
        FaultKind::Throttled,
        FaultKind::ServerError,
        FaultKind::RequestLost,
        FaultKind::ReplyLost,
        FaultKind::SlowCall,
        FaultKind::IndexLag,
        FaultKind::Killed,
        FaultKind::ShardRolled,
        FaultKind::ScheduleTwice,
        FaultKind::ScheduleLate,
        FaultKind::ScheduleMissed,
        FaultKind::FileFailed,
    ] {
        assert!(counts[&kind] > 0, "{kind:?} never happened: {counts:?}");
    }
    Ok(())
}

#[test]
fn weaknesses_are_found() -> Result<()> {
    for (weakness, sign) in [(Weakness::Unconditional, "and became"), (Weakness::NoCounters, "the counters show 0")] {
        let month = play(&Settings { weakness: Some(weakness), ..short(5) })?;
        let found = month.violations.iter().any(|violation| violation.contains(sign));
        ensure!(found, "{weakness:?}: {:?}", month.violations);
    }
    Ok(())
}
