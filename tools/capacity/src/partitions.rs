//! The feed of a million payments of 8 KB in half an hour, while they are swept and settled, against
//! what DynamoDB takes per partition key: this design takes it, and others say where they end.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use payments_boot::Lookup;

use crate::buckets::{Name, Warmth};
use crate::design::Design;
use crate::document;
use crate::feed::{Outcome, Play, run};
use crate::life::{Accounts, Act};
use crate::other_designs::{BY_DATE, TEXTBOOK};
use crate::stage::{PAYMENTS, Real, Scene, Virtual, ids, measured};

/// The feed's pace: a million in half an hour.
const PER_SECOND: u32 = 556;

/// The feed has half an hour.
const FEED_SECONDS: u64 = 30 * 60;

/// What is swept and settled keeps pace if it is done a minute after.
const SPARE_SECONDS: u64 = 60;

/// What is played of a design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Payments are put in.
    Feed,
    /// The same payments are swept and settled beside it.
    Whole,
}

/// What came of a play, with the names that matter.
#[derive(Debug)]
struct Played {
    outcome: Outcome,
    /// The partition key that was written to most, and its units for each second of the feed.
    hottest: (Name, u64),
    limit: Option<Name>,
}

impl Played {
    fn passes(&self) -> bool {
        self.outcome.put_in_after <= FEED_SECONDS && self.outcome.done_after <= FEED_SECONDS + SPARE_SECONDS
    }
}

fn play_of<'a>(design: Design, part: Part, payments: u32, afters: &'a mut Vec<u64>) -> Play<'a> {
    let put_in = design.acts().iter().filter(|(act, _)| matches!(act, Act::Details | Act::Head)).count();
    let writes = if part == Part::Feed { put_in } else { design.acts().len() };
    afters.extend(design.acts().iter().take(writes).map(|(_, after)| after));
    Play { payments, per_second: PER_SECOND, writes: afters, put_in }
}

fn play(design: Design, mut stage: Virtual, part: Part) -> Result<Played> {
    let mut afters = Vec::new();
    let outcome = run(play_of(design, part, PAYMENTS, &mut afters), &mut stage)?;
    let hottest = stage.buckets.hottest_key().context("no key was written to")?;
    let units = stage.buckets.spent(hottest) * u64::from(PER_SECOND) / u64::from(PAYMENTS);
    let limit = outcome.limit().map(|number| stage.buckets.name(number).clone());
    Ok(Played { hottest: (stage.buckets.name(hottest).clone(), units), limit, outcome })
}

/// Tables as warm as the production stage deploys them.
fn deployed() -> Result<Warmth> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samconfig.toml");
    let text = std::fs::read_to_string(path).context(path)?;
    let units = text.split_once("HistoryWarmWriteUnits=").context("the production stage warms nothing")?.1;
    let units = units.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().parse()?;
    Ok(Warmth::Tables(BTreeMap::from([(Design::Ours.tables().history, units)])))
}

/// How warm the tables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tables {
    /// As warm as it takes: only partition keys are limits.
    Ample,
    /// As production has them.
    Deployed,
    /// New.
    New,
}

/// A scene and what is to come of it.
#[derive(Debug)]
struct Row {
    title: &'static str,
    design: Design,
    shards: &'static str,
    accounts: Accounts,
    tables: Tables,
    /// Whether the feed alone passes, and with sweeping and settling.
    passes: [bool; 2],
    /// The place and key where it ends, if it is a key's, and how many units a second that would need.
    limit: Option<(&'static str, Option<&'static str>, u64)>,
}

/// This design as it is deployed. The others differ from it in one thing.
const OURS: Row = Row {
    title: "this design, tables as production has them",
    design: Design::Ours,
    shards: "10",
    accounts: Accounts::Many,
    tables: Tables::Deployed,
    passes: [true, true],
    limit: None,
};

static SCENES: [Row; 6] = [
    OURS,
    Row { title: "this design, new tables", tables: Tables::New, passes: [false, false], ..OURS },
    Row {
        title: "one shard",
        shards: "1",
        passes: [true, false],
        // (1 + 2 + 2) x 556
        limit: Some(("payments/due", Some("0"), 2_780)),
        ..OURS
    },
    Row {
        title: "the date as partition key of the index",
        design: Design::Fixture(BY_DATE),
        tables: Tables::Ample,
        passes: [true, false],
        limit: Some(("by-date/due", Some("2026-11-20"), 2_780)),
        ..OURS
    },
    Row {
        title: "the whole item in an index of everything, 5 shards",
        design: Design::Fixture(TEXTBOOK),
        shards: "5",
        tables: Tables::Ample,
        passes: [true, false],
        // (8 + 16 + 16) x 556 / 5, on whichever shard has most
        limit: Some(("textbook/due", None, 4_448)),
        ..OURS
    },
    Row {
        title: "one account for everything",
        accounts: Accounts::One,
        passes: [true, false],
        // (1 + 1 + 1) x 556
        limit: Some(("payments", Some("ACCT#account-00000"), 1_668)),
        ..OURS
    },
];

