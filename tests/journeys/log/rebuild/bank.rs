//! The bank of these tests: payments of every kind, and copies of its tables at an instant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use payments_machine::{Function, Handlers as _};
use payments_store::{DueSort, Item};
use payments_tests::tables::{NO_DEADLINE, context, json_of_item};
use payments_tests::{Counting, Reply};
use tokio::sync::Mutex as AsyncMutex;

use super::super::*;
use crate::report::settlements;

/// The instant to which tables are restored.
pub(super) const T: &str = "2026-11-20T09:30:00Z";

/// When the log begins.
pub(super) const BEGINNING: &str = "2026-11-20T08:00:00Z";

/// When everything is lost.
pub(super) const LATER: &str = "2026-11-20T09:55:00Z";

pub(super) const PAYER: &str = "payer";

/// Heads and other items by their keys.
pub(super) type Items = BTreeMap<String, Value>;

/// Copies of the tables.
#[derive(Debug, Clone, Default)]
pub(super) struct Copies {
    pub(super) hot: Vec<Item>,
    pub(super) history: Vec<Item>,
}

pub(super) struct Bank {
    pub(super) world: World,
    pub(super) counting: AsyncMutex<Counting>,
    /// The payments' ids, by the names that the tests give them.
    ids: Mutex<BTreeMap<String, String>>,
    pub(super) at_t: Copies,
}

/// A moment of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Payments were created.
    Created,
    /// The last payments before T were created.
    BeforeT,
    /// The first payments after T were created.
    AfterT,
}

/// The items that are in one only, or differ.
pub(super) fn differences(one: &Items, other: &Items) -> Vec<String> {
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differs = keys.into_iter().filter(|key| one.get(*key) != other.get(*key));
    let text = |item: Option<&Value>| item.map_or_else(|| "nothing".to_owned(), Value::to_string);
    differs.map(|key| format!("{key}: {} and not {}", text(one.get(key)), text(other.get(key)))).collect()
}

fn text_of(item: &Item, name: &str) -> String {
    item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default()
}

impl Bank {
    /// A day up to its loss, all of which is in the log:
    ///
    /// | payment | before T | after T |
    /// |---|---|---|
    /// | z | created for later, more than an hour before T | |
    /// | a | created for later | cancelled |
    /// | b | created | claimed, settled, reported |
    /// | c | created | claimed |
    /// | d | settled | reported |
    /// | e | settled, reported | |
    /// | f | cancelled | |
    /// | g | | created for later |
    /// | h | | created, claimed, settled |
    /// | i | | created, claimed, settled, reported |
    /// | j | created | claimed, failed |
    pub(super) async fn new() -> Result<Self> {
        Self::with(async |_, _| Ok(())).await
    }

    /// The same day, with what else happens at its moments.
    pub(super) async fn with(also: impl AsyncFn(&Self, Moment) -> Result<()>) -> Result<Self> {
        let world = World::with(|environment| environment.shards = 1).await?;
        let mut bank = Self::in_world(world).await?;
        // The log is older than what a restore to T reads of it.
        bank.world.set_clock(BEGINNING)?;
        bank.create("z", "2026-12-01").await?;
        bank.count().await?;
        also(&bank, Moment::Created).await?;
        bank.world.set_clock("2026-11-20T09:00:00Z")?;
        for (name, date) in [("d", TODAY), ("e", TODAY), ("f", "2026-12-01")] {
            bank.create(name, date).await?;
        }
        also(&bank, Moment::Created).await?;
        bank.world.sweep().await?;
        bank.settle(&[("e", Ok("TX-e"))]).await?;
        settlements::run(&bank.world).await?;
        bank.world.set_clock("2026-11-20T09:20:00Z")?;
        bank.settle(&[("d", Ok("TX-d"))]).await?;
        bank.cancel("f").await?;
        for (name, date) in [("a", "2026-12-01"), ("b", TODAY), ("c", TODAY), ("j", TODAY)] {
            bank.create(name, date).await?;
        }
        also(&bank, Moment::BeforeT).await?;
        bank.count().await?;
        bank.world.set_clock(T)?;
        bank.at_t = bank.copies().await?;

        bank.world.set_clock("2026-11-20T09:31:00Z")?;
        bank.cancel("a").await?;
        bank.create("g", "2026-12-01").await?;
        bank.create("i", TODAY).await?;
        also(&bank, Moment::AfterT).await?;
        bank.world.sweep().await?;
        bank.world.set_clock("2026-11-20T09:40:00Z")?;
        bank.settle(&[("b", Ok("TX-b")), ("i", Ok("TX-i"))]).await?;
        settlements::run(&bank.world).await?;
        bank.create("h", TODAY).await?;
        also(&bank, Moment::Created).await?;
        bank.world.sweep().await?;
        bank.settle(&[("h", Ok("TX-h")), ("j", Err("The payee's account is closed."))]).await?;
        bank.count().await?;
        bank.world.set_clock(LATER)?;
        Ok(bank)
    }

