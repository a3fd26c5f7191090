//! `daily-due-sweeper` alone over the machine: it claims due payments, and redrives those that stay pending.

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use daily_due_sweeper::{Config, Sweeper};
use payments_machine::given::{Given, resume, stop};
use payments_model::{Actor, Details, Event, Head, Hold, Settlement, UtcSecond};
use payments_store::{Decided, Moved};
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

#[tokio::test]
async fn a_stopped_sweeper_claims_and_redrives_nothing_until_the_resume_and_says_so() -> Result<()> {
    let alone = Alone::start().await?;
    let (due, pending) = (alone.given.scheduled("due", "2026-11-20").await?, alone.given.pending("pending").await?);
    alone.given.switched(stop).await?;
    alone.given.pass(TimeDelta::hours(2));
    for (action, done) in [("sweep", "claimed"), ("redrive", "redriven")] {
        let outcome = alone.run(action).await?;
        let seen = [done, "stopped", "heldSeconds"].map(|name| outcome[name].as_u64());
        assert_eq!(seen, [Some(0), Some(1), Some(7_200)], "{action}: {outcome}");
    }
    for (details, version, attempt) in [(&due, 1, None), (&pending, 2, Some(1))] {
        let head = alone.head(details).await?;
        assert_eq!((head.version, head.dispatch_attempt), (version, attempt));
    }
    alone.given.switched(resume).await?;
    alone.given.pass(TimeDelta::minutes(1));
    let outcome = alone.run("sweep").await?;
    // The payment was due at midnight, and nobody could claim it before the resume.
    let seen = ["claimed", "stopped", "oldestOverdueSeconds"].map(|name| outcome[name].as_u64());
    assert_eq!(seen, [Some(1), None, Some(60)], "{outcome}");
    assert_eq!(alone.run("redrive").await?["redriven"], 1);
    Ok(())
}

#[tokio::test]
async fn payments_of_held_dates_are_not_claimed_and_not_overdue_but_redriven() -> Result<()> {
    let alone = Alone::start().await?;
    let keys = ["18", "19", "20"];
    let mut payments = Vec::new();
    for day in keys {
        payments.push(alone.given.scheduled(day, &format!("2026-11-{day}")).await?);
    }
    let pending = alone.given.pending("pending").await?;
    let hold = |from: &str, to: &str| -> Result<_> {
        let (from, to) = (from.parse()?, to.parse()?);
        Ok(move |switch: &mut payments_model::Switch, change| switch.holds.push(Hold { from, to, change }))
    };
    alone.given.switched(hold("2026-11-19", "2026-11-19")?).await?;
    alone.given.switched(hold("2026-11-20", "2026-12-31")?).await?;
    alone.given.pass(TimeDelta::hours(1));
    let outcome = alone.run("sweep").await?;
    let seen = ["claimed", "remaining", "heldSeconds"].map(|name| outcome[name].as_u64());
    assert_eq!(seen, [Some(1), Some(0), Some(3_600)], "{outcome}");
    let statuses = async || -> Result<Vec<String>> {
        let mut statuses = Vec::new();
        for details in &payments {
            statuses.push(alone.head(details).await?.state.status().as_str().to_owned());
        }
        Ok(statuses)
    };
    assert_eq!(statuses().await?, ["PENDING", "SCHEDULED", "SCHEDULED"]);
    assert_eq!(alone.run("redrive").await?["redriven"], 1, "a hold is of claims");
    assert_eq!(alone.head(&pending).await?.dispatch_attempt, Some(2));
    alone.given.switched(|switch, _| drop(switch.holds.pop())).await?;
    alone.given.pass(TimeDelta::seconds(3));
    assert_eq!(alone.run("sweep").await?["claimed"], 1);
    assert_eq!(statuses().await?, ["PENDING", "SCHEDULED", "PENDING"]);
    Ok(())
}

/// The dispatch attempt of a head, and the time of its last request after the first.
fn sent(head: &Head) -> (Option<u32>, Option<UtcSecond>) {
    (head.dispatch_attempt, head.sent_again_at)
}

