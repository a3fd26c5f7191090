//! What each step of a payment's life costs, to the unit, in this design and in two others that were
//! run on the same engine in the same run.

use std::fmt::Write as _;
use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};
use aws_sdk_dynamodb::Client;
use payments_boot::{Lookup, dynamodb_at};
use payments_local::{Engine, Recorder};

use crate::design::{Bench, Design};
use crate::document;
use crate::life::{Act, Look, Payment};
use crate::other_designs::{KEYS_ONLY, TEXTBOOK};
use crate::stage::largest_data;

/// How many payments share a page, and so what reading it costs.
const PAGE: u32 = 50;

/// The designs, by what they are called, and the writes that make a whole life in each.
const DESIGNS: [(&str, Design, &[Act]); 3] = [
    (
        "this design",
        Design::Ours,
        &[Act::Details, Act::Head, Act::Pending, Act::Settled, Act::Reported, Act::ArchivePut, Act::ArchiveDelete],
    ),
    ("textbook", Design::Fixture(TEXTBOOK), WHOLE_ITEM),
    ("keys only", Design::Fixture(KEYS_ONLY), WHOLE_ITEM),
];

const WHOLE_ITEM: &[Act] = &[Act::Head, Act::Pending, Act::Settled, Act::ArchivePut, Act::ArchiveDelete];

/// The columns of the table of writes.
const STEPS: [(&str, &[Act]); 6] = [
    ("put in", &[Act::Details, Act::Head]),
    ("pending", &[Act::Pending]),
    ("settled", &[Act::Settled]),
    ("reported", &[Act::Reported]),
    ("to history", &[Act::ArchivePut]),
    ("out of the hot table", &[Act::ArchiveDelete]),
];

/// The columns of the table of reads.
const LOOKS: [(&str, Look); 5] = [
    ("swept", Look::Swept),
    ("sent", Look::Sent),
    ("settled", Look::Settled),
    ("reported", Look::Reported),
    ("archived", Look::Archived),
];

/// How much data payments carry; nothing for as much as 8 KB hold.
const SIZES: [(&str, Option<usize>); 4] =
    [("0.2 KB", Some(205)), ("2 KB", Some(2_048)), ("4 KB", Some(4_096)), ("8 KB in all", None)];

/// Half units of one page of payments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Spent {
    hot: u64,
    history: u64,
}

impl Spent {
    fn all(self) -> u64 {
        self.hot + self.history
    }
}

impl std::iter::Sum for Spent {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self { hot: a.hot + b.hot, history: a.history + b.history })
    }
}

/// What a page of payments cost in a design.
#[derive(Debug, Default)]
struct Life {
    writes: Vec<(Act, Spent)>,
    reads: Vec<(Look, Spent)>,
}

impl Life {
    fn written(&self, acts: &[Act]) -> Spent {
        self.writes.iter().filter(|(act, _)| acts.contains(act)).map(|(_, spent)| *spent).sum()
    }

    /// Write units of a whole life of one payment. All payments cost the same.
    fn writes_each(&self) -> Result<u64> {
        each(self.writes.iter().map(|(_, spent)| *spent).sum())
    }
}

/// Whole units of each payment of a page.
fn each(spent: Spent) -> Result<u64> {
    let half_units = spent.all();
    ensure!(half_units.is_multiple_of(2 * u64::from(PAGE)), "payments of one size cost differently");
    Ok(half_units / u64::from(2 * PAGE))
}

fn spent(wire: &Recorder, bench: &Bench) -> Spent {
    let mut spent = Spent::default();
    for ((_, place), half_units) in wire.take_capacity_use() {
        if place.starts_with(&bench.tables.history) { spent.history += half_units } else { spent.hot += half_units }
    }
    spent
}

/// The life of a page of payments.
async fn life(bench: &Bench, wire: &Recorder, acts: &[Act], data: usize) -> Result<Life> {
    let payments = (0..PAGE).map(|n| Payment::new(n, n, "1".parse()?, data)).collect::<Result<Vec<_>>>()?;
    let mut life = Life::default();
    drop(wire.take_capacity_use());
    for &act in acts {
        let before: &[Look] = match act {
            Act::Pending => &[Look::Swept],
            Act::Settled => &[Look::Sent],
            Act::Reported => &[Look::Reported],
            Act::ArchivePut => &[Look::Archived],
            _ => &[],
        };
        let after: &[Look] = if act == Act::Settled { &[Look::Settled] } else { &[] };
        for &look in before {
            bench.read(&payments, look).await?;
            life.reads.push((look, spent(wire, bench)));
        }
        for payment in &payments {
            bench.write(payment, act).await?;
        }
        life.writes.push((act, spent(wire, bench)));
        for &look in after {
            bench.read(&payments, look).await?;
            life.reads.push((look, spent(wire, bench)));
        }
    }
    Ok(life)
}

/// A price: thousandths of a dollar for a million units.
#[derive(Debug, Clone, Copy)]
struct Price(u64);

impl FromStr for Price {
    type Err = anyhow::Error;

