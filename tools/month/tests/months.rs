//! Short months, played in every run of the tests: they hold, they are the same each time, and weaknesses are found.

use anyhow::{Result, ensure};
use payments_month::{Case, FaultCounts, FaultKind, RaisedAlarms, SEEDS, Settings, Weakness, play, table};

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
        FaultKind::Hostile,
    ] {
        assert!(counts[&kind] > 0, "{kind:?} never happened: {counts:?}");
    }
    Ok(())
}

/// The months that show each weakness, as `cargo month --find-weaknesses tools/month/tests/weaknesses.json` wrote them.
fn cases() -> Result<Vec<Case>> {
    Ok(serde_json::from_str(include_str!("weaknesses.json"))?)
}

/// After a change of the functions a seed plays another month, so other seeds may be needed: at most as many as a search
/// may need.
#[test]
fn each_weakness_is_shown_by_its_shrunk_case() -> Result<()> {
    let cases = cases()?;
    let mut missed = Vec::new();
    for weakness in Weakness::all() {
        let Some(case) = cases.iter().find(|case| case.weakness == *weakness) else {
            missed.push(weakness.name());
            continue;
        };
        let mut seeds = std::iter::once(case.seed).chain((1..=SEEDS).filter(|seed| *seed != case.seed));
        let mut is_shown = false;
        while let Some(seed) = seeds.next().filter(|_| !is_shown) {
            is_shown = case.is_shown_by(seed)?;
        }
        missed.extend((!is_shown).then(|| weakness.name()));
    }
    ensure!(missed.is_empty(), "not shown by their cases in {SEEDS} seeds: {missed:?}");
    Ok(())
}

#[test]
fn the_table_of_weaknesses_is_that_of_the_search() -> Result<()> {
    let document = include_str!("../../../docs/simulation.md");
    ensure!(document.contains(&table(&cases()?)), "docs/simulation.md has another table:\n{}", table(&cases()?));
    Ok(())
}