impl Row {
    fn scene(&self) -> Result<Scene> {
        let warmth = match self.tables {
            Tables::Ample => Warmth::Ample,
            Tables::Deployed => deployed()?,
            Tables::New => Warmth::new_tables(),
        };
        Ok(Scene { design: self.design, shards: self.shards, accounts: self.accounts, warmth })
    }
}

fn minutes(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[test]
fn the_design_takes_the_feed_and_others_say_where_they_end() -> Result<()> {
    let mut table = String::from(
        "| | feed alone: all in after | with sweep and settlement: all in | all settled | the hottest key | its units a \
         second | the limit |\n|---|---|---|---|---|---|---|\n",
    );
    let mut faults = Vec::new();
    for (row, [feed, whole]) in SCENES.iter().zip(plays()?) {
        let found = [feed.passes(), whole.passes()];
        if found != row.passes {
            faults.push(format!("{}: {found:?} of {:?}", row.title, row.passes));
        }
        faults.extend(row.limit.and_then(|limit| differs(row.title, limit, &whole)));
        let limit = whole.limit.as_ref().filter(|_| !whole.passes()).map_or("–".to_owned(), ToString::to_string);
        let (hottest, units) = &whole.hottest;
        let [fed, put_in, done] =
            [feed.outcome.put_in_after, whole.outcome.put_in_after, whole.outcome.done_after].map(minutes);
        writeln!(table, "| {} | {fed} | {put_in} | {done} | {hottest} | {units} | {limit} |", row.title)?;
    }
    assert!(faults.is_empty(), "{}\n\n{table}", faults.join("\n"));
    document::holds("partitions", &table)
}

/// All scenes, each with and without sweeping and settling.
fn plays() -> Result<Vec<[Played; 2]>> {
    let ids = &ids(PAYMENTS)?;
    std::thread::scope(|scope| {
        let play_both = |row: &'static Row| {
            scope.spawn(move || {
                let scene = row.scene()?;
                let stage = Virtual::of(&scene, &measured(&scene)?, ids)?;
                anyhow::Ok([play(row.design, stage.clone(), Part::Feed)?, play(row.design, stage, Part::Whole)?])
            })
        };
        let threads: Vec<_> = SCENES.iter().map(play_both).collect();
        threads.into_iter().map(|thread| thread.join().ok().context("a play panicked")?).collect()
    })
}

/// Where a play is limited by another key than said, or by as much, or is done at another time than
/// follows: what comes in faster than 1,000 units a second goes out at 1,000 a second.
fn differs(title: &str, (place, key, units): (&str, Option<&str>, u64), whole: &Played) -> Option<String> {
    let (name, found) = &whole.hottest;
    let seconds = u64::from(PAYMENTS) * found / u64::from(PER_SECOND) / 1_000;
    let as_said = name.place == place
        && key.is_none_or(|key| name.key.as_deref() == Some(key))
        // A hash spreads well, but not perfectly.
        && (*found == units || (key.is_none() && found.abs_diff(units) <= units / 100))
        && whole.limit.as_ref().is_some_and(|limit| limit.place == place && limit.key.is_some())
        && whole.outcome.done_after.abs_diff(seconds) <= seconds / 100;
    (!as_said).then(|| {
        format!("{title}: {name} takes {found}, limited by {:?}, done after {}", whole.limit, whole.outcome.done_after)
    })
}

/// A few seconds, really played: the connector in front of the engine lets as much through, second by
/// second, as virtual time says.
#[test]
fn the_engine_behind_the_connector_agrees() -> Result<()> {
    let seconds = Lookup::environment().optional::<u32>("FEED_SECONDS")?.unwrap_or(1);
    let payments = seconds * PER_SECOND;
    for row in SCENES.iter().filter(|row| row.tables == Tables::Deployed && row.accounts == Accounts::Many) {
        let (title, scene) = (row.title, &row.scene()?);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let mut real = Real::open(scene)?;
        let played = run(play_of(scene.design, Part::Whole, payments, &mut first), &mut real)?;
        let mut stage = Virtual::of(scene, &measured(scene)?, &ids(payments)?)?;
        let said = run(play_of(scene.design, Part::Whole, payments, &mut second), &mut stage)?;
        assert_eq!(played.done, said.done, "{title}");
        let refusing: Vec<String> = real.refusing.iter().map(ToString::to_string).collect();
        let waiting: Vec<String> = said.waited.keys().map(|&number| stage.buckets.name(number).to_string()).collect();
        assert_eq!(refusing, waiting, "{title}");
        assert_eq!(refusing.is_empty(), row.passes[1], "{title}: {refusing:?}");
        real.close()?;
    }
    Ok(())
}
