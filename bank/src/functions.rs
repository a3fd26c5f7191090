//! The functions, and what each works with.

use std::sync::Arc;

use anyhow::{Result, bail};
use archive::Archive;
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_dynamodb::Client;
use console::{Console, Operations};
use daily_due_sweeper::Sweeper;
use dispatch::Dispatch;
use futures::FutureExt as _;
use futures::future::ready;
use ingest::Ingest;
use lambda_runtime::{Context, LambdaEvent};
use object_store::ObjectStore;
use object_store::prefix::PrefixStore;
use payments_boot::{Clock, ConfigError, Lookup, Metrics};
use payments_http::HttpFunction;
use payments_machine::invocation::{context, read, written};
use payments_machine::{Environment, Handlers, LocalRun, Run, Stack, Template};
use payments_model::causes;
use payments_queue::TransactionQueue;
use payments_store::Store;
use publish::webhook::Sender;
use publish::{Publish, Webhooks};
use query_account::QueryAccount;
use query_due::QueryDue;
use recount::Recount;
use redate::Redate;
use report::Report;
use seal::Seal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use settle::Settle;
use stream_aggregator::Aggregator;
use undo::Undo;

use crate::operations::OneMachine;

/// The folder of the reports' attempts on one machine. On AWS they have a bucket of their own.
const ATTEMPTS: &str = "attempts";

/// Returns a variable of a package's function.
type Variables<'v> = &'v dyn Fn(&str, &str) -> Option<String>;

/// All functions.
#[derive(Debug, Clone)]
pub struct Functions {
    pub(crate) ingest: Ingest,
    pub(crate) query_account: QueryAccount,
    pub(crate) query_due: QueryDue,
    pub(crate) webhooks: webhooks::Webhooks,
    pub(crate) console: Console,
    /// Claims due payments and redrives pending ones.
    pub sweeper: Sweeper,
    /// Moves heads of cancelled payments to the long-term table, and settled ones that did not expire.
    pub archive: Archive,
    /// Sends the requests of pending payments.
    pub dispatch: Dispatch,
    /// Settles payments.
    pub settle: Settle,
    /// Reports settlements.
    pub report: Report,
    /// Keeps the counters.
    pub aggregator: Aggregator,
    /// Writes the journal.
    pub publish: Publish,
    /// Compares the counters with the payments, and repairs them.
    pub recount: Recount,
    /// Moves payments of dates that were closed later.
    pub redate: Redate,
    /// Cancels the payments of approved plans.
    pub undo: Undo,
    /// Writes the sealed parts of past dates.
    pub seal: Seal,
    /// The clock of the functions that streams and queues invoke.
    clock: Clock,
}