    /// A bank without a day.
    pub(super) async fn in_world(world: World) -> Result<Self> {
        let counting = AsyncMutex::new(Counting::of(&world).await?);
        Ok(Self { world, counting, ids: Mutex::default(), at_t: Copies::default() })
    }

    pub(super) fn id(&self, name: &str) -> String {
        self.ids.lock().map(|ids| ids.get(name).cloned().unwrap_or_default()).unwrap_or_default()
    }

    fn body(date: &str) -> Value {
        json!({ "payeeAccountId": "shop", "amountMinor": 4_200, "currency": "GBP", "scheduledFor": date })
    }

    pub(super) async fn create(&self, name: &str, date: &str) -> Result<()> {
        let id = self.world.create(PAYER, name, &Self::body(date)).await?;
        self.ids.lock().map_err(|_| anyhow::anyhow!("poisoned"))?.insert(name.to_owned(), id);
        Ok(())
    }

    /// Sends the same again. Returns the payment's id.
    pub(super) async fn create_again(&self, name: &str, date: &str) -> Result<String> {
        let reply = self.world.send(Ask::create(PAYER, name, &Self::body(date))).await?;
        ensure!(reply.status < 300, "{reply}");
        Ok(reply.field("paymentId").to_owned())
    }

    pub(super) async fn cancel(&self, name: &str) -> Result<()> {
        self.world.cancel(PAYER, &self.id(name)).await
    }

    /// Moves a payment to another day.
    pub(super) async fn amend(&self, name: &str, version: u32, date: &str) -> Result<Reply> {
        let key = format!("{version}-to-{date}");
        self.world.send(Ask::amend(PAYER, &self.id(name), (&key, version), &Self::body(date))).await
    }

    pub(super) async fn settle(&self, results: &[(&str, Result<&str, &str>)]) -> Result<()> {
        let result = |(name, outcome): &(&str, Result<&str, &str>)| match outcome {
            Ok(id) => {
                json!({
                    "v": 1, "kind": "settlement", "paymentId": self.id(name), "amountMinor": 4_200, "currency": "GBP", "payeeAccountId": "shop",
                    "status": "PROCESSED", "transactionId": id,
                })
            }
            Err(reason) => {
                json!({
                    "v": 1, "kind": "settlement", "paymentId": self.id(name), "amountMinor": 4_200, "currency": "GBP", "payeeAccountId": "shop",
                    "status": "FAILED", "failureReason": reason,
                })
            }
        };
        self.world.settle(&results.iter().map(result).collect::<Vec<_>>()).await
    }

    /// Counts and logs what happened.
    pub(super) async fn count(&self) -> Result<()> {
        self.counting.lock().await.count(self.world.functions()).await.map(drop)
    }

