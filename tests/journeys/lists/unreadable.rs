//! Stored payments that cannot be read: lists continue without them, and say which and how many they left out.

use payments_model::{Event, Settlement};
use payments_tests::prelude::*;

/// The date of the payments.
const DAY: &str = "2026-12-01";

/// An account's lists without and with data, and the list of the date.
const HEADS: &str = "/accounts/buyer/payments?status=SCHEDULED";
const WITH_DATA: &str = "/accounts/buyer/payments?include=data";
const OF_DATE: &str = "/payments?dueDate=2026-12-01";

/// Creates payments of one account. Returns their ids.
async fn put(world: &World, count: usize) -> Result<Vec<String>> {
    world.create_all((0..count).map(|n| entry("buyer", n, order_with(DAY, json!({ "data": n }))))).await
}

/// Changes the heads of some payments.
async fn damage(world: &World, ids: &[String], attribute: &str) -> Result<()> {
    for id in ids {
        let head = world.head_of("buyer", id).await?;
        world.update(&head, &format!("SET {attribute} = :zero"), &[(":zero", number(0))]).await?;
    }
    Ok(())
}

/// The payments that all pages of a list show and leave out.
#[derive(Debug, Default, PartialEq)]
struct Found {
    shown: BTreeSet<String>,
    unreadable: BTreeSet<String>,
    count: u64,
}

impl Found {
    fn new(shown: &[String], unreadable: &[String]) -> Result<Self> {
        let set = |ids: &[String]| ids.iter().cloned().collect();
        Ok(Self { shown: set(shown), unreadable: set(unreadable), count: u64::try_from(unreadable.len())? })
    }

    /// Reads a list to its end, `limit` at a time.
    async fn read(world: &World, path: &str, limit: usize) -> Result<Self> {
        let mut found = Self::default();
        for page in world.pages(&format!("{path}&limit={limit}")).await? {
            for id in page.ids() {
                ensure!(found.shown.insert(id.clone()), "{id} is shown twice");
            }
            let unreadable = page.body.get("unreadable").unwrap_or(&Value::Null);
            let ids = unreadable["paymentIds"].as_array().into_iter().flatten();
            found.unreadable.extend(ids.filter_map(|id| id.as_str().map(str::to_owned)));
            found.count += unreadable["count"].as_u64().unwrap_or(0);
        }
        Ok(found)
    }
}

/// Asserts that a list shows some payments and leaves out others, however long its pages are.
async fn assert_found(
    world: &World,
    path: &str,
    limits: &[usize],
    (shown, unreadable): (&[String], &[String]),
) -> Result<()> {
    for limit in limits {
        assert_eq!(Found::read(world, path, *limit).await?, Found::new(shown, unreadable)?, "{path}, limit {limit}");
    }
    Ok(())
}

#[tokio::test]
async fn a_damaged_head_hides_no_other_of_its_account() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, 7).await?;
    drop(world.outside.metrics.take());
    for path in [HEADS, WITH_DATA] {
        assert_found(&world, path, &[1_000], (&ids, &[])).await?;
    }
    assert_eq!(world.outside.metrics.take(), [""; 0], "a whole list counts nothing");
    // The first, the last and one between.
    let (damaged, whole) = ([ids[0].clone(), ids[3].clone(), ids[6].clone()], [&ids[1..3], &ids[4..6]].concat());
    damage(&world, &damaged, "version").await?;
    for path in [HEADS, WITH_DATA] {
        assert_found(&world, path, &[1, 2, 3, 7, 1_000], (&whole, &damaged)).await?;
        assert_eq!(world.metric("PaymentsUnreadable")?, 3, "{path}");
    }
    for (id, status) in [(&damaged[0], 500), (&whole[0], 200)] {
        world.send(Ask::get(&format!("/accounts/buyer/payments/{id}"))).await?.with_status(status)?;
    }
    // The same in history, and if only one of two tables is damaged.
    world.archive_all("buyer").await?;
    world.set_clock("2026-12-03T09:00:00Z")?;
    let path = format!("/accounts/buyer/payments?from={DAY}&to={DAY}");
    assert_found(&world, &path, &[1, 3, 1_000], (&whole, &damaged)).await
}

#[tokio::test]
async fn damaged_details_hide_no_other_and_only_from_lists_with_data() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, 5).await?;
    world.update_details(&ids[1], "SET #data = :broken", &[(":broken", text("{"))]).await?;
    world.delete(&world.environment.tables.history, &details_key(&ids[4])).await?;
    let (damaged, whole) = ([ids[1].clone(), ids[4].clone()], [&ids[..1], &ids[2..4]].concat());
    assert_found(&world, WITH_DATA, &[1, 2, 1_000], (&whole, &damaged)).await?;
    assert_found(&world, HEADS, &[1, 2, 1_000], (&ids, &[])).await
}

#[tokio::test]
async fn items_whose_keys_cannot_be_read_hide_no_payment() -> Result<()> {
    let world = World::open().await?;
    let ids = put(&world, 4).await?;
    for sk in ["2026-11-30", "2026-12-01T00:00:00Z#!", "2026-12-01T00:00:00Z#zzz", "2026-12-02T00:00:00Z#"] {
        let attributes =
            [("pk", text("ACCT#buyer")), ("sk", text(sk)), ("status", text("SCHEDULED")), ("moved", text(sk))];
        world.put_items(&world.environment.tables.payments, [item(attributes)]).await?;
    }
    for path in [HEADS, WITH_DATA] {
        for limit in [1, 2, 3, 1_000] {
            let read = Found::read(&world, path, limit).await?;
            // Heads without a readable key have no place in the order, so several pages can count one of them.
            assert!(if limit == 1_000 { read.count == 4 } else { read.count >= 4 }, "{path}, limit {limit}: {read:?}");
            assert_eq!(Found { count: 0, ..read }, Found::new(&ids, &[])?, "{path}, limit {limit}");
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
        assert_found(&world, OF_DATE, &[limit], (&ids[3..], &ids[..3])).await?;
        let lines = world.outside.metrics.take();
        let counted = lines.iter().map(|line| Ok(serde_json::from_str::<Value>(line)?["PaymentsUnreadable"].as_u64()));
        assert_eq!(counted.collect::<Result<Vec<_>>>()?.into_iter().flatten().sum::<u64>(), 3, "{lines:?}");
    }
    // In both tables.
    let heads = world.heads("buyer").await?;
    world.archive_all("buyer").await?;
    world.put_items(&world.environment.tables.payments, heads.into_iter().step_by(2)).await?;
    world.set_clock("2026-12-03T09:00:00Z")?;
    assert_found(&world, OF_DATE, &[1, 7, 1_000], (&ids[3..], &ids[..3])).await
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
    let reply = world.get("/payments?transactionId=TX").await?;
    assert_eq!(reply.ids(), ids[1..]);
    assert_eq!(reply.body["unreadable"], json!({ "count": 1, "paymentIds": [ids[0]] }), "{reply}");
    assert_eq!(world.metric("PaymentsUnreadable")?, 1);
    Ok(())
}
