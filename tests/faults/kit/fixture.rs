//! The fixture of the fault tests: functions over a fault injector, their triggers, and the transaction service.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use chrono::{SecondsFormat, TimeDelta};
use daily_due_sweeper::{Action, RedriveOutcome, Request, SweeperOutcome};
use fastrand::Rng;
use lambda_runtime::LambdaEvent;
use payments_bank::{Dependencies, Functions};
use payments_boot::Metrics;
use payments_delivery::{Delivery, QueueMapping, Source, StreamMapping};
use payments_lab::closing;
use payments_lab::facts::intent::{Amendment, Intent};
use payments_lab::world::sqs::queue_over;
use payments_machine::invocation::context;
use payments_machine::layers::own_quota;
use payments_machine::triggers::{queue_settings, stream_settings};
use payments_machine::{Environment, Handlers as _, Queues, Template, Time};
use payments_model::PaymentId;
use payments_queue::Queue;
use payments_store::{Store, TableNames};
use payments_tests::tables::json_of_item;
use payments_tests::{Ask, Reply, World, with_role};
use serde_json::{Value, json};

use super::fault_injector::FaultInjector;
use super::transaction_service;

/// The start of every test: a Friday morning in winter, when London's clocks show UTC.
const MORNING: &str = "2026-11-20T09:00:00Z";

/// The system under test.
pub(crate) struct Fixture {
    pub(crate) world: World,
    /// A client without faults, to look at the tables and to damage them.
    pub(crate) client: Client,
    pub(crate) time: Time,
    pub(crate) faults: FaultInjector,
    pub(crate) metrics: Metrics,
    pub(crate) requests: Queue,
    pub(crate) results: Queue,
    pub(crate) dead_results: Queue,
    pub(crate) dispatch_failures: Queue,
    pub(crate) functions: Functions,
    /// The same functions of a bank whose calendar has closed Saturdays since.
    pub(crate) redating: Functions,
    /// The dependencies of the functions, for handlers that tests write themselves.
    pub(crate) dependencies: Dependencies,
    pub(crate) dispatching: tokio::sync::Mutex<StreamMapping>,
    pub(crate) aggregating: tokio::sync::Mutex<StreamMapping>,
    pub(crate) settling: QueueMapping,
    pub(crate) source: Source,
    shards: u16,
    names: AtomicU64,
}

/// The request for the amendment at this place. Its payment's id depends on the key, so a client
/// knows it before it is told.
pub(crate) fn amendment_of(intent: &Intent, place: usize) -> Result<Ask> {
    let Amendment { key, seen, wanted, .. } = &intent.amendments[place];
    let id = PaymentId::derive(&intent.account.parse()?, &intent.key.parse()?).to_string();
    Ok(Ask::amend(&intent.account, &id, (key, u32::try_from(*seen)?), &wanted.body()))
}

impl Fixture {
    /// Starts a system of three shards, so that cases are short.
    pub(crate) async fn start() -> Result<Self> {
        Self::with_shards(3).await
    }

    pub(crate) async fn with_shards(shards: u16) -> Result<Self> {
        Self::new(World::open().await?, shards).await
    }

    /// Starts a system whose due dates have a limit.
    pub(crate) async fn limited(shards: u16, max_day: &str) -> Result<Self> {
        Self::new(World::with(|environment| environment.max_day = max_day.to_owned()).await?, shards).await
    }

