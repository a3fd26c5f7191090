//! The expiry of an item belongs to its table's item alone: no copy of a head has it.

use payments_store::KEPT_UNTIL;
use payments_store::key::parse_head_key;
use payments_store::schema::{HISTORY, PAYMENTS};
use payments_tests::prelude::*;

use super::{NIGHT, processed, put, put_processed};

/// The attributes by which DynamoDB deletes items of the two tables, as the schema says.
fn times_to_live() -> Result<[&'static str; 2]> {
    let [hot, history] =
        [PAYMENTS.time_to_live, HISTORY.time_to_live].map(|name| name.context("it keeps all for good"));
    let (hot, history) = (hot?, history?);
    ensure!(hot != history, "a copy of a head would say for both tables until when it is kept");
    Ok([hot, history])
}

/// The only head among these, which does not expire.
fn kept(mut heads: Vec<Item>) -> Result<Item> {
    ensure!(heads.len() == 1, "{heads:?}");
    for name in times_to_live()? {
        ensure!(!heads[0].contains_key(name), "{name}: {heads:?}");
    }
    Ok(heads.remove(0))
}

/// Makes heads of a table expire by both attributes, at a time in the past.
async fn expire(world: &World, table: &str, heads: Vec<Item>) -> Result<()> {
    for mut head in heads {
        head.extend(times_to_live()?.map(|name| (name.to_owned(), number(1))));
        world.put_items(table, [head]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn no_copy_of_a_head_says_until_when_it_is_kept() -> Result<()> {
    let world = World::open().await?;
    let tables = world.environment.tables.clone();
    // A settlement copies a pending head.
    let id = put(&world, "settled", "one").await?;
    world.sweep().await?;
    expire(&world, &tables.payments, world.heads("settled").await?).await?;
    world.settle(&[processed(&id)]).await?;
    let settled = kept(world.archived_heads("settled").await?)?;
    // The archive copies cancelled heads, and settled ones that are still there.
    let cancelled = put(&world, "cancelled", "two").await?;
    world.cancel("cancelled", &cancelled).await?;
    put_processed(&world, "late", &["three"], true).await?;
    let mut late = world.heads("late").await?;
    late[0].insert("later".to_owned(), number(1));
    for account in ["cancelled", "late"] {
        expire(&world, &tables.payments, world.heads(account).await?).await?;
    }
    world.set_clock(NIGHT)?;
    assert_eq!(world.archive().await?.archived, 2);
    kept(world.archived_heads("cancelled").await?)?;
    // An archived head that expires keeps its expiry, even if the archive finds the hot head again.
    let mut archived = kept(world.archived_heads("late").await?)?;
    archived.insert(KEPT_UNTIL.to_owned(), number(4_000_000_000_u64));
    world.put_items(&tables.history, [archived.clone()]).await?;
    world.put_items(&tables.payments, late).await?;
    assert_eq!(world.archive().await?.archived, 1);
    archived.insert("later".to_owned(), number(1));
    assert_eq!(world.archived_heads("late").await?, [archived]);
    // A restore copies heads of the long-term table.
    expire(&world, &tables.history, vec![settled.clone()]).await?;
    let part = |name: &str| settled[name].as_s().ok().context("a key");
    let key = parse_head_key(part("pk")?, part("sk")?)?;
    let store = world.store().await;
    let (_, stored) = store.settled_heads(&[key]).await?.pop().context("it is settled")?;
    world.delete(&tables.payments, &settled).await?;
    ensure!(store.put_restored_head(None, &stored?.in_hot_table(None)?).await?, "the head was not put");
    kept(world.heads("settled").await?).map(drop)
}
