//! The view of a day: its numbers, and its reads, which do not grow with the number of payments.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::TimeDelta;
use payments_model::{BusinessDate, DayCounts, Status, UtcSecond};
use payments_store::Item;
use payments_tests::World;
use payments_tests::tables::{number, text};

use super::page;

/// The date of the machine's clock, which shows 09:00.
const TODAY: &str = "2026-11-20";

/// The dates and the lanes whose counters the view reads.
const DATES: u32 = 32;
const LANES: usize = 8;

/// Puts counters as if so many payments were due on each date: a quarter of them settled, a half of them pending. More are cancelled.
async fn count(world: &World, payments: usize) -> Result<()> {
    let each = payments / LANES;
    let today: BusinessDate = TODAY.parse()?;
    let counter = |date: BusinessDate, lane: usize| -> Item {
        let key = [("pk", text(format!("COUNTS#{lane}"))), ("sk", text(date.to_string()))];
        let counts = [
            ("SCHEDULED", each / 4),
            ("PENDING", each / 2),
            ("PROCESSED", each / 4 - each / 100),
            ("FAILED", each / 100),
            ("CANCELLED", each / 50),
            ("moves", 4 * each),
        ];
        let sums = ["GBP", "EUR", "JPY"].into_iter().flat_map(|currency| {
            ["sch", "pen", "pro", "fai", "can"].map(|status| (format!("{currency}.{status}"), number(each * 123_456)))
        });
        let counts = counts.map(|(name, count)| (name.to_owned(), number(count)));
        key.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(counts).chain(sums).collect()
    };
    let dates = (0..DATES).map(|days| today.plus_days(days));
    let counters = dates.flat_map(|date| (0..LANES).map(move |lane| counter(date, lane)));
    world.put_items(&world.environment.tables.payments, counters).await
}

/// Puts a sample for each five minutes of the day until now, and failures by code.
async fn figure(world: &World, payments: usize) -> Result<()> {
    let (store, today) = (world.store().await, TODAY.parse()?);
    let begin: UtcSecond = "2026-11-20T00:00:00Z".parse()?;
    let payments = i64::try_from(payments)?;
    for slot in 0..108 {
        let mut counts = DayCounts::default();
        let claimed = payments * 3 / 4 * i64::from(slot) / 107;
        counts.shift(Status::Scheduled, payments - claimed);
        counts.shift(Status::Pending, claimed * 2 / 3);
        counts.shift(Status::Processed, claimed / 3);
        store.add_sample(today, begin.saturating_add(TimeDelta::minutes(5) * slot), &counts).await?;
    }
    let codes = ["AC04", "AM04", "AG01"].map(|code| Ok((code.parse()?, u64::try_from(payments / 400)?)));
    let failures = codes.into_iter().collect::<Result<BTreeMap<_, _>>>()?;
    Ok(store.add_failures(today, 1, &failures).await?)
}

/// The calls of the view.
struct Read {
    operations: usize,
    /// Half read units.
    capacity: u64,
    /// Bytes of the page.
    bytes: usize,
}

async fn read(payments: usize) -> Result<Read> {
    let world = World::open().await?;
    count(&world, payments).await?;
    figure(&world, payments).await?;
    world.forget();
    let page = page(&world, "day").await?;
    let capacity = world.recorder.take_capacity_use();
    assert!(capacity.keys().all(|(_, place)| !place.contains("due")), "an index is read: {capacity:?}");
    let operations = world.recorder.take_operations().len();
    Ok(Read { operations, capacity: capacity.values().sum(), bytes: page.len() })
}

#[tokio::test]
async fn the_day_of_a_million_payments_reads_as_much_as_that_of_ten_thousand() -> Result<()> {
    let (few, many) = (read(10_000).await?, read(1_000_000).await?);
    // The figures, the last runs, the switch and the dates that a limit holds.
    assert_eq!((few.operations, many.operations), (LANES + 4, LANES + 4));
    // At most 1.2 times as much.
    assert!(many.capacity * 10 <= few.capacity * 12, "half units: {} and {}", few.capacity, many.capacity);
    assert!(many.bytes * 10 <= few.bytes * 12, "bytes: {} and {}", few.bytes, many.bytes);
    Ok(())
}

#[tokio::test]
async fn the_day_shows_its_counters_and_its_figures() -> Result<()> {
    let world = World::open().await?;
    count(&world, 1_000_000).await?;
    figure(&world, 1_000_000).await?;
    let day = page(&world, "day").await?;
    for wanted in [
        "Fri 20 Nov <span class=\"quiet\">today</span>",
        "25.0 % settled <span class=\"quiet\">250,000 of 1,000,000</span>",
        "<strong>500,000</strong><span class=\"quiet\">sent, no result yet</span>",
        "1.0 %, <b>3 reasons</b>",
        "<strong>20,000</strong><span class=\"quiet\">left out of the share</span>",
        // The last sample is five minutes old, and equals the counters nearly.
        "Per five minutes, today",
        "<a href=\"#list?date=2026-11-20&amp;status=FAILED&amp;code=AM04\">Insufficient funds</a>",
        "Not counted by reason</span></td><td class=\"num\">2,500</td><td class=\"num quiet\">25.0 %</td>",
        "31 dates ahead",
        "data-l=\"Processed\">1,234,560,000.00</td>",
        "data-l=\"Processed\">123,456,000,000</td>",
    ] {
        assert!(day.contains(wanted), "{wanted}: {day}");
    }
    // Of a past date there are no samples here, and its scheduled payments are overdue.
    let past = page(&world, "day?date=2026-11-19").await?;
    assert!(past.contains("Nothing is due on Thu 19 Nov.") && past.contains("No sweep counted this date"), "{past}");
    let coming = page(&world, "day?date=2026-11-23").await?;
    assert!(coming.contains("not due yet") && !coming.contains("Per five minutes"), "{coming}");
    Ok(())
}
