//! Every crash point: each kind of work runs with each of its calls failing in each way.
//!
//! Cases are made for call 0, 1, 2, … until a run ends before its call.
//!
//! A month fails calls at random, and would leave some out; here none is.

use anyhow::{Result, ensure};
use chrono::TimeDelta;
use daily_due_sweeper::Action;
use fastrand::Rng;
use payments_lab::facts::intent::Intent;
use payments_lab::facts::results::failed;
use payments_machine::layers::random::Seed;
use payments_tests::{Ask, CrashPoint, Reply, Way};
use serde_json::json;

use crate::contradictions::without_one_finding;
use crate::kit::fault_plan::{WAYS, WAYS_OF_TRANSACTIONS, every_crash_point, run_to};
use crate::kit::fixture::Fixture;
use crate::kit::invariants::{self, Stage};
use crate::kit::{disturbances, transaction_service};

/// The work of the function in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Create,
    /// A create that was answered before.
    CreateAgain,
    Batch,
    Cancel,
    CancelAgain,
    Amend,
    /// An amendment of an amended payment.
    AmendMore,
    /// An amendment that was answered before.
    AmendAgain,
    /// A move of payments whose date was closed, one of them amended before.
    Redate,
    Sweep,
    Redrive,
    Dispatch,
    Settle,
    /// Results that contradict settled payments.
    Contradict,
    Aggregate,
}

impl Work {
    /// The ways in which its calls can fail.
    fn ways(self) -> impl Iterator<Item = Way> + Clone {
        // No condition of a finding fails if there is no such finding.
        let fits = move |way: &Way| match self {
            Self::Aggregate => true,
            Self::Contradict => !way.name.contains("ConditionalCheckFailed"),
            _ => false,
        };
        WAYS.into_iter().chain(WAYS_OF_TRANSACTIONS.into_iter().filter(fits))
    }

