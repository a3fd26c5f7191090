//! Whether the log takes five feeds at once: one partition, one head, and as many writers as the stream has shards.

mod commits;
mod segments;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use commits::{HEAD, Load, Log, MILLISECOND, Outcome, PARTITION, SECOND, SECONDS};
use payments_bill::document;
use payments_boot::dynamodb_at;
use payments_machine::{Engine, Recorder};
use payments_store::{Committed, LogHead, Store};
use segments::{AT, Kind, Segments};

use crate::design::Design;

/// Five feeds at once: five days' payments that a bank sends in one night, as after Easter. Each is a million payments in half an hour, and
/// each payment a change.
const FEEDS: u64 = 5_000_000_u64.div_ceil(30 * 60);

/// The most claims and the most settlements a second in prod.
const PACE: u64 = 640;

/// The seeds of each case.
const SEEDS: u64 = 10;

/// The longest time for which a change may wait for the log, once all have begun.
const LONGEST_LAG: u64 = 10 * SECOND;

/// A kind of changes, how many come in a second, and with which numbers of stream shards the log does not keep up.
const CASES: [(Kind, u64, &[usize]); 6] = [
    (Kind::Created, FEEDS, &[]),
    (Kind::Mixed, FEEDS, &[]),
    // With forty stream shards batches are small, and the busiest minute takes all of a partition.
    (Kind::Feeds, FEEDS + 2 * PACE, &[40]),
    // So many are never settled in a second.
    (Kind::Settled, FEEDS, &[]),
    (Kind::Largest, FEEDS, &SHARDS),
    (Kind::Largest, PACE, &[]),
];

/// A new table has four partitions, and so as many stream shards; prod has eight, and the warmest table forty.
const SHARDS: [usize; 3] = [4, 8, 40];

/// The outcomes of a case, with all seeds.
struct Played {
    load: Load,
    outcomes: Vec<Outcome>,
}

impl Played {
    fn play(load: Load, segments: &mut Segments) -> Result<Self> {
        let outcomes = (0..SEEDS).map(|seed| Log::new(load, segments, seed).play()).collect::<Result<_>>()?;
        Ok(Self { load, outcomes })
    }

    fn worst(&self, of: impl Fn(&Outcome) -> u64) -> u64 {
        self.outcomes.iter().map(of).max().unwrap_or(0)
    }

    /// Returns the lag below which so many hundredths of the segments are, in the worst case.
    fn lag(&self, hundredths: usize) -> u64 {
        self.worst(|it| {
            let mut lags: Vec<u64> = it.lags.iter().map(|(lag, _)| *lag).collect();
            lags.sort_unstable();
            lags[(lags.len() - 1) * hundredths / 100]
        })
    }

    /// Returns the longest lag in the second half.
    fn late_lag(&self) -> u64 {
        let late = |(lag, at): &(u64, u64)| if *at > SECONDS * SECOND / 2 { *lag } else { 0 };
        self.worst(|it| it.lags.iter().map(late).max().unwrap_or(0))
    }

    /// Returns the units a second of the busiest minute.
    fn busiest(&self) -> u64 {
        self.worst(|it| it.units.windows(60).map(|minute| minute.iter().sum::<u64>() / 60).max().unwrap_or(0))
    }

    fn keeps_up(&self) -> bool {
        self.late_lag() <= LONGEST_LAG
            && self.worst(|it| it.waiting) <= self.load.changes_per_second * LONGEST_LAG / SECOND
            && self.worst(|it| it.exhausted) == 0
            && self.busiest() < PARTITION
    }

    fn row(&self, kind: Kind, thousandths_of_a_unit: u64) -> Result<String> {
        let mut text = String::new();
        let seconds = |time: u64| format!("{}.{}", time / SECOND, time % SECOND / (100 * MILLISECOND));
        let units = self.worst(|it| it.units.iter().sum::<u64>() / SECONDS);
        let Load { shards, changes_per_second } = self.load;
        write!(text, "| {} | {changes_per_second} | 0.{thousandths_of_a_unit:03} | {shards} |", kind.name())?;
        write!(text, " {units} | {} |", self.busiest())?;
        write!(text, " {} |", self.worst(|it| it.lost * 100 / it.commits.max(1)))?;
        write!(text, " {} |", self.worst(|it| it.exhausted))?;
        let lags = [self.lag(50), self.lag(99), self.lag(100), self.late_lag()].map(seconds);
        writeln!(text, " {} | {} |", lags.join(", "), if self.keeps_up() { "yes" } else { "no" })?;
        Ok(text)
    }
}

#[test]
fn the_log_keeps_up_with_five_feeds_at_once() -> Result<()> {
    let mut table = String::from(
        "| changes | a second | units an event, full batches | stream shards | units a second | busiest minute | \
         lost tries for 100 commits | given up | seconds until it is in the log: median, 99 %, worst, \
         worst of the last five minutes | keeps up |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut faults = Vec::new();
    for (kind, changes_per_second, fails) in CASES {
        let mut segments = Segments::new(kind)?;
        let batch = segments.batch;
        let full: u64 = segments.of_batch(batch)?.iter().map(|segment| segment.units + HEAD).sum();
        // A stream shard has at most 1,000 changes a second, and the busiest has a quarter more than the mean.
        for shards in SHARDS.into_iter().filter(|&shards| changes_per_second * 5 < shards as u64 * 4 * PARTITION) {
            let played = Played::play(Load { shards, changes_per_second }, &mut segments)?;
            table += &played.row(kind, full * 1_000 / batch as u64)?;
            if played.keeps_up() == fails.contains(&shards) {
                faults.push(format!("{} at {changes_per_second}, {shards} stream shards", kind.name()));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}\n\n{table}");
    document::holds("log", &table)
}

/// The simulation's assumption: the engine charges commits as the model does.
#[tokio::test]
async fn the_engine_charges_a_commit_what_the_model_says() -> Result<()> {
    for kind in [Kind::Created, Kind::Settled, Kind::Largest] {
        let engine = Engine::start(0, None).await?;
        let (client, recorder) = (dynamodb_at(&engine.url(), "local"), Recorder::new());
        Design::Ours.create(client.clone()).await?;
        let client =
            aws_sdk_dynamodb::Client::from_conf(client.config().to_builder().http_client(recorder.clone()).build());
        let store = Store::new(client, Design::Ours.names());
        let mut segments = Segments::new(kind)?;
        let mut head = LogHead::first("the stream", AT.parse()?);
        for (number, changes) in [1, 10, 208, 500].into_iter().enumerate() {
            let ([segment], [commit]) = (&segments.of_batch(changes)?[..], &segments.commits(changes)?[..]) else {
                anyhow::bail!("{changes} changes are several segments")
            };
            drop(recorder.take_capacity_use());
            let shard = format!("shard-{number}");
            let committed = store.commit_counts(&shard, None, commit, &head, AT.parse()?).await?;
            ensure!(committed == Committed::Done, "{committed:?}");
            head = head.after_append(AT.parse()?);
            let used: BTreeMap<String, u64> = recorder
                .take_capacity_use()
                .into_iter()
                .map(|((_, place), half_units)| (place, half_units / 2))
                .collect();
            let used = *used.get("payments-log").context("nothing was written")?;
            // Another sample of as many changes can be some bytes longer.
            assert!(
                used.abs_diff(segment.units + HEAD) <= 2 + segment.units / 20,
                "{kind:?}, {changes}: {used}, {segment:?}"
            );
        }
    }
    Ok(())
}
