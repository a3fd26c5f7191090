//! Sealed dates: each finished payment in one part, as the API shows it, whatever fails.

mod clearing;
mod kills;
mod reading;
mod sizes;
mod sql;

use object_store::ObjectStoreExt as _;
use payments_sealed::{Part, SealedRow, read_all};
use payments_store::key::{account_partition, head_sort};
use payments_tests::orders;
use payments_tests::prelude::*;

use futures::TryStreamExt as _;

/// The day on which the payments are created and due.
const DAY: &str = "2026-11-20";

/// The night in which the archive takes settled payments that did not expire.
const ARCHIVED_AT: &str = "2026-11-24T02:30:00Z";

/// The night in which one machine seals the day: five days after its end.
const SEALED_AT: &str = "2026-11-26T04:10:00Z";

/// The night in which it seals a payment that ended in that night.
const LATE_AT: &str = "2026-12-02T04:10:00Z";

/// Rows of a part.
const ROWS: u32 = 2;

/// A world with parts of a few rows.
async fn world() -> Result<World> {
    world_of(0).await
}

/// A world with parts of a few rows, which are kept for so many days.
async fn world_of(kept_days: u32) -> Result<World> {
    World::with(|environment| {
        (environment.max_part_rows, environment.shards, environment.kept_days) = (ROWS, 2, kept_days);
        (environment.seal_after_days, environment.clear_after_days) = (5, 3);
    })
    .await
}

fn body(key: &str) -> Value {
    order_with(DAY, json!({ "data": data(key), "reference": key }))
}

/// A client's data: more than stays in the table, except that of "two".
fn data(key: &str) -> Value {
    let mut random = fastrand::Rng::with_seed(key.len() as u64);
    let letters = if key == "two" { 0 } else { 600 };
    json!({ "key": key, "text": std::iter::repeat_with(|| random.alphanumeric()).take(letters).collect::<String>() })
}

async fn create(world: &World, key: &str) -> Result<String> {
    world.create("tenant", key, &body(key)).await
}

/// Creates payments that end in every way before the night of the archive, and one that stays PENDING. Returns the ids of the
/// finished ones, and the pending one's.
async fn day(world: &World) -> Result<(Vec<String>, String)> {
    let mut ids = Vec::new();
    for key in ["one", "two", "three"] {
        ids.push(create(world, key).await?);
    }
    let changes = order_with(DAY, json!({ "data": data("changed"), "amountMinor": 77 }));
    world.send(Ask::amend("tenant", &ids[0], ("change", 1), &changes)).await?.with_status(200)?;
    let pending = create(world, "pending").await?;
    world.sweep().await?;
    world.settle(&[orders::processed(&ids[0], &changes, "TX-1")]).await?;
    world.settle(&[orders::failed(&ids[1], &body("two"), "AM04", "no funds")]).await?;
    world.settle(&[orders::processed(&ids[2], &body("three"), "TX-3")]).await?;
    let cancelled = create(world, "cancelled").await?;
    world.cancel("tenant", &cancelled).await?;
    ids.push(cancelled);
    world.run("report", json!({ "action": "report" })).await?;
    world.set_clock(ARCHIVED_AT)?;
    world.archive().await?;
    world.count_all().await?;
    ids.sort();
    Ok((ids, pending))
}

/// Settles the pending payment, as after a late result, and takes it out of the hot table.
async fn settle_late(world: &World, pending: &str) -> Result<()> {
    world.settle(&[orders::processed(pending, &body("pending"), "TX-9")]).await?;
    let details = world.store().await.details(pending.parse()?).await?.context("it has details")?;
    let (pk, sk) = (account_partition(&details.instruction.account), head_sort(details.key().slot));
    world.delete(&world.environment.tables.payments, &item([("pk", text(pk)), ("sk", text(sk))])).await?;
    world.count_all().await?;
    Ok(())
}

async fn seal(functions: &Functions) -> Result<Value> {
    payments_tests::scheduled(functions, "seal", json!({ "action": "seal" })).await
}

/// The parts of the folder, in their order, with their rows and bytes.
async fn parts(world: &World) -> Result<Vec<(String, Part, Vec<SealedRow>, bytes::Bytes)>> {
    let files: Vec<_> = world.outside.reports.list(Some(&"sealed".into())).try_collect().await?;
    let mut parts = Vec::new();
    for file in files {
        let bytes = world.outside.reports.get(&file.location).await?.bytes().await?;
        let (part, rows) = read_all(&bytes)?;
        parts.push((file.location.to_string(), part, rows, bytes));
    }
    parts.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    Ok(parts)
}

