//! The payments of a date across all accounts, and the payment of a transaction.

use payments_http::DueCursor;
use payments_model::{Event, Failure, PaymentId, Settlement, Status};
use payments_store::item_bytes;
use payments_tests::prelude::*;

/// The requested date, and its neighbours.
const DAY: &str = "2026-12-01";
const BEFORE: &str = "2026-11-30";
const AFTER: &str = "2026-12-02";

/// A time at which that date is past, and its payments may be in history.
const DAYS_LATER: &str = "2026-12-03T09:00:00Z";

/// The shards of these worlds.
const SHARDS: usize = 10;

/// Creates `count` payments of a date, over five accounts. Returns their ids in that order.
async fn put(world: &World, date: &str, count: usize) -> Result<Vec<PaymentId>> {
    let entry = |n: usize| entry(&format!("payer-{}", n % 5), format!("{date}-{n}"), order(date));
    world.create_all((0..count).map(entry)).await?.iter().map(|id| Ok(id.parse()?)).collect()
}

/// Moves a scheduled payment to a status.
async fn move_to(world: &World, payment_id: PaymentId, status: Status) -> Result<()> {
    let settle = |settlement| vec![Event::Sweep, Event::Settle(settlement)];
    let events = match status {
        Status::Scheduled => vec![],
        Status::Cancelled => vec![Event::Cancel],
        Status::Pending => vec![Event::Sweep],
        Status::Processed => settle(Settlement::Processed(format!("TX-{payment_id}").parse()?)),
        Status::Failed => settle(Settlement::Failed(Failure::new(Some("AM04"), "no funds"))),
    };
    move_on(world, payment_id, events, "2026-12-01T10:00:00Z").await
}

/// Creates 60 payments of the day in every status, and some of other dates. Returns the ids by status.
async fn a_day(world: &World) -> Result<BTreeMap<Status, BTreeSet<String>>> {
    let mut by_status: BTreeMap<Status, BTreeSet<String>> = BTreeMap::new();
    for (n, id) in put(world, DAY, 60).await?.into_iter().enumerate() {
        let status = Status::ALL[n % Status::ALL.len()];
        move_to(world, id, status).await?;
        by_status.entry(status).or_default().insert(id.to_string());
    }
    for date in [BEFORE, AFTER, "2026-11-30T23:59:59Z", "2026-12-02T00:00:00Z"] {
        put(world, date, 3).await?;
    }
    Ok(by_status)
}

async fn list(world: &World, query: &str) -> Result<Reply> {
    world.get(&format!("/payments?{query}")).await
}

/// Reads a list of the day to its end, at most `limit` at a time.
async fn read_all(world: &World, filter: &str, limit: usize) -> Result<Vec<Value>> {
    let pages = world.pages(&format!("/payments?dueDate={DAY}{filter}&limit={limit}")).await?;
    assert!(pages.iter().all(|page| page.payments().len() <= limit), "{filter}, limit {limit}");
    Ok(pages.iter().flat_map(|page| page.payments().to_vec()).collect())
}

/// The ids of payments, after asserting that the list has each once.
fn once(payments: &[Value]) -> BTreeSet<String> {
    let ids: BTreeSet<String> = payments.iter().map(|p| p["paymentId"].as_str().unwrap_or_default().into()).collect();
    assert_eq!(ids.len(), payments.len(), "each payment once");
    ids
}

/// Asserts that a list has these payments once, however long its pages are.
async fn assert_lists(world: &World, filter: &str, limits: &[usize], want: &BTreeSet<String>) -> Result<()> {
    for limit in limits {
        let read = read_all(world, filter, *limit).await?;
        assert_eq!(once(&read), *want, "{filter}, limit {limit}");
        assert!(read.iter().all(|payment| payment["dueDate"] == DAY), "{filter}, limit {limit}");
    }
    Ok(())
}