    async fn new(world: World, shards: u16) -> Result<Self> {
        let time = Time::at(MORNING.parse()?);
        let stream = world.stream().await?;
        let Queues { requests, results, result_dead_letters, dispatch_failures, .. } =
            Queues::from_template(Template::ours()?)?;
        let faults = FaultInjector::new(&world, &time, &requests)?;
        let metrics = Metrics::captured();
        let (client, dependencies) = dependencies(&world, &faults, &time, &metrics).await;
        let environment = Environment { shards, ..world.environment.clone() };
        let functions = functions_with_roles(&environment, &client, &dependencies)?;
        let redating = functions_with_roles(&closing(&environment), &client, &dependencies)?;
        let dispatching = StreamMapping::new(stream_settings("dispatch", Some(&dispatch_failures))?, stream.clone())?;
        let aggregating = StreamMapping::new(stream_settings("stream-aggregator", None)?, stream.clone())?;
        Ok(Self {
            source: Source::from(stream.clone()),
            settling: QueueMapping::new(queue_settings("settle")?, results.clone()),
            dispatching: tokio::sync::Mutex::new(dispatching),
            aggregating: tokio::sync::Mutex::new(aggregating),
            client: world.client().await,
            world,
            time,
            faults,
            metrics,
            requests,
            results,
            dead_results: result_dead_letters,
            dispatch_failures,
            functions,
            redating,
            dependencies,
            shards,
            names: AtomicU64::new(1),
        })
    }

    /// The same functions in another Lambda sandbox, whose calls belong to `task`.
    pub(crate) async fn functions_of_task(&self, task: usize) -> Result<Functions> {
        self.functions_of(task, &self.environment()).await
    }

    /// The same of a bank with other limits of due dates and of payments.
    pub(crate) async fn functions_under(&self, max_day: &str, max_payment: &str) -> Result<Functions> {
        let (max_day, max_payment) = (max_day.to_owned(), max_payment.to_owned());
        self.functions_of(0, &Environment { max_day, max_payment, ..self.environment() }).await
    }

    /// The same of a bank whose calendar has closed Saturdays since.
    pub(crate) async fn redating_of_task(&self, task: usize) -> Result<Functions> {
        self.functions_of(task, &closing(&self.environment())).await
    }

    async fn functions_of(&self, task: usize, environment: &Environment) -> Result<Functions> {
        let faults = self.faults.for_task(task);
        let (client, dependencies) = dependencies(&self.world, &faults, &self.time, &self.metrics).await;
        functions_with_roles(environment, &client, &dependencies)
    }

    fn environment(&self) -> Environment {
        Environment { shards: self.shards, ..self.world.environment.clone() }
    }

