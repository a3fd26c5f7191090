//! `cargo month`: the simulated month's command line.

mod show;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::available_parallelism;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use payments_allocator as _;
use payments_boot::version;
use payments_lab::{
    Act, Case, FaultCounts, FaultKind, Month, Outage, SEEDS, Settings, Weakness, play_watched, search, shrink, table,
};
use payments_machine::progress::Progress;

use crate::show::{command, show};

/// Plays simulated months, and checks every guarantee in each.
///
/// A month has one seed, and the same seed always plays the same month. The exit status is 0 only if no guarantee was
/// broken. With --every-kind, each kind of fault and of amendment must also happen in one of the months.
#[derive(Debug, Parser)]
#[command(name = "cargo month", bin_name = "cargo month", version = version(), after_help = EXAMPLES)]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1, value_parser = whole(0..=u64::MAX / 2))]
    seed: u64,

    /// How many seeds are played.
    #[arg(long, default_value_t = 1, value_parser = whole(1..=1_000_000))]
    seeds: u64,

    /// Play two more months, with seeds drawn from this text, such as the hash of a commit.
    #[arg(long, value_name = "TEXT")]
    drawn_from: Option<String>,

    /// Fail if a kind of fault or of amendment never happened. Seeds 1 to 4 of 30 days show all.
    #[arg(long, conflicts_with_all = ["healthy", "weakness"])]
    every_kind: bool,

    /// How many days have payments. What was begun comes to its end after them.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=60))]
    days: u32,

    /// How many payments a day has, at most 1,000.
    /// Clients ask for more when they correct one.
    #[arg(long, default_value_t = 60, value_parser = whole(1..=1_000))]
    payments: u64,

    /// How many months are played at once. The default is one for each core.
    #[arg(long, value_name = "N", value_parser = whole(1..=256))]
    threads: Option<u64>,

    /// Play without faults.
    #[arg(long)]
    healthy: bool,

    /// Play without faults of these kinds.
    #[arg(long, value_delimiter = ',', value_name = "KIND", conflicts_with = "healthy")]
    without: Vec<FaultKind>,

    /// Play with a weakness: something that the functions could get wrong. The exit status is 0 only if it is found.
    #[arg(long)]
    weakness: Option<Weakness>,

    /// Make the first month that breaks a guarantee smaller, as long as it breaks the same one.
    #[arg(long)]
    shrink: bool,

    /// Look for each weakness in at most 20 seeds, and write the smaller months that show them to this file. With
    /// --weakness, only that one is looked for, and the file's others stay.
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["seed", "seeds", "drawn_from", "every_kind", "shrink", "healthy", "without", "outage", "json"])]
    find_weaknesses: Option<PathBuf>,

    /// Let something break on the second day, until an operator ends it as docs/alarms.md says. Several outages begin three
    /// hours apart. Random faults would hide what an outage does, so it needs --healthy.
    #[arg(long, value_delimiter = ',', requires = "healthy")]
    outage: Vec<Outage>,

    /// Print one JSON object for each month.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cargo month --days 2 --payments 10            a short one
  cargo month --seeds 20 --json                 twenty months, one JSON object each
  cargo month --seed 7 --shrink                 if seed 7 breaks a guarantee: a smaller month that does
  cargo month --weakness no-counters --days 3   something is got wrong, and must be found
  cargo month --days 3 --healthy --outage no-sweeps
                                                something breaks, and an operator mends it
";

/// The number of months that are drawn from a text.
const DRAWN: u64 = 2;

