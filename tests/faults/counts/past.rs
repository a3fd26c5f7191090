//! A random past, made by the functions: payments of several accounts, dates and currencies in every state, some of
//! them archived.

use anyhow::{Context as _, Result, ensure};
use chrono::{SecondsFormat, TimeDelta};
use daily_due_sweeper::Action;
use fastrand::Rng;
use payments_delivery::{Position, Record};
use payments_lab::laws;
use payments_machine::layers::random::Seed;
use payments_tests::{Ask, tables};
use serde_json::{Value, json};

use crate::kit::fixture::Fixture;
use crate::kit::transaction_service;
use crate::recount;

/// The number of events.
const EVENTS: usize = 60;

/// The most nights, so that dates repeat.
const NIGHTS: usize = 3;

/// The currencies of the payments.
const CURRENCIES: [&str; 3] = ["GBP", "EUR", "JPY"];

/// The addition to some amounts, so that sums exceed what a double holds.
const LARGE: u64 = 1 << 52;

struct Past<'r> {
    fixture: &'r Fixture,
    random: Rng,
    /// The payments by account and id.
    payments: Vec<(String, String)>,
    nights: usize,
}

/// Makes a past, and returns its stream records.
pub(crate) async fn happen(fixture: &Fixture, seed: u64) -> Result<Vec<Record>> {
    let mut past = Past { fixture, random: Seed(seed).source("past"), payments: Vec::new(), nights: 0 };
    past.create(6).await?;
    for _ in 0..EVENTS {
        past.go_on().await?;
    }
    // Random events may have left these out.
    past.sweep().await?;
    past.create(3).await?;
    past.cancel().await?;
    past.settle().await?;
    past.archive(true).await?;
    let shard = fixture.source.shards().await?.pop().context("no shard")?;
    Ok(fixture.source.read_all(&shard.id, Position::TrimHorizon).await?)
}

impl Past<'_> {
    /// True once in `n` times, on average.
    fn one_in(&mut self, n: usize) -> bool {
        self.random.usize(..n) == 0
    }

    async fn go_on(&mut self) -> Result<()> {
        match self.random.usize(..12) {
            0..=3 => {
                let count = 1 + self.random.usize(..4);
                self.create(count).await
            }
            4 => self.cancel().await,
            5 | 6 => self.sweep().await,
            7 | 8 => self.settle().await,
            9 => self.redrive().await,
            10 => self.report().await,
            _ => {
                let wholly = !self.one_in(4);
                self.archive(wholly).await
            }
        }
    }

    async fn create(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let number = self.fixture.intent("").amount;
            let account = format!("account-{}", self.random.usize(..5));
            let large = if self.one_in(4) { LARGE } else { 0 };
            let days = i64::try_from(self.random.usize(..4))?;
            let at = self.fixture.time.now() + TimeDelta::seconds(60) + TimeDelta::days(days);
            let scheduled_for = at.to_rfc3339_opts(SecondsFormat::Secs, true);
            let body = json!({
                "payeeAccountId": "landlord", "amountMinor": number + large, "scheduledFor": scheduled_for,
                "currency": CURRENCIES[self.random.usize(..CURRENCIES.len())],
            });
            let ask = Ask::create(&account, &format!("key-{number}"), &body);
            let reply = self.fixture.ask(ask.clone()).await?;
            ensure!(reply.status == 201, "{reply}");
            self.payments.push((account, reply.field("paymentId").to_owned()));
            if self.one_in(4) {
                self.fixture.ask(ask).await?;
            }
        }
        Ok(())
    }

    async fn cancel(&mut self) -> Result<()> {
        let (account, id) = &self.payments[self.random.usize(..self.payments.len())];
        // A cancel may come too late, which does not matter here.
        self.fixture.ask(Ask::cancel(account, id)).await.map(drop)
    }

    async fn sweep(&mut self) -> Result<()> {
        let night = self.nights < NIGHTS && self.one_in(2);
        self.nights += usize::from(night);
        self.fixture.time.pass(if night { TimeDelta::days(1) } else { TimeDelta::seconds(61) });
        self.fixture.tick(Action::Sweep).await.map(drop)
    }

    /// Sends some of the results, and some of them twice. A request without a result may be redriven.
    async fn settle(&mut self) -> Result<()> {
        self.fixture.dispatch_all().await?;
        let mut requests = transaction_service::read_requests(&self.fixture.requests, &self.fixture.time)?;
        requests.retain(|_| self.random.usize(..3) != 0);
        transaction_service::send_results(
            &requests,
            &self.fixture.results,
            &self.fixture.time,
            Some(&mut self.random),
        )?;
        self.fixture.settle_all().await
    }

    async fn redrive(&mut self) -> Result<()> {
        self.fixture.time.pass(TimeDelta::minutes(61));
        self.fixture.tick(Action::Redrive).await.map(drop)
    }

    /// Takes some settled payments out of `unreported`. No counter changes.
    async fn report(&mut self) -> Result<()> {
        let table = &self.fixture.tables().payments;
        for (key, head) in recount::items(self.fixture, table).await? {
            if head.get("unreported").is_some() && self.one_in(2) {
                self.fixture.world.set(table, &tables::key(&key.0, &key.1), "unreported", None).await?;
            }
        }
        Ok(())
    }

    /// Archives some payments, or leaves them in both tables as a crash would.
    async fn archive(&mut self, wholly: bool) -> Result<()> {
        let names = self.fixture.tables();
        let is_past = |head: &Value| laws::check_over(head).is_none();
        for (key, head) in recount::items(self.fixture, &names.payments).await? {
            if is_past(&head) && self.one_in(2) {
                let key = Some(tables::key(&key.0, &key.1));
                let get = self.fixture.client.get_item().table_name(&names.payments).set_key(key.clone());
                let item = get.send().await?.item;
                self.fixture.client.put_item().table_name(&names.history).set_item(item).send().await?;
                if wholly {
                    self.fixture.client.delete_item().table_name(&names.payments).set_key(key).send().await?;
                }
            }
        }
        Ok(())
    }
}