    /// Returns a name that no other case has.
    pub(crate) fn new_name(&self) -> String {
        format!("case-{}", self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns a payment that a client wants in a minute.
    pub(crate) fn intent(&self, account: &str) -> Intent {
        let amount = self.names.fetch_add(1, Ordering::Relaxed);
        let due_at = (self.time.now() + TimeDelta::seconds(60)).to_rfc3339_opts(SecondsFormat::Secs, true);
        Intent::new(account.to_owned(), amount, due_at)
    }

    /// Creates payments of a new account.
    pub(crate) async fn created(&self, count: usize) -> Result<Vec<Intent>> {
        let account = self.new_name();
        let mut intents: Vec<Intent> = (0..count).map(|_| self.intent(&account)).collect();
        for intent in &mut intents {
            let reply = self.create(intent).await?;
            ensure!(reply.status == 201, "{reply}");
        }
        Ok(intents)
    }

    /// Creates payments, and passes the time until they are due.
    pub(crate) async fn due(&self, count: usize) -> Result<Vec<Intent>> {
        let intents = self.created(count).await?;
        self.time.pass(TimeDelta::seconds(61));
        Ok(intents)
    }

    /// Creates payments and has them claimed; they are not sent yet.
    pub(crate) async fn pending(&self, count: usize) -> Result<Vec<Intent>> {
        let intents = self.due(count).await?;
        self.tick(Action::Sweep).await?;
        Ok(intents)
    }

    /// Sends a create, and notes the response in the intent.
    pub(crate) async fn create(&self, intent: &mut Intent) -> Result<Reply> {
        let reply = self.ask(Ask::create(&intent.account, &intent.key, &intent.body())).await?;
        if reply.status == 201 {
            intent.accepted = Some(reply.field("paymentId").to_owned());
        }
        Ok(reply)
    }

    /// Sends a cancel, and notes the response in the intent.
    pub(crate) async fn cancel(&self, intent: &mut Intent) -> Result<Reply> {
        let reply = self.ask(Ask::cancel(&intent.account, intent.id()?)).await?;
        intent.cancelled |= reply.status == 200;
        Ok(reply)
    }

    /// Notes that a client who saw this version wants another amount, payee and data, and the payment due so many seconds later. Returns
    /// the amendment's place in the intent.
    pub(crate) fn want_amended(&self, intent: &mut Intent, seen: u64, later: i64) -> Result<usize> {
        let amount = self.names.fetch_add(1, Ordering::Relaxed);
        let due = intent.due().context("no due time")? + TimeDelta::seconds(later);
        let mut wanted = intent.made_for(due.to_rfc3339_opts(SecondsFormat::Secs, true));
        (wanted.amount, wanted.payee, wanted.data) = (amount, format!("payee-{amount}"), json!([amount]));
        let (key, wanted) = (format!("change-{amount}"), Box::new(wanted));
        intent.amendments.push(Amendment { key, seen, wanted, accepted: false, redates: None });
        Ok(intent.amendments.len() - 1)
    }

    /// Sends the amendment at this place, and notes the response in the intent.
    pub(crate) async fn amend(&self, intent: &mut Intent, place: usize) -> Result<Reply> {
        let reply = self.ask(amendment_of(intent, place)?).await?;
        intent.amendments[place].accepted |= reply.status == 200;
        Ok(reply)
    }

    /// Sends a request.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<Reply> {
        self.world.send_to(&self.functions, ask).await
    }

    /// Runs the sweeper once.
    pub(crate) async fn tick(&self, action: Action) -> Result<SweeperOutcome> {
        self.tick_within(&self.functions, action, timeout_of("daily-due-sweeper")?).await
    }

    /// Runs the sweeper of some functions once, with this timeout.
    pub(crate) async fn tick_within(
        &self,
        functions: &Functions,
        action: Action,
        time: TimeDelta,
    ) -> Result<SweeperOutcome> {
        let event = LambdaEvent::new(Request { action }, context(self.time.now() + time));
        let report = functions.sweeper.handle(event).await;
        report.map_err(|error| anyhow::Error::from_boxed(error).context("the sweeper failed"))
    }

    /// Delivers one batch of the stream to `dispatch`.
    pub(crate) async fn dispatch_step(&self) -> Result<Vec<Delivery>> {
        let function = |event| dispatch(&self.functions, event);
        Ok(self.dispatching.lock().await.step(self.time.now(), function).await?)
    }

    /// Delivers the whole stream to `dispatch`.
    pub(crate) async fn dispatch_all(&self) -> Result<Vec<Delivery>> {
        let function = |event| dispatch(&self.functions, event);
        Ok(self.dispatching.lock().await.drain(self.time.now(), 200, function).await?)
    }

    /// Delivers one batch of results to `settle`.
    pub(crate) async fn settle_step(&self) -> Option<payments_delivery::QueueDelivery> {
        self.settling.step(self.time.now(), |event| settle(&self.functions, event)).await
    }

    /// The most receives of a result.
    pub(crate) fn most_receives(&self) -> u32 {
        self.results.settings().redrive_policy.as_ref().map_or(u32::MAX, |policy| policy.max_receive_count)
    }

    /// Passes the time until a result that was received can be received again.
    pub(crate) fn pass_visibility(&self) {
        self.time.pass(self.results.settings().visibility_timeout);
    }

    /// Delivers all results, and passes the time until failed ones come again.
    pub(crate) async fn settle_all(&self) -> Result<()> {
        for _ in 0..=self.most_receives() {
            while self.settle_step().await.is_some() {}
            if self.results.counts(self.time.now()).in_flight == 0 {
                return Ok(());
            }
            self.pass_visibility();
        }
        Ok(())
    }

    /// Sends a settlement result.
    pub(crate) fn send_result(&self, result: &Value) -> Result<()> {
        self.results.send(result.to_string(), self.time.now())?;
        Ok(())
    }

    /// Sends the pending payments, has the transaction service answer all requests, and settles the results.
    pub(crate) async fn settle_pending(&self) -> Result<()> {
        self.dispatch_all().await?;
        self.serve(None)?;
        self.settle_all().await
    }

    /// Passes an hour and a minute, and runs the redrive.
    pub(crate) async fn redrive_later(&self) -> Result<RedriveOutcome> {
        self.time.pass(TimeDelta::minutes(61));
        redriven(self.tick(Action::Redrive).await?)
    }

    /// The names of the tables.
    pub(crate) fn tables(&self) -> &TableNames {
        &self.world.environment.tables
    }

    /// Has the transaction service answer all requests: each once and in order, or some twice and in a random order.
    pub(crate) fn serve(&self, random: Option<&mut Rng>) -> Result<()> {
        transaction_service::send_results(
            &transaction_service::read_requests(&self.requests, &self.time)?,
            &self.results,
            &self.time,
            random,
        )
    }

    /// The items of a partition, in DynamoDB's JSON.
    pub(crate) async fn items(&self, table: &str, pk: &str) -> Result<Vec<Value>> {
        Ok(self.world.partition(table, pk).await?.iter().map(json_of_item).collect())
    }

    /// The details of these payments, the first ones and those of amendments, in DynamoDB's JSON.
    pub(crate) async fn details(&self, ids: &[&str]) -> Result<Vec<Value>> {
        let mut details = Vec::new();
        for id in ids {
            details.extend(self.items(&self.world.environment.tables.history, &format!("PAY#{id}")).await?);
        }
        Ok(details)
    }

    /// Takes the sums of these metrics.
    pub(crate) fn measured<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        let lines: Vec<Value> = self.metrics.take().iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        names.map(|name| lines.iter().filter_map(|line| line[name].as_u64()).sum())
    }
}

