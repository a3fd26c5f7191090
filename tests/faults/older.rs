//! A release that knows no amendments, beside this one: it refuses each amended payment and pays nothing of it.
//!
//! Alarms say so. Once this release is back, the payments are paid as they were amended.
//!
//! A month's older release knows amendments.

use std::cell::RefCell;
use std::collections::BTreeSet;

use anyhow::{Result, bail};
use chrono::{DateTime, TimeDelta, Utc};
use daily_due_sweeper::{Action, SweeperOutcome};
use payments_alarms::{Alarm, AlarmState, Metric, Resources, Sample, Samples, history};
use payments_http::HttpFunction;
use payments_local::interceptor::{Next, client_over, read_whole, respond};
use payments_local::triggers::queues::{MAX_RESULT_RECEIVES, RESULT_VISIBILITY};
use payments_local::{Function, Functions, Interceptor};
use payments_month::intent::{Amendment, Intent};
use payments_tests::{Ask, template};
use serde_json::{Value, json};

use crate::aggregation::{aggregate, drain};
use crate::fixture::{Fixture, SWEEPER_TIMEOUT, dispatch, settle};
use crate::invariants::{Stage, violations};
use crate::night::{UNTIL_NIGHT, invoke};

/// What a head says about amendments. The older release reads on past attributes that it does not know.
const UNKNOWN: [&str; 3] = ["details", "amended", "moved"];

/// The alarms that go off, each because one of its functions refuses amended payments. `docs/runbook.md`, Roll back, names them.
const ALARMS: [&str; 7] = [
    "ChangesIrregular",
    "DispatchFailuresAlarm",
    "PaymentsLeftOut",
    "RedriveFailures",
    "ReportFailures",
    "ResultDeadLettersAlarm",
    "SweepFailures",
];

/// How an amendment shows in the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// It raises the version.
    Raised,
    /// It does not: a mistake, with which the older release takes an amended payment for one that never was.
    Kept,
}

/// The older release: this one's functions, which see what it saw.
struct Older<'f> {
    fixture: &'f Fixture,
    functions: Functions,
    version: Version,
    /// Its metrics, as of one minute.
    samples: RefCell<Samples>,
    at: DateTime<Utc>,
}

impl<'f> Older<'f> {
    fn of(fixture: &'f Fixture, version: Version) -> Result<Self> {
        let see = move |call, next: Next| async move {
            let (status, body) = read_whole(next.send(call).await?).await?;
            let mut answer = serde_json::from_slice(&body).unwrap_or(Value::Null);
            see_as_older(&mut answer, version);
            respond(status, answer.to_string())
        };
        let client = client_over(&fixture.client, Interceptor::over(fixture.faults.interceptor(), see));
        let functions = fixture.functions_over(&client)?;
        drop(fixture.metrics.take());
        Ok(Self { fixture, functions, version, samples: RefCell::default(), at: fixture.time.now() })
    }

    /// Keeps the metrics that a function has emitted.
    fn keep_metrics(&self, function: Function) -> Result<()> {
        let resources = Resources::of(&template()?)?;
        for line in self.fixture.metrics.take() {
            for mut sample in Sample::of_line(&line)? {
                let id = resources.function(function.as_str())?.to_owned();
                sample.metric.dimensions.insert("Function".to_owned(), id);
                self.samples.borrow_mut().add(Sample { at: self.at, ..sample });
            }
        }
        Ok(())
    }

    async fn tick(&self, action: Action) -> Result<SweeperOutcome> {
        let outcome = self.fixture.tick_within(&self.functions, action, SWEEPER_TIMEOUT).await?;
        self.keep_metrics(Function::DailyDueSweeper)?;
        Ok(outcome)
    }

    async fn invoke(&self, function: Function) -> Result<Value> {
        let outcome = invoke(self.fixture, &self.functions, function).await?;
        self.keep_metrics(function)?;
        Ok(outcome)
    }

    /// Delivers the whole stream to `dispatch` and to `stream-aggregator`.
    async fn read_stream(&self) -> Result<()> {
        let now = self.fixture.time.now();
        let seen = |mut event: Value| {
            see_as_older(&mut event, self.version);
            event
        };
        let function = |event| dispatch(&self.functions, seen(event));
        self.fixture.dispatching.lock().await.drain(now, 200, function).await?;
        self.keep_metrics(Function::Dispatch)?;
        let function = |event| aggregate(&self.functions, seen(event));
        drain(&mut *self.fixture.aggregating.lock().await, now, function).await?;
        self.keep_metrics(Function::StreamAggregator)
    }

    /// Delivers all results to `settle`, until those that fail are dead letters.
    async fn settle(&self) -> Result<()> {
        for _ in 0..=MAX_RESULT_RECEIVES {
            let function = |event| settle(&self.functions, event);
            while self.fixture.settling.step(self.fixture.time.now(), function).await.is_some() {}
            self.fixture.time.pass(RESULT_VISIBILITY);
        }
        self.keep_metrics(Function::Settle)
    }