fn main() -> Result<ExitCode> {
    match run(&Arguments::parse()) {
        // Nobody reads on, as with `cargo month | head`.
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(|it| it.kind() == io::ErrorKind::BrokenPipe) => {
            Ok(ExitCode::FAILURE)
        }
        result => result,
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(file) = &arguments.find_weaknesses {
        return find_weaknesses(arguments, file);
    }
    let distinct: BTreeSet<&Outage> = arguments.outage.iter().collect();
    ensure!(distinct.len() == arguments.outage.len(), "an outage is named twice: name each once");
    let months = play_all(arguments)?;
    let broken: Vec<&Month> = months.iter().filter(|month| !month.violations.is_empty()).collect();
    if months.len() > 1 && !arguments.json {
        writeln!(io::stdout(), "{} months, {} of them with a broken guarantee", months.len(), broken.len())?;
    }
    let missing = missing(arguments, &months);
    if !missing.is_empty() {
        eprintln!("no month had these kinds of faults or amendments: {}", missing.join(", "));
    }
    if arguments.shrink && broken.is_empty() {
        eprintln!("there is nothing to make smaller: every guarantee holds");
    }
    if let Some(first) = broken.first().filter(|_| arguments.shrink) {
        let watch = |smaller: &Settings| eprintln!("  trying {}", command(smaller));
        let (smaller, month) = shrink(&settings(arguments, first.seed), (*first).clone(), watch)?;
        if arguments.json {
            writeln!(io::stdout(), "{}", serde_json::to_string(&month)?)?;
        } else {
            writeln!(io::stdout(), "a smaller month that breaks the same guarantee:")?;
            show(&mut io::stdout(), &month, &smaller)?;
        }
    }
    if let Some(weakness) = arguments.weakness {
        let name = weakness.name();
        if broken.is_empty() {
            eprintln!("weakness {name} was not found. Try more seeds: --seeds {SEEDS}");
            return Ok(ExitCode::FAILURE);
        }
        eprintln!("weakness {name} was found in {} of {} months, as it must be", broken.len(), months.len());
        return Ok(ExitCode::SUCCESS);
    }
    Ok(if broken.is_empty() && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn settings(arguments: &Arguments, seed: u64) -> Settings {
    let settings = Settings::new(seed, arguments.days, payments(arguments));
    let without: BTreeSet<FaultKind> = arguments.without.iter().copied().collect();
    let outages: &'static [Outage] = arguments.outage.clone().leak();
    let settings = Settings { without, weakness: arguments.weakness, outages, ..settings };
    if arguments.healthy { settings.healthy() } else { settings }
}

/// Reads a whole number within limits.
fn whole(limits: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| limits.contains(number));
        number.ok_or_else(|| format!("give a whole number from {} to {}", limits.start(), limits.end()))
    }
}

fn payments(arguments: &Arguments) -> usize {
    usize::try_from(arguments.payments).unwrap_or(usize::MAX)
}

/// Returns how many threads play.
fn threads(arguments: &Arguments) -> usize {
    let cores = || available_parallelism().map_or(1, usize::from);
    arguments.threads.and_then(|threads| usize::try_from(threads).ok()).unwrap_or_else(cores)
}

/// Returns the kinds of faults and amendments that happened in none of many months.
fn missing(arguments: &Arguments, months: &[Month]) -> Vec<String> {
    if !arguments.every_kind {
        return Vec::new();
    }
    let mut counts = FaultCounts::new();
    for (kind, count) in months.iter().flat_map(|month| &month.faults) {
        *counts.entry(*kind).or_default() += count;
    }
    let never = FaultKind::all().iter().filter(|kind| !arguments.without.contains(kind) && counts[kind] == 0);
    let done = |act: &&Act| months.iter().any(|month| month.amendments[act] > 0);
    let undone = Act::all().iter().filter(|act| !done(act));
    never.map(|kind| kind.name()).chain(undone.map(|act| format!("amendments {}", act.name()))).collect()
}

/// Returns the seeds: those in a row, and those that are drawn.
fn seeds(arguments: &Arguments) -> Vec<u64> {
    let mut seeds: Vec<u64> = (arguments.seed..arguments.seed.saturating_add(arguments.seeds)).collect();
    for number in arguments.drawn_from.is_some().then_some(0..DRAWN).into_iter().flatten() {
        let mut hasher = DefaultHasher::new();
        (&arguments.drawn_from, number).hash(&mut hasher);
        // Small enough to be typed, and apart from those that people choose.
        seeds.push(1_000_000 + hasher.finish() % 1_000_000_000);
    }
    seeds
}

/// Plays all seeds, several at once, and shows each month when it is over. Returns them in the order of their seeds.
fn play_all(arguments: &Arguments) -> Result<Vec<Month>> {
    let seeds = seeds(arguments);
    let days = u64::try_from(seeds.len())?.saturating_mul(arguments.days.into());
    let progress = Progress::on_stderr(days, &["days"])?;
    let (next, over, months) = (AtomicUsize::new(0), AtomicU64::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        loop {
            let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) else { return Ok(()) };
            let settings = settings(arguments, *seed);
            let month = play_watched(&settings, || progress.show(&[over.fetch_add(1, Ordering::Relaxed) + 1]))?;
            let mut months = months.lock().ok().context("a month panicked")?;
            if arguments.json {
                writeln!(io::stdout(), "{}", serde_json::to_string(&month)?)?;
            } else {
                show(&mut io::stdout(), &month, &settings)?;
            }
            months.push(month);
        }
    };
    let threads = threads(arguments).min(seeds.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().ok().context("a month panicked")?)
    })?;
    progress.clear();
    let mut months = months.into_inner().ok().context("a month panicked")?;
    months.sort_by_key(|month| month.seed);
    Ok(months)
}

