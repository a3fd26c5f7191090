//! Every crash point: each function, with each of its calls failing in each way. The calls are
//! found by running: a case is made for the k-th call until a run passes without reaching it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, ensure};
use chrono::TimeDelta;
use daily_due_sweeper::Action;
use payments_tests::{Ask, Reply};
use serde_json::json;

use payments_local::triggers::queues::RESULT_VISIBILITY;

use crate::fixture::Fixture;
use crate::invariants::{self, Intent, Stage};
use crate::{disturbances, transaction_service};
use fastrand::Rng;
use payments_local::{Call, Fate};

/// How the k-th call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// An error before the call, however often it is tried.
    ErrorBefore,
    /// An error before the call, once: the SDK tries again.
    ErrorBeforeOnce,
    /// Done, and the reply lost, however often it is tried.
    ReplyLost,
    /// Done, and the reply lost once: the SDK's second try meets what the first did.
    ReplyLostOnce,
    /// Throttled until the retries end.
    Throttled,
    /// This call and all that follow are throttled.
    ThrottledFromHereOn,
    /// Another transaction holds the item.
    Conflict,
    /// DynamoDB cancels the transaction for this reason of its checkpoint.
    Cancelled(&'static str),
    /// This transaction and all that follow are cancelled for this reason.
    CancelledFromHereOn(&'static str),
    /// SQS takes all messages but the first.
    EntryRefused,
    /// The process is killed before the call.
    KilledBefore,
    /// The process is killed right after the call.
    KilledAfter,
}

pub(crate) const WAYS: [Way; 10] = [
    Way::ErrorBefore,
    Way::ErrorBeforeOnce,
    Way::ReplyLost,
    Way::ReplyLostOnce,
    Way::Throttled,
    Way::ThrottledFromHereOn,
    Way::Conflict,
    Way::EntryRefused,
    Way::KilledBefore,
    Way::KilledAfter,
];

/// The ways in which transactions fail besides.
const WAYS_OF_TRANSACTIONS: [Way; 6] = [
    Way::Cancelled("TransactionConflict"),
    Way::Cancelled("ThrottlingError"),
    Way::Cancelled("ConditionalCheckFailed"),
    Way::CancelledFromHereOn("TransactionConflict"),
    Way::CancelledFromHereOn("ThrottlingError"),
    Way::CancelledFromHereOn("ConditionalCheckFailed"),
];

impl Way {
    pub(crate) fn fate(self, k: usize, call: &Call) -> Fate {
        let (hit, first) = (call.number == k, call.tried == 0);
        let is_write = matches!(call.operation.as_str(), "PutItem" | "UpdateItem" | "DeleteItem");
        let is_transaction = call.operation == "TransactWriteItems";
        match self {
            Self::ErrorBefore if hit => Fate::Refuse(500, "InternalServerError"),
            Self::ErrorBeforeOnce if hit && first => Fate::Refuse(500, "InternalServerError"),
            Self::ReplyLost if hit => Fate::LoseReply,
            Self::ReplyLostOnce if hit && first => Fate::LoseReply,
            Self::Throttled if hit => Fate::Refuse(400, "ThrottlingException"),
            Self::ThrottledFromHereOn if call.number >= k => Fate::Refuse(400, "ThrottlingException"),
            Self::Conflict if hit && is_write => Fate::Refuse(400, "TransactionConflictException"),
            Self::Cancelled(reason) if hit && is_transaction => Fate::CancelTransaction(reason),
            Self::CancelledFromHereOn(reason) if call.number >= k && is_transaction => Fate::CancelTransaction(reason),
            Self::EntryRefused if hit && call.operation == "SendMessageBatch" => Fate::RefuseFirstEntry,
            Self::KilledBefore if hit => Fate::KillBefore,
            Self::KilledAfter if hit => Fate::KillAfter,
            _ => Fate::Pass,
        }
    }
}

/// What makes a function run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    Create,
    /// A create that an earlier one has already answered.
    CreateAgain,
    Batch,
    Cancel,
    CancelAgain,
    Sweep,
    Redrive,
    Dispatch,
    Settle,
    Aggregate,
}

impl Trigger {
    /// The ways in which its calls can fail.
    fn ways(self) -> impl Iterator<Item = Way> {
        WAYS.into_iter().chain(WAYS_OF_TRANSACTIONS.into_iter().filter(move |_| self == Self::Aggregate))
    }