    /// The alarms that its metrics set off, and the messages in queues.
    fn alarms(&self) -> Result<BTreeSet<String>> {
        let mut samples = self.samples.borrow().clone();
        let Fixture { dispatch_failures, dead_results, .. } = self.fixture;
        for (id, queue) in [("DispatchFailures", dispatch_failures), ("ResultDeadLetters", dead_results)] {
            let metric = Metric::of("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", id);
            let value = i64::try_from(queue.counts(self.fixture.time.now()).visible)?;
            samples.add(Sample { metric, at: self.at, value });
        }
        let known: BTreeSet<&Metric> = samples.metrics().collect();
        let mut off = BTreeSet::new();
        for alarm in Alarm::all(&template()?)? {
            let is_known = alarm.series().iter().any(|series| known.contains(&series.metric));
            let changes = history(&alarm, &samples, (self.at, self.at + TimeDelta::minutes(1)), 0)?;
            if is_known && changes.iter().any(|change| change.state == AlarmState::Alarm) {
                off.insert(alarm.name);
            }
        }
        Ok(off)
    }
}

/// Lets each head of an answer or an event be as the older release sees it.
fn see_as_older(value: &mut Value, version: Version) {
    if let Some(trail) = value["trail"]["L"].as_array().map(Vec::len) {
        if version == Version::Kept {
            value["version"] = json!({ "N": trail.to_string() });
        }
        if let Some(head) = value.as_object_mut() {
            head.retain(|name, _| !UNKNOWN.contains(&name.as_str()));
        }
        return;
    }
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| see_as_older(value, version)),
        Value::Object(fields) => fields.values_mut().for_each(|value| see_as_older(value, version)),
        _ => {}
    }
}

/// Amends a payment in its data alone: amount, payee and due time of the first details are still right.
async fn amend_data(fixture: &Fixture, intent: &mut Intent) -> Result<()> {
    let mut wanted = intent.made_for(intent.scheduled_for.clone());
    wanted.data = json!({ "note": "to another tenant" });
    let key = format!("data-{}", intent.amount);
    intent.amendments.push(Amendment { key, seen: 1, wanted: Box::new(wanted), accepted: false, redates: None });
    amend(fixture, intent).await
}

/// Sends the last amendment of a payment, which must be accepted.
async fn amend(fixture: &Fixture, intent: &mut Intent) -> Result<()> {
    let reply = fixture.amend(intent, intent.amendments.len() - 1).await?;
    anyhow::ensure!(reply.status == 200, "{reply}");
    Ok(())
}

/// The payments of an account as the older release meets them: one that was never amended, and amended ones: two that are scheduled, in
/// data alone and with another amount and due time; one whose result waits for `settle`; one that is settled.
struct Met {
    plain: Intent,
    scheduled: [Intent; 2],
    sent: Intent,
    settled: Intent,
}

impl Met {
    async fn all(fixture: &Fixture) -> Result<Self> {
        let account = fixture.new_name();
        let mut settled = created(fixture, &account).await?;
        amend_data(fixture, &mut settled).await?;
        assert_eq!(fixture.finish(std::slice::from_ref(&settled), None).await?, [""; 0]);
        let mut sent = created(fixture, &account).await?;
        amend_data(fixture, &mut sent).await?;
        fixture.time.pass(TimeDelta::seconds(61));
        fixture.tick(Action::Sweep).await?;
        fixture.dispatch_all().await?;
        fixture.serve(None)?;
        let plain = created(fixture, &account).await?;
        let mut data = created(fixture, &account).await?;
        amend_data(fixture, &mut data).await?;
        let mut moved = created(fixture, &account).await?;
        fixture.want_amended(&mut moved, 1, 30)?;
        amend(fixture, &mut moved).await?;
        fixture.aggregate_all().await?;
        fixture.time.pass(TimeDelta::seconds(91));
        Ok(Self { plain, scheduled: [data, moved], sent, settled })
    }

    fn amended(&self) -> impl Iterator<Item = &Intent> {
        self.scheduled.iter().chain([&self.sent, &self.settled])
    }

    fn intents(&self) -> Vec<Intent> {
        std::iter::once(&self.plain).chain(self.amended()).cloned().collect()
    }
}

async fn created(fixture: &Fixture, account: &str) -> Result<Intent> {
    let mut intent = fixture.intent(account);
    let reply = fixture.create(&mut intent).await?;
    anyhow::ensure!(reply.status == 201, "{reply}");
    Ok(intent)
}

