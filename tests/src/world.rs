//! One world per test: an engine, two tables, the functions, and a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::{RetryConfig, RetryPartition};
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, TimeDelta, Utc};
use object_store::ObjectStore;
use payments_bank::{Dependencies, Functions, OneMachine};
use payments_boot::{Lookup, Metrics};
use payments_delivery::DynamoDbStream;
use payments_http::routes::CONSOLE_ROUTES;
use payments_machine::{Direct, EngineChoice, Environment, Handlers as _, Recorder, Stack, Time, event};
use payments_model::UtcSecond;
use payments_queue::Queue;
use payments_store::{Item, Store};
use serde_json::Value;

use crate::ask::{Ask, Reply};
use crate::contract::Contract;
use crate::database::Database;
use crate::role_check::with_role;

/// The start of tests, unless they say otherwise: a Friday morning in winter, when London's clocks show UTC.
const MORNING: &str = "2026-11-20T09:00:00Z";

/// The time that an engine has to answer a call: no test depends on how fast it is.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// The clients of events and tests whose tokens name no accounts, beside those of one machine.
const MACHINES: &str = "feed,landlord-app,operations";

static WORLDS: AtomicU32 = AtomicU32::new(0);

/// The surroundings of the functions.
#[derive(Debug, Clone)]
pub struct Outside {
    /// The queue to the transaction service.
    pub requests: Queue,
    /// The functions' metrics.
    pub metrics: Metrics,
    /// The report store.
    pub reports: Arc<dyn ObjectStore>,
    /// All queues, and the functions that operators started in the console.
    pub operations: OneMachine,
}

/// A world.
#[derive(Debug)]
pub struct World {
    stack: Stack,
    /// The functions' environment.
    pub environment: Environment,
    time: Time,
    /// The recorder of the functions' calls.
    pub recorder: Recorder,
    /// The surroundings of the functions.
    pub outside: Outside,
    functions: Functions,
    /// The last field, so that it is dropped last.
    _database: Option<Database>,
}

impl World {
    /// Opens a world on an embedded engine, or on the one that `DYNAMODB_ENDPOINT` names.
    pub async fn open() -> Result<Self> {
        Self::with(|_| {}).await
    }

    /// Opens a world with a changed environment.
    pub async fn with(change: impl FnOnce(&mut Environment)) -> Result<Self> {
        let endpoint = Lookup::environment().text("DYNAMODB_ENDPOINT");
        // A shared engine: each world has its own tables and access key, in which DynamoDB Local accepts only letters and
        // digits.
        let (process, number) = (std::process::id(), WORLDS.fetch_add(1, Ordering::Relaxed));
        let access_key = format!("world{process}x{number}");
        let database = endpoint.clone().map(|endpoint| Database { endpoint, access_key });
        let time = Time::at(parsed(MORNING)?).in_seconds();
        let stack = Stack::on(EngineChoice::new(endpoint, None)).clock(&time.clock()).environment(|environment| {
            if let Some(database) = &database {
                environment.tables.payments = format!("payments-{process}-{number}");
                environment.tables.history = format!("payment-history-{process}-{number}");
                environment.tables.log = format!("payments-log-{process}-{number}");
                environment.access_key.clone_from(&database.access_key);
            }
            environment.machine_clients = [&environment.machine_clients, MACHINES].join(",");
            change(environment);
        });
        let stack = stack.start().await?;
        let recorder = stack.recorder();
        let functions = with_roles(&stack, &client(&stack.environment, &recorder).await)?;
        let requests = stack.queues.requests.clone();
        let (metrics, reports) = (stack.metrics.clone(), Arc::clone(&stack.reports));
        let outside = Outside { requests, metrics, reports, operations: OneMachine::on(&stack) };
        let environment = stack.environment.clone();
        Ok(Self { stack, environment, time, recorder, outside, functions, _database: database })
    }

    /// The functions over another recorder, as in another Lambda sandbox.
    pub async fn functions_over(&self, recorder: &Recorder) -> Result<Functions> {
        with_roles(&self.stack, &client(&self.environment, recorder).await)
    }

    /// The dependencies of the functions, over another recorder.
    pub async fn dependencies_over(&self, recorder: &Recorder) -> Dependencies {
        Dependencies::on(&self.stack, client(&self.environment, recorder).await)
    }

    /// A client of the engine over another recorder.
    pub async fn client_over(&self, recorder: &Recorder) -> Client {
        client(&self.environment, recorder).await
    }

    /// The dependencies of the functions, over another client.
    pub fn dependencies(&self, client: Client) -> Dependencies {
        Dependencies::on(&self.stack, client)
    }

    /// The functions with other dependencies.
    pub fn functions_in(&self, dependencies: &Dependencies) -> Result<Functions> {
        Functions::within(&self.environment, |_| Ok(dependencies.clone()))
    }

    /// A client of the engine over the recorder.
    pub async fn client(&self) -> Client {
        client(&self.environment, &self.recorder).await
    }

    /// The stream of the hot table. This clock stands still, so its records are made when they are read: with times of
    /// the machine they would fall into one window of counting or into two, as it happens.
    pub async fn stream(&self) -> Result<DynamoDbStream> {
        let clock = self.stack.clock.clone();
        Ok(self.stack.stream().await?.in_time_of(move |_| clock.instant()))
    }

