//! Compares the simulation of a second with the engine behind the throttle, which holds single calls to the same
//! partitions.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use payments_machine::layers::throttle::placement::position;

use crate::backends::{OURS, Partition, Scenario, Throttled};
use crate::creates::add;
use crate::day::{WRITES, place};
use crate::life::Write;
use crate::partitions::costs;
use crate::second::{Flow, Place, accept};
use crate::stacks::Stack;

/// The writes of the second: more than a new stack accepts in two of its places.
const WANTED: [(Write, u32); 5] =
    [(Write::Details, 600), (Write::Head, 300), (Write::Pending, 500), (Write::Decided, 200), (Write::Followed, 600)];

/// The shards.
const SHARDS: u16 = 10;

/// The writes that a second accepted, by kind and shard, and the exhausted partitions.
#[derive(Debug, PartialEq, Eq)]
struct Accepted {
    /// In thousandths, in the order of [`WANTED`].
    writes: Vec<Vec<i64>>,
    exhausted: BTreeSet<Partition>,
}

/// Returns the writes of the second, as (payment, kind), in a random order.
fn calls(seed: u64) -> Vec<(u32, usize)> {
    let mut first = 0;
    let mut calls = Vec::new();
    for (kind, (_, count)) in WANTED.iter().enumerate() {
        calls.extend((first..first + count).map(|payment| (payment, kind)));
        first += count;
    }
    calls.sort_by_key(|(payment, _)| position(seed, "order", &payment.to_string()));
    calls
}

fn on_the_engine(scenario: &Scenario, calls: &[(u32, usize)], shards: &[usize]) -> Result<Accepted> {
    let mut engine = Throttled::open(scenario)?;
    // The writes before, a call each second, so that none is throttled.
    let mut second = 0;
    for &(payment, kind) in calls {
        let before: &[Write] = match WANTED[kind].0 {
            Write::Pending => &[Write::Head],
            Write::Decided => &[Write::Head, Write::Pending],
            Write::Followed => &[Write::Head, Write::Pending, Write::Decided],
            _ => &[],
        };
        for &write in before {
            second += 1;
            anyhow::ensure!(engine.try_write(payment, write, second)?.is_none(), "throttled too early");
        }
    }
    second += 10;
    let (mut writes, mut exhausted) = (vec![vec![0; usize::from(SHARDS)]; WANTED.len()], BTreeSet::new());
    for &(payment, kind) in calls {
        match engine.try_write(payment, WANTED[kind].0, second)? {
            Some(partition) => drop(exhausted.insert(partition)),
            None => writes[kind][shards[usize::try_from(payment)?]] += 1_000,
        }
    }
    Ok(Accepted { writes, exhausted })
}

fn in_the_model(seed: u64, calls: &[(u32, usize)], shards: &[usize]) -> Result<Accepted> {
    let stack = Stack { shards: usize::from(SHARDS), partitions: BTreeMap::new(), ..Stack::before() };
    let (mut places, costs) = place(&stack, costs(OURS.kind)?, seed);
    let mut flows = Vec::new();
    for (kind, (write, _)) in WANTED.iter().enumerate() {
        let mut wanted = vec![0; usize::from(SHARDS)];
        for (payment, _) in calls.iter().filter(|(_, it)| *it == kind) {
            wanted[shards[usize::try_from(*payment)?]] += 1_000;
        }
        let cost = WRITES.iter().position(|it| it == write).context("no cost")?;
        flows.push(Flow::new(&costs[cost], wanted));
    }
    accept(&mut places, &mut flows);
    let exhausted = places
        .iter()
        .flat_map(|place: &Place| place.partitions.throttled().into_iter().map(|number| (place.name.clone(), number)));
    Ok(Accepted { exhausted: exhausted.collect(), writes: flows.into_iter().map(|flow| flow.accepted).collect() })
}

#[test]
fn the_model_agrees_with_the_engine_behind_the_throttle() -> Result<()> {
    let payments: u32 = WANTED.iter().map(|(_, count)| count).sum();
    let shards = (0..payments).map(Scenario::shard_of).collect::<Result<Vec<_>>>()?;
    let mut compared = 0;
    for seed in 0..100 {
        let scenario = Scenario { seed, ..OURS };
        let calls = calls(seed);
        let model = in_the_model(seed, &calls, &shards)?;
        if !model.exhausted.iter().any(|(place, _)| place == "payments/due") {
            continue;
        }
        let engine = on_the_engine(&scenario, &calls, &shards)?;
        assert_eq!(engine.exhausted, model.exhausted, "seed {seed}");
        assert!(
            model.exhausted.iter().any(|(place, _)| place.starts_with("payments-history")),
            "{:?}",
            model.exhausted
        );
        for (kind, (engine, model)) in engine.writes.iter().zip(&model.writes).enumerate() {
            let (write, count) = WANTED[kind];
            let mut difference = model.clone();
            add(&mut difference, &engine.iter().map(|it| -it).collect::<Vec<_>>());
            let all = difference.iter().sum::<i64>().abs();
            // The order is random: what comes late in the second is rejected.
            assert!(all * 100 <= i64::from(count) * 1_000 * 4, "seed {seed}, {write:?}: {engine:?}, {model:?}");
            for (shard, difference) in difference.iter().enumerate() {
                assert!(difference.abs() <= 12_000, "seed {seed}, {write:?}, {shard}: {engine:?}, {model:?}");
            }
        }
        compared += 1;
        if compared == 2 {
            return Ok(());
        }
    }
    anyhow::bail!("no placement exhausts an index")
}
