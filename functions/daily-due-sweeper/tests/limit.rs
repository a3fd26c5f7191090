//! `daily-due-sweeper` with a limit of each due date: nothing is claimed beyond it until a release.

use anyhow::{Result, ensure};
use chrono::TimeDelta;
use daily_due_sweeper::{Config, SweepOutcome, Sweeper, SweeperOutcome};
use payments_machine::given::Given;
use payments_model::{Actor, BusinessDate, DayCounts, DayTotal, Details, Money, Status, SwitchChange};
use payments_store::DayRelease;
use serde_json::json;

const TODAY: &str = "2026-11-20";

/// A machine of one shard whose payments are due. Unless a test counts them, its counters lag: they are empty.
struct Limited {
    given: Given,
    payments: Vec<Details>,
}

impl Limited {
    /// Creates so many payments of 5.00 GBP.
    async fn with(payments: usize) -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |environment| {
            (environment.shards, environment.claims_per_second) = (1, 0);
        })
        .await?;
        let mut limited = Self { given, payments: Vec::new() };
        for number in 0..payments {
            limited.payments.push(limited.given.scheduled(&number.to_string(), TODAY).await?);
        }
        Ok(limited)
    }

    /// Sweeps under a limit.
    async fn sweep(&self, max_day: &str) -> Result<SweepOutcome> {
        let config =
            Config { max_day: Some(max_day.parse()?), ..self.given.config("daily-due-sweeper", Config::read)? };
        let sweeper = self.given.function("daily-due-sweeper", |_| Ok(config), Sweeper::new)?;
        let event = self.given.scheduled_event(json!({ "action": "sweep" }))?;
        self.given.pass(TimeDelta::minutes(5));
        let outcome = sweeper.handle(event).await.map_err(anyhow::Error::from_boxed)?;
        let SweeperOutcome::Sweep(outcome) = outcome else { anyhow::bail!("{outcome:?}") };
        Ok(outcome)
    }

    /// Claims as a sweep without a limit does.
    async fn sweep_without(&self) -> Result<()> {
        let sweeper = self.given.function("daily-due-sweeper", Config::read, Sweeper::new)?;
        let event = self.given.scheduled_event(json!({ "action": "sweep" }))?;
        sweeper.handle(event).await.map(drop).map_err(anyhow::Error::from_boxed)
    }

    async fn count(&self, status: Status) -> Result<u64> {
        let keys: Vec<_> = self.payments.iter().map(Details::key).collect();
        let mut count = 0;
        for some in keys.chunks(100) {
            let heads = self.given.store.hot_heads(some).await?;
            count +=
                heads.iter().filter(|(_, head)| head.as_ref().is_ok_and(|head| head.state.status() == status)).count();
        }
        Ok(u64::try_from(count)?)
    }

    /// Brings the counters up to date.
    async fn count_all(&self) -> Result<()> {
        let (mut counts, known) = (DayCounts::default(), self.given.store.counts_of_date(date()?).await?);
        for status in [Status::Scheduled, Status::Pending] {
            for _ in 0..self.count(status).await? {
                counts.enter(status, money()?);
            }
        }
        self.given.counted(date()?, counts.minus(&known)).await
    }

    async fn release(&self, up_to: &str) -> Result<()> {
        let at = self.given.stack.clock.now();
        let change = SwitchChange { by: Actor::operator("ada"), at, reason: "a holiday".to_owned() };
        let store = &self.given.store;
        let version = store.day_release(date()?).await?.map_or(0, |known| known.version) + 1;
        let release = DayRelease { version, up_to: up_to.parse()?, change };
        ensure!(store.release_day(date()?, &release).await?, "it was released meanwhile");
        Ok(())
    }

    async fn reserved(&self) -> Result<DayTotal> {
        Ok(self.given.store.day_claims(date()?).await?.1.reserved)
    }

    async fn is_held(&self) -> Result<bool> {
        Ok(self.given.store.days_held(date()?, date()?).await?.contains_key(&date()?))
    }
}

fn date() -> Result<BusinessDate> {
    Ok(TODAY.parse()?)
}

fn money() -> Result<Money> {
    Ok(Money { amount: "500".parse()?, currency: "GBP".parse()? })
}

