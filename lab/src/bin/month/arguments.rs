//! The arguments of `cargo month`.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::thread::available_parallelism;

use clap::Parser;
use payments_boot::version;
use payments_lab::{FaultKind, Outage, Settings, Weakness};

/// Plays simulated months, and checks every guarantee in each.
///
/// A month has one seed, and the same seed always plays the same month. The exit status is 0 only if no guarantee was
/// broken. With --every-kind, each kind of fault and of amendment must also happen in one of the months.
#[derive(Debug, Parser)]
#[command(name = "cargo month", bin_name = "cargo month", version = version(), after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1, value_parser = whole(0..=u64::MAX / 2))]
    seed: u64,

    /// Number of seeds.
    #[arg(long, default_value_t = 1, value_parser = whole(1..=1_000_000))]
    seeds: u64,

    /// Play two more months, with seeds drawn from this text, such as the hash of a commit. The second has 120 days with a payment each:
    /// it seals and clears at the ages of a deployed stack.
    #[arg(long, value_name = "TEXT")]
    drawn_from: Option<String>,

    /// Fail if a kind of fault or of amendment never happened. Seeds 1 to 4 of 30 days show all.
    #[arg(long, conflicts_with_all = ["healthy", "weakness"])]
    pub(crate) every_kind: bool,

    /// Days with payments. Their payments end in the days after.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=120))]
    pub(crate) days: u32,

    /// Payments a day, at most 1,000. Clients ask for more when they correct one.
    #[arg(long, default_value_t = 60, value_parser = whole(1..=1_000))]
    payments: u64,

    /// Number of months at once. The default is one for each core.
    #[arg(long, value_name = "N", value_parser = whole(1..=256))]
    threads: Option<u64>,

    /// Play without faults.
    #[arg(long)]
    healthy: bool,

    /// Play without faults of these kinds.
    #[arg(long, value_delimiter = ',', value_name = "KIND", conflicts_with = "healthy")]
    pub(crate) without: Vec<FaultKind>,

    /// Play with a weakness: something that the functions could get wrong. The exit status is 0 only if it is found.
    #[arg(long)]
    pub(crate) weakness: Option<Weakness>,

    /// Make the first month that breaks a guarantee smaller, as long as it breaks the same one.
    #[arg(long)]
    pub(crate) shrink: bool,

    /// Look for each weakness in at most 20 seeds, and write the smaller months that show them to this file. With
    /// --weakness, only that one is looked for, and the file's others stay.
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["seed", "seeds", "drawn_from", "every_kind", "shrink", "healthy", "without", "outage", "json"])]
    pub(crate) find_weaknesses: Option<PathBuf>,

    /// Let something break on the second day, until an operator ends it as docs/alarms.md says. Several outages begin three
    /// hours apart. Random faults would hide what an outage does, so it needs --healthy.
    #[arg(long, value_delimiter = ',', requires = "healthy")]
    pub(crate) outage: Vec<Outage>,

    /// Print one JSON object for each month.
    #[arg(long)]
    pub(crate) json: bool,
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

/// The days of the last of them, and its payments a day.
const LONG: (u32, usize) = (120, 1);

impl Arguments {
    /// Returns the month of a seed.
    pub(crate) fn settings(&self, seed: u64) -> Settings {
        let is_long = self.drawn().last() == Some(&seed);
        let (days, payments) = if is_long { LONG } else { (self.days, self.payments()) };
        let settings = Settings::new(seed, days, payments);
        let without: BTreeSet<FaultKind> = self.without.iter().copied().collect();
        let outages: &'static [Outage] = self.outage.clone().leak();
        let settings = Settings { without, weakness: self.weakness, outages, ..settings };
        if self.healthy { settings.healthy() } else { settings }
    }

    /// Returns how many payments a day has.
    pub(crate) fn payments(&self) -> usize {
        usize::try_from(self.payments).unwrap_or(usize::MAX)
    }

    /// Returns how many threads play.
    pub(crate) fn threads(&self) -> usize {
        let cores = || available_parallelism().map_or(1, usize::from);
        self.threads.and_then(|threads| usize::try_from(threads).ok()).unwrap_or_else(cores)
    }

    /// Returns the seeds: those in a row, and those that are drawn.
    pub(crate) fn seeds(&self) -> Vec<u64> {
        (self.seed..self.seed.saturating_add(self.seeds)).chain(self.drawn()).collect()
    }

    fn drawn(&self) -> Vec<u64> {
        let draw = |number: u64| {
            let mut hasher = DefaultHasher::new();
            (&self.drawn_from, number).hash(&mut hasher);
            // Small enough to be typed, and apart from those that people choose.
            1_000_000 + hasher.finish() % 1_000_000_000
        };
        self.drawn_from.iter().flat_map(|_| (0..DRAWN).map(draw)).collect()
    }
}

/// Reads a whole number within limits.
fn whole(limits: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| limits.contains(number));
        number.ok_or_else(|| format!("give a whole number from {} to {}", limits.start(), limits.end()))
    }
}
