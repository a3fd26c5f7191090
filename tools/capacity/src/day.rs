//! Plays a part of a day on a stack, second by second: all that writes payments, against the partitions.

use anyhow::{Context as _, Result};

use crate::creates::{Creates, add};
use crate::life::Write;
use crate::placement::position;
use crate::results::Results;
use crate::second::{Flow, Place, accept};
use crate::stacks::Stack;
use crate::sweeps::{REPORT_SECONDS, Runs};

/// The seconds between two sweeps, two redrives, and two reports at their shortest interval. Sweeps begin by the clock, within
/// a minute.
const SWEEP_EVERY: u64 = 300;
const SCHEDULER_MINUTE: u64 = 60;
const REDRIVE_EVERY: u64 = 3_600;
const REPORT_EVERY: u64 = 900;

/// The payments a second that a report removes from `unreported`, over all shards.
const REPORTED_PER_SECOND: i64 = 1_000;

/// The seconds from a claim or a redrive to the transaction service's result.
const ANSWERED_AFTER: u64 = 30;

/// The seconds after which a simulation ends: a day.
const LAST_SECOND: u64 = 24 * 60 * 60;

/// The writes of a second, in the order of [`Flow`]s. Their costs are measured on the engine.
pub(crate) const WRITES: [Write; 8] = [
    Write::Details,
    Write::Head,
    Write::Pending,
    Write::Redriven,
    Write::Decided,
    Write::DecidedAgain,
    Write::Followed,
    Write::Reported,
];

/// The cost of each of [`WRITES`]: its tables and indexes with their write units.
pub(crate) type Costs = Vec<Vec<PlaceCost>>;

/// The units that a write costs a table or index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlaceCost {
    pub(crate) place: String,
    /// Whether the partition keys are the shards. Else they spread evenly.
    pub(crate) by_shard: bool,
    pub(crate) units: i64,
}

/// The events of a simulated day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) title: &'static str,
    pub(crate) creates: u32,
    pub(crate) per_second: u32,
    /// The payments that are due when it begins, at midnight.
    pub(crate) due: u32,
    /// Whether sweeps, redrives, settlements and reports run beside it.
    pub(crate) is_whole: bool,
    /// The results that wait when it begins, of payments that are pending for hours.
    pub(crate) results: u32,
    /// The seconds in which a prod stack must have created, and done, everything.
    pub(crate) created_within: u64,
    pub(crate) done_within: u64,
}

/// The outcome of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) created_after: u64,
    pub(crate) done_after: u64,
    /// Answers of 503.
    pub(crate) refused: u64,
    /// Receives of results that settled nothing.
    pub(crate) burnt: u64,
    /// Creates that were given up, and results that became dead letters.
    pub(crate) lost: u64,
    /// The number of times that a run gave up a shard.
    pub(crate) given_up: u64,
    /// The table or index with the partition that was asked for most, and its units in one second.
    pub(crate) hottest: (String, u64),
}

impl Outcome {
    /// Whether it is as prod needs it.
    pub(crate) fn is_in_time(&self, scenario: &Scenario) -> bool {
        let Outcome { created_after, done_after, burnt, lost, given_up, .. } = *self;
        let in_time = created_after <= scenario.created_within && done_after <= scenario.done_within;
        in_time && (burnt, lost, given_up) == (0, 0, 0)
    }

    /// Whether nothing was lost, however long it took.
    pub(crate) fn is_complete(&self) -> bool {
        self.lost == 0 && self.done_after < LAST_SECOND
    }
}

/// A stack at work.
struct Day {
    places: Vec<Place>,
    costs: Vec<Vec<(usize, i64)>>,
    creates: Creates,
    sweep: Runs,
    redrive: Runs,
    report: Runs,
    results: Results,
    is_whole: bool,
}

/// Plays a scenario on a stack, with the placement of this seed.
pub(crate) fn play(stack: &Stack, scenario: &Scenario, costs: &Costs, seed: u64) -> Result<Outcome> {
    let mut day = Day::new(stack, scenario, costs, seed)?;
    let mut second = 0;
    while second < LAST_SECOND && !day.is_done() {
        day.pass(second);
        second += 1;
    }
    let hottest = day.places.iter().max_by_key(|place| place.peak).context("no places")?;
    let whole = |thousandths: i64| u64::try_from((thousandths + 999) / 1_000);
    Ok(Outcome {
        created_after: day.creates.done_after,
        done_after: second,
        refused: whole(day.creates.refused)?,
        burnt: whole(day.results.burnt)?,
        lost: whole(day.creates.lost + day.results.dead)?,
        given_up: day.sweep.given_up + day.redrive.given_up,
        hottest: (hottest.name.clone(), whole(hottest.peak)?),
    })
}