#[tokio::test]
async fn a_day_at_under_and_over_each_limit_is_never_claimed_beyond_it() -> Result<()> {
    for (limit, claimed) in [
        ("payments=230", 230),
        ("GBP=115000", 230),
        ("payments=230,GBP=115000,EUR=1", 230),
        // The third reservation, of 30, does not fit: less than a hundred are left.
        ("payments=229", 200),
        ("GBP=114999", 200),
        ("payments=99", 0),
        ("EUR=1", 230),
    ] {
        let limited = Limited::with(230).await?;
        for sweep in 0..2 {
            let outcome = limited.sweep(limit).await?;
            let is_held = claimed < 230;
            assert_eq!(limited.count(Status::Pending).await?, claimed, "{limit}, sweep {sweep}: {outcome:?}");
            assert_eq!(outcome.days_held, u64::from(is_held), "{limit}, sweep {sweep}: {outcome:?}");
            assert_eq!(limited.is_held().await?, is_held, "{limit}, sweep {sweep}");
            assert_eq!((outcome.remaining, outcome.failed), (0, 0), "held is not left: {limit}, sweep {sweep}");
            assert_eq!(limited.reserved().await?, (0..claimed).map(|_| money()).collect::<Result<_>>()?, "{limit}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_day_whose_counters_show_more_than_its_limit_is_not_begun() -> Result<()> {
    let limited = Limited::with(230).await?;
    limited.count_all().await?;
    let tomorrow = limited.given.scheduled("tomorrow", "2026-11-21").await?;
    let outcome = limited.sweep("payments=229").await?;
    assert_eq!((outcome.claimed, outcome.days_held), (0, 1));
    assert!(limited.is_held().await?);
    // The date stays held past midnight, and the next one is not.
    limited.given.pass(TimeDelta::hours(16));
    let outcome = limited.sweep("payments=229").await?;
    assert_eq!((outcome.claimed, outcome.days_held), (1, 1));
    let head = limited.given.store.head(&tomorrow.key()).await?;
    assert_eq!(head.map(|head| head.state.status()), Some(Status::Pending));
    let outcome = limited.sweep("payments=230").await?;
    assert_eq!((outcome.claimed, outcome.days_held), (230, 0));
    assert!(!limited.is_held().await?);
    // Nobody could claim them before: they are not late.
    assert!(outcome.oldest_overdue_seconds.is_some_and(|seconds| seconds < 300), "{outcome:?}");
    Ok(())
}

#[tokio::test]
async fn a_limit_is_lowered_raised_and_released() -> Result<()> {
    let limited = Limited::with(350).await?;
    for (limit, release, pending) in [
        ("payments=150", None, 100),
        ("payments=50", None, 100),
        ("payments=50", Some("payments=60"), 100),
        ("payments=230", None, 200),
        ("payments=230", Some("payments=310"), 300),
        // The parameter is lowered, and the release stays. Another limit has no room.
        ("payments=50,GBP=150001", None, 300),
        ("payments=50,GBP=150001", Some("payments=350,GBP=175000"), 350),
    ] {
        if let Some(up_to) = release {
            limited.release(up_to).await?;
        }
        let outcome = limited.sweep(limit).await?;
        assert_eq!(limited.count(Status::Pending).await?, pending, "{limit}, {release:?}: {outcome:?}");
        assert_eq!(limited.is_held().await?, pending < 350, "{limit}, {release:?}");
    }
    assert_eq!(limited.reserved().await?.payments, 350);
    Ok(())
}

#[tokio::test]
async fn claims_without_a_limit_count_when_there_is_one_as_the_counters_show_them() -> Result<()> {
    let mut limited = Limited::with(100).await?;
    limited.sweep_without().await?;
    limited.count_all().await?;
    for number in 100..200 {
        limited.payments.push(limited.given.scheduled(&number.to_string(), TODAY).await?);
    }
    // The counters lag again: they do not show the second hundred.
    let outcome = limited.sweep("payments=199").await?;
    assert_eq!((outcome.claimed, limited.reserved().await?.payments), (0, 100));
    let outcome = limited.sweep("payments=200,GBP=100000").await?;
    assert_eq!((outcome.claimed, limited.reserved().await?.payments), (100, 200));
    limited.count_all().await?;
    limited.sweep("payments=200").await?;
    assert_eq!(limited.reserved().await?.payments, 200, "nothing is counted twice");
    Ok(())
}
