//! The cost of a payment: the capacity use of each step, in this design and in two others, and dollars of a million.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use payments_bill::{Stored, document};
use payments_boot::dynamodb_at;
use payments_machine::layers::client_over;
use payments_machine::payload::DataKind;
use payments_machine::{Engine, Recorder};
use payments_model::Reference;

use crate::backends::largest_data;
use crate::design::Design;
use crate::life::{Data, Payment, Read, Write};
use crate::measured::{Measured, PAGE, Used};
use crate::other_designs::{KEYS_ONLY, TEXTBOOK};
use crate::prices::Prices;

pub(crate) const OURS: &str = "this design";

/// The designs by name, with the writes of a whole life.
pub(crate) const DESIGNS: [(&str, Design, &[Write]); 3] = [
    (
        OURS,
        Design::Ours,
        &[Write::Details, Write::Head, Write::Pending, Write::Decided, Write::Followed, Write::Reported],
    ),
    ("textbook", Design::Other(TEXTBOOK), WHOLE_ITEM),
    ("keys only", Design::Other(KEYS_ONLY), WHOLE_ITEM),
];

const WHOLE_ITEM: &[Write] =
    &[Write::Idempotency, Write::Head, Write::Pending, Write::Settled, Write::Reported, Write::ArchivePut];

/// The columns of the table of steps.
const STEPS: [(&str, &[Write], &[Read]); 5] = [
    ("created", &[Write::Idempotency, Write::Details, Write::Head], &[]),
    ("pending and sent", &[Write::Pending], &[Read::Swept, Read::Dispatched]),
    ("settled", &[Write::Decided, Write::Followed, Write::Settled], &[Read::Pending, Read::Transaction]),
    ("reported", &[Write::Reported], &[Read::Reported]),
    ("archived", &[Write::ArchivePut], &[Read::Archived]),
];

/// The size of the data before compression, or nothing for a payment of 8 KB.
const SIZES: [(&str, Option<usize>); 4] =
    [("0.2 KB", Some(205)), ("2 KB", Some(2_048)), ("4 KB", Some(4_096)), (LARGEST, None)];

const LARGEST: &str = "8 KB in all";

/// The smaller sizes that the document shows.
const SHOWN: [&str; 2] = ["0.2 KB", "4 KB"];

/// The kinds whose sizes are compared: the one that compresses best, and the one that does not.
const EXTREMES: [DataKind; 2] = [DataKind::Structured, DataKind::Incompressible];

/// The write units of a processed payment in this design, in hundredths, by kind and in the order of [`SIZES`]. Where they
/// are not whole, frames are about as large as a whole unit, and some payments need one more than others.
const WANT: [(DataKind, [u64; 4]); 6] = [
    (DataKind::Structured, [1_500, 1_500, 1_584, 1_600]),
    (DataKind::Dense, [1_500, 1_600, 1_682, 1_800]),
    (DataKind::Prose, [1_500, 1_600, 1_666, 1_800]),
    (DataKind::Base64, [1_500, 1_600, 1_800, 2_000]),
    (DataKind::Small, [1_500, 1_500, 1_500, 1_500]),
    (DataKind::Incompressible, [1_500, 1_700, 1_900, 2_200]),
];

/// The most half units of a payment's own reads. A few hundredths more are its part of the pages of indexes.
const READS_AT_MOST: u64 = 8;

/// A page of payments of one kind and size in one design.
struct Row {
    kind: DataKind,
    size: &'static str,
    design: &'static str,
    page: Measured,
}

/// Runs the lives of a page of payments on an engine of their own.
async fn measure(
    (name, design, writes): (&str, Design, &[Write]),
    kind: DataKind,
    size: Option<usize>,
    fails: bool,
) -> Result<Measured> {
    measure_with(None, (name, design, writes), kind, (size, fails)).await
}

/// The same for payments with a reference.
async fn measure_with(
    reference: Option<&Reference>,
    (_, design, writes): (&str, Design, &[Write]),
    kind: DataKind,
    (size, fails): (Option<usize>, bool),
) -> Result<Measured> {
    let (engine, recorder) = (Engine::start(0, None).await?, Recorder::new());
    let client = client_over(&dynamodb_at(&engine.url(), "local"), recorder.clone());
    let tables = design.create(client).await?;
    let data = size.map_or_else(|| largest_data(design, kind), |bytes| Ok(Data { kind, bytes }))?;
    let payments = (0..PAGE).map(|n| {
        let mut payment = Payment { fails, ..Payment::new(n, n, "1".parse()?, data)? };
        payment.details.instruction.reference = reference.cloned();
        Ok(payment)
    });
    Measured::measure(&tables, &recorder, writes, &payments.collect::<Result<Vec<_>>>()?).await
}

/// Returns a number of hundredths as a decimal: `4.98`.
pub(crate) fn decimal(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Returns the mean units of each payment: whole, if all cost the same.
fn units(used: Used) -> String {
    used.each().map_or_else(|_| decimal(used.hundredths()), |units| units.to_string())
}

/// Returns the head of a table.
pub(crate) fn headings(columns: &[&str]) -> String {
    format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()))
}

/// Returns a table of what a million payments cost. The first columns say which.
fn costs(first: &[&str], rows: &[(String, &Row)], prices: &Prices) -> Result<String> {
    let kept = format!("{} years of storage, $", prices.years());
    let columns = ["design", "write units", "read units", "bytes kept", "writes, $", "reads, $", &kept, "recovery, $"];
    let mut text = headings(&[first, &columns, &["**all, $**"]].concat());
    for (name, Row { design, page, .. }) in rows {
        let (cents, stored) = (prices.cents(page), page.stored);
        let bytes = (stored.items + stored.entries) / u64::from(PAGE);
        let [writes, reads] = [units(page.writes()), decimal(page.reads().hundredths())];
        write!(text, "| {name} | {design} | {writes} | {reads} | {bytes} |")?;
        for cents in [cents.writes, cents.reads, cents.storage, cents.recovery] {
            write!(text, " {} |", decimal(cents))?;
        }
        writeln!(text, " **{}** |", decimal(cents.all()))?;
    }
    Ok(text)
}

