//! Until when an item is kept is said of that table's item alone: no copy of a head brings it along.

use payments_store::KEPT_UNTIL;
use payments_store::key::parse_head_key;
use payments_store::schema::{HISTORY, PAYMENTS};
use payments_tests::tables::number;

use super::*;

/// The attributes by which DynamoDB deletes items of the two tables, as the schema says.
fn times_to_live() -> Result<[&'static str; 2]> {
    let [hot, history] =
        [PAYMENTS.time_to_live, HISTORY.time_to_live].map(|name| name.context("it keeps all for good"));
    let (hot, history) = (hot?, history?);
    ensure!(hot != history, "a copy of a head would say for both tables until when it is kept");
    Ok([hot, history])
}

fn assert_kept(items: &[Item], count: usize) -> Result<()> {
    assert_eq!(items.len(), count);
    for name in times_to_live()? {
        assert!(items.iter().all(|item| !item.contains_key(name)), "{name}: {items:?}");
    }
    Ok(())
}

/// Lets each head of the account in a table expire by both attributes, at a time that is over.
async fn expire(world: &World, table: &str, heads: &[Item]) -> Result<()> {
    for head in heads {
        let mut head = head.clone();
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
    expire(&world, &tables.payments, &world.heads("settled").await?).await?;
    let event = json!({ "Records": [{ "messageId": "m", "body": processed(&id).to_string() }] });
    world.functions().settle_batch(serde_json::from_value(event)?).await;
    let settled = world.archived_heads("settled").await?;
    assert_kept(&settled, 1)?;
    // The archive copies cancelled heads, and settled ones that are still there.
    let cancelled = put(&world, "cancelled", "two").await?;
    world.cancel("cancelled", &cancelled).await?;
    put_processed(&world, "late", &["three"], true).await?;
    let mut late = world.heads("late").await?;
    late[0].insert("later".to_owned(), number(1));
    for account in ["cancelled", "late"] {
        expire(&world, &tables.payments, &world.heads(account).await?).await?;
    }
    world.set_clock(NIGHT)?;
    assert_eq!(tick(&world).await?.archived, 2);
    for account in ["cancelled", "late"] {
        assert_kept(&world.archived_heads(account).await?, 1)?;
    }
    // What is kept until a time there stays so, also where the archive finds the hot head still there.
    let mut archived = world.archived_heads("late").await?.remove(0);
    archived.insert(KEPT_UNTIL.to_owned(), number(4_000_000_000_u64));
    world.put_items(&tables.history, [archived.clone()]).await?;
    world.put_items(&tables.payments, late).await?;
    assert_eq!(tick(&world).await?.archived, 1);
    archived.insert("later".to_owned(), number(1));
    assert_eq!(world.archived_heads("late").await?, [archived]);
    // A restore copies heads of the long-term table.
    expire(&world, &tables.history, &settled).await?;
    let part = |name: &str| settled[0][name].as_s().ok().context("a key");
    let key = parse_head_key(part("pk")?, part("sk")?)?;
    let store = world.store().await;
    let (_, stored) = store.settled_heads(&[key]).await?.pop().context("it is settled")?;
    let stored = stored?;
    let client = world.client().await;
    let at = ["pk", "sk"].map(|name| (name.to_owned(), settled[0][name].clone()));
    client.delete_item().table_name(&tables.payments).set_key(Some(at.into())).send().await?;
    ensure!(store.put_restored_head(None, &stored.in_hot_table(None)?).await?, "it is there");
    assert_kept(&world.heads("settled").await?, 1)
}