/// Runs the older release from the due time to the night. It handles the payment that was never amended, and no other.
async fn run_older(older: &Older<'_>, met: &Met) -> Result<()> {
    let fixture = older.fixture;
    let sent = fixture.faults.sent();
    let SweeperOutcome::Sweep(swept) = older.tick(Action::Sweep).await? else { bail!("not a sweep") };
    assert_eq!((swept.claimed, swept.failed), (1, 2), "{swept:?}");
    older.read_stream().await?;
    fixture.serve(None)?;
    older.settle().await?;
    fixture.time.pass(TimeDelta::minutes(61));
    let SweeperOutcome::Redrive(redriven) = older.tick(Action::Redrive).await? else { bail!("not a redrive") };
    assert_eq!((redriven.redriven, redriven.failed), (0, 3), "{redriven:?}");
    older.read_stream().await?;
    assert_eq!(fixture.faults.sent(), sent + 1, "the payment that was never amended");
    for intent in met.amended() {
        let (account, id) = (&intent.account, intent.id()?);
        for ask in [
            Ask::get(&format!("/accounts/{account}/payments/{id}")),
            Ask::create(account, &intent.key, &intent.body()),
            Ask::cancel(account, id),
        ] {
            let reply = fixture.world.send_to(&older.functions, ask).await?;
            assert_eq!(reply.status, 500, "{reply}");
        }
    }
    let list = Ask::get(&format!("/accounts/{}/payments?from=2026-11-20", met.plain.account));
    let listed = fixture.world.send_to(&older.functions, list).await?;
    assert_eq!((listed.payments().len(), &listed.body["leftOut"]["count"]), (1, &json!(4)), "{listed}");
    older.keep_metrics(Function::Http(HttpFunction::QueryAccount))?;
    let reported = older.invoke(Function::Report).await?;
    assert_eq!((&reported["reported"], &reported["failed"]), (&json!(1), &json!(1)), "{reported}");
    fixture.time.pass(UNTIL_NIGHT);
    let archived = older.invoke(Function::Archive).await?;
    assert_eq!((&archived["archived"], &archived["failed"]), (&json!(1), &json!(1)), "{archived}");
    Ok(())
}

#[tokio::test]
async fn a_rollback_pays_nothing_of_amended_payments_and_this_release_pays_them_later() -> Result<()> {
    let fixture = Fixture::start().await?;
    let met = Box::pin(Met::all(&fixture)).await?;
    let intents = met.intents();
    let older = Older::of(&fixture, Version::Raised)?;
    Box::pin(run_older(&older, &met)).await?;
    let off = older.alarms()?;
    assert_eq!(off.iter().map(String::as_str).collect::<Vec<_>>(), ALARMS);
    assert_eq!(violations(&fixture, &intents, Stage::UnderWay).await?, [""; 0]);

    // This release is back: an operator moves the dead letters back, and the redrive does the rest.
    for letter in fixture.dead_results.receive(10, fixture.time.now()) {
        fixture.results.send(letter.body, fixture.time.now())?;
        fixture.dead_results.delete(&letter.receipt_handle);
    }
    fixture.settle_all().await?;
    let SweeperOutcome::Redrive(redriven) = fixture.tick(Action::Redrive).await? else { bail!("not a redrive") };
    assert_eq!((redriven.redriven, redriven.failed), (2, 0), "{redriven:?}");
    assert_eq!(fixture.finish(&intents, None).await?, [""; 0]);
    assert_eq!(fixture.faults.sent(), intents.len(), "each once");
    let reported = invoke(&fixture, &fixture.functions, Function::Report).await?;
    let archived = invoke(&fixture, &fixture.functions, Function::Archive).await?;
    assert_eq!((&reported["reported"], &archived["archived"]), (&json!(4), &json!(4)), "{reported} {archived}");
    assert_eq!(violations(&fixture, &intents, Stage::Finished).await?, [""; 0]);
    fixture.assert_counters_exact().await
}

/// Nothing else would stop it: amount, payee and due time are those of the first details.
#[tokio::test]
async fn an_older_release_would_pay_the_first_content_if_amendments_raised_no_version() -> Result<()> {
    for (version, sent) in [(Version::Kept, 1), (Version::Raised, 0)] {
        let fixture = Fixture::start().await?;
        let mut intents = fixture.created(1).await?;
        amend_data(&fixture, &mut intents[0]).await?;
        fixture.time.pass(TimeDelta::seconds(61));
        fixture.tick(Action::Sweep).await?;
        Older::of(&fixture, version)?.read_stream().await?;
        assert_eq!(fixture.faults.sent(), sent, "{version:?}");
        let found = violations(&fixture, &intents, Stage::UnderWay).await?;
        let is_seen = |found: &String| found.contains("was sent as") && found.contains("rent");
        assert_eq!((found.len(), found.iter().all(is_seen)), (sent, true), "{version:?}: {found:?}");
    }
    Ok(())
}
