//! Whether the feed, the day and the end of a pause fit into the partitions of each stage, over hundreds of placements.

use std::fmt::Write as _;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, ensure};
use payments_bill::document;
use payments_machine::payload::DataKind;

use crate::backends::{self, OURS, PAYMENTS, write_units};
use crate::creates::SENT_AT_MOST;
use crate::day::{Costs, Outcome, Scenario, WRITES, play};
use crate::life::Write;
use crate::stacks::Stack;

/// The feed's rate: a million in half an hour.
const PER_SECOND: u32 = 556;

/// The duration of the feed.
const FEED_SECONDS: u64 = 30 * 60;

/// The placements of each scenario: more on prod, for which their part counts.
const PLACEMENTS: u64 = 200;
const OTHER_PLACEMENTS: u64 = 50;

/// The part of them that must pass on prod, in hundredths.
const MUST_PASS: u64 = 99;

/// Half an hour after the feed.
const SOON: u64 = FEED_SECONDS + 30 * 60;

/// The busiest hour of the day's other million: three times as much as the mean of twelve hours.
const BUSY_PER_SECOND: u32 = 70;
const BUSY_SECONDS: u32 = 60 * 60;

const FEED: Scenario = Scenario {
    title: "feed alone",
    creates: PAYMENTS,
    per_second: PER_SECOND,
    due: 0,
    is_whole: false,
    results: 0,
    created_within: FEED_SECONDS,
    done_within: FEED_SECONDS,
};

static SCENARIOS: [Scenario; 5] = [
    FEED,
    Scenario { title: "feed with ticks and settlement", is_whole: true, done_within: SOON, ..FEED },
    Scenario {
        title: "the same at the end of a pause, a million results waiting",
        is_whole: true,
        results: PAYMENTS,
        // Two million results, and those of redrives, at 640 a second.
        done_within: 2 * 60 * 60,
        ..FEED
    },
    Scenario {
        title: "busiest hour of the day's traffic",
        creates: BUSY_PER_SECOND * BUSY_SECONDS,
        per_second: BUSY_PER_SECOND,
        is_whole: true,
        created_within: 3_600 + 1,
        done_within: 3_600 + 10 * 60,
        ..FEED
    },
    Scenario {
        title: "a million payments due at midnight, created before",
        creates: 0,
        due: PAYMENTS,
        is_whole: true,
        // Later, PaymentsOverdue would go off.
        done_within: 30 * 60,
        ..FEED
    },
];

/// The payments that closed dates held back come at once.
static AFTER_CLOSED_DAYS: [Scenario; 2] = [
    Scenario {
        title: "Sunday's feed due on Monday at midnight, and Monday's own feed",
        due: PAYMENTS,
        is_whole: true,
        done_within: 65 * 60,
        ..FEED
    },
    Scenario {
        title: "five feeds due on the Tuesday after Easter at midnight",
        creates: 0,
        due: 5 * PAYMENTS,
        is_whole: true,
        done_within: 150 * 60,
        ..FEED
    },
];

/// The write units of each write, measured on the engine.
static INCOMPRESSIBLE: LazyLock<Result<Costs>> = LazyLock::new(|| write_units(&OURS, &WRITES));
static STRUCTURED: LazyLock<Result<Costs>> = LazyLock::new(|| write_units(&COMPRESSED, &WRITES));

/// The same payments with data that compresses well.
const COMPRESSED: backends::Scenario = backends::Scenario { kind: DataKind::Structured, ..OURS };

pub(crate) fn costs(kind: DataKind) -> Result<&'static Costs> {
    let costs = if kind == COMPRESSED.kind { &STRUCTURED } else { &INCOMPRESSIBLE };
    costs.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))
}

fn minutes(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// Plays a scenario with all placements.
fn play_all(stack: &Stack, scenario: &Scenario, costs: &Costs) -> Result<Vec<Outcome>> {
    let placements = if stack.name == "prod" { PLACEMENTS } else { OTHER_PLACEMENTS };
    play_some(placements, stack, scenario, costs)
}

/// Plays a scenario with so many placements, on two threads.
fn play_some(placements: u64, stack: &Stack, scenario: &Scenario, costs: &Costs) -> Result<Vec<Outcome>> {
    std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            let seeds = (0..placements).filter(move |seed| seed % 2 == half);
            scope.spawn(move || seeds.map(|seed| play(stack, scenario, costs, seed)).collect::<Result<Vec<_>>>())
        });
        let mut outcomes = Vec::new();
        for half in halves {
            outcomes.extend(half.join().ok().context("a simulation panicked")??);
        }
        Ok(outcomes)
    })
}

/// Returns the value below which so many hundredths of the placements are.
fn hundredth(outcomes: &[Outcome], hundredths: usize, of: impl Fn(&Outcome) -> u64) -> u64 {
    let mut values: Vec<u64> = outcomes.iter().map(of).collect();
    values.sort_unstable();
    values[(values.len() - 1) * hundredths / 100]
}

