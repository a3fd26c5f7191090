//! A random past of payments, made by the functions themselves on a real bank: of several accounts,
//! dates and currencies, and in every state, some of them moved to history.

use anyhow::{Context as _, Result, ensure};
use chrono::{SecondsFormat, TimeDelta};
use daily_due_sweeper::Action;
use payments_delivery::{Position, Record};
use payments_tests::Ask;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::ledger::text;
use crate::recount;
use crate::rig::Rig;
use crate::service;
use crate::staleness::Key;

/// How many things happen.
const EVENTS: usize = 60;

/// How many nights pass at most, so that dates repeat.
const NIGHTS: usize = 3;

/// The currencies that are paid in.
const CURRENCIES: [&str; 3] = ["GBP", "EUR", "JPY"];

/// What the amounts of one past can be: small ones, and some that add up to more than 64 bits.
const LARGE: u64 = 1 << 62;

struct Past<'r> {
    rig: &'r Rig,
    dice: Dice,
    /// Payments by account and id.
    payments: Vec<(String, String)>,
    nights: usize,
}

/// Lets a past happen, and returns what the stream says of it.
pub(crate) async fn happen(rig: &Rig, seed: u64) -> Result<Vec<Record>> {
    let mut past = Past { rig, dice: Dice::seeded(seed), payments: Vec::new(), nights: 0 };
    past.create(6).await?;
    for _ in 0..EVENTS {
        past.go_on().await?;
    }
    // Whatever the dice did not bring.
    past.sweep().await?;
    past.create(3).await?;
    past.cancel().await?;
    past.settle().await?;
    past.archive(true).await?;
    let shard = rig.source.shards().await?.pop().context("no shard")?;
    Ok(rig.source.read_all(&shard.id, Position::TrimHorizon).await?)
}

impl Past<'_> {
    async fn go_on(&mut self) -> Result<()> {
        match self.dice.below(12) {
            0..=3 => {
                let count = 1 + self.dice.below(4);
                self.create(count).await
            }
            4 => self.cancel().await,
            5 | 6 => self.sweep().await,
            7 | 8 => self.settle().await,
            9 => self.redrive().await,
            10 => self.report().await,
            _ => {
                let wholly = !self.dice.one_in(4);
                self.archive(wholly).await
            }
        }
    }

    async fn create(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let number = self.rig.intent("").amount;
            let account = format!("account-{}", self.dice.below(5));
            let large = if self.dice.one_in(4) { LARGE } else { 0 };
            let days = i64::try_from(self.dice.below(4))?;
            let at = self.rig.time.now() + TimeDelta::seconds(60) + TimeDelta::days(days);
            let scheduled_for = at.to_rfc3339_opts(SecondsFormat::Secs, true);
            let body = json!({
                "payeeAccountId": "landlord", "amountMinor": number + large, "scheduledFor": scheduled_for,
                "currency": CURRENCIES[self.dice.below(CURRENCIES.len())],
            });
            let ask = Ask::create(&account, &format!("key-{number}"), &body);
            let reply = self.rig.ask(ask.clone()).await?;
            ensure!(reply.status == 201, "{reply}");
            self.payments.push((account, reply.field("paymentId").to_owned()));
            if self.dice.one_in(4) {
                self.rig.ask(ask).await?;
            }
        }
        Ok(())
    }

    async fn cancel(&mut self) -> Result<()> {
        let (account, id) = &self.payments[self.dice.below(self.payments.len())];
        // Perhaps it is too late, which is not the point here.
        self.rig.ask(Ask::cancel(account, id)).await.map(drop)
    }

    async fn sweep(&mut self) -> Result<()> {
        let night = self.nights < NIGHTS && self.dice.one_in(2);
        self.nights += usize::from(night);
        self.rig.time.pass(if night { TimeDelta::days(1) } else { TimeDelta::seconds(61) });
        self.rig.tick(Action::Sweep).await.map(drop)
    }

    /// Some results come, some more than once; what is sent and has none may be redriven.
    async fn settle(&mut self) -> Result<()> {
        self.rig.dispatch_all().await?;
        let mut requests = service::read(&self.rig.requests, &self.rig.time)?;
        requests.retain(|_| !self.dice.one_in(3));
        service::report(&requests, &self.rig.results, &self.rig.time, Some(&mut self.dice))?;
        self.rig.settle_all().await
    }

    async fn redrive(&mut self) -> Result<()> {
        self.rig.time.pass(TimeDelta::minutes(61));
        self.rig.tick(Action::Redrive).await.map(drop)
    }

    /// Takes some settled payments for reported: a change that no counter knows.
    async fn report(&mut self) -> Result<()> {
        let table = &self.rig.world.environment.tables.payments;
        for (key, head) in recount::heads(self.rig, table).await? {
            if head.get("unreported").is_some() && self.dice.one_in(2) {
                let update = self.rig.client.update_item().table_name(table).set_key(Some(item_key(&key)));
                update.update_expression("REMOVE unreported").send().await?;
            }
        }
        Ok(())
    }

    /// Moves some past payments to history, or crashes when they are in both tables.
    async fn archive(&mut self, wholly: bool) -> Result<()> {
        let tables = &self.rig.world.environment.tables;
        let is_past = |head: &Value| matches!(text(head, "status"), "PROCESSED" | "FAILED" | "CANCELLED");
        for (key, head) in recount::heads(self.rig, &tables.payments).await? {
            if is_past(&head) && self.dice.one_in(2) {
                let key = Some(item_key(&key));
                let get = self.rig.client.get_item().table_name(&tables.payments).set_key(key.clone());
                let item = get.send().await?.item;
                self.rig.client.put_item().table_name(&tables.history).set_item(item).send().await?;
                if wholly {
                    self.rig.client.delete_item().table_name(&tables.payments).set_key(key).send().await?;
                }
            }
        }
        Ok(())
    }
}

fn item_key((pk, sk): &Key) -> payments_store::Item {
    use aws_sdk_dynamodb::types::AttributeValue::S;
    [("pk".to_owned(), S(pk.clone())), ("sk".to_owned(), S(sk.clone()))].into()
}