/// Creates the tables and indexes that the writes touch, and the costs with their numbers.
pub(crate) fn place(stack: &Stack, costs: &Costs, seed: u64) -> (Vec<Place>, Vec<Vec<(usize, i64)>>) {
    let mut places: Vec<Place> = Vec::new();
    let mut number = |cost: &PlaceCost| {
        if let Some(known) = places.iter().position(|place| place.name == cost.place) {
            return (known, cost.units);
        }
        let partitions = stack.partitions_of(&cost.place);
        places.push(if cost.by_shard {
            Place::for_shards(&cost.place, partitions, seed, stack.shards)
        } else {
            Place::spread(&cost.place, partitions)
        });
        (places.len() - 1, cost.units)
    };
    let numbered = costs.iter().map(|costs| costs.iter().map(&mut number).collect()).collect();
    (places, numbered)
}

/// Spreads payments over the shards, in thousandths.
fn spread(payments: u32, shards: usize) -> Result<Vec<i64>> {
    Ok(vec![i64::from(payments) * 1_000 / i64::try_from(shards)?; shards])
}

impl Day {
    fn new(stack: &Stack, scenario: &Scenario, costs: &Costs, seed: u64) -> Result<Self> {
        let (places, costs) = place(stack, costs, seed);
        let shards = stack.shards;
        let first = |what: &str, every: u64| u64::from(position(seed, what, "first")) % every;
        let runs = |what, every, seconds, pace| Runs::new(every, first(what, every), seconds, pace, shards);
        let mut redrive = runs("redrive", REDRIVE_EVERY, stack.sweeper_seconds, stack.redrives);
        let mut sweep = runs("sweep", SWEEP_EVERY, stack.sweeper_seconds, stack.claims);
        if scenario.due > 0 {
            sweep.first %= SCHEDULER_MINUTE;
            sweep.waiting = spread(scenario.due, shards)?;
        }
        let mut results = Results::new(stack.settling, shards);
        let waiting = spread(scenario.results, shards)?;
        redrive.waiting.clone_from(&waiting);
        results.arrive(0, waiting, false);
        Ok(Self {
            places,
            costs,
            creates: Creates::new(scenario.creates, scenario.per_second, shards),
            sweep,
            redrive,
            report: runs("report", REPORT_EVERY, REPORT_SECONDS, REPORTED_PER_SECOND / i64::try_from(shards)?),
            results,
            is_whole: scenario.is_whole,
        })
    }

    fn is_done(&self) -> bool {
        self.creates.is_done() && (!self.is_whole || (self.sweep.is_done() && self.results.is_done()))
    }

    fn pass(&mut self, second: u64) {
        let [details, heads] = self.creates.wanted(second);
        let mut wanted = vec![details, heads];
        if self.is_whole {
            if !self.redrive.is_done() {
                // A payment that is settled meanwhile is not redriven.
                let (waiting, unsettled) = (&mut self.redrive.waiting, self.results.unsettled());
                waiting.iter_mut().zip(&unsettled).for_each(|(waiting, &left)| *waiting = left.min(*waiting));
            }
            let settlements = self.results.wanted(second);
            wanted.extend([self.sweep.wanted(second), self.redrive.wanted(second)]);
            wanted.extend(settlements);
            wanted.push(self.report.wanted(second));
        }
        let mut flows: Vec<Flow<'_>> =
            wanted.into_iter().zip(&self.costs).map(|(wanted, cost)| Flow::new(cost, wanted)).collect();
        accept(&mut self.places, &mut flows);
        let wanted = |flow: usize| &flows[flow].wanted[..];
        let accepted = |flow: usize| &flows[flow].accepted[..];
        let created = self.creates.take(second, [0, 1].map(wanted), [0, 1].map(accepted));
        if !self.is_whole {
            return;
        }
        add(&mut self.sweep.waiting, &created);
        for (runs, flow, repeats) in [(&mut self.sweep, 2, false), (&mut self.redrive, 3, true)] {
            let flow = &flows[flow];
            runs.take(&flow.wanted, &flow.accepted);
            self.results.arrive(second + ANSWERED_AFTER, flow.accepted.clone(), repeats);
        }
        let settled = self.results.take(second, [4, 5, 6].map(wanted), [4, 5, 6].map(accepted));
        self.report.take(wanted(7), accepted(7));
        add(&mut self.report.waiting, &settled);
    }
}