/// Asserts that these payments are sealed, each once and as the API shows it, in whole parts with numbers from 1 on.
async fn assert_sealed(world: &World, ids: &[String], when: &str) -> Result<()> {
    let (mut sealed, mut before) = (Vec::new(), 0);
    for (number, (path, part, rows, _)) in (1..).zip(parts(world).await?) {
        assert_eq!(path, format!("sealed/date={DAY}/{number:06}.parquet"), "{when}");
        assert_eq!(
            (part.name.due_date.as_str(), part.name.number, part.name.rows_before),
            (DAY, number, before),
            "{when}"
        );
        assert!(rows.len() <= ROWS.try_into()?, "{when}: {path} has {} rows", rows.len());
        before += rows.len() as u64;
        for row in rows {
            let id = row.text("paymentId").context("an id")?.to_owned();
            let path = format!("/accounts/tenant/payments/{id}");
            let shown = world.send(Ask::get(&path)).await?.with_status(200)?;
            assert_eq!(row.payment(), shown.text, "{when}");
            let versions = world.send(Ask::get(&format!("{path}/versions?include=data"))).await?.with_status(200)?;
            let has_more = versions.body["versions"].as_array().is_some_and(|versions| versions.len() > 1);
            assert_eq!(row.versions(), has_more.then_some(versions.text.as_str()), "{when}");
            sealed.push(id);
        }
    }
    sealed.sort();
    assert_eq!(sealed, ids, "{when}: each payment is in one part");
    Ok(())
}

#[tokio::test]
async fn finished_payments_are_sealed_once_and_late_ones_in_a_later_part() -> Result<()> {
    let world = world().await?;
    let (mut ids, pending) = day(&world).await?;
    world.set_clock("2026-11-25T23:59:59Z")?;
    assert_eq!(seal(world.functions()).await?["sealed"], 0, "it is too early");
    world.set_clock(SEALED_AT)?;
    let outcome = seal(world.functions()).await?;
    assert_eq!(
        outcome,
        json!({"sealed": 4, "parts": 2, "cleared": 0, "waiting": 0, "unreadable": 0, "datesLeft": 0, "sealBehind": 0, "sealDiffers": 0})
    );
    assert_sealed(&world, &ids, "at first").await?;
    let first = parts(&world).await?;
    assert_eq!(seal(world.functions()).await?["parts"], 0, "there is nothing more");
    // In the order of account, due time and id.
    let order: Vec<_> = first.iter().flat_map(|(_, _, rows, _)| rows).filter_map(|row| row.text("paymentId")).collect();
    assert_eq!(order, ids);

    settle_late(&world, &pending).await?;
    let late = seal(world.functions()).await?;
    assert_eq!((&late["sealed"], &late["waiting"]), (&json!(0), &json!(1)), "a restore can take its end back");
    world.set_clock(LATE_AT)?;
    assert_eq!(seal(world.functions()).await?["sealed"], 1);
    ids.push(pending);
    ids.sort();
    assert_sealed(&world, &ids, "at last").await?;
    let after = parts(&world).await?;
    assert!(first.iter().zip(&after).all(|(one, other)| (&one.0, &one.3) == (&other.0, &other.3)), "a part changed");
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_read_or_may_still_change_stays_and_hides_nothing_else() -> Result<()> {
    let world = world().await?;
    let (mut ids, _) = day(&world).await?;
    let damaged = ids.remove(0);
    let store = world.store().await;
    let kept = ids.remove(0);
    let key = store.details(kept.parse()?).await?.context("it has details")?.key();
    let sk = head_sort(key.slot);
    let head = world.archived_heads("tenant").await?.into_iter().find(|head| head["sk"].as_s() == Ok(&sk));
    // As if the archive had copied it, and not yet deleted it.
    world.put_items(&world.environment.tables.payments, [head.context("a head")?]).await?;
    world.update_details(&damaged, "SET amountMinor = :amount", &[(":amount", number(1))]).await?;
    world.set_clock("2026-11-29T04:10:00Z")?;
    let outcome = seal(world.functions()).await?;
    assert_eq!(
        outcome,
        json!({"sealed": 2, "parts": 1, "cleared": 0, "waiting": 1, "unreadable": 1, "datesLeft": 1, "sealBehind": 1, "sealDiffers": 0})
    );
    assert_sealed(&world, &ids, "without them").await
}

#[tokio::test]
async fn a_part_whose_bytes_changed_is_never_believed() -> Result<()> {
    let world = world().await?;
    day(&world).await?;
    world.set_clock(SEALED_AT)?;
    seal(world.functions()).await?;
    let (path, _, _, bytes) = parts(&world).await?.pop().context("no part")?;
    let mut changed = bytes.to_vec();
    changed.truncate(changed.len() - 1);
    world.outside.reports.put(&path.as_str().into(), changed.into()).await?;
    let error = seal(world.functions()).await.err().context("a changed part is believed")?;
    assert!(error.to_string().contains(&path), "{error}");
    Ok(())
}