    /// Brings the system to where there is something to do.
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
            Self::Amend => {
                let mut intents = fixture.created(1).await?;
                fixture.want_amended(&mut intents[0], 1, 30)?;
                Ok(intents)
            }
            Self::AmendMore | Self::AmendAgain => {
                let mut intents = fixture.created(1).await?;
                let place = fixture.want_amended(&mut intents[0], 1, -30)?;
                fixture.amend(&mut intents[0], place).await?;
                if self == Self::AmendMore {
                    fixture.want_amended(&mut intents[0], 2, 30)?;
                }
                Ok(intents)
            }
            Self::Redate => fixture.to_be_redated().await,
            Self::Sweep => {
                let mut intents = fixture.created(4).await?;
                fixture.cancel(&mut intents[3]).await?;
                fixture.time.pass(TimeDelta::seconds(61));
                Ok(intents)
            }
            // Eleven are more than one SendMessageBatch holds.
            Self::Dispatch => fixture.pending(if random.is_some() { 3 } else { 11 }).await,
            Self::Settle => {
                let intents = fixture.pending(4).await?;
                fixture.dispatch_all().await?;
                fixture.serve(random.as_mut())?;
                Ok(intents)
            }
            Self::Contradict => contradicted(fixture).await,
            Self::Redrive => {
                let intents = fixture.pending(3).await?;
                fixture.dispatch_all().await?;
                let requests = transaction_service::read_requests(&fixture.requests, &fixture.time)?;
                // One result comes late, but before the redrive. The others were lost.
                transaction_service::send_results(&requests[..1], &fixture.results, &fixture.time, None)?;
                fixture.time.pass(TimeDelta::minutes(61));
                fixture.settle_all().await?;
                Ok(intents)
            }
            Self::Aggregate => {
                fixture.aggregate_all().await?;
                fixture.dispatch_all().await?;
                // One payment is archived; the others are in several states.
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

    /// Fires once, as AWS or a client would.
    async fn fire(self, fixture: &Fixture, intents: &mut [Intent]) -> Result<()> {
        match self {
            Self::Create | Self::CreateAgain => fixture.create(&mut intents[0]).await.map(drop),
            Self::Cancel | Self::CancelAgain => fixture.cancel(&mut intents[0]).await.map(drop),
            Self::Amend | Self::AmendMore | Self::AmendAgain => {
                let last = intents[0].amendments.len() - 1;
                fixture.amend(&mut intents[0], last).await.map(drop)
            }
            Self::Redate => fixture.redate(&fixture.redating, intents).await.map(drop),
            Self::Batch => fixture.ask(batch_of(intents)).await.map(|reply| note_batch(&reply, intents)),
            Self::Sweep => fixture.tick(Action::Sweep).await.map(drop),
            Self::Redrive => fixture.tick(Action::Redrive).await.map(drop),
            Self::Dispatch => fixture.dispatch_step().await.map(drop),
            Self::Aggregate => fixture.aggregate_step().await.map(drop),
            Self::Settle | Self::Contradict => {
                fixture.settle_step().await;
                Ok(())
            }
        }
    }

    fn is_http_request(self) -> bool {
        !matches!(
            self,
            Self::Sweep
                | Self::Redrive
                | Self::Dispatch
                | Self::Settle
                | Self::Contradict
                | Self::Aggregate
                | Self::Redate
        )
    }

    /// Whether the client was told that all it asked for is done.
    fn is_answered(self, intents: &[Intent]) -> bool {
        match self {
            Self::Cancel | Self::CancelAgain => intents[0].cancelled,
            // An operator repeats it, and an index may lag.
            Self::Redate => true,
            _ => intents.iter().all(|intent| {
                intent.accepted.is_some() && intent.amendments.iter().all(|amendment| amendment.accepted)
            }),
        }
    }
}

/// Settled payments whose second result contradicts the first.
async fn contradicted(fixture: &Fixture) -> Result<Vec<Intent>> {
    let intents = fixture.pending(2).await?;
    fixture.dispatch_all().await?;
    let requests = transaction_service::read_requests(&fixture.requests, &fixture.time)?;
    transaction_service::send_results(&requests, &fixture.results, &fixture.time, None)?;
    fixture.settle_all().await?;
    for request in &requests {
        fixture.send_result(&failed(request, "or not"))?;
    }
    Ok(intents)
}

fn batch_of(intents: &[Intent]) -> Ask {
    let entries: Vec<_> = intents.iter().map(Intent::entry).collect();
    Ask::post("/payment-batches").json(&json!({ "payments": entries }))
}

fn note_batch(reply: &Reply, intents: &mut [Intent]) {
    for (index, intent) in intents.iter_mut().enumerate() {
        let entry = &reply.body["results"][index];
        if entry["statusCode"] == 201 {
            intent.accepted = entry["payment"]["paymentId"].as_str().map(str::to_owned);
        }
    }
}

/// The seed of the first disturbed case: from here on, lag leads to more failing calls than from 0.
const FIRST_SEED: u64 = 2;

/// One case.
#[derive(Debug, Clone, Copy)]
struct Case {
    work: Work,
    point: CrashPoint,
    /// Whether it is tried again after the failure. Only a client may give up.
    again: bool,
    disturbed: bool,
}

impl Case {
    /// Runs it. Returns whether the planned call was reached, and whether one failed.
    async fn run(self, fixture: &Fixture) -> Result<(bool, bool)> {
        let seed = u64::try_from(self.point.call)?;
        let random = self.disturbed.then(|| Seed(seed).source("crash points"));
        let mut intents = self.work.prepare(fixture, random.clone()).await?;
        let place = disturbances::place(fixture).await?;
        if self.disturbed {
            disturbances::begin(fixture, FIRST_SEED + seed);
        }
        let run = run_to(self.point, &fixture.faults, self.work.fire(fixture, &mut intents)).await;
        run.answer.transpose()?;
        self.check("after the failure", invariants::violations(fixture, &intents, Stage::UnderWay).await?)?;

        if self.again {
            if matches!(self.work, Work::Settle | Work::Contradict) {
                fixture.pass_visibility();
            }
            self.work.fire(fixture, &mut intents).await?;
            ensure!(self.work.is_answered(&intents), "{self:?}: the client's retry did not succeed");
        }
        if let Some(mut random) = random.clone() {
            disturbances::redeliver_since(fixture, &place, &mut random).await?;
            disturbances::end(fixture);
        }
        if self.work == Work::Aggregate {
            self.check("when all is counted", fixture.miscounted().await?)?;
            return Ok((run.reached, run.failed));
        }
        if self.work == Work::Redate {
            self.finish_redate(fixture, &mut intents).await?;
            return Ok((run.reached, run.failed));
        }
        self.check("at the end", fixture.finish(&intents, random.clone()).await?)?;
        if self.work == Work::Contradict {
            self.check("of findings", without_one_finding(fixture, &intents).await?)?;
        }
        if let Some(mut random) = random {
            let sent = fixture.faults.sent();
            disturbances::redeliver_since(fixture, &place, &mut random).await?;
            ensure!(fixture.faults.sent() == sent, "{self:?}: a repeated stream sends settled payments again");
        }
        Ok((run.reached, run.failed))
    }