    /// Writes the journal.
    pub(super) async fn publish(&self) -> Result<()> {
        let request = json!({ "action": "publish" });
        let done = self.world.functions().scheduled(Function::Publish, request, context(NO_DEADLINE)).await;
        done.map(drop).map_err(anyhow::Error::msg)
    }

    /// All items of a table.
    pub(super) async fn items(&self, table: &str) -> Result<Vec<Item>> {
        Ok(self.world.client().await.scan().table_name(table).send().await?.items.unwrap_or_default())
    }

    pub(super) async fn copies(&self) -> Result<Copies> {
        let tables = &self.world.environment.tables;
        Ok(Copies { hot: self.items(&tables.payments).await?, history: self.items(&tables.history).await? })
    }

    /// The hot table must have this.
    pub(super) async fn assert_hot(&self, wanted: &Items) -> Result<()> {
        ensure!(differences(&self.hot().await?, wanted).is_empty(), "{:#?}", differences(&self.hot().await?, wanted));
        Ok(())
    }

    /// The heads of the hot table, and the report's last run but for what a report does not say of it.
    pub(super) async fn hot(&self) -> Result<Items> {
        let mut items = self.by_key(&self.world.environment.tables.payments).await?;
        items.retain(|key, _| key.starts_with("ACCT#") || key.starts_with("CHECKPOINT#report"));
        for item in items.values_mut().filter(|item| item["pk"]["S"] == "CHECKPOINT#report") {
            let fields = item.as_object_mut().context("not an item")?;
            fields.remove("committedAt");
            for file in ["csv", "summary"] {
                fields[file]["M"].as_object_mut().context("no file")?.remove("attempt");
            }
        }
        Ok(items)
    }

    /// The heads of the long-term table.
    pub(super) async fn history(&self) -> Result<Items> {
        let mut items = self.by_key(&self.world.environment.tables.history).await?;
        items.retain(|key, _| key.starts_with("ACCT#"));
        Ok(items)
    }

    /// The details of all payments.
    pub(super) async fn details(&self) -> Result<Items> {
        let mut items = self.by_key(&self.world.environment.tables.history).await?;
        items.retain(|key, _| key.starts_with("PAY#"));
        Ok(items)
    }

    async fn by_key(&self, table: &str) -> Result<Items> {
        let keyed = |item: &Item| (format!("{} / {}", text_of(item, "pk"), text_of(item, "sk")), json_of_item(item));
        Ok(self.items(table).await?.iter().map(keyed).collect())
    }

    pub(super) fn head_in(&self, name: &str, items: &Items) -> Option<Value> {
        let id = self.id(name);
        items.iter().find(|(key, _)| key.ends_with(&id)).map(|(_, item)| item.clone())
    }

    pub(super) async fn head_of(&self, name: &str) -> Result<Option<Value>> {
        Ok(self.head_in(name, &self.hot().await?))
    }

    pub(super) async fn status(&self, name: &str) -> Result<Option<String>> {
        Ok(self.head_of(name).await?.and_then(|head| head["status"]["S"].as_str().map(str::to_owned)))
    }

    /// Puts a head into the hot table.
    pub(super) async fn put_head(&self, name: &str, items: &Items) -> Result<()> {
        let head = payments_tests::tables::item_of(&self.head_in(name, items).context("no head")?)?;
        self.world.put_items(&self.world.environment.tables.payments, [head]).await
    }

    /// Cancels a payment that is scheduled in the hot table, by its head alone.
    pub(super) async fn cancel_by_hand(&self, name: &str) -> Result<()> {
        let store = self.world.store().await;
        let head = store.details(self.id(name).parse()?).await?.context("no details")?.key();
        let head = store.head(&head).await?.context("no head")?;
        let step = head.transition(
            &payments_model::Event::Cancel,
            self.world.now(),
            payments_model::Actor::client("somebody"),
        )?;
        store.transition(&head.key(), DueSort::of(&head), &step).await?;
        Ok(())
    }
}

/// The day of these tests, whose payments are due at once.
pub(super) const TODAY: &str = "2026-11-20";