    /// Makes the bank such that the trigger has something to do.
    async fn prepare(self, fixture: &Fixture, mut random: Option<Rng>) -> Result<Vec<Intent>> {
        match self {
            Self::Create => Ok(vec![fixture.intent(&fixture.new_name())]),
            Self::Batch => {
                let account = fixture.new_name();
                Ok(vec![fixture.intent(&account), fixture.intent(&account)])
            }
            Self::CreateAgain | Self::Cancel => fixture.created(1).await,
            Self::CancelAgain => {
                let mut intents = fixture.created(1).await?;
                fixture.cancel(&mut intents[0]).await?;
                Ok(intents)
            }
            Self::Sweep => {
                let mut intents = fixture.created(4).await?;
                fixture.cancel(&mut intents[3]).await?;
                fixture.time.pass(TimeDelta::seconds(61));
                Ok(intents)
            }
            // Eleven are more than one SendMessageBatch takes.
            Self::Dispatch => pending(fixture, if random.is_some() { 3 } else { 11 }).await,
            Self::Settle => {
                let intents = pending(fixture, 4).await?;
                fixture.dispatch_all().await?;
                fixture.serve(random.as_mut())?;
                Ok(intents)
            }
            Self::Redrive => {
                let intents = pending(fixture, 3).await?;
                fixture.dispatch_all().await?;
                let requests = transaction_service::read_requests(&fixture.requests, &fixture.time)?;
                // One result comes late, but before the redrive; the others were lost.
                transaction_service::send_results(&requests[..1], &fixture.results, &fixture.time, None)?;
                fixture.time.pass(TimeDelta::minutes(61));
                fixture.settle_all().await?;
                Ok(intents)
            }
            Self::Aggregate => {
                fixture.aggregate_all().await?;
                fixture.dispatch_all().await?;
                // One payment has come to its end and left, the others are anywhere.
                let mut past = fixture.created(1).await?;
                fixture.cancel(&mut past[0]).await?;
                fixture.world.archive_all(&past[0].account).await?;
                let mut intents = fixture.created(3).await?;
                fixture.cancel(&mut intents[0]).await?;
                fixture.time.pass(TimeDelta::seconds(61));
                fixture.tick(Action::Sweep).await?;
                Ok(intents)
            }
        }
    }

    /// Pulls it once, as AWS or a client does.
    async fn pull(self, fixture: &Fixture, intents: &mut [Intent]) -> Result<()> {
        match self {
            Self::Create | Self::CreateAgain => fixture.create(&mut intents[0]).await.map(drop),
            Self::Cancel | Self::CancelAgain => fixture.cancel(&mut intents[0]).await.map(drop),
            Self::Batch => fixture.ask(batch_of(intents)).await.map(|reply| note_batch(&reply, intents)),
            Self::Sweep => fixture.tick(Action::Sweep).await.map(drop),
            Self::Redrive => fixture.tick(Action::Redrive).await.map(drop),
            Self::Dispatch => fixture.dispatch_step().await.map(drop),
            Self::Aggregate => fixture.aggregate_step().await.map(drop),
            Self::Settle => {
                fixture.settle_step().await;
                Ok(())
            }
        }
    }

    fn is_a_client(self) -> bool {
        matches!(self, Self::Create | Self::CreateAgain | Self::Batch | Self::Cancel | Self::CancelAgain)
    }

    /// Whether a client was told that all it asked for is done.
    fn is_answered(self, intents: &[Intent]) -> bool {
        match self {
            Self::Cancel | Self::CancelAgain => intents[0].cancelled,
            _ => intents.iter().all(|intent| intent.accepted.is_some()),
        }
    }
}

/// Payments that have become pending and were not sent yet.
async fn pending(fixture: &Fixture, count: usize) -> Result<Vec<Intent>> {
    let intents = fixture.created(count).await?;
    fixture.time.pass(TimeDelta::seconds(61));
    fixture.tick(Action::Sweep).await?;
    Ok(intents)
}

fn batch_of(intents: &[Intent]) -> Ask {
    let entries = intents.iter().map(|intent| {
        let mut entry = intent.body();
        entry["accountId"] = json!(intent.account);
        entry["idempotencyKey"] = json!(intent.key);
        entry
    });
    Ask::post("/payment-batches").json(&json!({ "payments": entries.collect::<Vec<_>>() }))
}

fn note_batch(reply: &Reply, intents: &mut [Intent]) {
    for (place, intent) in intents.iter_mut().enumerate() {
        let entry = &reply.body["results"][place];
        if entry["status"] == 201 {
            intent.accepted = entry["payment"]["paymentId"].as_str().map(str::to_owned);
        }
    }
}

/// One case.
#[derive(Debug, Clone, Copy)]
struct Case {
    trigger: Trigger,
    way: Way,
    k: usize,
    /// Whether the trigger is pulled again; a client may also give up.
    again: bool,
    disturbed: bool,
}

