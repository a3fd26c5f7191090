//! The capacity use of each step of a payment's life, in this design and in two others on the same engine.

use std::fmt::Write as _;
use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};
use payments_boot::{Lookup, dynamodb_at};
use payments_local::interceptor::client_over;
use payments_local::{Engine, Recorder};

use crate::backends::largest_data;
use crate::design::{Design, Tables};
use crate::document;
use crate::life::{Payment, Read, Write};
use crate::other_designs::{KEYS_ONLY, TEXTBOOK};

/// The payments that share a page, and the cost of reading it.
const PAGE: u32 = 50;

/// The designs by name, with the writes of a whole life.
const DESIGNS: [(&str, Design, &[Write]); 3] = [
    (
        "this design",
        Design::Ours,
        &[
            Write::Details,
            Write::Head,
            Write::Pending,
            Write::Settled,
            Write::Reported,
            Write::ArchivePut,
            Write::ArchiveDelete,
        ],
    ),
    ("textbook", Design::Other(TEXTBOOK), WHOLE_ITEM),
    ("keys only", Design::Other(KEYS_ONLY), WHOLE_ITEM),
];

const WHOLE_ITEM: &[Write] = &[Write::Head, Write::Pending, Write::Settled, Write::ArchivePut, Write::ArchiveDelete];

/// The columns of the table of writes.
const STEPS: [(&str, &[Write]); 6] = [
    ("created", &[Write::Details, Write::Head]),
    ("pending", &[Write::Pending]),
    ("settled", &[Write::Settled]),
    ("reported", &[Write::Reported]),
    ("into the long-term table", &[Write::ArchivePut]),
    ("out of the hot table", &[Write::ArchiveDelete]),
];

/// The columns of the table of reads.
const READS: [(&str, Read); 5] = [
    ("swept", Read::Swept),
    ("dispatched", Read::Dispatched),
    ("settled", Read::Settled),
    ("reported", Read::Reported),
    ("archived", Read::Archived),
];

/// The size of the data, or nothing for a payment of 8 KB.
const SIZES: [(&str, Option<usize>); 4] =
    [("0.2 KB", Some(205)), ("2 KB", Some(2_048)), ("4 KB", Some(4_096)), ("8 KB in all", None)];

/// The capacity use of a page of payments, in half units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Used {
    hot: u64,
    history: u64,
}

impl Used {
    fn all(self) -> u64 {
        self.hot + self.history
    }
}

impl std::iter::Sum for Used {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self { hot: a.hot + b.hot, history: a.history + b.history })
    }
}

/// The capacity use of a page of payments in a design.
#[derive(Debug, Default)]
struct Life {
    writes: Vec<(Write, Used)>,
    reads: Vec<(Read, Used)>,
}

impl Life {
    fn writes(&self) -> Used {
        self.writes.iter().map(|(_, used)| *used).sum()
    }

    fn reads(&self) -> Used {
        self.reads.iter().map(|(_, used)| *used).sum()
    }
}

/// Returns the whole units of each payment of a page. All payments must cost the same.
fn each(used: Used) -> Result<u64> {
    let half_units = used.all();
    ensure!(half_units.is_multiple_of(2 * u64::from(PAGE)), "payments of one size cost differently");
    Ok(half_units / u64::from(2 * PAGE))
}

fn used(recorder: &Recorder, tables: &Tables) -> Used {
    let mut used = Used::default();
    for ((_, place), half_units) in recorder.take_capacity_use() {
        if place.starts_with(&tables.names.history) { used.history += half_units } else { used.hot += half_units }
    }
    used
}

/// Runs the life of a page of payments.
async fn life(tables: &Tables, recorder: &Recorder, writes: &[Write], data: usize) -> Result<Life> {
    let payments = (0..PAGE).map(|n| Payment::new(n, n, "1".parse()?, data)).collect::<Result<Vec<_>>>()?;
    let mut life = Life::default();
    drop(recorder.take_capacity_use());
    for &write in writes {
        if let Some(read) = write.read_before() {
            tables.read(&payments, read).await?;
            life.reads.push((read, used(recorder, tables)));
        }
        for payment in &payments {
            tables.write(payment, write).await?;
        }
        life.writes.push((write, used(recorder, tables)));
        if write == Write::Settled {
            tables.read(&payments, Read::Settled).await?;
            life.reads.push((Read::Settled, used(recorder, tables)));
        }
    }
    Ok(life)
}