/// The outcome of a redrive.
pub(crate) fn redriven(outcome: SweeperOutcome) -> Result<RedriveOutcome> {
    if let SweeperOutcome::Redrive(outcome) = outcome { Ok(outcome) } else { bail!("{outcome:?}") }
}

/// The function of the stream mapping.
pub(crate) async fn dispatch(functions: &Functions, event: Value) -> Result<Value, String> {
    functions.deliver("dispatch", event).await
}

/// The function of the queue mapping.
pub(crate) async fn settle(functions: &Functions, event: Value) -> Result<Value, String> {
    functions.deliver("settle", event).await
}

/// The time that an invocation of a function may take.
pub(crate) fn timeout_of(function: &str) -> Result<TimeDelta> {
    Ok(Template::ours()?.function(function)?.timeout)
}

/// The dependencies of functions over the injector: the SDKs with their retries, but without their pauses.
async fn dependencies(world: &World, faults: &FaultInjector, time: &Time, metrics: &Metrics) -> (Client, Dependencies) {
    let wait = Duration::from_millis(1);
    let retries = RetryConfig::standard().with_max_attempts(3).with_initial_backoff(wait).with_max_backoff(wait);
    let config = world.client().await.config().to_builder();
    let config = config
        .http_client(faults.layers())
        .timeout_config(TimeoutConfig::disabled())
        .retry_config(retries.clone())
        .retry_partition(own_quota());
    let client = Client::from_conf(config.build());
    let dependencies = Dependencies {
        requests: queue_over(faults.layers(), |config| {
            config.timeout_config(TimeoutConfig::disabled()).retry_config(retries)
        }),
        clock: time.clock(),
        metrics: metrics.clone(),
        ..world.dependencies(client.clone())
    };
    (client, dependencies)
}

/// The functions, each with its role of the template.
fn functions_with_roles(environment: &Environment, client: &Client, dependencies: &Dependencies) -> Result<Functions> {
    Functions::within(environment, |function| {
        let store = Store::new(with_role(client, function, &environment.tables)?, environment.tables.clone());
        Ok(Dependencies { store, ..dependencies.clone() })
    })
}
