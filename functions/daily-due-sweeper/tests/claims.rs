//! `daily-due-sweeper` alone over the machine: it claims due payments, and redrives those that stay pending.

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use daily_due_sweeper::{Config, Sweeper};
use payments_machine::given::Given;
use payments_model::{Details, Head};
use serde_json::{Value, json};

/// `daily-due-sweeper` on a machine.
struct Alone {
    given: Given,
    sweeper: Sweeper,
}

impl Alone {
    async fn start() -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
        let sweeper = given.function("daily-due-sweeper", Config::read, Sweeper::new)?;
        Ok(Self { given, sweeper })
    }

    async fn run(&self, action: &str) -> Result<Value> {
        let event = self.given.scheduled_event(json!({ "action": action }))?;
        Ok(serde_json::to_value(self.sweeper.handle(event).await.map_err(anyhow::Error::from_boxed)?)?)
    }

    async fn head(&self, details: &Details) -> Result<Head> {
        self.given.store.head(&details.key()).await?.context("no head")
    }
}

#[tokio::test]
async fn a_sweep_claims_each_due_payment_once_and_no_other() -> Result<()> {
    let alone = Alone::start().await?;
    let [due, overdue, tomorrow] = [
        alone.given.scheduled("due", "2026-11-20").await?,
        alone.given.scheduled("overdue", "2026-11-18").await?,
        alone.given.scheduled("tomorrow", "2026-11-21").await?,
    ];
    assert_eq!(alone.run("sweep").await?["claimed"], 2);
    for (details, status, version) in [(&due, "PENDING", 2), (&overdue, "PENDING", 2), (&tomorrow, "SCHEDULED", 1)] {
        let head = alone.head(details).await?;
        assert_eq!((head.state.status().as_str(), head.version), (status, version));
    }
    assert_eq!(alone.run("sweep").await?["claimed"], 0);
    alone.given.pass(TimeDelta::days(1));
    assert_eq!(alone.run("sweep").await?["claimed"], 1);
    Ok(())
}

#[tokio::test]
async fn a_payment_that_stays_pending_is_redriven_after_one_hour_and_after_three() -> Result<()> {
    let alone = Alone::start().await?;
    let details = alone.given.pending("pending").await?;
    for (minutes, redriven, attempt) in [(59, 0, 1), (1, 1, 2), (119, 0, 2), (1, 1, 3)] {
        alone.given.pass(TimeDelta::minutes(minutes));
        assert_eq!(alone.run("redrive").await?["redriven"], redriven, "attempt {attempt}");
        let head = alone.head(&details).await?;
        assert_eq!((head.dispatch_attempt, head.version), (Some(attempt), 2));
    }
    Ok(())
}
