//! Heads as each release wrote them: every form is read for ever, and a release that comes back reads today's.

mod amended;

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use archive::{Action, Request};
use lambda_runtime::LambdaEvent;
use payments_model::{Event, Settlement};
use payments_store::Item;
use payments_tests::given::move_on;
use payments_tests::tables::{NO_DEADLINE, context, item_of};
use payments_tests::{Ask, World};
use serde::Deserialize;
use serde_json::{Value, json};

/// A golden item, and the table that it is in.
struct Golden {
    table: String,
    item: Item,
}

/// The golden items. Add to this file; never change what it holds.
fn golden() -> Result<Vec<Golden>> {
    read(include_str!("heads/golden.json"))
}

fn read(golden: &str) -> Result<Vec<Golden>> {
    let golden: Vec<Value> = serde_json::from_str(golden)?;
    let one = |it: Value| {
        let table = it["table"].as_str().context("no table")?.to_owned();
        Ok(Golden { table, item: item_of(&it["item"])? })
    };
    golden.into_iter().map(one).collect()
}

/// Puts golden items into a world's tables.
async fn world(golden: Vec<Golden>) -> Result<World> {
    let world = World::open().await?;
    world.set_clock("2026-11-20T10:00:00Z")?;
    for Golden { table, item } in golden {
        let names = &world.environment.tables;
        let table = if table == "payments" { &names.payments } else { &names.history };
        world.put_items(table, [item]).await?;
    }
    Ok(world)
}

#[tokio::test]
async fn heads_of_every_release_are_shown_and_leave_the_hot_table() -> Result<()> {
    let world = world(golden()?).await?;
    let list = Ask::get("/accounts/golden/payments?from=2026-11-20");
    let before = world.send(list).await?;
    let statuses: Vec<_> = before.payments().iter().map(|payment| payment["status"].clone()).collect();
    assert_eq!(statuses, ["PROCESSED", "PROCESSED", "FAILED", "PROCESSED"]);
    assert_eq!(before.payments()[3]["reference"], "INV 2026/117");
    for head in world.heads("golden").await? {
        world.update(&head, "REMOVE unreported", &[]).await?;
    }
    world.set_clock("2026-11-24T02:30:00Z")?;
    let event = LambdaEvent::new(Request { action: Action::Archive }, context(NO_DEADLINE));
    let outcome = world.functions().archive.handle(event).await.map_err(anyhow::Error::msg)?;
    assert_eq!((outcome.archived, outcome.failed), (4, 0), "{outcome:?}");
    assert!(world.heads("golden").await?.is_empty());
    // What only the hot table says about a head is not archived.
    for head in world.archived_heads("golden").await? {
        assert!(["expires_at", "unreported"].iter().all(|name| !head.contains_key(*name)), "{head:?}");
    }
    let after = world.send(Ask::get("/accounts/golden/payments?from=2026-11-20")).await?;
    assert_eq!(after.payments(), before.payments());
    Ok(())
}

#[tokio::test]
async fn this_release_writes_the_last_golden_items() -> Result<()> {
    let world = World::open().await?;
    let body = json!({
        "payeeAccountId": "landlord", "amountMinor": 5, "currency": "GBP", "scheduledFor": "2026-11-20",
        "reference": "INV 2026/117",
    });
    let id = world.create("tenant", "rent", &body).await?;
    let settlement = Settlement::Processed("TX-1".parse()?);
    move_on(&world, id.parse()?, vec![Event::Sweep, Event::Settle(settlement)], "2026-11-20T10:00:00Z").await?;
    let (hot, history) = (world.heads("tenant").await?.remove(0), world.archived_heads("tenant").await?.remove(0));
    let names = |item: &Item| item.keys().cloned().collect::<BTreeSet<_>>();
    let golden = golden()?;
    assert_eq!((names(&hot), names(&history)), (names(&golden[4].item), names(&golden[5].item)));
    Ok(())
}

/// A head as releases up to commit ef79578 read it: a frozen copy. Never change it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "as it was")]
struct HeadItem {
    pk: String,
    sk: String,
    shard: u16,
    due: String,
    #[serde(default)]
    unreported: Option<String>,
    status: String,
    version: u32,
    payee_account_id: String,
    amount_minor: i64,
    currency: String,
    scheduled_for: String,
    trail: Vec<Value>,
    #[serde(default)]
    dispatch_attempt: Option<u32>,
    #[serde(default)]
    transaction_id: Option<String>,
    #[serde(default)]
    failure_reason: Option<String>,
    #[serde(default)]
    settled_at: Option<String>,
}

impl HeadItem {
    /// Why the releases up to commit 195519a, the last one without amendments, refused a head: a frozen copy. Never change it.
    fn refusal(&self) -> Option<&'static str> {
        let status = |entry: Option<&Value>| entry.and_then(|entry| entry["status"].as_str().map(str::to_owned));
        let id = self.sk.rsplit('#').next().unwrap_or_default();
        let promises = [
            ("the due key is another payment's", self.due.ends_with(&format!("#{id}"))),
            ("the due key has another status", self.due.starts_with(&format!("{}#", self.status))),
            ("the trail does not begin with SCHEDULED", status(self.trail.first()).as_deref() == Some("SCHEDULED")),
            ("the trail does not end with the status", status(self.trail.last()).as_ref() == Some(&self.status)),
            (TRAIL_AND_VERSION, usize::try_from(self.version).is_ok_and(|version| version == self.trail.len())),
            ("the trail is too long", self.trail.len() <= 3),
        ];
        promises.into_iter().find(|(_, kept)| !kept).map(|(broken, _)| broken)
    }
}

/// The promise that an amended head breaks.
const TRAIL_AND_VERSION: &str = "the trail and the version disagree";

#[test]
fn the_release_before_reads_all_of_them() -> Result<()> {
    for Golden { item, .. } in golden()? {
        let head: HeadItem = serde_dynamo::from_item(item)?;
        assert_eq!(head.refusal(), None, "{}", head.sk);
    }
    Ok(())
}
