//! The functions over an engine, and the payments that both sides of a pair work on.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use aws_sdk_dynamodb::Client;
use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _};
use payments_boot::Clock;
use payments_http::HttpFunction;
use payments_load::Settings;
use payments_load::orders::{Order, Orders};
use payments_local::client::Request;
use payments_local::interceptor::client_over;
use payments_local::invocation::context;
use payments_local::{EngineChoice, Environment, Function, Functions, Recorder, Stack, event};
use payments_model::{
    Actor, BusinessZone, Details, Head, Instruction, JsonText, Money, PaymentId, ShardCount, UtcSecond,
};
use payments_store::Store;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::AT_ONCE;
use crate::calls::Collector;

/// What the clock shows, so that every run does the same.
const NOW: &str = "2026-11-21T12:00:00Z";

/// When the payments that are swept and settled fell due.
const PAST: &str = "2026-11-20";

/// When the others will.
pub(crate) const FUTURE: &str = "2026-12-01";

/// Who asks, as the trail names them.
const CLIENT: &str = "compare";

/// Over how many accounts the payments are spread.
pub(crate) const ACCOUNTS: u32 = 20;

/// The functions over an engine, and the engine's client beside them.
#[derive(Debug)]
pub struct Bank {
    pub(crate) client: Client,
    pub(crate) functions: Functions,
    pub(crate) store: Store,
    pub(crate) recorder: Collector,
    pub(crate) environment: Environment,
    pub(crate) zone: BusinessZone,
    pub(crate) now: UtcSecond,
    shards: ShardCount,
    due: Orders,
    planned: Orders,
    numbers: AtomicU64,
}

/// The body of a create, as far as its details are made of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    payee_account_id: String,
    amount_minor: i64,
    currency: String,
    scheduled_for: String,
    data: Box<RawValue>,
}

impl Bank {
    /// The functions over the engine at this URL. With a wire, it is under everything that is measured.
    ///
    /// # Errors
    /// Where the engine does not answer.
    pub async fn over(url: &str, wire: Option<&Recorder>) -> Result<Self> {
        let instant: DateTime<Utc> = NOW.parse()?;
        let stack = Stack::on(EngineChoice::Endpoint(url.to_owned()))
            .environment(|environment| environment.claims_per_second = 0)
            .clock(&Clock::simulated(move || instant, |_| {}))
            .start()
            .await?;
        let (plain, environment) = (stack.environment.client(), stack.environment.clone());
        let client = wire.map_or_else(|| plain.clone(), |wire| client_over(&plain, wire.clone()));
        let zone: BusinessZone = environment.time_zone.parse()?;
        let settings = Settings { accounts: ACCOUNTS, busiest: 0, ..Settings::of(1, zone) };
        Ok(Self {
            functions: stack.functions(&client)?,
            recorder: Collector::over(&client, &environment.tables),
            store: Store::new(plain, environment.tables.clone()),
            client,
            zone,
            now: NOW.parse()?,
            shards: "10".parse()?,
            due: Orders::of(&settings, "due", PAST),
            planned: Orders::of(&settings, "planned", FUTURE),
            numbers: AtomicU64::new(0),
            environment,
        })
    }

    /// So many numbers that were not taken before.
    fn take(&self, size: u64) -> std::ops::Range<u64> {
        let first = self.numbers.fetch_add(size, Ordering::Relaxed);
        first..first + size
    }

    /// New payments as their clients ask for them, for a day to come.
    pub(crate) fn orders(&self, size: u64) -> Vec<Order<'_>> {
        self.take(size).map(|number| self.planned.order(number)).collect()
    }

    /// The first payments of all, as their clients ask for them.
    pub(crate) fn planned(&self, size: u64) -> Vec<Order<'_>> {
        (0..size).map(|number| self.planned.order(number)).collect()
    }

    /// Over how many shards payments are spread.
    pub(crate) fn shards(&self) -> ShardCount {
        self.shards
    }

    /// New payments that have fallen due, as they were put in.
    pub(crate) fn due(&self, size: u64) -> Result<Vec<Head>> {
        let orders = self.take(size).map(|number| self.due.order(number));
        orders.map(|order| Ok(Head::scheduled(&self.details(&order)?))).collect()
    }

    /// The details that `ingest` makes of an order.
    pub(crate) fn details(&self, order: &Order<'_>) -> Result<Details> {
        let body: Body = serde_json::from_str(&order.single()?)?;
        let account = order.account.parse()?;
        let payment_id = PaymentId::derive(&account, &order.key.parse()?);
        let instruction = Instruction {
            account,
            payee: body.payee_account_id.parse()?,
            money: Money { amount: body.amount_minor.try_into()?, currency: body.currency.parse()? },
            scheduled_for: body.scheduled_for.parse()?,
            data: Some(JsonText::of(&body.data)),
        };
        let by = Actor::named(CLIENT);
        Ok(Details::accept(payment_id, instruction, self.zone, self.shards, self.now, by))
    }

    /// Puts heads into the hot table as they are.
    ///
    /// # Errors
    /// Where the engine does not answer.
    pub(crate) async fn put(&self, heads: &[Head]) -> Result<()> {
        let puts = futures::stream::iter(heads).map(|head| async {
            self.store.put_head(head).await?;
            Ok(())
        });
        puts.buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Puts in so many payments that have fallen due.
    ///
    /// # Errors
    /// Where the engine does not answer.
    pub async fn fill(&self, size: u64) -> Result<()> {
        self.put(&self.due(size)?).await
    }

    /// Lets the sweeper run once, and returns how many payments it claimed.
    ///
    /// # Errors
    /// Where it fails, or leaves something undone.
    pub async fn sweep(&self) -> Result<u64> {
        let context = context(self.now.as_chrono() + TimeDelta::minutes(15));
        let input = json!({ "action": "sweep" });
        // Boxed: the chain of calls is deeper than the compiler follows in one type.
        let report = Box::pin(self.functions.scheduled(Function::DailyDueSweeper, input, context)).await;
        let report = report.map_err(anyhow::Error::msg)?;
        let left = [&report["failed"], &report["remaining"], &report["shardsGivenUp"], &report["alreadyClaimed"]];
        ensure!(left.iter().all(|left| *left == 0), "the sweep left something: {report}");
        Ok(report["claimed"].as_u64().unwrap_or(0))
    }

    /// The event of a request.
    pub(crate) fn event(&self, method: &str, uri: &str, key: &str, body: &str) -> Result<ApiGatewayV2httpRequest> {
        let mut request = Request::new(method.parse()?, uri);
        if !body.is_empty() {
            request = request.text(body);
        }
        if !key.is_empty() {
            request = request.header("Idempotency-Key", key);
        }
        Ok(request.event("compare", self.now.as_chrono(), &event::all_scopes(CLIENT))?.1)
    }

    /// Asks a function for each of these, and wants each to be answered with `status`.
    pub(crate) async fn ask(
        &self,
        function: HttpFunction,
        events: Vec<ApiGatewayV2httpRequest>,
        at_once: usize,
        status: i64,
    ) -> Result<()> {
        let asked = futures::stream::iter(events).map(|event| async move {
            let answer = Box::pin(self.functions.invoke(function, event)).await;
            ensure!(answer.status_code == status, "{} answered {answer:?}", function.name());
            Ok(())
        });
        asked.buffer_unordered(at_once).try_collect().await
    }
}
