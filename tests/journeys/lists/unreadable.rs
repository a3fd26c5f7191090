//! Stored payments that cannot be read: lists go on without them, and say which and how many they left out.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use payments_model::{Event, Settlement};
use payments_tests::given::move_on;
use payments_tests::tables::{details_key, number, text};
use payments_tests::{Ask, World};
use serde_json::{Value, json};

/// The date of the payments.
const DAY: &str = "2026-12-01";

/// Creates payments of one account. Returns their ids.
async fn put(world: &World, count: usize) -> Result<Vec<String>> {
    let entry = |n: usize| {
        json!({
            "accountId": "buyer", "idempotencyKey": n.to_string(), "payeeAccountId": "shop", "amountMinor": 5,
            "currency": "EUR", "scheduledFor": DAY, "data": n,
        })
    };
    world.create_all((0..count).map(entry)).await
}

/// Changes the heads of some payments.
async fn damage(world: &World, ids: &[String], attribute: &str) -> Result<()> {
    for head in world.heads("buyer").await? {
        if head["sk"].as_s().is_ok_and(|sk| ids.iter().any(|id| sk.ends_with(id))) {
            world.update(&head, &format!("SET {attribute} = :zero"), &[(":zero", number(0))]).await?;
        }
    }
    Ok(())
}

/// What all pages of a list show and leave out.
#[derive(Debug, Default, PartialEq)]
struct Found {
    shown: BTreeSet<String>,
    unreadable: BTreeSet<String>,
    count: u64,
}

/// Reads a list to its end, `limit` at a time.
async fn read(world: &World, path: &str, limit: usize) -> Result<Found> {
    let mut found = Found::default();
    let mut cursor = String::new();
    loop {
        let page = world.send(Ask::get(&format!("{path}&limit={limit}{cursor}"))).await?;
        ensure!(page.status == 200, "{page}");
        for payment in page.payments() {
            let id = payment["paymentId"].as_str().context("an id")?;
            ensure!(found.shown.insert(id.to_owned()), "{id} is shown twice");
        }
        let unreadable = page.body.get("unreadable").unwrap_or(&Value::Null);
        let ids = unreadable["paymentIds"].as_array().into_iter().flatten();
        found.unreadable.extend(ids.filter_map(|id| id.as_str().map(str::to_owned)));
        found.count += unreadable["count"].as_u64().unwrap_or(0);
        let Some(next) = page.body["nextCursor"].as_str() else { return Ok(found) };
        cursor = format!("&cursor={next}");
    }
}

fn found(shown: &[String], unreadable: &[String]) -> Result<Found> {
    let set = |ids: &[String]| ids.iter().cloned().collect();
    Ok(Found { shown: set(shown), unreadable: set(unreadable), count: u64::try_from(unreadable.len())? })
}

#[tokio::test]
async fn a_damaged_head_hides_no_other_of_its_account() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, 7).await?;
    let lists = ["/accounts/buyer/payments?status=SCHEDULED", "/accounts/buyer/payments?include=data"];
    drop(world.outside.metrics.take());
    for path in lists {
        assert_eq!(read(&world, path, 1_000).await?, found(&ids, &[])?, "{path}");
    }
    assert_eq!(world.outside.metrics.take(), [""; 0], "a whole list counts nothing");
    // The first, the last and one between.
    let (damaged, whole) = ([ids[0].clone(), ids[3].clone(), ids[6].clone()], [&ids[1..3], &ids[4..6]].concat());
    damage(&world, &damaged, "version").await?;
    for path in lists {
        for limit in [1, 2, 3, 7, 1_000] {
            assert_eq!(read(&world, path, limit).await?, found(&whole, &damaged)?, "{path}, limit {limit}");
        }
        assert_eq!(world.metric("PaymentsUnreadable")?, 3, "{path}");
    }
    for (id, status) in [(&damaged[0], 500), (&whole[0], 200)] {
        let one = world.send(Ask::get(&format!("/accounts/buyer/payments/{id}"))).await?;
        assert_eq!(one.status, status, "{one}");
    }
    // The same in history, and if only one of two tables is damaged.
    world.archive_all("buyer").await?;
    world.set_clock("2026-12-03T09:00:00Z")?;
    for limit in [1, 3, 1_000] {
        let path = format!("/accounts/buyer/payments?from={DAY}&to={DAY}");
        assert_eq!(read(&world, &path, limit).await?, found(&whole, &damaged)?, "history, limit {limit}");
    }
    Ok(())
}

