//! Golden items of all tables: parts of a bank's day write them, and the code reads them and writes them again.

use payments_store::ItemKind;
use payments_tests::prelude::*;

use super::forms::{Goldens, Kind, golden_items, item_form};
use super::{bank, log, payments};

/// The parts of a day, each in tables of its own.
const PARTS: [&str; 4] = ["payments", "log", "restored", "bank"];

/// The names of the tables, as golden items have them.
const TABLES: [&str; 3] = ["payments", "payment-history", "payments-log"];

/// The items of a world, with their kinds and tables, in the order of their keys.
async fn items(world: &World) -> Result<Vec<(ItemKind, &'static str, Item)>> {
    let client = world.client().await;
    let tables = &world.environment.tables;
    let mut all = Vec::new();
    for (table, name) in TABLES.into_iter().zip([&tables.payments, &tables.history, &tables.log]) {
        let scan = client.scan().table_name(name).into_paginator().items().send();
        let mut items: Vec<Item> = scan.collect::<Result<_, _>>().await?;
        items.sort_by_key(|item| ["pk", "sk"].map(|name| item[name].as_s().cloned().unwrap_or_default()));
        for item in items {
            let [partition, sort] = ["pk", "sk"].map(|name| item[name].as_s().cloned().unwrap_or_default());
            let kind = ItemKind::from_key(&partition, &sort);
            all.push((kind.with_context(|| format!("{partition} / {sort} is of no kind"))?, table, item));
        }
    }
    Ok(all)
}

async fn add(goldens: &mut Goldens, part: &str, world: &World) -> Result<()> {
    for (kind, table, item) in items(world).await? {
        goldens.entry(Kind::Item(kind).name()).or_default().push(item_form(part, table, &item));
    }
    Ok(())
}

/// The items that each part writes.
pub(super) async fn written() -> Result<Goldens> {
    let mut goldens = Goldens::new();
    for part in PARTS {
        let world = match part {
            "payments" => payments::written().await?,
            "log" => log::written().await?,
            "restored" => log::written_after_restore().await?,
            "bank" => bank::written().await?,
            _ => bail!("{part} is not a part"),
        };
        add(&mut goldens, part, &world).await?;
    }
    Ok(goldens)
}

/// The golden items, read and written again.
pub(super) async fn again() -> Result<Goldens> {
    let mut goldens = Goldens::new();
    for part in PARTS {
        let (from, to) = (World::open().await?, World::open().await?);
        for kind in ItemKind::ALL {
            for (table, item) in golden_items(*kind, part)? {
                let names = &from.environment.tables;
                let all = TABLES.into_iter().zip([&names.payments, &names.history, &names.log]);
                let (_, name) = all.into_iter().find(|(known, _)| *known == table).context("no such table")?;
                from.put_items(name, [item]).await?;
            }
        }
        match part {
            "payments" => payments::again(&from, &to).await?,
            "log" => log::again(&from, &to).await?,
            "restored" => log::again_after_restore(&from, &to).await?,
            "bank" => bank::again(&from, &to).await?,
            _ => bail!("{part} is not a part"),
        }
        add(&mut goldens, part, &to).await?;
    }
    Ok(goldens)
}
