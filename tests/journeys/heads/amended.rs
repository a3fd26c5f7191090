//! Amended payments as each release wrote them.

use payments_model::PaymentId;
use payments_tests::given::move_on;

use super::*;

/// The golden items of amended payments. Add to this file; never change what it holds.
fn amended() -> Result<Vec<Golden>> {
    read(include_str!("amended.json"))
}

fn rent(amount: u32, date: &str) -> Value {
    json!({
        "payeeAccountId": "landlord", "amountMinor": amount, "currency": "GBP", "scheduledFor": date, "data": { "n": amount },
        "reference": "INV 2026/117",
    })
}

/// Payments that were amended: one twice, which is scheduled, one that is pending, and one that is processed, all on another day
/// since then; one that is scheduled and one that is cancelled, on the same day as at first.
async fn written() -> Result<World> {
    let world = World::open().await?;
    let (first, last, content) = (("first", "2026-12-02"), ("last", "2026-11-20"), ("content", "2026-12-01"));
    let settle = Event::Settle(Settlement::Processed("TX-1".parse()?));
    for (key, amendments, events) in [
        ("one", &[first, last][..], vec![]),
        ("two", &[last], vec![Event::Sweep]),
        ("three", &[last], vec![Event::Sweep, settle]),
        ("four", &[content], vec![]),
        ("five", &[content], vec![Event::Cancel]),
    ] {
        let id = world.create("golden", key, &rent(5, "2026-12-01")).await?;
        for (version, (key, date)) in (1..).zip(amendments) {
            let amended = world.send(Ask::amend("golden", &id, (key, version), &rent(7, date))).await?;
            anyhow::ensure!(amended.status == 200, "{amended}");
        }
        move_on(&world, id.parse::<PaymentId>()?, events, "2026-11-20T10:00:00Z").await?;
    }
    Ok(world)
}

#[tokio::test]
async fn amended_payments_of_every_release_are_shown_and_claimed() -> Result<()> {
    let world = world(amended()?).await?;
    let list = world.send(Ask::get("/accounts/golden/payments?from=2026-11-20&include=data")).await?;
    let shown: Vec<_> =
        list.payments().iter().map(|payment| (payment["status"].clone(), payment["data"]["n"].clone())).collect();
    assert_eq!(shown.len(), 5, "{list}");
    let (moved, same) = ("2026-11-20", "2026-12-01");
    for (status, date, version, versions) in [
        ("SCHEDULED", moved, 3, 3),
        ("PENDING", moved, 3, 2),
        ("PROCESSED", moved, 4, 2),
        ("SCHEDULED", same, 2, 2),
        ("CANCELLED", same, 3, 2),
    ] {
        assert!(shown.contains(&(json!(status), json!(7))), "{status}: {list}");
        let is_it = |payment: &&Value| payment["status"] == status && payment["dueDate"] == date;
        let payment = list.payments().iter().find(is_it).with_context(|| format!("{status} {date}"))?.clone();
        assert_eq!((&payment["scheduledFor"], &payment["version"]), (&json!(date), &json!(version)));
        let path = format!("/accounts/golden/payments/{}/versions", payment["paymentId"].as_str().unwrap_or_default());
        let told = world.send(Ask::get(&path)).await?;
        assert_eq!(told.body["versions"].as_array().map(Vec::len), Some(versions), "{told}");
        assert_eq!(told.body["versions"][0]["amountMinor"], 5, "{told}");
    }
    world.sweep().await?;
    let left = Ask::get("/accounts/golden/payments?from=2026-11-20&to=2026-11-20&status=SCHEDULED");
    let left = world.send(left).await?;
    assert_eq!(left.payments(), [json!(null); 0], "{left}");
    Ok(())
}

#[tokio::test]
async fn this_release_writes_the_last_golden_items_of_amended_payments() -> Result<()> {
    let world = written().await?;
    let mut have = BTreeSet::new();
    for table in [&world.environment.tables.payments, &world.environment.tables.history] {
        let items = world.client().await.scan().table_name(table).send().await?.items.unwrap_or_default();
        have.extend(items.iter().map(names));
    }
    let want: BTreeSet<_> = amended()?.iter().map(|golden| names(&golden.item)).collect();
    assert_eq!(have, want);
    Ok(())
}

fn names(item: &Item) -> BTreeSet<String> {
    item.keys().cloned().collect()
}

/// A release of before amendments asks that the trail's length is the version. So it takes these heads for damaged, and sends, settles and
/// shows none of them: see `tests/faults/older.rs`.
#[test]
fn the_release_before_refuses_all_of_them() -> Result<()> {
    let heads = amended()?.into_iter().filter(|golden| golden.item.contains_key("trail"));
    let mut refused = 0;
    for Golden { item, .. } in heads {
        let head: HeadItem = serde_dynamo::from_item(item)?;
        assert_eq!(head.refusal(), Some(TRAIL_AND_VERSION), "{}", head.sk);
        refused += 1;
    }
    assert_eq!(refused, 6);
    Ok(())
}