    /// Reads `0.625`.
    fn from_str(text: &str) -> Result<Self> {
        let (dollars, fraction) = text.split_once('.').unwrap_or((text, ""));
        ensure!(fraction.len() <= 3, "{text} is finer than a thousandth of a dollar");
        Ok(Self(dollars.parse::<u64>()? * 1_000 + format!("{fraction:0<3}").parse::<u64>()?))
    }
}

/// What a million units cost in tables of the standard class and of infrequent access.
#[derive(Debug, Clone, Copy)]
struct Prices {
    writes: [Price; 2],
    reads: [Price; 2],
}

impl Prices {
    /// Those of the environment, and list prices where it has none. Says whether it has any.
    fn read() -> Result<(Self, bool)> {
        let (lookup, mut given) = (Lookup::environment(), false);
        let mut price = |name, list| -> Result<Price> {
            let own = lookup.optional::<Price>(name)?;
            given |= own.is_some();
            Ok(own.unwrap_or(Price(list)))
        };
        let writes = [price("WRITE_PRICE", 625)?, price("HISTORY_WRITE_PRICE", 780)?];
        let reads = [price("READ_PRICE", 125)?, price("HISTORY_READ_PRICE", 155)?];
        Ok((Self { writes, reads }, given))
    }

    /// A million payments, in cents.
    fn cents(&self, life: &Life) -> u64 {
        let cost = |spent: Spent, [hot, history]: [Price; 2]| spent.hot * hot.0 + spent.history * history.0;
        let writes = cost(life.writes.iter().map(|(_, spent)| *spent).sum(), self.writes);
        let reads = cost(life.reads.iter().map(|(_, spent)| *spent).sum(), self.reads);
        // From half units of a page and thousandths of a dollar, to the nearest cent.
        let scale = 2 * u64::from(PAGE) * 10;
        (writes + reads + scale / 2) / scale
    }
}

/// Hundredths: `4.98`.
fn decimal(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Read units of each payment, to the nearest hundredth.
fn reads_each(spent: Spent) -> String {
    decimal((spent.all() * 100 + u64::from(PAGE)) / u64::from(2 * PAGE))
}

fn headings(columns: &[&str]) -> String {
    format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()))
}

/// Both tables.
fn tables(lives: &[(&str, &str, Life)], prices: &Prices) -> Result<String> {
    let steps: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
    let looks: Vec<&str> = LOOKS.iter().map(|(name, _)| *name).collect();
    let mut text = "Write units of one payment, and dollars for a million of them, reads included:\n\n".to_owned();
    text += &headings(&[&["data", "design"], steps.as_slice(), &["**writes**", "dollars"]].concat());
    for (size, design, life) in lives {
        write!(text, "| {size} | {design} |")?;
        for (_, acts) in STEPS {
            let known = life.writes.iter().any(|(act, _)| acts.contains(act));
            let cell = if known { each(life.written(acts))?.to_string() } else { "–".to_owned() };
            write!(text, " {cell} |")?;
        }
        writeln!(text, " **{}** | {} |", life.writes_each()?, decimal(prices.cents(life)))?;
    }
    write!(text, "\nRead units of one payment, where {PAGE} share a page:\n\n")?;
    text += &headings(&[&["data", "design"], looks.as_slice(), &["**reads**"]].concat());
    for (size, design, life) in lives {
        write!(text, "| {size} | {design} |")?;
        for (_, look) in LOOKS {
            let spent = life.reads.iter().filter(|(read, _)| *read == look).map(|(_, spent)| *spent).sum::<Spent>();
            write!(text, " {} |", if spent.all() == 0 { "–".to_owned() } else { reads_each(spent) })?;
        }
        writeln!(text, " **{}** |", reads_each(life.reads.iter().map(|(_, spent)| *spent).sum()))?;
    }
    Ok(text)
}

#[tokio::test]
async fn a_whole_life_costs_a_quarter_of_the_textbooks() -> Result<()> {
    let mut lives = Vec::new();
    for (size, data) in SIZES {
        let engine = Engine::start(0, None).await?;
        let wire = Recorder::new();
        let production = dynamodb_at(&engine.url(), "local");
        let client = Client::from_conf(production.config().to_builder().http_client(wire.clone()).build());
        for (name, design, acts) in DESIGNS {
            let bench = design.open(client.clone()).await?;
            let data = data.map_or_else(|| largest_data(design), Ok)?;
            let life = life(&bench, &wire, acts, data).await;
            lives.push((size, name, life.with_context(|| format!("{name}, {size}"))?));
        }
        drop((client, production, wire));
        engine.stop().await?;
    }
    let whole = |design: &str| -> Result<u64> {
        let life = lives.iter().find(|(size, name, _)| *size == "8 KB in all" && *name == design);
        life.context("not played")?.2.writes_each()
    };
    let [ours, textbook, keys_only] = [whole("this design")?, whole("textbook")?, whole("keys only")?];
    assert!(ours <= 26, "{ours} write units");
    assert_eq!((textbook, keys_only), (104, 48));
    let (prices, given) = Prices::read()?;
    let text = tables(&lives, &prices)?;
    if given {
        println!("{text}");
        return Ok(());
    }
    document::holds("capacity-use", &text)
}
