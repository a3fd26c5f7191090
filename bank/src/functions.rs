//! The functions, and what each works with.

use std::sync::Arc;

use anyhow::Result;
use archive::Archive;
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_dynamodb::Client;
use chrono::TimeDelta;
use console::{Console, Operations};
use daily_due_sweeper::Sweeper;
use dispatch::Dispatch;
use futures::FutureExt as _;
use futures::future::ready;
use ingest::Ingest;
use lambda_runtime::{Context, LambdaEvent};
use object_store::ObjectStore;
use object_store::prefix::PrefixStore;
use payments_boot::{Clock, Lookup, Metrics};
use payments_http::HttpFunction;
use payments_machine::invocation::{AGGREGATOR_TIMEOUT, SETTLE_TIMEOUT, context, read, written};
use payments_machine::{Environment, Function, Handlers, LocalRun, Run, Stack};
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
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use settle::Settle;
use stream_aggregator::Aggregator;

use crate::operations::OneMachine;

/// The folder of the reports' attempts on one machine. On AWS they have a bucket of their own.
const ATTEMPTS: &str = "attempts";

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
    /// The clock of the functions that streams and queues invoke.
    clock: Clock,
}

/// What a function works with besides its configuration.
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
    /// What signs and sends webhooks.
    pub webhooks: Webhooks,
    /// What operators reach in the console.
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

impl Functions {
    /// Creates the functions on a machine, over one client.
    pub fn on(stack: &Stack, client: &Client) -> Result<Self> {
        Self::each_on(stack, |_| Ok(client.clone()))
    }

    /// Creates the functions on a machine, each over the client that `client_of` returns for it.
    pub fn each_on(stack: &Stack, client_of: impl Fn(Function) -> Result<Client>) -> Result<Self> {
        Self::within(&stack.environment, |function| Ok(Dependencies::on(stack, client_of(function)?)))
    }

    /// Creates the functions in an environment, each with what `of` returns for it.
    pub fn within(environment: &Environment, of: impl Fn(Function) -> Result<Dependencies>) -> Result<Self> {
        let get = |name: &str| environment.get(name);
        Self::new(&Lookup::new(&get), of)
    }

    /// Creates the functions. They read their configuration as they do on AWS, through the lookup, and each works with
    /// what `of` returns for it.
    pub fn new(lookup: &Lookup<'_>, of: impl Fn(Function) -> Result<Dependencies>) -> Result<Self> {
        let own = |function| of(function).map(|Dependencies { store, clock, metrics, .. }| (store, clock, metrics));
        let (store, clock, _) = own(Function::Http(HttpFunction::Ingest))?;
        let ingest = Ingest::new(ingest::Config::read(lookup)?, store, clock);
        let (store, clock, metrics) = own(Function::Http(HttpFunction::QueryAccount))?;
        let query_account = QueryAccount::new(query_account::Config::read(lookup)?, store, clock, metrics);
        let (store, clock, metrics) = own(Function::Http(HttpFunction::QueryDue))?;
        let query_due = QueryDue::new(query_due::Config::read(lookup)?, store, clock, metrics);
        let Dependencies { store, clock, metrics, webhooks: Webhooks { master, .. }, .. } =
            of(Function::Http(HttpFunction::Webhooks))?;
        let webhooks = webhooks::Config::read(lookup)?;
        let webhooks = webhooks::Webhooks::new(webhooks, store, master, clock, metrics);
        let Dependencies { store, clock, operations, .. } = of(Function::Http(HttpFunction::Console))?;
        let console = Console::new(console::Config::read(lookup)?, store, operations, clock);
        let (store, clock, metrics) = own(Function::DailyDueSweeper)?;
        let sweeper = Sweeper::new(daily_due_sweeper::Config::read(lookup)?, store, clock, metrics);
        let (store, clock, metrics) = own(Function::Archive)?;
        let archive = Archive::new(archive::Config::read(lookup)?, store, clock, metrics);
        let Dependencies { store, requests, clock, metrics, .. } = of(Function::Dispatch)?;
        let dispatch = Dispatch::new(store, requests, clock, metrics);
        let (store, clock, metrics) = own(Function::StreamAggregator)?;
        let aggregator = Aggregator::new(stream_aggregator::Config::read(lookup)?, store, clock, metrics);
        let Dependencies { store, reports, clock, metrics, .. } = of(Function::Report)?;
        let attempts = Arc::new(PrefixStore::new(Arc::clone(&reports), ATTEMPTS));
        let report = Report::new(report::Config::read(lookup)?, store, (reports, attempts), clock, metrics);
        let Dependencies { store, reports, clock, metrics, webhooks: sender, .. } = of(Function::Publish)?;
        let publish = Publish::new(store, reports, sender, clock, metrics);
        let (store, clock, metrics) = own(Function::Recount)?;
        let recount = Recount::new(recount::Config::read(lookup)?, store, clock, metrics);
        let (store, clock, metrics) = own(Function::Redate)?;
        let redate = Redate::new(redate::Config::read(lookup)?, store, clock, metrics);
        let (store, clock, metrics) = own(Function::Settle)?;
        let settle = Settle::new(settle::Config::read(lookup)?, store, clock.clone(), metrics);
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
            clock,
        })
    }

    /// Invokes `settle` with a batch of settlement results.
    pub fn settle_batch(&self, event: SqsEvent) -> Run<'_, SqsBatchResponse> {
        self.settle.handle(LambdaEvent::new(event, self.context(SETTLE_TIMEOUT))).boxed()
    }

    /// The context of an invocation that may take this long.
    fn context(&self, timeout: TimeDelta) -> Context {
        context(self.clock.instant() + timeout)
    }
}

impl Handlers for Functions {
    fn scheduled(&self, function: Function, input: Value, context: Context) -> LocalRun<'_, Result<Value, String>> {
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
            Function::DailyDueSweeper => run(input, context, |event| self.sweeper.handle(event)).boxed_local(),
            Function::Archive => run(input, context, |event| self.archive.handle(event)).boxed_local(),
            Function::Report => run(input, context, |event| self.report.handle(event)).boxed_local(),
            Function::Recount => run(input, context, |event| self.recount.handle(event)).boxed_local(),
            Function::Redate => run(input, context, |event| self.redate.handle(event)).boxed_local(),
            Function::Publish => run(input, context, |event| self.publish.handle(event)).boxed_local(),
            other => ready(Err(format!("no schedule invokes {other}"))).boxed_local(),
        }
    }

    fn deliver(&self, function: Function, event: Value) -> Run<'_, Result<Value, String>> {
        let run = async move {
            match function {
                Function::Dispatch => {
                    written(&self.dispatch.handle(read(event)?).await.map_err(|error| causes(&*error).join(": "))?)
                }
                Function::StreamAggregator => {
                    let event = LambdaEvent::new(read(event)?, self.context(AGGREGATOR_TIMEOUT));
                    written(&self.aggregator.handle(event).await.map_err(|error| causes(&*error).join(": "))?)
                }
                Function::Settle => written(&self.settle_batch(read(event)?).await),
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
