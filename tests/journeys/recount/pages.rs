//! Dates with more payments than one page, over both tables.

use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use payments_model::{IdempotencyKey, PaymentId};
use payments_tests::prelude::*;

use super::{DAY, of_day};

/// Writes the index attributes of cancelled payments of one shard. Each amount depends on its
/// number, so that sums show which were counted.
async fn put_all(world: &World, table: &str, numbers: &BTreeSet<usize>) -> Result<()> {
    let client = world.client().await;
    let entry = |n: usize| -> Result<_> {
        let id = PaymentId::derive(&"payer".parse()?, &n.to_string().parse::<IdempotencyKey>()?);
        // In the order of their numbers, several in a second.
        let at = format!("{DAY}T08:{:02}:{:02}Z", n / 240, n / 4 % 60);
        let item = item([
            ("pk", text("ACCT#payer")),
            ("sk", text(format!("{at}#{id}"))),
            ("shard", number(3)),
            ("due", text(format!("CANCELLED#{DAY}#{at}#{id}"))),
            ("amountMinor", number(n + 1)),
            ("currency", text("EUR")),
        ]);
        let request = PutRequest::builder().set_item(Some(item)).build()?;
        Ok(WriteRequest::builder().put_request(request).build())
    };
    let entries: Vec<_> = numbers.iter().map(|n| entry(*n)).collect::<Result<_>>()?;
    for some in entries.chunks(25) {
        client.batch_write_item().request_items(table, some.to_vec()).send().await?;
    }
    Ok(())
}

#[tokio::test]
async fn every_payment_of_either_table_is_counted_once_however_the_pages_fall() -> Result<()> {
    let range = |range: std::ops::Range<usize>| range.collect::<BTreeSet<_>>();
    let every = |n: usize, of: usize| (0..of).step_by(n).collect::<BTreeSet<_>>();
    for (name, hot, history) in [
        ("history behind the hot table", range(0..1_500), range(1_400..4_000)),
        ("history before the hot table", range(2_500..4_000), range(0..2_600)),
        ("both everywhere", every(2, 5_000), every(3, 5_000)),
        ("history within one page of the hot table", [0, 3_999].into(), range(0..2_500)),
        ("the hot table alone, to the end of a page", range(0..2_000), range(0..0)),
        ("history alone, to the end of a page", range(0..0), range(0..1_000)),
    ] {
        let world = World::open().await?;
        put_all(&world, &world.environment.tables.payments, &hot).await?;
        put_all(&world, &world.environment.tables.history, &history).await?;
        let report = of_day(world.functions(), "recount").await?;
        assert_eq!((report.drifted, report.unreadable_entries), (1, 0), "{name}");
        let found = serde_json::to_value(&report.drifts[0].recounted)?;
        let found = ["/byStatus/CANCELLED", "/total", "/archived", "/sums/EUR/CANCELLED"].map(|it| found.pointer(it));
        let union: BTreeSet<_> = hot.union(&history).collect();
        let sum: usize = union.iter().map(|n| **n + 1).sum();
        let want = json!([union.len(), union.len(), history.difference(&hot).count(), sum.to_string()]);
        assert_eq!(json!(found), want, "{name}");
    }
    Ok(())
}