/// Returns the table of steps: write units, and read units after a plus sign.
fn steps(rows: &[&Row]) -> Result<String> {
    let mut text = headings(&[&["data", "design"], &STEPS.map(|(name, ..)| name)[..]].concat());
    for Row { kind, design, page, .. } in rows {
        write!(text, "| {} | {design} |", kind.name())?;
        for (_, writes, reads) in STEPS {
            let written: Used =
                page.writes.iter().filter(|(write, _)| writes.contains(write)).map(|(_, used)| *used).sum();
            let read: Used = page.reads.iter().filter(|(read, _)| reads.contains(read)).map(|(_, used)| *used).sum();
            let cell = match (written.all(), read.all()) {
                (0, 0) => "–".to_owned(),
                (_, 0) => units(written),
                _ => format!("{} + {}", units(written), decimal(read.hundredths())),
            };
            write!(text, " {cell} |")?;
        }
        text.push('\n');
    }
    Ok(text)
}

/// Returns all tables of the document.
fn tables(rows: &[Row], prices: &Prices) -> Result<String> {
    let largest = |row: &&Row| row.size == LARGEST;
    let of = |row: &Row| if row.kind == DataKind::Small { "small, 0.2 KB" } else { row.kind.name() };
    let by_kind: Vec<_> = rows.iter().filter(largest).map(|row| (of(row).to_owned(), row)).collect();
    let by_size: Vec<_> = rows
        .iter()
        .filter(|row| SHOWN.contains(&row.size) && EXTREMES.contains(&row.kind))
        .map(|row| (format!("{} | {}", row.kind.name(), row.size), row))
        .collect();
    let stepwise: Vec<_> = rows.iter().filter(|row| largest(row) && EXTREMES.contains(&row.kind)).collect();
    Ok([
        "Payments of 8 KB in all by kind of data. Units and bytes are of one payment, dollars of a million:\n\n",
        &costs(&["data"], &by_kind, prices)?,
        "\nSmaller payments, by the size of their data:\n\n",
        &costs(&["data", "size"], &by_size, prices)?,
        "\nThe write units of each step of a payment of 8 KB, and its read units after a plus sign:\n\n",
        &steps(&stepwise)?,
    ]
    .concat())
}

#[tokio::test]
async fn a_life_costs_what_the_document_says() -> Result<()> {
    let mut rows = Vec::new();
    for kind in DataKind::ALL {
        for (size, bytes) in SIZES {
            for design in DESIGNS {
                let name = design.0;
                let page = measure(design, kind, bytes, false).await;
                rows.push(Row {
                    kind,
                    size,
                    design: name,
                    page: page.with_context(|| format!("{name}, {kind:?}, {size}"))?,
                });
            }
        }
    }
    let ours = |kind| rows.iter().filter(move |row| row.design == OURS && row.kind == kind).map(|row| &row.page);
    let written = |kind| ours(kind).map(|page| page.writes().hundredths()).collect::<Vec<_>>();
    assert_eq!(WANT.map(|(kind, _)| (kind, written(kind))), WANT.map(|(kind, want)| (kind, want.to_vec())));
    for (kind, _) in WANT {
        for page in ours(kind) {
            let pages: Used = page.reads.iter().filter(|(read, _)| *read == Read::Swept).map(|(_, used)| *used).sum();
            let most = READS_AT_MOST * u64::from(PAGE) + 2 * pages.all();
            assert!(page.reads().all() <= most, "{kind:?}: {:?}", page.reads);
        }
    }
    let (prices, given) = Prices::read()?;
    let text = tables(&rows, &prices)?;
    if given {
        println!("{text}");
        return Ok(());
    }
    document::holds("capacity-use", &text)
}

/// The cost of the attributes of `due` that only lists need, in cents of a million payments: with the longest
/// reference, against payments with neither reference nor code. The items themselves have both anyway.
#[tokio::test]
async fn what_lists_of_a_date_show_costs_at_most_half_a_dollar_a_million() -> Result<()> {
    let (prices, _) = Prices::read()?;
    let longest: Reference = "R".repeat(35).parse()?;
    for fails in [false, true] {
        let [with, mut without] = [
            measure_with(Some(&longest), DESIGNS[0], DataKind::Structured, (Some(7_000), fails)).await?,
            measure_with(None, DESIGNS[0], DataKind::Structured, (Some(7_000), fails)).await?,
        ];
        let code = if fails { "failureCode".len() + 4 } else { 0 };
        without.stored.entries -= u64::try_from(code)? * u64::from(PAGE);
        assert_eq!(with.writes(), without.writes(), "no write needs another unit");
        let [with, without] = [with, without].map(|page| {
            let stored = Stored { items: 0, ..page.stored };
            prices.cents(&Measured { stored, ..page }).all()
        });
        println!("lists of a date, fails {fails}: {} cents a million", with - without);
        assert!(with - without <= 50, "{with} and {without}");
    }
    Ok(())
}

/// A failed payment has no transaction id, so it is not in the index of these.
#[tokio::test]
async fn a_failed_payment_costs_one_write_unit_less() -> Result<()> {
    for (kind, want) in WANT {
        for ((_, bytes), processed) in SIZES.into_iter().zip(want) {
            let page = measure(DESIGNS[0], kind, bytes, true).await?;
            assert_eq!(page.writes().hundredths(), processed - 100, "{kind:?}");
        }
    }
    Ok(())
}
