//! The reads of each view.

use anyhow::Result;

use super::{Alone, LANES, SHARDS};

#[tokio::test]
async fn a_view_reads_each_lane_and_each_shard_once() -> Result<()> {
    let alone = Alone::start().await?;
    // One query more than the lanes is that of the last runs.
    for (wanted, operation, reads) in [
        ("day?date=2026-12-24", "Query", LANES + 1),
        ("ahead", "Query", LANES + 1),
        ("run?job=sweep&since=2026-11-20T08:00:00Z", "Query", 1),
        // And the actions of the last hours, some of which wait for a second person.
        ("audit", "Query", 1 + 1),
        ("audit?person=duty&action=cancel&thing=0b5e7a2c", "Query", 1),
        ("list?date=2026-12-24&status=SCHEDULED", "Query", SHARDS),
        ("list?date=2026-12-24&status=SCHEDULED&reference=rent", "Query", SHARDS),
        // Both tables.
        ("list?date=2026-10-01&status=CANCELLED", "Query", 2 * SHARDS),
        // The slots and the moved payments, in one table and in both.
        ("account?id=tenant", "Query", 2),
        ("account?id=tenant&show=past", "Query", 4),
        ("account?id=tenant&amount=12.50&from=2026-10-01", "Query", 4),
        // The transaction in two spellings, and the account's coming and past payments.
        ("find?text=shop", "Query", 2 + 2 + 4),
        // The first word can be an account.
        ("find?text=RENT%20NOV", "Query", 2 + 2 + 4),
        // An amount with a comma is only that.
        ("find?text=1,250.00", "Query", 1),
        ("find?text=1,250.00&date=2026-12-24", "Query", 1 + 2 * SHARDS),
        ("find?text=1,250.00&date=2026-11-20", "Query", 1 + 5 * SHARDS),
        ("find?text=0b5e7a2c", "Query", 2 + 2 + 4),
        // By the digits at the beginning of the date, and then those with a time.
        ("find?text=0b5e7a2c&date=2026-12-24", "Query", 8 + 2 * 2 * SHARDS),
        ("queues", "GetItem", 0),
        ("reports?from=2026-11-20", "GetItem", 0),
        ("reports", "GetItem", 1),
    ] {
        drop(alone.recorder.take_operations());
        alone.page(wanted).await?;
        assert_eq!(alone.recorder.take_operations(), vec![operation; reads], "{wanted}");
    }
    // Today's view reads the figures, and no shard. A list of failures has their sums by reason from the figures.
    for (wanted, queries) in
        [("day", LANES + 1), ("day?date=2026-10-01", LANES + 1), ("list?date=2026-11-20&status=FAILED", SHARDS)]
    {
        drop(alone.recorder.take_operations());
        alone.page(wanted).await?;
        let mut operations = alone.recorder.take_operations();
        operations.sort_unstable();
        assert_eq!(operations, [vec!["GetItem"], vec!["Query"; queries]].concat(), "{wanted}");
    }
    // The head of the log, for the bank, the strip and those that wait the switch; and the last runs, the endpoints and their places, or the
    // findings of the recount. The strip of troubles also reads the open findings, the counters, the dates held by their limit and the last actions.
    for (wanted, gets, queries) in [
        ("endpoints", 1, 3),
        ("endpoints?id=shop", 1, 3),
        ("bank", 3, 2),
        ("attention", 2, LANES + 7),
        ("waiting", 1, 2 * SHARDS + 1),
    ] {
        drop(alone.recorder.take_operations());
        alone.page(wanted).await?;
        let mut operations = alone.recorder.take_operations();
        operations.sort_unstable();
        assert_eq!(operations, [vec!["GetItem"; gets], vec!["Query"; queries]].concat(), "{wanted}");
    }
    Ok(())
}

#[tokio::test]
async fn a_payment_reads_its_own_items_the_endpoints_and_their_places() -> Result<()> {
    let alone = Alone::start().await?;
    let id = alone.given.scheduled("rent-1", "2026-12-01").await?.payment_id;
    // The first details, the head and the log's head; the findings, the endpoints and their states. A search reads the details and the
    // transaction in two spellings before.
    for (wanted, gets, queries) in [(format!("payment?id={id}"), 3, 3), (format!("find?text={id}"), 3 + 1, 3 + 2)] {
        drop(alone.recorder.take_operations());
        alone.page(&wanted).await?;
        let mut operations = alone.recorder.take_operations();
        operations.sort_unstable();
        assert_eq!(operations, [vec!["GetItem"; gets], vec!["Query"; queries]].concat(), "{wanted}");
    }
    Ok(())
}