#[tokio::test]
async fn of_two_operators_one_sends_again() -> Result<()> {
    let alone = Alone::start().await?;
    let details = alone.given.pending("pending").await?;
    let send =
        async |attempt| alone.given.store.send_again(&details.key(), attempt, alone.given.stack.clock.now()).await;
    let first = alone.given.stack.clock.now();
    let Moved::Done(head) = send(1).await? else { panic!("it was sent again") };
    assert_eq!((sent(&head), head.version), ((Some(2), Some(first)), 2));
    assert!(matches!(send(1).await?, Moved::Done(_)), "as after a lost reply");
    alone.given.pass(TimeDelta::minutes(59));
    // The second operator saw the first attempt, and a third one the second.
    for attempt in [1, 2] {
        let Moved::Elsewhere(Some(head)) = send(attempt).await? else { panic!("it was sent twice in an hour") };
        assert_eq!(sent(&head), (Some(2), Some(first)));
    }
    assert_eq!(alone.run("redrive").await?["redriven"], 0, "it was sent less than an hour ago");
    alone.given.pass(TimeDelta::minutes(1));
    let Moved::Done(head) = send(2).await? else { panic!("an hour passed") };
    assert_eq!(sent(&head), (Some(3), Some(alone.given.stack.clock.now())));
    Ok(())
}

#[tokio::test]
async fn a_payment_that_an_operator_sent_again_is_stuck_again_an_hour_later() -> Result<()> {
    let alone = Alone::start().await?;
    let details = alone.given.pending("pending").await?;
    alone.given.pass(TimeDelta::hours(127));
    assert!(alone.given.store.redrive(&details.key(), 1, 8, alone.given.stack.clock.now()).await?);
    for (passes, sends, stuck) in [
        (TimeDelta::hours(127), false, 0),
        (TimeDelta::hours(1), false, 1),
        (TimeDelta::zero(), true, 0),
        (TimeDelta::minutes(59), false, 0),
        (TimeDelta::minutes(1), false, 1),
    ] {
        alone.given.pass(passes);
        if sends {
            let now = alone.given.stack.clock.now();
            assert!(matches!(alone.given.store.send_again(&details.key(), 8, now).await?, Moved::Done(_)));
        }
        let outcome = alone.run("redrive").await?;
        assert_eq!((&outcome["redriven"], &outcome["stuck"]), (&json!(0), &json!(stuck)), "{passes}");
    }
    assert_eq!(alone.head(&details).await?.dispatch_attempt, Some(9));
    Ok(())
}

#[tokio::test]
async fn a_settled_payment_is_not_sent_again_and_forgets_when_it_was() -> Result<()> {
    let alone = Alone::start().await?;
    let store = &alone.given.store;
    let details = alone.given.pending("pending").await?;
    let (key, now) = (details.key(), alone.given.stack.clock.now());
    let pending = store.stored_head(&key).await?.context("no head")?;
    // The request is sent again after `settle` read it, and before `settle` writes.
    assert!(matches!(store.send_again(&key, 1, now).await?, Moved::Done(_)));
    let settle = Event::Settle(Settlement::Processed("TX-1".parse()?));
    let step = pending.known().transition(&settle, now, Actor::transaction_service())?;
    let (Decided::Put(settled) | Decided::Existing(settled)) = store.decide_settlement(&pending, &step).await?;
    assert!(matches!(store.follow_settlement(&settled).await?, Moved::Done(_)));
    let head = alone.head(&details).await?;
    assert_eq!(sent(&head), (Some(1), None));
    assert_eq!(store.archived_head(&key).await?.map(|archived| Head { unreported: true, ..archived }), Some(head));
    let Moved::Elsewhere(Some(head)) = store.send_again(&key, 1, now).await? else { panic!("it is settled") };
    assert_eq!(head.state.status().as_str(), "PROCESSED");
    Ok(())
}