fn union<'s>(sets: impl IntoIterator<Item = &'s BTreeSet<String>>) -> BTreeSet<String> {
    sets.into_iter().flatten().cloned().collect()
}

/// A list of a date shows references, and why payments failed, without a read of their heads: also of a payment that
/// is archived.
#[tokio::test]
async fn a_list_of_a_date_shows_references_and_codes_of_failures() -> Result<()> {
    let world = World::open().await?;
    let rent = order_with(DAY, json!({ "reference": "RENT FLAT 3" }));
    let id: PaymentId = world.create("payer-0", "rent", &rent).await?.parse()?;
    put(&world, DAY, 1).await?;
    move_to(&world, id, Status::Failed).await?;
    for now in ["2026-11-20T09:00:00Z", DAYS_LATER] {
        world.set_clock(now)?;
        let payments = read_all(&world, "", 10).await?;
        let [open, failed] = payments.as_slice() else { anyhow::bail!("{payments:?}") };
        assert_has(failed, &json!({ "reference": "RENT FLAT 3", "failureCode": "AM04" }));
        assert_eq!((open.get("reference"), open.get("failureCode")), (None, None), "{open}");
    }
    Ok(())
}

#[tokio::test]
async fn every_page_size_shows_every_payment_of_the_date_once() -> Result<()> {
    let world = World::open().await?;
    let by_status = a_day(&world).await?;
    let all = union(by_status.values());
    assert_lists(&world, "", &[1, 2, 3, 7, 59, 60, 61, 1_000], &all).await?;
    for (status, ids) in &by_status {
        assert_lists(&world, &format!("&status={status}"), &[1, 5, 1_000], ids).await?;
    }
    let some = union([&by_status[&Status::Failed], &by_status[&Status::Scheduled]]);
    assert_lists(&world, "&status=FAILED,SCHEDULED", &[1, 5, 1_000], &some).await?;
    // The shards together hold the whole date.
    for (filter, want) in [("", &all), ("&status=PENDING", &by_status[&Status::Pending])] {
        for limit in [2, 1_000] {
            let mut payments = Vec::new();
            for shard in 0..SHARDS {
                payments.extend(read_all(&world, &format!("{filter}&shard={shard}"), limit).await?);
            }
            assert_eq!(once(&payments), *want, "{filter}, limit {limit}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_list_merges_both_tables() -> Result<()> {
    let world = World::open().await?;
    let by_status = a_day(&world).await?;
    // Two accounts are archived; a third is in both tables.
    let on_its_way = world.heads("payer-2").await?;
    for account in ["payer-0", "payer-1", "payer-2"] {
        world.archive_all(account).await?;
    }
    world.put_items(&world.environment.tables.payments, on_its_way).await?;
    world.set_clock(DAYS_LATER)?;
    assert_lists(&world, "", &[1, 4, 9, 1_000], &union(by_status.values())).await?;
    assert_lists(&world, "&status=FAILED", &[1, 4, 9, 1_000], &by_status[&Status::Failed]).await
}

#[tokio::test]
async fn a_payment_that_changes_status_between_pages_is_never_missed() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, DAY, 20).await?;
    let claims = async |page| {
        if page == 0 {
            for id in &ids {
                move_to(&world, *id, Status::Pending).await?;
            }
        }
        Ok(())
    };
    let pages = world.pages_while(&format!("/payments?dueDate={DAY}&limit=3"), claims).await?;
    let mut seen = BTreeSet::new();
    for (number, page) in pages.iter().enumerate() {
        let is_pending = |payment: &Value| payment["status"] == "PENDING";
        assert!(number == 0 || page.payments().iter().all(is_pending), "{page}");
        seen.extend(once(page.payments()));
    }
    assert_eq!(seen, ids.iter().map(ToString::to_string).collect());
    Ok(())
}

/// The operations of a list, and the half units read from both tables' `due` indexes. Nothing else may be read.
async fn cost(world: &World, query: &str) -> Result<(Reply, usize, u64)> {
    world.forget();
    let page = list(world, query).await?;
    let (operations, used) = (world.recorder.take_operations(), world.recorder.take_capacity_use());
    assert!(operations.iter().all(|operation| operation == "Query"), "{query}: {operations:?}");
    assert!(used.iter().all(|((_, place), half)| place.ends_with("/due") || *half == 0), "{query}: {used:?}");
    Ok((page, operations.len(), used.values().sum()))
}

#[tokio::test]
async fn an_empty_date_costs_one_query_per_shard_and_status() -> Result<()> {
    let world = World::open().await?;
    put(&world, AFTER, 40).await?;
    for (query, queries) in [
        (format!("dueDate={DAY}&status=PENDING&shard=7"), 1),
        (format!("dueDate={DAY}&shard=7"), Status::ALL.len()),
        (format!("dueDate={DAY}&status=PENDING"), SHARDS),
        (format!("dueDate={DAY}"), SHARDS * Status::ALL.len()),
        // A past date is read from both tables.
        ("dueDate=2026-11-19&status=PENDING".to_owned(), 2 * SHARDS),
    ] {
        let (page, operations, half_units) = cost(&world, &query).await?;
        assert_eq!((page.payments().len(), &page.body["nextCursor"]), (0, &Value::Null), "{query}");
        assert_eq!(operations, queries, "{query}");
        // Half a unit each on AWS; DynamoDB Local charges nothing for an empty query.
        assert!(half_units <= u64::try_from(queries)?, "{query}");
    }
    Ok(())
}

#[tokio::test]
async fn the_cost_of_a_page_depends_on_what_it_returns() -> Result<()> {
    let world = World::open().await?;
    let query = format!("dueDate={DAY}&status=SCHEDULED&shard=0&limit=5");
    put(&world, DAY, 150).await?;
    for more in [0, 600] {
        put(&world, AFTER, more / 2).await?;
        put(&world, DAY, more).await?;
        let (page, operations, half_units) = cost(&world, &query).await?;
        assert_eq!((page.payments().len(), operations, half_units), (5, 1, 1), "{more}");
    }
    // The whole date costs half a unit for each 4 KB of entries, and at most one more for each query.
    let mut entries = 0;
    for account in 0..5 {
        let mut heads = world.heads(&format!("payer-{account}")).await?;
        heads.retain(|head| !head["sk"].as_s().is_ok_and(|sk| sk.starts_with(AFTER)));
        entries += heads.iter().map(item_bytes).sum::<usize>();
    }
    let (page, operations, half_units) = cost(&world, &format!("dueDate={DAY}&limit=1000")).await?;
    let stretches = SHARDS * Status::ALL.len();
    assert_eq!((page.payments().len(), operations), (600, stretches));
    assert!(half_units <= u64::try_from(entries / 4_096 + stretches)?, "{half_units} for {entries} bytes");
    Ok(())
}

#[tokio::test]
async fn a_cursor_is_rejected_by_any_other_list() -> Result<()> {
    let world = World::open().await?;
    put(&world, DAY, 30).await?;
    let next = async |path: &str| anyhow::Ok(world.get(path).await?.field("nextCursor").to_owned());
    let all = next(&format!("/payments?dueDate={DAY}&limit=2")).await?;
    let scheduled = next(&format!("/payments?dueDate={DAY}&status=SCHEDULED&limit=2")).await?;
    let of_account = next("/accounts/payer-0/payments?limit=1").await?;
    let cursor = DueCursor::decode(&all).map_err(|problem| anyhow::anyhow!("{problem:?}"))?;
    let beyond = DueCursor { at: (Status::Scheduled, 10), ..cursor }.encode();
    world.forget();
    for path in [
        format!("/payments?dueDate={AFTER}&cursor={all}"),
        format!("/payments?dueDate={DAY}&status=SCHEDULED&cursor={all}"),
        format!("/payments?dueDate={DAY}&shard=0&cursor={all}"),
        format!("/payments?dueDate={DAY}&status=PENDING&cursor={scheduled}"),
        format!("/payments?dueDate={DAY}&shard=0&cursor={scheduled}"),
        format!("/payments?dueDate={DAY}&status=SCHEDULED,PENDING&cursor={scheduled}"),
        format!("/payments?dueDate={DAY}&status=SCHEDULED&status=PENDING&cursor={scheduled}"),
        format!("/payments?dueDate={DAY}&cursor={of_account}"),
        format!("/payments?dueDate={DAY}&cursor={beyond}"),
        format!("/payments?dueDate={DAY}&cursor={}", all.to_lowercase()),
        // And the other way round.
        format!("/accounts/payer-0/payments?cursor={all}"),
    ] {
        world.refused(Ask::get(&path), 400, "invalid-cursor").await?;
        assert!(world.recorder.take_operations().is_empty(), "{path} reads nothing");
    }
    // Alone, or beside its own query, a cursor is valid.
    for query in [format!("cursor={scheduled}"), format!("dueDate={DAY}&status=SCHEDULED&cursor={scheduled}")] {
        assert_eq!(list(&world, &query).await?.payments().len(), 28, "{query}");
    }
    Ok(())
}

#[tokio::test]
async fn a_transaction_leads_to_its_payments_in_either_table() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, DAY, 6).await?;
    let id = ids[0];
    for (id, status) in [(id, Status::Processed), (ids[1], Status::Processed), (ids[2], Status::Failed)] {
        move_to(&world, id, status).await?;
    }
    // A transaction shows the head, as its account's payment does.
    let assert_shown = async |place: &str| -> Result<()> {
        let of_account = world.payment("payer-0", &id.to_string()).await?;
        let of_transaction = list(&world, &format!("transactionId=TX-{id}")).await?;
        assert_eq!(of_account.field("status"), "PROCESSED", "{place}");
        assert_eq!(of_transaction.body, json!({ "payments": [of_account.body], "nextCursor": null }), "{place}");
        Ok(())
    };
    assert_shown("hot").await?;
    let heads = world.heads("payer-0").await?;
    world.archive_all("payer-0").await?;
    assert_shown("history").await?;
    world.put_items(&world.environment.tables.payments, heads).await?;
    assert_shown("both").await?;
    for unknown in ["TX-0".to_owned(), format!("TX-{}", ids[2]), format!("TX-{}", ids[3]), format!("tx-{id}")] {
        assert_eq!(list(&world, &format!("transactionId={unknown}")).await?.payments().len(), 0, "{unknown}");
    }
    // Two payments share a transaction.
    for id in &ids[3..5] {
        let shared = Settlement::Processed("TX-shared".parse()?);
        move_on(&world, *id, vec![Event::Sweep, Event::Settle(shared)], "2026-12-01T10:00:00Z").await?;
    }
    let shared = list(&world, "transactionId=TX-shared").await?;
    assert_eq!(once(shared.payments()), ids[3..5].iter().map(ToString::to_string).collect(), "{shared}");
    Ok(())
}

#[tokio::test]
async fn an_entry_with_a_damaged_key_hides_no_other() -> Result<()> {
    let world = World::open().await?;
    let ids: BTreeSet<String> = put(&world, DAY, 30).await?.into_iter().map(|id| id.to_string()).collect();
    // Every shard gets damaged entries among the payments.
    for shard in 0..SHARDS {
        for due in ["SCHEDULED#2026-12-01#", "SCHEDULED#2026-12-01#2026-12-01T00:00:00Z#zzz"] {
            let (pk, sk) = (text("ACCT#nobody"), text(format!("{shard}-{due}")));
            let damaged = item([("pk", pk), ("sk", sk), ("shard", number(shard)), ("due", text(due))]);
            world.put_items(&world.environment.tables.payments, [damaged]).await?;
        }
    }
    assert_lists(&world, "", &[1_000, 2], &ids).await
}