#[tokio::test]
async fn damaged_details_hide_no_other_and_only_from_lists_with_data() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, 5).await?;
    world.update_details(&ids[1], "SET #data = :broken", &[(":broken", text("{"))]).await?;
    let history = &world.environment.tables.history;
    let delete = world.client().await.delete_item().table_name(history).set_key(Some(details_key(&ids[4])));
    delete.send().await?;
    let (damaged, whole) = ([ids[1].clone(), ids[4].clone()], [&ids[..1], &ids[2..4]].concat());
    for limit in [1, 2, 1_000] {
        let with_data = read(&world, "/accounts/buyer/payments?include=data", limit).await?;
        assert_eq!(with_data, found(&whole, &damaged)?, "limit {limit}");
        let without = read(&world, "/accounts/buyer/payments?status=SCHEDULED", limit).await?;
        assert_eq!(without, found(&ids, &[])?, "limit {limit}");
    }
    Ok(())
}

#[tokio::test]
async fn items_whose_keys_cannot_be_read_hide_no_payment() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, 4).await?;
    for sk in ["2026-11-30", "2026-12-01T00:00:00Z#!", "2026-12-01T00:00:00Z#zzz", "2026-12-02T00:00:00Z#"] {
        let item = [("pk", text("ACCT#buyer")), ("sk", text(sk)), ("status", text("SCHEDULED")), ("moved", text(sk))];
        let item = item.map(|(name, value)| (name.to_owned(), value)).into();
        world.put_items(&world.environment.tables.payments, [item]).await?;
    }
    for path in ["/accounts/buyer/payments?status=SCHEDULED", "/accounts/buyer/payments?include=data"] {
        for limit in [1, 2, 3, 1_000] {
            let read = read(&world, path, limit).await?;
            assert_eq!((&read.shown, read.unreadable.len()), (&found(&ids, &[])?.shown, 0), "{path}, limit {limit}");
            // They have no place in the order, so several pages can count one of them.
            assert!(if limit == 1_000 { read.count == 4 } else { read.count >= 4 }, "{path}, limit {limit}: {read:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_damaged_entry_of_a_date_is_left_out_with_its_id() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, 20).await?;
    damage(&world, &ids[..3], "amountMinor").await?;
    for limit in [1, 7, 1_000] {
        drop(world.outside.metrics.take());
        let list = read(&world, &format!("/payments?dueDate={DAY}"), limit).await?;
        assert_eq!(list, found(&ids[3..], &ids[..3])?, "limit {limit}");
        let lines = world.outside.metrics.take();
        let counted = lines.iter().map(|line| Ok(serde_json::from_str::<Value>(line)?["PaymentsUnreadable"].as_u64()));
        assert_eq!(counted.collect::<Result<Vec<_>>>()?.into_iter().flatten().sum::<u64>(), 3, "{lines:?}");
    }
    // In both tables.
    let heads = world.heads("buyer").await?;
    world.archive_all("buyer").await?;
    world.put_items(&world.environment.tables.payments, heads.into_iter().step_by(2)).await?;
    world.set_clock("2026-12-03T09:00:00Z")?;
    for limit in [1, 7, 1_000] {
        let list = read(&world, &format!("/payments?dueDate={DAY}"), limit).await?;
        assert_eq!(list, found(&ids[3..], &ids[..3])?, "both tables, limit {limit}");
    }
    Ok(())
}

#[tokio::test]
async fn a_damaged_payment_of_a_transaction_is_left_out() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, 2).await?;
    for id in &ids {
        let settled = Event::Settle(Settlement::Processed("TX".parse()?));
        move_on(&world, id.parse()?, vec![Event::Sweep, settled], "2026-12-01T10:00:00Z").await?;
    }
    damage(&world, &ids[..1], "version").await?;
    let reply = world.send(Ask::get("/payments?transactionId=TX")).await?;
    assert_eq!((reply.status, reply.payments().len()), (200, 1), "{reply}");
    assert_eq!(reply.payments()[0]["paymentId"], ids[1], "{reply}");
    assert_eq!(reply.body["unreadable"], json!({ "count": 1, "paymentIds": [ids[0]] }), "{reply}");
    assert_eq!(world.metric("PaymentsUnreadable")?, 1);
    Ok(())
}
