//! The feed of a million payments of 8 KB in half an hour, swept and settled as it comes, if each partition key had a
//! partition of its own: which designs could be fast enough, and which key limits the others whatever the placement.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use payments_boot::Lookup;
use payments_machine::payload::DataKind;

use crate::backends::{Model, PAYMENTS, Scenario, Throttled, ids, measure, units_of_an_account};
use crate::buckets::{Name, Placement};
use crate::design::Design;
use crate::document;
use crate::feed::{Feed, Timeline, simulate};
use crate::life::{Accounts, Write};
use crate::other_designs::{BY_DATE, TEXTBOOK};

/// The feed's rate: a million in half an hour.
pub(crate) const PER_SECOND: u32 = 556;

/// The duration of the feed.
pub(crate) const FEED_SECONDS: u64 = 30 * 60;

/// The seconds after the feed in which sweep and settlement must be done.
const SPARE_SECONDS: u64 = 60;

/// The part of a design that is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Payments are created.
    Feed,
    /// They are also swept and settled.
    Whole,
}

/// The timeline of a simulation, with the names of its limits.
#[derive(Debug)]
struct Found {
    timeline: Timeline,
    /// The partition key with the most writes, and its units for each second of the feed.
    hottest: (Name, u64),
    limit: Option<Name>,
}

impl Found {
    fn passes(&self) -> bool {
        self.timeline.created_after <= FEED_SECONDS && self.timeline.done_after <= FEED_SECONDS + SPARE_SECONDS
    }
}

fn feed(design: Design, part: Part, payments: u32) -> Feed {
    let creates = design.writes().iter().filter(|(write, _)| matches!(write, Write::Details | Write::Head)).count();
    let writes = if part == Part::Feed { creates } else { design.writes().len() };
    let writes = design.writes().iter().take(writes).map(|(_, after)| *after).collect();
    Feed { payments, per_second: PER_SECOND, writes, creates }
}

fn find(design: Design, mut model: Model, part: Part) -> Result<Found> {
    let timeline = simulate(&feed(design, part, PAYMENTS), &mut model)?;
    let (name, units) = model.buckets.hottest_key().context("no key was written to")?;
    let hottest = (name.clone(), units * u64::from(PER_SECOND) / u64::from(PAYMENTS));
    let limit = timeline.limit().map(|number| model.buckets.name(number).clone());
    Ok(Found { hottest, limit, timeline })
}

/// This project's design. The other scenarios differ from it in one thing.
pub(crate) const OURS: Scenario = Scenario {
    title: "this design with 10 shards (it has 32)",
    design: Design::Ours,
    shards: "10",
    accounts: Accounts::Many,
    placement: Placement::Apart,
    kind: DataKind::Incompressible,
    passes: [true, true],
    limit: None,
};

static SCENARIOS: [Scenario; 5] = [
    OURS,
    Scenario {
        title: "one shard",
        shards: "1",
        passes: [true, false],
        // (1 + 2 + 2) x 556
        limit: Some(("payments/due", Some("0"), 2_780)),
        ..OURS
    },
    Scenario {
        title: "the date as partition key of the index",
        design: Design::Other(BY_DATE),
        passes: [true, false],
        limit: Some(("by-date/due", Some("2026-11-20"), 2_780)),
        ..OURS
    },
    Scenario {
        title: "the whole item in an index of everything, 5 shards",
        design: Design::Other(TEXTBOOK),
        shards: "5",
        passes: [true, false],
        // (8 + 16 + 16) x 556 / 5, on the busiest shard
        limit: Some(("textbook/due", None, 4_448)),
        ..OURS
    },
    Scenario {
        title: "one account for everything",
        accounts: Accounts::One,
        passes: [true, false],
        // (1 + 1 + 1) x 556
        limit: Some(("payments", Some("ACCT#account-00000"), 1_668)),
        ..OURS
    },
];