impl Case {
    /// Runs it. Says whether there was a k-th call, and whether it failed.
    async fn run(self, fixture: &Fixture) -> Result<(bool, bool)> {
        let random = self.disturbed.then(|| Rng::with_seed(u64::try_from(self.k).unwrap_or(0)));
        let mut intents = self.trigger.prepare(fixture, random.clone()).await?;
        let place = disturbances::place(fixture).await?;
        if self.disturbed {
            disturbances::begin(fixture, u64::try_from(self.k).unwrap_or(0));
        }
        let failed = self.pull_broken(fixture, &mut intents).await?;
        let reached = fixture.faults.calls() > self.k;
        fixture.faults.clear();
        self.check("after the failure", invariants::violations(fixture, &intents, Stage::UnderWay).await?)?;

        if self.again {
            if self.trigger == Trigger::Settle {
                fixture.time.pass(RESULT_VISIBILITY);
            }
            self.trigger.pull(fixture, &mut intents).await?;
            ensure!(self.trigger.is_answered(&intents), "{self:?}: the client's retry did not succeed");
        }
        if let Some(mut random) = random.clone() {
            disturbances::redeliver_since(fixture, &place, &mut random).await?;
            disturbances::end(fixture);
        }
        if self.trigger == Trigger::Aggregate {
            self.check("when all is counted", fixture.miscounted().await?)?;
            return Ok((reached, failed));
        }
        self.check("at the end", fixture.finish(&intents, random.clone()).await?)?;
        if let Some(mut random) = random {
            let sent = fixture.faults.sent();
            disturbances::redeliver_since(fixture, &place, &mut random).await?;
            ensure!(fixture.faults.sent() == sent, "{self:?}: what was over is sent again when the stream repeats it");
        }
        Ok((reached, failed))
    }

    /// Pulls the trigger with the k-th call failing; says whether one did.
    async fn pull_broken(self, fixture: &Fixture, intents: &mut [Intent]) -> Result<bool> {
        let failed = Arc::new(AtomicBool::new(false));
        let noted = Arc::clone(&failed);
        fixture.faults.inject(move |call| {
            let fate = self.way.fate(self.k, call);
            noted.fetch_or(fate != Fate::Pass, Ordering::Relaxed);
            fate
        });
        // Of a killed process there is no answer; any other is as good or bad as the calls were.
        if let Some(pulled) = fixture.faults.until_killed(self.trigger.pull(fixture, intents)).await {
            pulled?;
        }
        Ok(failed.load(Ordering::Relaxed))
    }

    fn check(self, when: &str, violations: Vec<String>) -> Result<()> {
        ensure!(violations.is_empty(), "{self:?}, {when}: {violations:#?}");
        Ok(())
    }
}

/// Runs a trigger's cases: each call in each way, in good weather and in bad.
async fn every_crash_point_of(trigger: Trigger) -> Result<()> {
    let fixture = Fixture::start().await?;
    let (mut cases, mut calls) = (0, 0);
    for disturbed in [false, true] {
        for way in trigger.ways() {
            for again in [true, false] {
                if !again && !trigger.is_a_client() {
                    continue;
                }
                for k in 0.. {
                    let (reached, failed) = Case { trigger, way, k, again, disturbed }.run(&fixture).await?;
                    if !reached {
                        break;
                    }
                    calls = calls.max(k + 1);
                    cases += usize::from(failed);
                }
            }
        }
    }
    println!("{trigger:?}: {cases} cases over {calls} calls");
    assert!(cases >= calls * 8, "each call fails in each way: {cases} cases over {calls} calls");
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn every_crash_point_of_ingest() -> Result<()> {
    for trigger in [Trigger::Create, Trigger::CreateAgain, Trigger::Batch, Trigger::Cancel, Trigger::CancelAgain] {
        every_crash_point_of(trigger).await?;
    }
    Ok(())
}

#[tokio::test]
async fn every_crash_point_of_the_sweep() -> Result<()> {
    every_crash_point_of(Trigger::Sweep).await
}

#[tokio::test]
async fn every_crash_point_of_the_redrive() -> Result<()> {
    every_crash_point_of(Trigger::Redrive).await
}

#[tokio::test]
async fn every_crash_point_of_dispatch() -> Result<()> {
    every_crash_point_of(Trigger::Dispatch).await
}

#[tokio::test]
async fn every_crash_point_of_settle() -> Result<()> {
    every_crash_point_of(Trigger::Settle).await
}

#[tokio::test]
async fn every_crash_point_of_the_aggregator() -> Result<()> {
    every_crash_point_of(Trigger::Aggregate).await
}