/// Reads the configuration of a package's function.
fn configured<Config>(
    package: &str,
    get: Variables<'_>,
    read: impl Fn(&Lookup<'_>) -> Result<Config, ConfigError>,
) -> Result<Config> {
    Ok(read(&Lookup::new(&|name| get(package, name)))?)
}

/// The parts that functions use besides their configuration.
#[derive(Debug, Clone)]
pub struct Dependencies {
    /// Both tables.
    pub store: Store,
    /// The queue of requests to the transaction service.
    pub requests: Arc<dyn TransactionQueue>,
    /// The clock.
    pub clock: Clock,
    /// The metrics that the function emits.
    pub metrics: Metrics,
    /// The store of the reports and of the journal.
    pub reports: Arc<dyn ObjectStore>,
    /// The sender of webhooks, with the secret that signs.
    pub webhooks: Webhooks,
    /// The parts of the bank that operators reach in the console.
    pub operations: Arc<dyn Operations>,
}

impl Dependencies {
    /// Returns what a function works with on this machine, over this client.
    pub fn on(stack: &Stack, client: Client) -> Self {
        let (master, clock) = (stack.webhook_master.clone(), stack.receivers_clock.clone());
        Self {
            store: stack.store(client),
            requests: Arc::new(stack.queues.requests.clone()),
            clock: stack.clock.clone(),
            metrics: stack.metrics.clone(),
            reports: Arc::clone(&stack.reports),
            webhooks: Webhooks { sender: Arc::new(Sender::loopback()), master, clock },
            operations: Arc::new(OneMachine::on(stack)),
        }
    }
}

/// Reads the configuration of a package.
pub fn read_configuration(package: &str, lookup: &Lookup<'_>) -> Result<()> {
    match package {
        "ingest" => ingest::Config::read(lookup).map(drop),
        "query-account" => query_account::Config::read(lookup).map(drop),
        "query-due" => query_due::Config::read(lookup).map(drop),
        "daily-due-sweeper" => daily_due_sweeper::Config::read(lookup).map(drop),
        "dispatch" => dispatch::Config::read(lookup).map(drop),
        "settle" => settle::Config::read(lookup).map(drop),
        "stream-aggregator" => stream_aggregator::Config::read(lookup).map(drop),
        "recount" => recount::Config::read(lookup).map(drop),
        "redate" => redate::Config::read(lookup).map(drop),
        "undo" => undo::Config::read(lookup).map(drop),
        "archive" => archive::Config::read(lookup).map(drop),
        "seal" => seal::Config::read(lookup).map(drop),
        "webhooks" => webhooks::Config::read(lookup).map(drop),
        "publish" => publish::Config::read(lookup).map(drop),
        "console" => console::Config::read(lookup).map(drop),
        "report" => report::Config::read(lookup).map(drop),
        other => bail!("which configuration does {other} read?"),
    }?;
    Ok(())
}

impl Functions {
    /// Creates the functions on a machine, over one client.
    pub fn on(stack: &Stack, client: &Client) -> Result<Self> {
        Self::each_on(stack, |_| Ok(client.clone()))
    }

    /// Creates the functions on a machine, each over the client that `client_of` returns for it.
    pub fn each_on(stack: &Stack, client_of: impl Fn(&'static str) -> Result<Client>) -> Result<Self> {
        Self::within(&stack.environment, |function| Ok(Dependencies::on(stack, client_of(function)?)))
    }

    /// Creates the functions in an environment, each with what `of` returns for it.
    pub fn within(environment: &Environment, of: impl Fn(&'static str) -> Result<Dependencies>) -> Result<Self> {
        Self::new(|package, name| environment.get(package, name), of)
    }

    /// Creates the functions. They read their configuration as they do on AWS, from the variables that `get` returns for each, and each
    /// works with what `of` returns for it.
    pub fn new(
        get: impl Fn(&str, &str) -> Option<String>,
        of: impl Fn(&'static str) -> Result<Dependencies>,
    ) -> Result<Self> {
        let get = &get as Variables<'_>;
        let own = |function| of(function).map(|Dependencies { store, clock, metrics, .. }| (store, clock, metrics));
        let (store, clock, _) = own(HttpFunction::Ingest.name())?;
        let ingest = Ingest::new(configured("ingest", get, ingest::Config::read)?, store, clock);
        let Dependencies { store, reports, clock, metrics, .. } = of(HttpFunction::QueryAccount.name())?;
        let query_account = configured("query-account", get, query_account::Config::read)?;
        let query_account = QueryAccount::new(query_account, store, reports, clock, metrics);
        let (store, clock, metrics) = own(HttpFunction::QueryDue.name())?;
        let query_due = QueryDue::new(configured("query-due", get, query_due::Config::read)?, store, clock, metrics);
        let Dependencies { store, clock, metrics, webhooks: Webhooks { master, .. }, .. } =
            of(HttpFunction::Webhooks.name())?;
        let webhooks = configured("webhooks", get, webhooks::Config::read)?;
        let webhooks = webhooks::Webhooks::new(webhooks, store, master, clock, metrics);
        let Dependencies { store, reports, clock, operations, metrics, .. } = of(HttpFunction::Console.name())?;
        let console = configured("console", get, console::Config::read)?;
        let console = Console::new(console, store, operations, reports, clock, metrics);
        let (store, clock, metrics) = own("daily-due-sweeper")?;
        let sweeper =
            Sweeper::new(configured("daily-due-sweeper", get, daily_due_sweeper::Config::read)?, store, clock, metrics);
        let (store, clock, metrics) = own("archive")?;
        let archive = Archive::new(configured("archive", get, archive::Config::read)?, store, clock, metrics);
        let Dependencies { store, requests, clock, metrics, .. } = of("dispatch")?;
        let dispatch = Dispatch::new(store, requests, clock, metrics);
        let (store, clock, metrics) = own("stream-aggregator")?;
        let aggregator = Aggregator::new(
            configured("stream-aggregator", get, stream_aggregator::Config::read)?,
            store,
            clock,
            metrics,
        );
        let Dependencies { store, reports, clock, metrics, .. } = of("report")?;
        let attempts = Arc::new(PrefixStore::new(Arc::clone(&reports), ATTEMPTS));
        let report =
            Report::new(configured("report", get, report::Config::read)?, store, (reports, attempts), clock, metrics);
        let Dependencies { store, reports, clock, metrics, webhooks: sender, .. } = of("publish")?;
        let publish = Publish::new(store, reports, sender, clock, metrics);
        let (store, clock, metrics) = own("recount")?;
        let recount = Recount::new(configured("recount", get, recount::Config::read)?, store, clock, metrics);
        let (store, clock, metrics) = own("redate")?;
        let redate = Redate::new(configured("redate", get, redate::Config::read)?, store, clock, metrics);
        let Dependencies { store, reports, clock, metrics, .. } = of("undo")?;
        let undo = Undo::new(configured("undo", get, undo::Config::read)?, store, reports, clock, metrics);
        let Dependencies { store, reports, clock, metrics, .. } = of("seal")?;
        let seal = Seal::new(configured("seal", get, seal::Config::read)?, store, reports, clock, metrics);
        let (store, clock, metrics) = own("settle")?;
        let settle = Settle::new(configured("settle", get, settle::Config::read)?, store, clock.clone(), metrics);
        Ok(Self {
            ingest,
            query_account,
            query_due,
            webhooks,
            console,
            sweeper,
            archive,
            dispatch,
            settle,
            report,
            aggregator,
            publish,
            recount,
            redate,
            undo,
            seal,
            clock,
        })
    }

    /// Invokes `settle` with a batch of settlement results.
    pub fn settle_batch(&self, event: SqsEvent) -> Run<'_, SqsBatchResponse> {
        self.settle.handle(LambdaEvent::new(event, self.context("settle"))).boxed()
    }

    /// The context of an invocation that may take as long as the template permits. A template that cannot be read permits no time.
    fn context(&self, package: &str) -> Context {
        let timeout = Template::ours().and_then(|it| it.function(package)).map(|function| function.timeout);
        context(self.clock.instant() + timeout.unwrap_or_default())
    }
}

impl Handlers for Functions {
    fn scheduled(&self, function: &'static str, input: Value, context: Context) -> LocalRun<'_, Result<Value, String>> {
        async fn run<Request: DeserializeOwned, Outcome: Serialize, Answer>(
            input: Value,
            context: Context,
            handle: impl FnOnce(LambdaEvent<Request>) -> Answer,
        ) -> Result<Value, String>
        where
            Answer: Future<Output = Result<Outcome, lambda_runtime::Error>>,
        {
            let outcome = handle(LambdaEvent::new(read(input)?, context)).await;
            written(&outcome.map_err(|error| causes(&*error).join(": "))?)
        }
        match function {
            "daily-due-sweeper" => run(input, context, |event| self.sweeper.handle(event)).boxed_local(),
            "archive" => run(input, context, |event| self.archive.handle(event)).boxed_local(),
            "report" => run(input, context, |event| self.report.handle(event)).boxed_local(),
            "recount" => run(input, context, |event| self.recount.handle(event)).boxed_local(),
            "redate" => run(input, context, |event| self.redate.handle(event)).boxed_local(),
            "undo" => run(input, context, |event| self.undo.handle(event)).boxed_local(),
            "seal" => run(input, context, |event| self.seal.handle(event)).boxed_local(),
            "publish" => run(input, context, |event| self.publish.handle(event)).boxed_local(),
            other => ready(Err(format!("no schedule invokes {other}"))).boxed_local(),
        }
    }

    fn deliver(&self, function: &'static str, event: Value) -> Run<'_, Result<Value, String>> {
        let run = async move {
            match function {
                "dispatch" => {
                    written(&self.dispatch.handle(read(event)?).await.map_err(|error| causes(&*error).join(": "))?)
                }
                "stream-aggregator" => {
                    let event = LambdaEvent::new(read(event)?, self.context(function));
                    written(&self.aggregator.handle(event).await.map_err(|error| causes(&*error).join(": "))?)
                }
                "settle" => written(&self.settle_batch(read(event)?).await),
                other => Err(format!("no stream and no queue invokes {other}")),
            }
        };
        run.boxed()
    }

    fn invoke(&self, function: HttpFunction, event: ApiGatewayV2httpRequest) -> Run<'_, ApiGatewayV2httpResponse> {
        match function {
            HttpFunction::Ingest => self.ingest.handle(event).boxed(),
            HttpFunction::QueryAccount => self.query_account.handle(event).boxed(),
            HttpFunction::QueryDue => self.query_due.handle(event).boxed(),
            HttpFunction::Webhooks => self.webhooks.handle(event).boxed(),
            HttpFunction::Console => self.console.handle(event).boxed(),
        }
    }
}
