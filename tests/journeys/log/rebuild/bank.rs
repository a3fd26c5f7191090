//! The bank of these tests: payments of every kind, and copies of its tables at an instant.

use std::collections::BTreeSet;
use std::sync::Mutex;

use payments_store::Item;
use payments_tests::Reply;
use payments_tests::tables::{item_of, json_of_item};

use super::super::*;
use crate::report::settlements;

/// The instant to which tables are restored.
pub(super) const T: &str = "2026-11-20T09:30:00Z";

/// The start of the log.
pub(super) const BEGINNING: &str = "2026-11-20T08:00:00Z";

/// The time of the loss.
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
    log: Log,
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

/// A text attribute; empty if it is missing.
pub(super) fn attribute<'i>(item: &'i Item, name: &str) -> &'i str {
    item.get(name).and_then(|value| value.as_s().ok()).map_or("", String::as_str)
}

impl Deref for Bank {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.log
    }
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

    /// The same day, with more events at its moments.
    pub(super) async fn with(also: impl AsyncFn(&Self, Moment) -> Result<()>) -> Result<Self> {
        Self::under("", also).await
    }

    /// The same day under a limit of each date, or without one.
    pub(super) async fn under(limit: &str, also: impl AsyncFn(&Self, Moment) -> Result<()>) -> Result<Self> {
        let world = World::with(|environment| (environment.shards, environment.max_day) = (1, limit.to_owned()));
        let mut bank = Self::in_world(world.await?).await?;
        // The log is older than the events that a restore to T reads of it.
        bank.set_clock(BEGINNING)?;
        bank.create("z", "2026-12-01").await?;
        bank.count().await?;
        also(&bank, Moment::Created).await?;
        bank.set_clock("2026-11-20T09:00:00Z")?;
        for (name, date) in [("d", TODAY), ("e", TODAY), ("f", "2026-12-01")] {
            bank.create(name, date).await?;
        }
        also(&bank, Moment::Created).await?;
        bank.sweep().await?;
        bank.settle(&[("e", Ok("TX-e"))]).await?;
        settlements::run(&bank).await?;
        bank.set_clock("2026-11-20T09:20:00Z")?;
        bank.settle(&[("d", Ok("TX-d"))]).await?;
        bank.cancel("f").await?;
        for (name, date) in [("a", "2026-12-01"), ("b", TODAY), ("c", TODAY), ("j", TODAY)] {
            bank.create(name, date).await?;
        }
        also(&bank, Moment::BeforeT).await?;
        bank.count().await?;
        bank.set_clock(T)?;
        bank.at_t = bank.copies().await?;

        bank.set_clock("2026-11-20T09:31:00Z")?;
        bank.cancel("a").await?;
        bank.create("g", "2026-12-01").await?;
        bank.create("i", TODAY).await?;
        also(&bank, Moment::AfterT).await?;
        bank.sweep().await?;
        bank.set_clock("2026-11-20T09:40:00Z")?;
        bank.settle(&[("b", Ok("TX-b")), ("i", Ok("TX-i"))]).await?;
        settlements::run(&bank).await?;
        bank.create("h", TODAY).await?;
        also(&bank, Moment::Created).await?;
        bank.sweep().await?;
        bank.settle(&[("h", Ok("TX-h")), ("j", Err("The payee's account is closed."))]).await?;
        bank.count().await?;
        bank.set_clock(LATER)?;
        Ok(bank)
    }

    /// A bank without a day.
    pub(super) async fn in_world(world: World) -> Result<Self> {
        Ok(Self { log: Log::new(world).await?, ids: Mutex::default(), at_t: Copies::default() })
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

    /// Sends the same again, which must be the same payment.
    pub(super) async fn create_again(&self, name: &str, date: &str) -> Result<()> {
        let reply = self.send(Ask::create(PAYER, name, &Self::body(date))).await?;
        ensure!(reply.status < 300, "{reply}");
        assert_eq!(reply.field("paymentId"), self.id(name));
        Ok(())
    }

    /// Creates a payment of a date after T, which is logged and in the journal.
    pub(super) async fn create_published(&self, name: &str) -> Result<()> {
        self.create(name, "2026-12-01").await?;
        self.count().await?;
        self.publish().await.map(drop)
    }

    pub(super) async fn cancel(&self, name: &str) -> Result<()> {
        self.world.cancel(PAYER, &self.id(name)).await
    }

    /// Moves a payment to another day.
    pub(super) async fn amend(&self, name: &str, version: u32, date: &str) -> Result<Reply> {
        let key = format!("{version}-to-{date}");
        self.send(Ask::amend(PAYER, &self.id(name), (&key, version), &Self::body(date))).await?.with_status(200)
    }

    pub(super) async fn settle(&self, results: &[(&str, Result<&str, &str>)]) -> Result<()> {
        let result = |(name, outcome): &(&str, Result<&str, &str>)| {
            let mut result = json!({
                "v": 1, "kind": "settlement", "paymentId": self.id(name), "amountMinor": 4_200, "currency": "GBP", "payeeAccountId": "shop",
            });
            let (status, field, text) = match *outcome {
                Ok(id) => ("PROCESSED", "transactionId", id),
                Err(reason) => ("FAILED", "failureReason", reason),
            };
            (result["status"], result[field]) = (status.into(), text.into());
            result
        };
        self.world.settle(&results.iter().map(result).collect::<Vec<_>>()).await
    }

    pub(super) async fn copies(&self) -> Result<Copies> {
        let tables = &self.environment.tables;
        Ok(Copies { hot: self.items_of(&tables.payments).await?, history: self.items_of(&tables.history).await? })
    }

    /// The hot table must have this.
    pub(super) async fn assert_hot(&self, wanted: &Items) -> Result<()> {
        let differences = differences(&self.hot().await?, wanted);
        ensure!(differences.is_empty(), "{differences:#?}");
        Ok(())
    }

    /// The heads of the hot table, and the report's last run without the fields that a report does not have.
    pub(super) async fn hot(&self) -> Result<Items> {
        let mut items = self.by_key(&self.environment.tables.payments, &["ACCT#", "CHECKPOINT#report"]).await?;
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
        self.by_key(&self.environment.tables.history, &["ACCT#"]).await
    }

    /// The findings, and the marks of open ones.
    pub(super) async fn findings(&self) -> Result<Items> {
        self.by_key(&self.environment.tables.history, &["FINDINGS#"]).await
    }

    /// The details of all payments.
    pub(super) async fn details(&self) -> Result<Items> {
        self.by_key(&self.environment.tables.history, &["PAY#"]).await
    }

    /// The items of a table whose keys begin with one of these.
    async fn by_key(&self, table: &str, prefixes: &[&str]) -> Result<Items> {
        let keyed =
            |item: &Item| (format!("{} / {}", attribute(item, "pk"), attribute(item, "sk")), json_of_item(item));
        let mut items: Items = self.items_of(table).await?.iter().map(keyed).collect();
        items.retain(|key, _| prefixes.iter().any(|prefix| key.starts_with(prefix)));
        Ok(items)
    }

    pub(super) fn head_in(&self, name: &str, items: &Items) -> Option<Value> {
        let id = self.id(name);
        items.iter().find(|(key, _)| key.ends_with(&id)).map(|(_, item)| item.clone())
    }

    pub(super) async fn head_of(&self, name: &str) -> Result<Option<Value>> {
        Ok(self.head_in(name, &self.hot().await?))
    }

    /// The payments must have these statuses in the hot table; none if they are not there.
    pub(super) async fn assert_statuses(&self, wanted: &[(&str, Option<&str>)]) -> Result<()> {
        for (name, status) in wanted {
            let head = self.head_of(name).await?;
            assert_eq!(head.as_ref().and_then(|head| head["status"]["S"].as_str()), *status, "{name}");
        }
        Ok(())
    }

    /// A payment's head in the hot table must have these attributes of the wanted one.
    pub(super) async fn assert_like(&self, name: &str, wanted: &Items, attributes: &[&str]) -> Result<()> {
        let have = self.head_of(name).await?.context("no head")?;
        let want = self.head_in(name, wanted).context("no head")?;
        for attribute in attributes {
            assert_eq!(have[attribute], want[attribute], "{name}: {attribute}");
        }
        Ok(())
    }

    /// Puts a head into a table.
    pub(super) async fn put_head(&self, table: &str, name: &str, items: &Items) -> Result<()> {
        self.put_items(table, [item_of(&self.head_in(name, items).context("no head")?)?]).await
    }

    /// Cancels a payment that is scheduled in the hot table, by its head alone.
    pub(super) async fn cancel_by_hand(&self, name: &str) -> Result<()> {
        payments_tests::given::move_on(
            self,
            self.id(name).parse()?,
            vec![payments_model::Event::Cancel],
            &self.now().to_string(),
        )
        .await
    }
}

/// The day of these tests, whose payments are due at once.
pub(super) const TODAY: &str = "2026-11-20";