    /// An operator repeats the redate: now all are moved, each once. A client can cancel them where they are.
    async fn finish_redate(self, fixture: &Fixture, intents: &mut [Intent]) -> Result<()> {
        fixture.redate(&fixture.redating, intents).await?;
        fixture.note_redates(intents).await?;
        let is_moved = |intent: &Intent| intent.amendments.iter().all(|amendment| amendment.accepted);
        ensure!(intents.iter().all(is_moved), "{self:?}: {intents:?}");
        let again = fixture.redate(&fixture.redating, intents).await?;
        ensure!((again.looked, again.moved, again.is_complete) == (0, 0, true), "{self:?}: {again:?}");
        self.check("when all are moved", invariants::violations(fixture, intents, Stage::UnderWay).await?)?;
        for intent in intents.iter_mut() {
            fixture.cancel(intent).await?;
        }
        self.check("at the end", invariants::violations(fixture, intents, Stage::Finished).await?)
    }

    fn check(self, when: &str, violations: Vec<String>) -> Result<()> {
        ensure!(violations.is_empty(), "{self:?}, {when}: {violations:#?}");
        Ok(())
    }
}

/// Runs the cases of one kind of work.
async fn every_crash_point_of(work: Work) -> Result<()> {
    let fixture = Fixture::start().await?;
    let (mut cases, mut calls) = (0, 0);
    for again in [true, false].into_iter().filter(|again| *again || work.is_http_request()) {
        let run = async |point, disturbed| Case { work, point, again, disturbed }.run(&fixture).await;
        let harness = format!("crash-points {work:?}{}", if again { " again" } else { "" });
        let (more_cases, more_calls) = every_crash_point(&harness, work.ways(), run).await?;
        (cases, calls) = (cases + more_cases, calls.max(more_calls));
    }
    println!("{work:?}: {cases} cases over {calls} calls");
    // Eight ways apply to every call, a read too, without and with disturbances. Some runs make fewer calls.
    assert!(
        cases >= calls * 8,
        "{cases} cases failed over {calls} calls, fewer than 8 a call: did a way stop failing?"
    );
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn every_crash_point_of_ingest() -> Result<()> {
    for work in [Work::Create, Work::CreateAgain, Work::Batch, Work::Cancel, Work::CancelAgain] {
        every_crash_point_of(work).await?;
    }
    Ok(())
}

#[tokio::test]
async fn every_crash_point_of_amendments() -> Result<()> {
    for work in [Work::Amend, Work::AmendMore, Work::AmendAgain] {
        every_crash_point_of(work).await?;
    }
    Ok(())
}

#[tokio::test]
async fn every_crash_point_of_a_redate() -> Result<()> {
    every_crash_point_of(Work::Redate).await
}

#[tokio::test]
async fn every_crash_point_of_the_sweep() -> Result<()> {
    every_crash_point_of(Work::Sweep).await
}

#[tokio::test]
async fn every_crash_point_of_the_redrive() -> Result<()> {
    every_crash_point_of(Work::Redrive).await
}

#[tokio::test]
async fn every_crash_point_of_dispatch() -> Result<()> {
    every_crash_point_of(Work::Dispatch).await
}

#[tokio::test]
async fn every_crash_point_of_settle() -> Result<()> {
    every_crash_point_of(Work::Settle).await
}

#[tokio::test]
async fn every_crash_point_of_a_contradicting_result() -> Result<()> {
    every_crash_point_of(Work::Contradict).await
}

#[tokio::test]
async fn every_crash_point_of_the_aggregator() -> Result<()> {
    every_crash_point_of(Work::Aggregate).await
}
