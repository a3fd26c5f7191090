//! The bill, compared with whole days and with the document. Slow: `just slow` runs it.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use payments_allocator as _;
use payments_bill::document;
use payments_bill::{Bill, DOLLAR, Line, Stage, Workload, cents, grouped};
use payments_machine::payload::DataKind;

/// The most percent by which a line may differ from a whole day.
const MOST: u64 = 10;

#[test]
fn lines_agree_with_a_whole_day_of_few_payments() -> Result<()> {
    let idle = Workload::idle();
    let workload =
        Workload { payments: 1_000, feed: 50, amended: 10, cancelled: 10, bytes: 2_000, webhooks: 1, ..idle };
    let [bill, played] = [workload.day()?, workload.whole_day()?].map(|day| Bill::new(&day, Stage::Prod, true));
    let (bill, played) = (bill?, played?);
    ensure!(bill.lines.iter().filter(|line| line.quantities[0] > 0).count() > 30, "hardly anything is charged");
    let mut wrong = String::new();
    for (Line { service, name, quantities, .. }, played) in bill.lines.iter().zip(&played.lines) {
        // The last month has all that accumulates, and what sealing takes.
        for (said, is) in [0, 2].map(|month| (quantities[month], played.quantities[month])) {
            if said.abs_diff(is) * 100 > is * MOST {
                writeln!(wrong, "{service} {name}: {} in the bill, {} in days", grouped(said), grouped(is))?;
            }
        }
    }
    ensure!(wrong.is_empty(), "these differ by too much:\n{wrong}");
    Ok(())
}

/// The least lines that the document shows: in prod, and in an idle stack.
const LEAST_PROD: u64 = 5 * DOLLAR;
const LEAST_IDLE: u64 = DOLLAR / 10;

#[test]
fn the_document_has_this_bill() -> Result<()> {
    let million = Workload { payments: 2_000_000, feed: 50, bytes: 7_400, ..Workload::idle() };
    let (structured, idle) = (million.day()?, Workload::idle().day()?);
    let dense = Workload { data_kind: DataKind::Incompressible, ..million }.day()?;
    let prod = Bill::new(&structured, Stage::Prod, true)?;
    let unsealed = Bill::new(&structured.unsealed(), Stage::Prod, true)?;
    let dense = Bill::new(&dense, Stage::Prod, true)?;
    let dev = Bill::new(&idle, Stage::Dev, false)?;
    let monitored = Bill::new(&idle, Stage::Dev, true)?;
    let of_dev = |bill: &Bill, line: &Line| {
        bill.lines.iter().find(|it| (it.service, &it.name) == (line.service, &line.name)).map_or(0, |it| it.costs[0])
    };
    let whole = |amount: u64| grouped((amount + DOLLAR / 2) / DOLLAR);
    let mut table =
        "| a month of 30 days, $ | month 1 | month 12 | month 60 | not sealed | incompressible, month 60 | idle dev | monitored |\n\
                     |---|---|---|---|---|---|---|---|\n"
            .to_owned();
    let row = |name: &str, columns: [u64; 7]| {
        let [prod @ .., dev, monitored] = columns;
        let columns: Vec<_> = prod.map(whole).into_iter().chain([cents(dev), cents(monitored)]).collect();
        format!("| {name} | {} |\n", columns.join(" | "))
    };
    let (mut others, mut all) = ([0; 7], [0; 7]);
    let plus = |a: [u64; 7], b: [u64; 7]| std::array::from_fn(|place| a[place] + b[place]);
    for ((line, unsealed), dense) in prod.lines.iter().zip(&unsealed.lines).zip(&dense.lines) {
        let [first, year, end] = line.costs;
        let [dev, monitored] = [of_dev(&dev, line), of_dev(&monitored, line)];
        let columns = [first, year, end, unsealed.costs[2], dense.costs[2], dev, monitored];
        all = plus(all, columns);
        if end >= LEAST_PROD || monitored >= LEAST_IDLE {
            table += &row(&format!("{}: {}", line.service, line.name), columns);
        } else {
            others = plus(others, columns);
        }
    }
    table += &row("all others", others);
    // A stage of dev lacks some lines of prod, and has none besides.
    ensure!([dev.sums()[0], monitored.sums()[0]] == [all[5], all[6]], "dev has lines of its own");
    table += &row("**in all**", all);
    let largest = prod.largest(2).context("a bill without lines")?;
    writeln!(table, "\nThe largest line of month 60 is {}, {}.", largest.service, largest.name)?;
    document::holds("bill", &table)
}
