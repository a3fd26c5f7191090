//! The payments of a date across all accounts, and the payment of a transaction.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use payments_http::DueCursor;
use payments_model::{Event, Failure, PaymentId, Settlement, Status};
use payments_store::item_bytes;
use payments_tests::given::move_on;
use payments_tests::tables::{number, text};
use payments_tests::{Ask, Reply, World};
use serde_json::{Value, json};

/// The requested date, and its neighbours.
const DAY: &str = "2026-12-01";
const BEFORE: &str = "2026-11-30";
const AFTER: &str = "2026-12-02";

/// When that date is past, and its payments may be in history.
const DAYS_LATER: &str = "2026-12-03T09:00:00Z";

/// The shards of these worlds.
const SHARDS: usize = 10;

/// Creates `count` payments of a date, over five accounts. Returns their ids in that order.
async fn put(world: &World, date: &str, count: usize) -> Result<Vec<PaymentId>> {
    let entry = |n: usize| {
        json!({
            "accountId": format!("payer-{}", n % 5), "idempotencyKey": format!("{date}-{n}"),
            "payeeAccountId": "shop", "amountMinor": 5, "currency": "EUR", "scheduledFor": date,
        })
    };
    let ids = world.create_all((0..count).map(entry)).await?;
    ids.iter().map(|id| Ok(id.parse()?)).collect()
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

/// Creates `count` payments of the day in every status, and some of other dates. Returns the ids by status.
async fn a_day(world: &World, count: usize) -> Result<BTreeMap<Status, BTreeSet<String>>> {
    let mut by_status: BTreeMap<Status, BTreeSet<String>> = BTreeMap::new();
    for (n, id) in put(world, DAY, count).await?.into_iter().enumerate() {
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
    let reply = world.send(Ask::get(&format!("/payments?{query}"))).await?;
    ensure!(reply.status == 200, "{query}: {reply}");
    Ok(reply)
}

/// Reads a list of the day to its end, at most `limit` at a time.
async fn read_all(world: &World, filter: &str, limit: usize) -> Result<Vec<Value>> {
    let mut payments = Vec::new();
    let mut query = format!("dueDate={DAY}{filter}&limit={limit}");
    loop {
        let page = list(world, &query).await?;
        assert!(page.payments().len() <= limit, "{query}: {}", page.payments().len());
        payments.extend_from_slice(page.payments());
        let Some(next) = page.body["nextCursor"].as_str() else { return Ok(payments) };
        query = format!("limit={limit}&cursor={next}");
    }
}

/// The ids of payments, after asserting that each is there once.
fn once(payments: &[Value]) -> BTreeSet<String> {
    let ids: BTreeSet<String> = payments.iter().map(|p| p["paymentId"].as_str().unwrap_or_default().into()).collect();
    assert_eq!(ids.len(), payments.len(), "each payment once");
    ids
}

fn union<'s>(sets: impl IntoIterator<Item = &'s BTreeSet<String>>) -> BTreeSet<String> {
    sets.into_iter().flatten().cloned().collect()
}

/// A list of a date shows references, and why payments failed, without a read of their heads: also of a payment that is archived.
#[tokio::test]
async fn a_list_of_a_date_shows_references_and_codes_of_failures() -> Result<()> {
    let world = World::open().await?;
    let rent = json!({
        "payeeAccountId": "shop", "amountMinor": 5, "currency": "EUR", "scheduledFor": DAY, "reference": "RENT FLAT 3",
    });
    let id: PaymentId = world.create("payer-0", "rent", &rent).await?.parse()?;
    put(&world, DAY, 1).await?;
    move_to(&world, id, Status::Failed).await?;
    for now in [None, Some(DAYS_LATER)] {
        if let Some(now) = now {
            world.set_clock(now)?;
        }
        let payments = read_all(&world, "", 10).await?;
        let [open, failed] = payments.as_slice() else { anyhow::bail!("{payments:?}") };
        assert_eq!((&failed["reference"], &failed["failureCode"]), (&json!("RENT FLAT 3"), &json!("AM04")), "{failed}");
        assert_eq!((open.get("reference"), open.get("failureCode")), (None, None), "{open}");
    }
    Ok(())
}

#[tokio::test]
async fn every_page_size_shows_every_payment_of_the_date_once() -> Result<()> {
    let world = World::open().await?;
    let by_status = a_day(&world, 60).await?;
    let all = union(by_status.values());
    for limit in [1, 2, 3, 7, 59, 60, 61, 1_000] {
        let read = read_all(&world, "", limit).await?;
        assert_eq!(once(&read), all, "limit {limit}");
        assert!(read.iter().all(|payment| payment["dueDate"] == DAY), "limit {limit}");
    }
    for (status, ids) in &by_status {
        for limit in [1, 5, 1_000] {
            let read = read_all(&world, &format!("&status={status}"), limit).await?;
            assert_eq!(once(&read), *ids, "{status}, limit {limit}");
            assert!(read.iter().all(|payment| payment["status"] == status.as_str()), "{status}, limit {limit}");
        }
    }
    let some = union([&by_status[&Status::Failed], &by_status[&Status::Scheduled]]);
    for limit in [1, 5, 1_000] {
        assert_eq!(once(&read_all(&world, "&status=FAILED,SCHEDULED", limit).await?), some, "limit {limit}");
    }
    Ok(())
}

#[tokio::test]
async fn the_shards_together_hold_the_whole_date() -> Result<()> {
    let world = World::open().await?;
    let by_status = a_day(&world, 60).await?;
    for (filter, want) in [("", union(by_status.values())), ("&status=PENDING", by_status[&Status::Pending].clone())] {
        for limit in [2, 1_000] {
            let mut payments = Vec::new();
            for shard in 0..SHARDS {
                payments.extend(read_all(&world, &format!("{filter}&shard={shard}"), limit).await?);
            }
            assert_eq!(once(&payments), want, "{filter}, limit {limit}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_list_merges_both_tables() -> Result<()> {
    let world = World::open().await?;
    let by_status = a_day(&world, 60).await?;
    // Two accounts are archived; a third is in both tables.
    let on_its_way = world.heads("payer-2").await?;
    for account in ["payer-0", "payer-1", "payer-2"] {
        world.archive_all(account).await?;
    }
    world.put_items(&world.environment.tables.payments, on_its_way).await?;
    world.set_clock(DAYS_LATER)?;
    for limit in [1, 4, 9, 1_000] {
        assert_eq!(once(&read_all(&world, "", limit).await?), union(by_status.values()), "limit {limit}");
        let failed = read_all(&world, "&status=FAILED", limit).await?;
        assert_eq!(once(&failed), by_status[&Status::Failed], "limit {limit}");
    }
    Ok(())
}

#[tokio::test]
async fn a_payment_that_changes_status_between_pages_is_never_missed() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, DAY, 20).await?;
    let first = list(&world, &format!("dueDate={DAY}&limit=3")).await?;
    for id in &ids {
        move_to(&world, *id, Status::Pending).await?;
    }
    let mut seen = once(first.payments());
    let mut cursor = first.body["nextCursor"].as_str().map(str::to_owned);
    while let Some(next) = cursor {
        let page = list(&world, &format!("limit=3&cursor={next}")).await?;
        assert!(page.payments().iter().all(|payment| payment["status"] == "PENDING"), "{page}");
        seen.extend(once(page.payments()));
        cursor = page.body["nextCursor"].as_str().map(str::to_owned);
    }
    assert_eq!(seen, ids.iter().map(ToString::to_string).collect());
    Ok(())
}

/// The half units read from both tables' `due` indexes since the last time. Nothing else may be read.
fn half_units(world: &World) -> u64 {
    let used = world.recorder.take_capacity_use();
    assert!(
        used.iter()
            .all(|((operation, place), half)| { operation == "Query" && (place.ends_with("/due") || *half == 0) }),
        "{used:?}"
    );
    used.values().sum()
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
        drop((world.recorder.take_operations(), world.recorder.take_capacity_use()));
        let page = list(&world, &query).await?;
        assert_eq!((page.payments().len(), &page.body["nextCursor"]), (0, &Value::Null), "{query}");
        assert_eq!(world.recorder.take_operations(), vec!["Query"; queries], "{query}");
        // Half a unit each on AWS; DynamoDB Local charges nothing for an empty query.
        assert!(half_units(&world) <= u64::try_from(queries)?, "{query}");
    }
    Ok(())
}

#[tokio::test]
async fn the_cost_of_a_page_depends_on_what_it_returns() -> Result<()> {
    let world = World::open().await?;
    let query = format!("dueDate={DAY}&status=SCHEDULED&shard=0&limit=5");
    put(&world, DAY, 150).await?;
    drop((world.recorder.take_operations(), world.recorder.take_capacity_use()));
    let few = list(&world, &query).await?;
    let (few_operations, few_cost) = (world.recorder.take_operations(), half_units(&world));
    put(&world, AFTER, 300).await?;
    put(&world, DAY, 600).await?;
    drop((world.recorder.take_operations(), world.recorder.take_capacity_use()));
    let many = list(&world, &query).await?;
    assert_eq!((few.payments().len(), many.payments().len()), (5, 5));
    assert_eq!((few_operations, few_cost), (vec!["Query".to_owned()], 1));
    assert_eq!((world.recorder.take_operations(), half_units(&world)), (vec!["Query".to_owned()], 1));

    // The whole date costs half a unit for each 4 KB of entries, and at most one more for each query.
    let mut entries = 0;
    for account in 0..5 {
        let heads = world.heads(&format!("payer-{account}")).await?;
        entries += heads
            .iter()
            .filter(|head| !head["sk"].as_s().is_ok_and(|sk| sk.starts_with(AFTER)))
            .map(item_bytes)
            .sum::<usize>();
    }
    drop((world.recorder.take_operations(), world.recorder.take_capacity_use()));
    assert_eq!(read_all(&world, "", 1_000).await?.len(), 600);
    let stretches = SHARDS * Status::ALL.len();
    assert_eq!(world.recorder.take_operations().len(), stretches);
    let cost = half_units(&world);
    assert!(cost <= u64::try_from(entries / 4_096 + stretches)?, "{cost} half units for {entries} bytes");
    Ok(())
}

#[tokio::test]
async fn a_cursor_is_rejected_by_any_other_list() -> Result<()> {
    let world = World::open().await?;
    put(&world, DAY, 30).await?;
    let next = |page: &Reply| Ok::<_, anyhow::Error>(page.body["nextCursor"].as_str().context("a cursor")?.to_owned());
    let all = next(&list(&world, &format!("dueDate={DAY}&limit=2")).await?)?;
    let scheduled = next(&list(&world, &format!("dueDate={DAY}&status=SCHEDULED&limit=2")).await?)?;
    let of_account = next(&world.send(Ask::get("/accounts/payer-0/payments?limit=1")).await?)?;
    let beyond =
        DueCursor { at: (Status::Scheduled, 10), ..DueCursor::decode(&all).map_err(|p| anyhow::anyhow!("{p:?}"))? };
    for query in [
        format!("dueDate={AFTER}&cursor={all}"),
        format!("dueDate={DAY}&status=SCHEDULED&cursor={all}"),
        format!("dueDate={DAY}&shard=0&cursor={all}"),
        format!("dueDate={DAY}&status=PENDING&cursor={scheduled}"),
        format!("dueDate={DAY}&shard=0&cursor={scheduled}"),
        format!("dueDate={DAY}&status=SCHEDULED,PENDING&cursor={scheduled}"),
        format!("dueDate={DAY}&status=SCHEDULED&status=PENDING&cursor={scheduled}"),
        format!("dueDate={DAY}&cursor={of_account}"),
        format!("dueDate={DAY}&cursor={}", beyond.encode()),
        format!("dueDate={DAY}&cursor={}", all.to_lowercase()),
    ] {
        drop(world.recorder.take_operations());
        let reply = world.send(Ask::get(&format!("/payments?{query}"))).await?;
        assert_eq!((reply.status, reply.problem()), (400, "invalid-cursor"), "{query}: {reply}");
        assert!(world.recorder.take_operations().is_empty(), "{query} reads nothing");
    }
    // And the other way round: a date's cursor is invalid for an account.
    let reply = world.send(Ask::get(&format!("/accounts/payer-0/payments?cursor={all}"))).await?;
    assert_eq!((reply.status, reply.problem()), (400, "invalid-cursor"), "{reply}");
    // Alone, or beside its own query, a cursor is valid.
    for query in [format!("cursor={scheduled}"), format!("dueDate={DAY}&status=SCHEDULED&cursor={scheduled}")] {
        assert_eq!(list(&world, &query).await?.payments().len(), 28, "{query}");
    }
    Ok(())
}

#[tokio::test]
async fn a_transaction_leads_to_its_payment_in_either_table() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, DAY, 6).await?;
    let (id, other) = (ids[0], ids[1]);
    for id in [id, other] {
        move_to(&world, id, Status::Processed).await?;
    }
    move_to(&world, ids[2], Status::Failed).await?;
    let path = format!("/payments?transactionId=TX-{id}");
    // A transaction shows the head, as its account's payment does.
    let shown = async |place: &str| -> Result<()> {
        let of_account = world.send(Ask::get(&format!("/accounts/payer-0/payments/{id}"))).await?;
        let of_transaction = world.send(Ask::get(&path)).await?;
        assert_eq!((of_transaction.status, of_account.field("status")), (200, "PROCESSED"), "{place}");
        assert_eq!(of_transaction.body, json!({ "payments": [of_account.body], "nextCursor": null }), "{place}");
        Ok(())
    };
    shown("hot").await?;
    let heads = world.heads("payer-0").await?;
    world.archive_all("payer-0").await?;
    shown("history").await?;
    world.put_items(&world.environment.tables.payments, heads).await?;
    shown("both").await?;
    for unknown in ["TX-0".to_owned(), format!("TX-{}", ids[2]), format!("TX-{}", ids[3]), format!("tx-{id}")] {
        let reply = world.send(Ask::get(&format!("/payments?transactionId={unknown}"))).await?;
        assert_eq!((reply.status, reply.payments().len()), (200, 0), "{unknown}: {reply}");
    }
    Ok(())
}

