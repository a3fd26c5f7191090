//! Short months, which `just slow` plays: the guarantees hold, a seed plays the same month, and weaknesses are found.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, anyhow, ensure};
use payments_allocator as _;
use payments_lab::{Case, FaultCounts, FaultKind, RaisedAlarms, SEEDS, Settings, Weakness, play};

/// A month of a few days.
fn short(seed: u64) -> Settings {
    Settings::new(seed, 3, 12)
}

#[test]
fn a_healthy_month_has_no_faults_and_every_payment_ends() -> Result<()> {
    let month = play(&short(1).healthy())?;
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
    let counts: FaultCounts = FaultKind::all().iter().map(|kind| (*kind, sum(kind))).collect();
    // The kinds that happen often each day.
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
        FaultKind::Hostile,
    ] {
        assert!(counts[&kind] > 0, "{kind:?} never happened: {counts:?}");
    }
    Ok(())
}

/// The tools of a restore ask what the functions do not ask.
#[test]
fn a_month_with_a_restore_is_always_the_same_too() -> Result<()> {
    let settings = Settings::new(4, 8, 2);
    let (first, again) = (play(&settings)?, play(&settings)?);
    assert_eq!(first.violations, [""; 0]);
    assert_eq!(first.faults[&FaultKind::Restored], 1);
    assert_eq!(first.trace, again.trace);
    Ok(())
}

/// The months that show each weakness, as `cargo month --find-weaknesses lab/tests/weaknesses.json` wrote them.
fn cases() -> Result<Vec<Case>> {
    Ok(serde_json::from_str(include_str!("weaknesses.json"))?)
}

/// After a change of the functions a seed plays another month, so other seeds may be needed: at most as many as a
/// search may need. Such seeds are printed: `cargo month --find-weaknesses` then finds a better case.
#[test]
fn each_weakness_is_shown_by_its_shrunk_case() -> Result<()> {
    let (cases, next) = (cases()?, AtomicUsize::new(0));
    let workers = std::thread::available_parallelism()?.get();
    let missed = std::thread::scope(|scope| {
        let worker = || {
            let mut missed = Vec::new();
            while let Some(weakness) = Weakness::all().get(next.fetch_add(1, Ordering::Relaxed)) {
                let case = cases.iter().find(|case| case.weakness == *weakness);
                let seed = case.map(seed_that_shows).transpose()?.flatten();
                missed.extend(seed.is_none().then(|| weakness.name()));
                if let Some((case, seed)) = case.zip(seed).filter(|(case, seed)| case.seed != *seed) {
                    println!("{} is shown by seed {seed}, and not by {}", weakness.name(), case.seed);
                }
            }
            anyhow::Ok(missed)
        };
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let ended = started.into_iter().map(|worker| worker.join().map_err(|_| anyhow!("a worker panicked"))?);
        ended.collect::<Result<Vec<_>>>()
    })?;
    let missed = missed.concat();
    ensure!(missed.is_empty(), "not shown by their cases in {SEEDS} seeds: {missed:?}");
    Ok(())
}

/// The first seed whose month shows a weakness; that of the case is the first.
fn seed_that_shows(case: &Case) -> Result<Option<u64>> {
    for seed in std::iter::once(case.seed).chain((1..=SEEDS).filter(|seed| *seed != case.seed)) {
        if case.is_shown_by(seed)? {
            return Ok(Some(seed));
        }
    }
    Ok(None)
}