    /// The store over the recorder.
    pub async fn store(&self) -> Store {
        Store::new(self.client().await, self.environment.tables.clone())
    }

    /// An account's items in the hot table, as stored.
    pub async fn heads(&self, account: &str) -> Result<Vec<Item>> {
        self.heads_in(&self.environment.tables.payments, account).await
    }

    /// An account's items in history, as stored.
    pub async fn archived_heads(&self, account: &str) -> Result<Vec<Item>> {
        self.heads_in(&self.environment.tables.history, account).await
    }

    async fn heads_in(&self, table: &str, account: &str) -> Result<Vec<Item>> {
        self.partition(table, &format!("ACCT#{account}")).await
    }

    /// The items of a partition, as stored.
    pub async fn partition(&self, table: &str, pk: &str) -> Result<Vec<Item>> {
        let query = self.client().await.query().table_name(table);
        let query = query
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", AttributeValue::S(pk.to_owned()));
        Ok(query.into_paginator().items().send().collect::<Result<_, _>>().await?)
    }

    /// The time by the functions' clock.
    pub fn now(&self) -> UtcSecond {
        self.stack.clock.now()
    }

    /// Sets the clock.
    pub fn set_clock(&self, instant: &str) -> Result<()> {
        self.time.set(parsed(instant)?);
        Ok(())
    }

    /// Returns a function that passes time, for code that does not have the world.
    pub fn passing(&self) -> impl Fn(TimeDelta) + Send + Sync + 'static {
        let time = self.time.clone();
        move |passed| time.pass(passed)
    }

    /// Sends a request to its function, as an API Gateway event.
    pub async fn send(&self, ask: Ask) -> Result<Reply> {
        self.send_to(&self.functions, ask).await
    }

    /// Sends a request from a client of another name.
    pub async fn send_as(&self, client_id: &str, ask: Ask) -> Result<Reply> {
        self.send_authorized(&event::all_scopes(client_id), ask).await
    }

    /// Sends a request with an authorizer's statement; null for none.
    pub async fn send_authorized(&self, authorizer: &Value, ask: Ask) -> Result<Reply> {
        self.replied(&self.functions, ("test-request", authorizer), &ask).await
    }

    /// Sends a request of another id, as API Gateway gives each its own.
    pub async fn send_named(&self, functions: &Functions, request_id: &str, ask: Ask) -> Result<Reply> {
        self.replied(functions, (request_id, &event::all_scopes(event::DEVELOPMENT_CLIENT)), &ask).await
    }

    /// Sends a request of another id and with this authorizer to other functions.
    pub async fn send_as_to(&self, functions: &Functions, of: (&str, &Value), ask: Ask) -> Result<Reply> {
        self.replied(functions, of, &ask).await
    }

    /// Sends a request to other functions.
    pub async fn send_to(&self, functions: &Functions, ask: Ask) -> Result<Reply> {
        self.send_named(functions, "test-request", ask).await
    }

    /// A function's reply, which must conform to the API's description.
    async fn replied(&self, functions: &Functions, (id, authorizer): (&str, &Value), ask: &Ask) -> Result<Reply> {
        let (function, event) = ask.event(id, self.stack.clock.instant(), authorizer)?;
        let key = event.route_key.clone().unwrap_or_default();
        // Boxed: a test makes many requests, and they must fit on its thread's stack.
        let reply = Reply::from_response(functions.invoke(function, event).await)?;
        // The console's routes are not part of the API.
        if CONSOLE_ROUTES.iter().all(|spec| spec.key() != key) {
            Contract::get()?.check(&key, &reply)?;
        }
        Ok(reply)
    }

    /// The embedded engine, if the world is on it.
    pub fn engine(&self) -> Option<&Direct> {
        self.stack.direct()
    }

    /// The functions.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }
}

fn parsed(instant: &str) -> Result<DateTime<Utc>> {
    instant.parse().with_context(|| instant.to_owned())
}

/// The functions, each with its role of the template.
fn with_roles(stack: &Stack, client: &Client) -> Result<Functions> {
    Functions::each_on(stack, |function| with_role(client, function, &stack.environment.tables))
}

/// The production client over a recorder: its retries, but without their pauses, with its own retry quota, so that one
/// test's faults do not use up another's retries, and with time for a slow engine.
async fn client(environment: &Environment, recorder: &Recorder) -> Client {
    let production = environment.client();
    let retries = production.config().retry_config().cloned().unwrap_or_else(RetryConfig::standard);
    let wait = Duration::from_millis(1);
    let timeouts = TimeoutConfig::builder().operation_timeout(ANSWER_TIMEOUT).operation_attempt_timeout(ANSWER_TIMEOUT);
    let quota = RetryPartition::new(format!("world-{}", WORLDS.fetch_add(1, Ordering::Relaxed)));
    let config = production
        .config()
        .to_builder()
        .http_client(recorder.clone())
        .retry_config(retries.with_initial_backoff(wait).with_max_backoff(wait))
        .retry_partition(quota)
        .timeout_config(timeouts.build());
    Client::from_conf(config.build())
}