#[tokio::test]
async fn a_transaction_that_two_payments_share_leads_to_both() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, DAY, 2).await?;
    for id in &ids {
        let shared = Settlement::Processed("TX-shared".parse()?);
        move_on(&world, *id, vec![Event::Sweep, Event::Settle(shared)], "2026-12-01T10:00:00Z").await?;
    }
    let reply = world.send(Ask::get("/payments?transactionId=TX-shared")).await?;
    assert_eq!(once(reply.payments()), ids.iter().map(ToString::to_string).collect(), "{reply}");
    Ok(())
}

#[tokio::test]
async fn an_entry_with_a_damaged_key_hides_no_other() -> Result<()> {
    let world = World::open().await?;
    let ids: BTreeSet<String> = put(&world, DAY, 30).await?.into_iter().map(|id| id.to_string()).collect();
    // Every shard gets damaged entries among the payments.
    for shard in 0..SHARDS {
        for (n, due) in
            ["SCHEDULED#2026-12-01#", "SCHEDULED#2026-12-01#2026-12-01T00:00:00Z#zzz"].into_iter().enumerate()
        {
            let sk = format!("{shard}-{n}");
            let item = [("pk", text("ACCT#nobody")), ("sk", text(sk)), ("shard", number(shard)), ("due", text(due))];
            let item = item.map(|(name, value)| (name.to_owned(), value)).into();
            world.put_items(&world.environment.tables.payments, [item]).await?;
        }
    }
    for limit in [1_000, 2] {
        let mut found = BTreeSet::new();
        let mut path = format!("/payments?dueDate={DAY}&limit={limit}");
        loop {
            let page = world.send(Ask::get(&path)).await?;
            ensure!(page.status == 200, "{page}");
            found.extend(page.payments().iter().filter_map(|payment| Some(payment["paymentId"].as_str()?.to_owned())));
            let Some(cursor) = page.body["nextCursor"].as_str() else { break };
            path = format!("/payments?cursor={cursor}&limit={limit}");
        }
        assert_eq!(found, ids, "limit {limit}");
    }
    Ok(())
}