/// Reads the cases that a file has, and shows that it can be written.
fn known_cases(file: &Path) -> Result<Vec<Case>> {
    let open = OpenOptions::new().append(true).create(true).open(file);
    open.with_context(|| format!("{} cannot be written, so nothing was looked for", file.display()))?;
    let text = std::fs::read_to_string(file)?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(&text).with_context(|| format!("{} has no cases of weaknesses", file.display()))
}

/// Looks for all weaknesses, and writes the months that show them.
fn find_weaknesses(arguments: &Arguments, file: &Path) -> Result<ExitCode> {
    let known = known_cases(file)?;
    let progress = Progress::on_stderr(u64::try_from(Weakness::all().len())?, &["found"])?;
    let (next, found) = (AtomicU64::new(0), Mutex::new(Vec::<(usize, Option<Case>)>::new()));
    let work = || -> Result<()> {
        loop {
            let number = usize::try_from(next.fetch_add(1, Ordering::Relaxed))?;
            let Some(weakness) = Weakness::all().get(number) else { return Ok(()) };
            if arguments.weakness.is_some_and(|only| only != *weakness) {
                continue;
            }
            let case =
                search(*weakness, (arguments.days, payments(arguments)), |smaller| progress.say(command(smaller)))?;
            let mut found = found.lock().ok().context("a search panicked")?;
            let seeds = case.as_ref().map_or("not".to_owned(), |case| format!("by seed {}", case.seed));
            eprintln!("{}: found {seeds}", weakness.name());
            found.push((number, case));
            progress.show(&[u64::try_from(found.len())?]);
        }
    };
    let threads = threads(arguments);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().ok().context("a search panicked")?)
    })?;
    progress.clear();
    let mut found = found.into_inner().ok().context("a search panicked")?;
    found.sort_by_key(|(number, _)| *number);
    let mut missed = Vec::new();
    let mut cases = Vec::new();
    for (number, case) in found {
        match case {
            Some(case) => cases.push(case),
            None => missed.push(Weakness::all()[number].name()),
        }
    }
    ensure!(!cases.is_empty(), "no weakness was found in {SEEDS} seeds");
    let is_new = |case: &Case| cases.iter().any(|new| new.weakness == case.weakness);
    let stays = |case: &Case| arguments.weakness.is_some() && !is_new(case);
    let kept: Vec<Case> = known.into_iter().filter(stays).collect();
    cases.extend(kept);
    cases.sort_by_key(|case| case.weakness);
    std::fs::write(file, serde_json::to_string_pretty(&cases)? + "\n").with_context(|| file.display().to_string())?;
    write!(io::stdout(), "{}", table(&cases))?;
    if missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(io::stdout(), "not found in {SEEDS} seeds: {}", missed.join(", "))?;
    Ok(ExitCode::FAILURE)
}