pub(crate) fn minutes(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[test]
fn this_design_is_fast_enough_and_the_others_have_known_limits() -> Result<()> {
    let mut table = String::from(
        "| | feed alone: all created | with sweep and settlement: all created | all settled | the hottest key | its \
         units a second | the limit |\n|---|---|---|---|---|---|---|\n",
    );
    let mut faults = Vec::new();
    for (scenario, [feed, whole]) in SCENARIOS.iter().zip(find_all()?) {
        let title = scenario.title;
        let passes = [feed.passes(), whole.passes()];
        if passes != scenario.passes {
            faults.push(format!("{title}: {passes:?}, not {:?}", scenario.passes));
        }
        faults.extend(scenario.limit.and_then(|limit| difference(title, limit, &whole)));
        let limit = whole.limit.as_ref().filter(|_| !whole.passes()).map_or("–".to_owned(), ToString::to_string);
        let (hottest, units) = &whole.hottest;
        let [fed, created, done] =
            [feed.timeline.created_after, whole.timeline.created_after, whole.timeline.done_after].map(minutes);
        writeln!(table, "| {title} | {fed} | {created} | {done} | {hottest} | {units} | {limit} |")?;
    }
    assert!(faults.is_empty(), "{}\n\n{table}", faults.join("\n"));
    document::holds("keys", &table)
}

/// Simulates all scenarios, each without and with sweep and settlement.
fn find_all() -> Result<Vec<[Found; 2]>> {
    let ids = &ids(PAYMENTS)?;
    std::thread::scope(|scope| {
        let find_both = |scenario: &'static Scenario| {
            scope.spawn(move || {
                let model = Model::of(scenario, &measure(scenario)?, ids)?;
                let design = scenario.design;
                anyhow::Ok([find(design, model.clone(), Part::Feed)?, find(design, model, Part::Whole)?])
            })
        };
        let threads: Vec<_> = SCENARIOS.iter().map(find_both).collect();
        threads.into_iter().map(|thread| thread.join().ok().context("a simulation panicked")?).collect()
    })
}

/// Compares a simulation with the expected limit. Its duration follows: what arrives faster than 1,000 units a second is
/// written at 1,000 a second.
fn difference(title: &str, (place, key, units): (&str, Option<&str>, u64), whole: &Found) -> Option<String> {
    let (Found { timeline, hottest: (name, found), limit }, tolerance) = (whole, units / 100);
    let seconds = u64::from(PAYMENTS) * found / u64::from(PER_SECOND) / 1_000;
    let is_expected = name.place == place
        && key.is_none_or(|key| name.key == key)
        // A hash spreads well, but not perfectly.
        && (*found == units || (key.is_none() && found.abs_diff(units) <= tolerance))
        && limit.as_ref().is_some_and(|limit| limit.place == place)
        && timeline.done_after.abs_diff(seconds) <= seconds / 100;
    (!is_expected)
        .then(|| format!("{title}: {name} needs {found}, limited by {limit:?}, done after {}", timeline.done_after))
}

/// Some seconds of the feed on the engine: the throttle accepts as much in each second as the model.
#[test]
fn the_model_of_keys_agrees_with_the_engine_behind_the_throttle() -> Result<()> {
    let seconds = Lookup::environment().optional::<u32>("FEED_SECONDS")?.unwrap_or(1);
    let payments = seconds * PER_SECOND;
    let is_tried = |row: &&Scenario| matches!(row.design, Design::Ours) && row.accounts == Accounts::Many;
    for scenario in SCENARIOS.iter().filter(is_tried) {
        let (title, feed) = (scenario.title, feed(scenario.design, Part::Whole, payments));
        let mut engine = Throttled::open(scenario)?;
        let on_engine = simulate(&feed, &mut engine)?;
        let mut model = Model::of(scenario, &measure(scenario)?, &ids(payments)?)?;
        let in_model = simulate(&feed, &mut model)?;
        assert_eq!(on_engine.done, in_model.done, "{title}");
        let empty: Vec<String> = engine.empty.iter().map(ToString::to_string).collect();
        let waited_for: Vec<String> =
            in_model.waited.keys().map(|&number| model.buckets.name(number).to_string()).collect();
        assert_eq!(empty, waited_for, "{title}");
        assert_eq!(empty.is_empty(), scenario.passes[1], "{title}: {empty:?}");
    }
    Ok(())
}

/// The heads of an account are one partition key in each table.
#[test]
fn one_account_is_limited_by_the_writes_of_its_heads() -> Result<()> {
    const LIFE: [Write; 6] =
        [Write::Details, Write::Head, Write::Pending, Write::Decided, Write::Followed, Write::Reported];
    let lives = |writes: &[Write]| -> Result<u64> { Ok(1_000 / units_of_an_account(&OURS, writes)?) };
    assert_eq!((lives(&LIFE[..2])?, lives(&LIFE[..5])?, lives(&LIFE)?), (1_000, 333, 250));
    Ok(())
}