/// A price of a million units, in thousandths of a dollar.
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

/// The prices of a million units, in the hot table and in a long-term table of infrequent access.
#[derive(Debug, Clone, Copy)]
struct Prices {
    writes: [Price; 2],
    reads: [Price; 2],
}

impl Prices {
    /// Returns the prices of the environment, or list prices, and whether the environment has any.
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

    /// Returns the cost of a million payments, in cents.
    fn cents(&self, life: &Life) -> u64 {
        let cost = |used: Used, [hot, history]: [Price; 2]| used.hot * hot.0 + used.history * history.0;
        // From half units of a page and thousandths of a dollar, to the nearest cent.
        let scale = 2 * u64::from(PAGE) * 10;
        (cost(life.writes(), self.writes) + cost(life.reads(), self.reads) + scale / 2) / scale
    }
}

/// Returns a number of hundredths as a decimal: `4.98`.
fn decimal(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Returns the read units of each payment, to the nearest hundredth.
fn reads_each(used: Used) -> String {
    decimal((used.all() * 100 + u64::from(PAGE)) / u64::from(2 * PAGE))
}

fn headings(columns: &[&str]) -> String {
    format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()))
}

/// Returns the tables of writes and of reads.
fn tables(lives: &[(&str, &str, Life)], prices: &Prices) -> Result<String> {
    let mut text = "Write units of one payment, and dollars for a million of them, reads included:\n\n".to_owned();
    text += &headings(&[&["data", "design"], &STEPS.map(|(name, _)| name)[..], &["**writes**", "dollars"]].concat());
    for (size, design, life) in lives {
        write!(text, "| {size} | {design} |")?;
        for (_, writes) in STEPS {
            let used: Vec<Used> =
                life.writes.iter().filter(|(write, _)| writes.contains(write)).map(|(_, used)| *used).collect();
            let cell = if used.is_empty() { "–".to_owned() } else { each(used.into_iter().sum())?.to_string() };
            write!(text, " {cell} |")?;
        }
        writeln!(text, " **{}** | {} |", each(life.writes())?, decimal(prices.cents(life)))?;
    }
    write!(text, "\nRead units of one payment, where {PAGE} share a page:\n\n")?;
    text += &headings(&[&["data", "design"], &READS.map(|(name, _)| name)[..], &["**reads**"]].concat());
    for (size, design, life) in lives {
        write!(text, "| {size} | {design} |")?;
        for (_, column) in READS {
            let used: Used = life.reads.iter().filter(|(read, _)| *read == column).map(|(_, used)| *used).sum();
            write!(text, " {} |", if used.all() == 0 { "–".to_owned() } else { reads_each(used) })?;
        }
        writeln!(text, " **{}** |", reads_each(life.reads()))?;
    }
    Ok(text)
}

#[tokio::test]
async fn a_whole_life_uses_a_quarter_of_the_textbooks_write_units() -> Result<()> {
    let mut lives = Vec::new();
    for (size, data) in SIZES {
        let (engine, recorder) = (Engine::start(0, None).await?, Recorder::new());
        let client = client_over(&dynamodb_at(&engine.url(), "local"), recorder.clone());
        for (name, design, writes) in DESIGNS {
            let tables = design.create(client.clone()).await?;
            let data = data.map_or_else(|| largest_data(design), Ok)?;
            let life = life(&tables, &recorder, writes, data).await;
            lives.push((size, name, life.with_context(|| format!("{name}, {size}"))?));
        }
    }
    let whole = |design: &str| -> Result<u64> {
        let life = lives.iter().find(|(size, name, _)| *size == "8 KB in all" && *name == design);
        each(life.context("no such design")?.2.writes())
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
