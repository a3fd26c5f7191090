//! The cost of counting: two write units for each date of a batch and two for the checkpoint of each transaction,
//! however many records there are. The log costs two for each KB of a segment, and two for its head.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use payments_delivery::SequenceNumber;
use payments_lab::laws::counters::between;
use payments_machine::layers::attributes::key_of;
use payments_model::BusinessDate;
use payments_store::item_bytes;
use payments_tests::tables::item_of;

use super::made::Made;
use crate::kit::fixture::Fixture;
use crate::recount::{counters, items};
use payments_tests::counting::aggregate;

/// The changes of a batch: nearly all of a full batch, and as many as one segment of the log has room for.
const HEADS: usize = 900;

/// The cost of the log's segments so far, with the log's head, in half units.
async fn segments(fixture: &Fixture) -> Result<u64> {
    let log = items(fixture, &fixture.tables().log).await?;
    let segments = log.iter().filter(|((pk, sk), _)| pk.starts_with("LOG#") && sk.parse::<u64>().is_ok());
    let bytes = segments.map(|(_, item)| Ok(item_bytes(&item_of(item)?)));
    bytes.map(|bytes: Result<_>| Ok(2 * (2 * u64::try_from(bytes?.div_ceil(1_024))? + 2))).sum()
}

/// Delivers the stream. Returns the half units used, by operation; use outside of the table itself
/// is under its place. The cost of the log's new segments is left out.
async fn cost(fixture: &Fixture, made: &Made) -> Result<BTreeMap<String, u64>> {
    let before = segments(fixture).await?;
    drop(fixture.faults.recorder().take_capacity_use());
    fixture.faults.clear();
    made.deliver(fixture).await?;
    let table = &fixture.tables().payments;
    let named = |(operation, place): (String, String)| if place == *table { operation } else { place };
    let mut spent: BTreeMap<String, u64> = BTreeMap::new();
    for (place, halves) in fixture.faults.recorder().take_capacity_use() {
        *spent.entry(named(place)).or_default() += halves;
    }
    let logged = segments(fixture).await? - before;
    let log = spent.entry(fixture.tables().log.clone()).or_default();
    *log = log.checked_sub(logged).with_context(|| format!("the log cost {log}, and its segments {logged}"))?;
    spent.retain(|_, halves| *halves > 0);
    Ok(spent)
}

/// One read of the checkpoint, and if something is counted so many write units, and one read of the log's head.
fn units(writes: usize) -> Result<BTreeMap<String, u64>> {
    let (writes, head) = (2 * u64::try_from(writes)?, if writes > 0 { 2 } else { 0 });
    let all = [("GetItem".to_owned(), 2), ("TransactWriteItems".to_owned(), writes), ("payments-log".to_owned(), head)];
    Ok(all.into_iter().filter(|(_, halves)| *halves > 0).collect())
}

fn date(n: usize) -> Result<String> {
    let first: BusinessDate = "2026-12-01".parse()?;
    Ok(first.plus_days(u32::try_from(n)?).to_string())
}

#[tokio::test]
async fn a_batch_costs_two_for_each_date_and_two_for_the_checkpoint() -> Result<()> {
    for (dates, currencies, transactions) in [
        (1, &["GBP"][..], 1),
        (7, &["GBP"], 1),
        (7, &["GBP", "EUR", "JPY"], 1),
        (97, &["GBP", "EUR", "JPY"], 1),
        (98, &["GBP"], 2),
        (250, &["GBP"], 3),
    ] {
        let (fixture, mut made) = Made::start().await?;
        for n in 0..HEADS {
            let head = made.head(n, &date(n * dates / HEADS)?, "SCHEDULED", currencies[n % currencies.len()]);
            made.put(head)?;
        }
        let case = format!("{dates} dates in {currencies:?}");
        assert_eq!(cost(&fixture, &made).await?, units(2 * (dates + transactions))?, "{case}");
        assert_eq!(fixture.faults.tries_of("TransactWriteItems"), transactions, "{case}");
        made.assert_counted(&fixture, &case).await?;
        // A repeated delivery costs one read.
        assert_eq!(cost(&fixture, &made).await?, units(0)?, "{case}");
    }
    Ok(())
}

#[tokio::test]
async fn a_whole_life_within_a_batch_costs_as_much_as_one_change() -> Result<()> {
    let (fixture, mut made) = Made::start().await?;
    for n in 0..100 {
        for status in ["SCHEDULED", "PENDING", "PROCESSED"] {
            made.put(made.head(n, &date(0)?, status, "GBP"))?;
        }
        made.archive(&key_of(&made.head(n, &date(0)?, "PROCESSED", "GBP")))?;
    }
    assert_eq!(cost(&fixture, &made).await?, units(2 * (1 + 1))?);
    let counts = counters(&fixture).await?;
    assert_eq!(between(&counts, &made.counts()), [""; 0]);
    assert_eq!(counts.get("2026-12-01 archived"), Some(&100));
    Ok(())
}

#[tokio::test]
async fn changes_that_count_nothing_cost_no_write() -> Result<()> {
    let (fixture, mut made) = Made::start().await?;
    made.put(made.head(0, &date(0)?, "PENDING", "GBP"))?;
    assert_eq!(cost(&fixture, &made).await?, units(2 * (1 + 1))?);
    for attempt in 2..500 {
        let mut again = made.head(0, &date(0)?, "PENDING", "GBP");
        again["dispatchAttempt"] = serde_json::json!({ "N": attempt.to_string() });
        made.put(again)?;
    }
    assert_eq!(cost(&fixture, &made).await?, units(0)?);
    made.assert_counted(&fixture, "").await?;
    // Two changes that cancel out move the checkpoint all the same: the second may come again alone.
    made.put(made.head(0, &date(0)?, "PROCESSED", "GBP"))?;
    made.put(made.head(0, &date(0)?, "PENDING", "GBP"))?;
    assert_eq!(cost(&fixture, &made).await?, units(2)?);
    let last = SequenceNumber::from(made.records);
    made.mapping()?.redeliver(&made.shard, &last, &last, |event| aggregate(&fixture.functions, event)).await?;
    made.assert_counted(&fixture, "").await?;
    Ok(())
}

#[tokio::test]
async fn a_batch_of_too_many_currencies_is_split() -> Result<()> {
    let (fixture, mut made) = Made::start().await?;
    let codes = (b'A'..=b'Z').flat_map(|a| (b'A'..=b'E').map(move |b| String::from_iter(['X', a.into(), b.into()])));
    let codes: Vec<String> = codes.collect();
    // PENDING changes two sums of each currency.
    for (status, transactions) in [("SCHEDULED", 1), ("PENDING", 2)] {
        for (n, code) in codes.iter().enumerate() {
            made.put(made.head(n, &date(0)?, status, code))?;
        }
        cost(&fixture, &made).await?;
        assert_eq!(fixture.faults.tries_of("TransactWriteItems"), transactions, "{} currencies", codes.len());
        made.assert_counted(&fixture, "").await?;
    }
    Ok(())
}
