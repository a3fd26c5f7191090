//! A machine for tests of one function alone, with payments in its tables as `ingest` and the sweep leave them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use lambda_runtime::{Context, LambdaEvent};
use payments_boot::{Clock, ConfigError, Lookup, Metrics};
use payments_model::second::{NamedBy, arguments};
use payments_model::{
    AccountId, ActionId, ActionName, Actor, BusinessDate, BusinessZone, DayCounts, Details, Event, Head, Instruction,
    Money, PaymentId, PlanHash, ScheduledFor, Settlement, Status, Switch, SwitchChange, TrailEntry, UtcSecond,
};
use payments_store::{
    Approval, AuditIntent, Committed, CountsCommit, Decided, DueSort, First, LogHead, Moved, PutDetails, PutHead, Store,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::Request;
use crate::environment::Environment;
use crate::event::{DEVELOPMENT_CLIENT, all_scopes};
use crate::handlers::invocation::context;
use crate::stack::{EngineChoice, Stack};
use crate::time::Time;

/// The timeout of an invocation, unless its test says otherwise.
const TIMEOUT: TimeDelta = TimeDelta::minutes(15);

/// A machine whose clock advances by each wait.
#[derive(Debug)]
pub struct Given {
    /// The machine.
    pub stack: Stack,
    /// The machine's tables.
    pub store: Store,
    time: Time,
}

/// Returns the details of a payment of 5.00 GBP from `tenant` to `landlord` for this date, which a bank in London accepts at `now`.
pub fn details(key: &str, date: &str, now: UtcSecond) -> Result<Details> {
    accept(key, date, ("Europe/London", 10), now, |_| {})
}

fn accept(
    key: &str,
    date: &str,
    (zone, shards): (&str, u16),
    now: UtcSecond,
    change: impl FnOnce(&mut Instruction),
) -> Result<Details> {
    let account: AccountId = "tenant".parse()?;
    let payment_id = PaymentId::derive(&account, &key.parse()?);
    let mut instruction = Instruction {
        account,
        payee: "landlord".parse()?,
        money: Money { amount: "500".parse()?, currency: "GBP".parse()? },
        scheduled_for: ScheduledFor::Date(date.parse()?),
        date_rule: None,
        reference: None,
        data: None,
    };
    change(&mut instruction);
    Ok(Details::accept(payment_id, instruction, zone.parse()?, shards.to_string().parse()?, now, Actor::client("test")))
}

/// Returns the head of a payment after an event.
pub fn moved(head: &Head, event: &Event, at: UtcSecond, by: Actor) -> Result<Head> {
    let step = head.transition(event, at, by)?;
    let mut moved = Head { state: step.to().clone(), version: step.version() + 1, ..head.clone() };
    moved.moved.push(TrailEntry { status: step.to().status(), at, by: step.by().clone() });
    Ok(moved)
}

/// Turns the switch, as an operator does at this time.
pub async fn turn_switch(store: &Store, at: UtcSecond, turn: impl FnOnce(&mut Switch, SwitchChange)) -> Result<()> {
    let mut switch = store.switch().await?;
    turn(&mut switch, SwitchChange { by: Actor::operator("ada"), at, reason: "a wrong feed".to_owned() });
    switch.version += 1;
    ensure!(store.change_switch(&switch).await?, "somebody else was faster");
    Ok(())
}

/// Notes at this time that these persons, the first and the second, agreed on an action with these fields, and returns its name.
pub async fn agree(
    store: &Store,
    at: UtcSecond,
    (first, second): (&str, &str),
    (action, fields): (&str, &[(&str, String)]),
) -> Result<ActionName> {
    let (arguments, hash) = (arguments(fields), PlanHash::from_fields(action, fields));
    let named_by = NamedBy { claim: "sub".parse()?, issuer: "https://login.example.com".to_owned() };
    let name = ActionName { previewed_at: at, id: ActionId::derive("agreed", at, &format!("{action}\n{arguments}")) };
    let intent = AuditIntent {
        name,
        at,
        by: format!("o:{first}"),
        subject: None,
        request: "first".to_owned(),
        action: action.to_owned(),
        arguments,
        first: Some(First { person: first.parse()?, named_by: named_by.clone(), hash: hash.clone() }),
    };
    ensure!(store.put_audit_intent(&intent).await?.is_none_or(|known| known == intent), "another intent has the name");
    let approval = Approval {
        name,
        at,
        is_approved: true,
        person: second.parse()?,
        named_by,
        by: format!("o:{second}"),
        hash,
        request: "second".to_owned(),
    };
    ensure!(store.put_approval(&approval).await?.is_none_or(|known| known == approval), "somebody else decided");
    Ok(name)
}

/// Stops all claims and sends.
pub fn stop(switch: &mut Switch, change: SwitchChange) {
    (switch.stopped_at, switch.stopped) = (Some(switch.stop_begins(change.at)), true);
    switch.change = Some(change);
}

/// Resumes them.
pub fn resume(switch: &mut Switch, change: SwitchChange) {
    (switch.stopped, switch.freed_at, switch.change) = (false, Some(change.at), Some(change));
}

impl Given {
    /// Has two persons agree on an action with these fields now, and returns its name.
    pub async fn agreed(&self, persons: (&str, &str), plan: (&str, &[(&str, String)])) -> Result<ActionName> {
        agree(&self.store, self.stack.clock.now(), persons, plan).await
    }

    /// Turns the switch now.
    pub async fn switched(&self, turn: impl FnOnce(&mut Switch, SwitchChange)) -> Result<()> {
        turn_switch(&self.store, self.stack.clock.now(), turn).await
    }

    /// Starts a machine at this time, with a changed environment.
    pub async fn at(now: &str, change: impl FnOnce(&mut Environment)) -> Result<Self> {
        let time = Time::at(now.parse()?).in_seconds();
        let stack = Stack::on(EngineChoice::Unserved).clock(&time.clock()).environment(change).start().await?;
        Ok(Self { store: stack.store(stack.client()), stack, time })
    }

    /// Advances the time.
    pub fn pass(&self, time: TimeDelta) {
        self.time.pass(time);
    }

    /// Reads the configuration of a package's function.
    pub fn config<Config>(&self, package: &str, read: impl FnOnce(&Lookup<'_>) -> Config) -> Config {
        read(&Lookup::new(&|name| self.stack.environment.get(package, name)))
    }

    /// Creates a function that works with the tables alone, with its configuration.
    pub fn function<Config, F>(
        &self,
        package: &str,
        read: impl FnOnce(&Lookup<'_>) -> Result<Config, ConfigError>,
        new: impl FnOnce(Config, Store, Clock, Metrics) -> F,
    ) -> Result<F> {
        let Stack { clock, metrics, .. } = &self.stack;
        Ok(new(self.config(package, read)?, self.store.clone(), clock.clone(), metrics.clone()))
    }

    /// Creates a payment of 5.00 GBP from `tenant` to `landlord` for this date. It is SCHEDULED.
    pub async fn scheduled(&self, key: &str, date: &str) -> Result<Details> {
        self.scheduled_as(key, date, |_| {}).await
    }

    /// Creates such a payment with another content.
    pub async fn scheduled_as(&self, key: &str, date: &str, change: impl FnOnce(&mut Instruction)) -> Result<Details> {
        let Environment { time_zone, shards, .. } = &self.stack.environment;
        let details = accept(key, date, (time_zone, *shards), self.stack.clock.now(), change)?;
        ensure!(self.store.put_details(&details).await? == PutDetails::Created, "{key} was used before");
        ensure!(self.store.put_head(&Head::scheduled(&details)).await? == PutHead::Created, "{key} was used before");
        Ok(details)
    }

    /// Creates such a payment for today, and claims it. It is PENDING.
    pub async fn pending(&self, key: &str) -> Result<Details> {
        self.pending_as(key, |_| {}).await
    }

    async fn pending_as(&self, key: &str, change: impl FnOnce(&mut Instruction)) -> Result<Details> {
        let zone: BusinessZone = self.stack.environment.time_zone.parse()?;
        let details = self.scheduled_as(key, &zone.date_of(self.stack.clock.now()).to_string(), change).await?;
        let Details { payment_id, due_at, due_date, .. } = details;
        let claim = Head::scheduled(&details).transition(&Event::Sweep, self.stack.clock.now(), Actor::sweep())?;
        let due = DueSort { status: Status::Scheduled, due_date, due_at, payment_id };
        let moved = self.store.transition(&details.key(), due, &claim).await?;
        ensure!(matches!(moved, Moved::Done(_)), "{key} was not claimed");
        Ok(details)
    }

    /// Creates such a payment for today with another content, claims it, and settles it. It is unreported.
    pub async fn settled_as(
        &self,
        key: &str,
        settlement: Settlement,
        change: impl FnOnce(&mut Instruction),
    ) -> Result<Details> {
        let details = self.pending_as(key, change).await?;
        let pending = self.store.stored_head(&details.key()).await?.context("a pending payment has a head")?;
        let settle = Event::Settle(settlement);
        let step = pending.known().transition(&settle, self.stack.clock.now(), Actor::transaction_service())?;
        let Decided::Put(settled) = self.store.decide_settlement(&pending, &step).await? else {
            bail!("{key} was settled before");
        };
        let moved = self.store.follow_settlement(&settled).await?;
        ensure!(matches!(moved, Moved::Done(_)), "{key} was not settled");
        Ok(details)
    }

    /// Appends events to the log as one segment, as `stream-aggregator` does.
    pub async fn segment(&self, events: &[Value]) -> Result<()> {
        self.commit(BTreeMap::new(), events).await
    }

    /// Adds changes to the counters of a date, as `stream-aggregator` does.
    pub async fn counted(&self, date: BusinessDate, changes: DayCounts) -> Result<()> {
        self.commit(BTreeMap::from([(date, changes)]), &[]).await
    }

    async fn commit(&self, deltas: BTreeMap<BusinessDate, DayCounts>, events: &[Value]) -> Result<()> {
        const STREAM_SHARD: &str = "a stream shard";
        let now = self.stack.clock.now();
        let log = self.store.log_head().await?.unwrap_or_else(|| LogHead::first("a stream", now));
        let expected = self.store.checkpoint(STREAM_SHARD).await?;
        let events = events.iter().map(Value::to_string).collect();
        let commit = CountsCommit { deltas, unparsed: 0, events, last: log.next.into() };
        let committed = self.store.commit_counts(STREAM_SHARD, expected.as_ref(), &commit, &log, now).await?;
        ensure!(committed == Committed::Done, "nothing was committed: {committed:?}");
        Ok(())
    }

    /// Removes a segment of the log, which leaves a hole.
    pub async fn remove_segment(&self, number: u64) -> Result<()> {
        let head = self.store.log_head().await?.context("there is no log")?;
        let key = [("pk", format!("LOG#{}", head.epoch)), ("sk", format!("{number:012}"))];
        let delete = self.stack.client().delete_item().table_name("payments-log");
        let delete = key.into_iter().fold(delete, |delete, (name, text)| delete.key(name, AttributeValue::S(text)));
        delete.send().await?;
        Ok(())
    }

    /// Returns the context of an invocation that has time to spare.
    pub fn context(&self) -> Context {
        context(self.stack.clock.instant() + TIMEOUT)
    }

    /// Returns the event of a scheduled function.
    pub fn scheduled_event<Input: DeserializeOwned>(&self, input: Value) -> Result<LambdaEvent<Input>> {
        Ok(LambdaEvent::new(serde_json::from_value(input)?, self.context()))
    }

    /// Returns the event of a request whose token has every scope.
    pub fn http_event(&self, request: &Request) -> Result<ApiGatewayV2httpRequest> {
        let authorizer = all_scopes(DEVELOPMENT_CLIENT);
        request.event("test-request", self.stack.clock.instant(), &authorizer).map(|(_, event)| event)
    }

    /// Takes the metrics that were emitted and are not 0, such as `Processed 1`, in order of their names.
    pub fn raised(&self) -> Result<Vec<String>> {
        let lines = self.stack.metrics.take();
        let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line)).collect::<Result<_, _>>()?;
        let fields = lines.iter().filter_map(Value::as_object).flatten();
        let raised = fields.filter_map(|(name, value)| Some((name, value.as_u64().filter(|value| *value > 0)?)));
        let mut raised: Vec<_> = raised.map(|(name, value)| format!("{name} {value}")).collect();
        raised.sort();
        Ok(raised)
    }
}