/// Returns the row of a scenario, and how many placements pass.
fn row(stack: &Stack, kind: DataKind, scenario: &Scenario, outcomes: &[Outcome]) -> Result<(String, u64)> {
    let is_dev = stack.name == "dev";
    let passes = |it: &&Outcome| if is_dev { it.is_complete() } else { it.is_in_time(scenario) };
    let passing = u64::try_from(outcomes.iter().filter(passes).count())?;
    let worst = |of: fn(&Outcome) -> u64| hundredth(outcomes, 100, of);
    let (created, done) = (worst(|it| it.created_after), worst(|it| it.done_after));
    let refused = worst(|it| it.refused);
    let burnt = worst(|it| it.burnt);
    let lost = worst(|it| it.lost);
    let units = |hundredths| hundredth(outcomes, hundredths, |it| it.hottest.1);
    let mut places: Vec<&str> = outcomes.iter().map(|it| it.hottest.0.as_str()).collect();
    places.sort_unstable();
    let hottest = places.chunk_by(|a, b| a == b).max_by_key(|same| same.len()).and_then(|same| same.first());
    let mut text = String::new();
    let (tenths, hottest) = (passing * 1_000 / u64::try_from(outcomes.len())?, hottest.context("no placements")?);
    let (name, data) = (stack.name, kind.name());
    write!(text, "| {name} | {data} | {} | {}.{} % |", scenario.title, tenths / 10, tenths % 10)?;
    write!(text, " `{hottest}`: {}, {}, {} | {refused} | {burnt} |", units(50), units(99), units(100))?;
    writeln!(text, " {lost} | {} | {} |", minutes(created), minutes(done))?;
    Ok((text, passing))
}

const HEADER: &str = "| stage | data | | placements that pass | hottest partition, units a second: median, 99 %, worst | \
    refused creates, worst | receives burnt, worst | lost, worst | created, latest | all done, latest |\n\
    |---|---|---|---|---|---|---|---|---|---|\n";

/// With the usual pace nothing is refused or lost, and it takes hours. With the pace that an operator can raise for that day, it takes half as
/// long.
#[test]
fn what_closed_days_hold_back_is_done_at_the_usual_pace_and_sooner_at_a_raised_one() -> Result<()> {
    let mut table = HEADER.to_owned();
    let (prod, raised) = (Stack::for_stage("prod")?, Stack::raised()?);
    let mut faults = Vec::new();
    for scenario in &AFTER_CLOSED_DAYS {
        for stack in [&prod, &raised] {
            let kind = DataKind::Incompressible;
            let outcomes = play_some(PLACEMENTS, stack, scenario, costs(kind)?)?;
            let (text, passing) = row(stack, kind, scenario, &outcomes)?;
            table += &text;
            if passing * 100 < MUST_PASS * PLACEMENTS {
                faults.push(format!("{}, {}: {passing} of {PLACEMENTS} pass", stack.name, scenario.title));
            }
        }
    }
    assert!(faults.is_empty(), "{}\n\n{table}", faults.join("\n"));
    document::holds("closed-days", &table)
}

#[test]
fn the_feed_and_the_day_fit_into_the_partitions_of_prod_and_lose_nothing_on_dev() -> Result<()> {
    let mut table = HEADER.to_owned();
    let mut faults = Vec::new();
    let (prod, dev) = (Stack::for_stage("prod")?, Stack::for_stage("dev")?);
    for (stack, kind) in [
        (&prod, DataKind::Incompressible),
        (&prod, DataKind::Structured),
        (&dev, DataKind::Incompressible),
        (&dev, DataKind::Structured),
        (&Stack::before(), DataKind::Incompressible),
    ] {
        for scenario in &SCENARIOS {
            let outcomes = play_all(stack, scenario, costs(kind)?)?;
            let (text, passing) = row(stack, kind, scenario, &outcomes)?;
            let is_deployed = stack.name != "prod before";
            table += if is_deployed { &text } else { "" };
            let placements = u64::try_from(outcomes.len())?;
            let is_right = match stack.name {
                "prod" => passing * 100 >= MUST_PASS * placements,
                "dev" => passing == placements,
                // The model must find what was wrong.
                _ => scenario.is_whole == (passing * 100 < MUST_PASS * placements),
            };
            if !is_right {
                let (name, data) = (stack.name, kind.name());
                faults.push(format!("{name}, {data}, {}: {passing} of {placements} pass", scenario.title));
            }
        }
    }
    assert!(faults.is_empty(), "{}\n\n{table}", faults.join("\n"));
    document::holds("partitions", &table)
}

/// The assumption of the simulation of creates.
#[test]
fn a_create_that_is_sent_again_is_charged_for_the_details_that_are_there() -> Result<()> {
    let costs = write_units(&OURS, &[Write::Details, Write::DetailsAgain])?;
    ensure!(costs[0] == costs[1] && costs[0].iter().map(|cost| cost.units).sum::<i64>() == 8, "{costs:?}");
    // The waits between all that a client sends: 1, 2, 4, 8, 16 and 32 seconds, then a minute each.
    let waits: u64 = (1..SENT_AT_MOST).map(|sent| 2_u64.pow(sent - 1).min(60)).sum();
    ensure!(waits == 63 + 19 * 60, "{waits}");
    Ok(())
}

/// Incompressible data needs a warm long-term table too: it is what prod has.
#[test]
fn with_data_that_compresses_only_the_indexes_must_be_warm() -> Result<()> {
    let mut stack = Stack::for_stage("prod")?;
    for table in ["payments", "payments-history"] {
        ensure!(stack.partitions.remove(table).is_some(), "{table} is not warm");
    }
    for scenario in &SCENARIOS {
        let outcomes = play_all(&stack, scenario, costs(DataKind::Structured)?)?;
        let fit = |it: &&Outcome| it.is_in_time(scenario) && it.refused == 0;
        let passing = outcomes.iter().filter(fit).count();
        ensure!(passing == outcomes.len(), "{}: {passing} of {} pass", scenario.title, outcomes.len());
    }
    let feed = play_all(&stack, &FEED, costs(DataKind::Incompressible)?)?;
    ensure!(feed.iter().all(|it| it.refused > 0), "the feed fits");
    Ok(())
}
