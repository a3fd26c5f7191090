//! Five years of a million payments whose data is sealed: what the long-term table and the parts keep, in each design.
//!
//! The other designs are allowed the same sealing: their parts have the same rows, and their items lose their data.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use payments_bill::document;
use payments_boot::dynamodb_at;
use payments_machine::layers::client_over;
use payments_machine::payload::DataKind;
use payments_machine::{Engine, Recorder};

use crate::backends::largest_data;
use crate::capacity_use::{DESIGNS, OURS, decimal, headings};
use crate::design::Design;
use crate::life::{Payment, Write};
use crate::measured::{Measured, PAGE};
use crate::prices::Prices;
use crate::sealed::{Sealed, part};

/// The payments of a part. Its bytes for each hardly depend on their number.
const ROWS: u32 = 1_000;

/// The kinds of data, with the most percent that a sealed life may cost of the same life without sealing. A small payment's
/// data stays, so its life costs more.
const KINDS: [(DataKind, Option<u64>); 4] = [
    (DataKind::Structured, Some(73)),
    (DataKind::Dense, Some(50)),
    (DataKind::Incompressible, Some(36)),
    (DataKind::Small, None),
];

/// The most cents of a million rows of small payments: reading twice, and a part.
const ROW_OF_SMALL: u64 = 100;

/// The write units of a record, from that of structured data to the largest.
const UNITS_OF_RECORD: [(DataKind, u64); 2] = [(DataKind::Structured, 2), (DataKind::Incompressible, 9)];

/// The largest payments of a design.
fn payments(design: Design, kind: DataKind, count: u32) -> Result<Vec<Payment>> {
    let data = largest_data(design, kind)?;
    (0..count).map(|n| Payment::new(n, n, "1".parse()?, data)).collect()
}

/// A design's life without sealing and with it.
async fn lives(design: Design, writes: &[Write], kind: DataKind) -> Result<(Measured, Sealed)> {
    let (engine, recorder) = (Engine::start(0, None).await?, Recorder::new());
    let tables = design.create(client_over(&dynamodb_at(&engine.url(), "local"), recorder.clone())).await?;
    let payments = payments(design, kind, ROWS)?;
    let page = payments.get(..PAGE.try_into()?).context("a page")?;
    let measured = Measured::measure(&tables, &recorder, writes, page).await?;
    let sealed = tables.seal(&recorder, page).await?;
    Ok((measured, Sealed { part: part(&payments)?, ..sealed }))
}

#[tokio::test]
async fn five_years_of_sealed_payments_cost_what_the_document_says() -> Result<()> {
    let (prices, given) = Prices::read()?;
    let mut text = headings(&[
        "data",
        "design",
        "not sealed, $",
        "bytes kept, then",
        "sealed bytes",
        "seal and clear, $",
        "tables, $",
        "parts, $",
        "**sealed, $**",
        "of it, %",
    ]);
    for (kind, most) in KINDS {
        for (name, design, writes) in DESIGNS {
            let (measured, sealed) = lives(design, writes, kind).await.with_context(|| format!("{name}, {kind:?}"))?;
            let (before, life) = (prices.cents(&measured).all(), prices.sealed_cents(&measured, &sealed));
            let percent = (life.all() * 100).div_ceil(before);
            let row = life.sealing + life.parts;
            let kept = (sealed.stored.items + sealed.stored.entries) / u64::from(PAGE);
            let bytes = sealed.part.bytes.div_ceil(sealed.part.rows);
            let [before_text, sealing, tables, parts, all] =
                [before, life.sealing, life.tables, life.parts, life.all()].map(decimal);
            writeln!(
                text,
                "| {} | {name} | {before_text} | {kept} | {bytes} | {sealing} | {tables} | {parts} | **{all}** | {percent} |",
                kind.name()
            )?;
            if name != OURS {
                continue;
            }
            match most {
                Some(most) => {
                    ensure!(life.all() * 100 <= before * most, "{kind:?}: {percent} % of it, of {most} %\n{text}")
                }
                // The expiries alone are more bytes.
                None => {
                    ensure!(row <= ROW_OF_SMALL, "a small payment's row costs {row} cents, of {ROW_OF_SMALL}\n{text}")
                }
            }
            if let Some((_, want)) = UNITS_OF_RECORD.iter().find(|(of, _)| *of == kind) {
                ensure!(
                    sealed.writes.all() <= 2 * want * u64::from(PAGE),
                    "{kind:?}: {} half units of records",
                    sealed.writes.all()
                );
            }
        }
    }
    if given {
        println!("{text}");
        return Ok(());
    }
    document::holds("sealed-life", &text)
}
