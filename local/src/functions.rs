//! The functions, with the environment that `template.yaml` gives them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use archive::Archive;
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodbstreams::config::timeout::TimeoutConfig;
use aws_sdk_dynamodbstreams::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_http_client::Builder;
use aws_smithy_runtime_api::client::http::HttpClient;
use chrono::TimeDelta;
use console::Console;
use daily_due_sweeper::Sweeper;
use dispatch::Dispatch;
use futures::FutureExt as _;
use futures::future::ready;
use ingest::Ingest;
use lambda_runtime::{Context, LambdaEvent};
use object_store::ObjectStore;
use payments_boot::{Clock, Lookup, Metrics, WebhookMaster, dynamodb_at};
use payments_delivery::DynamoDbStream;
use payments_http::HttpFunction;
use payments_model::causes;
use payments_queue::TransactionQueue;
use payments_store::{Store, TableNames};
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

use crate::function::Function;
use crate::invocation::{LocalRun, Run, context, read, written};
use crate::token::{AUTHORIZE_PATH, CONSOLE_CLIENT, TOKEN_PATH};

/// The longest that one read of the stream may take. A page has at most a thousand records.
const STREAM_TIMEOUT: Duration = Duration::from_secs(10);

/// The timeouts of the functions that streams and queues invoke, as in `template.yaml`. `dispatch` needs none: its
/// batches are small.
pub const SETTLE_TIMEOUT: TimeDelta = TimeDelta::seconds(28);
/// See [`SETTLE_TIMEOUT`].
pub const AGGREGATOR_TIMEOUT: TimeDelta = TimeDelta::seconds(120);

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
    pub requests: TransactionQueue,
    /// The clock.
    pub clock: Clock,
    /// The metrics that the function emits.
    pub metrics: Metrics,
    /// The store of the reports and of the journal.
    pub reports: Arc<dyn ObjectStore>,
    /// What signs and sends webhooks.
    pub webhooks: Webhooks,
}

/// The master secret of webhooks on one machine. It is no secret: receivers of one machine derive theirs from it.
const WEBHOOK_MASTER: &str = "the master secret of one machine's webhooks";

/// Returns what signs webhooks and sends them to this machine alone.
pub fn loopback_webhooks() -> Result<Webhooks> {
    let master = WebhookMaster::given(WEBHOOK_MASTER.parse()?);
    Ok(Webhooks { sender: Arc::new(Sender::loopback()), master })
}

impl Functions {
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
        let Dependencies { store, clock, webhooks: Webhooks { master, .. }, .. } =
            of(Function::Http(HttpFunction::Webhooks))?;
        let webhooks = webhooks::Config::read(lookup)?;
        let webhooks = webhooks::Webhooks::new(webhooks, store, master, clock);
        let (store, clock, _) = own(Function::Http(HttpFunction::Console))?;
        let console = Console::new(console::Config::read(lookup)?, store, clock);
        let (store, clock, metrics) = own(Function::DailyDueSweeper)?;
        let sweeper = Sweeper::new(daily_due_sweeper::Config::read(lookup)?, store, clock, metrics);
        let (store, clock, metrics) = own(Function::Archive)?;
        let archive = Archive::new(archive::Config::read(lookup)?, store, clock, metrics);
        let Dependencies { store, requests, clock, metrics, .. } = of(Function::Dispatch)?;
        let dispatch = Dispatch::new(store, requests, clock, metrics);
        let (store, clock, metrics) = own(Function::StreamAggregator)?;
        let aggregator = Aggregator::new(stream_aggregator::Config::read(lookup)?, store, clock, metrics);
        let Dependencies { store, reports, clock, metrics, .. } = of(Function::Report)?;
        let report = Report::new(report::Config::read(lookup)?, store, reports, clock, metrics);
        let Dependencies { store, reports, clock, metrics, webhooks: sender, .. } = of(Function::Publish)?;
        let sender = publish::Config::read(lookup)?.webhook_secret.map(|_| sender);
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

    /// Invokes a scheduled function with a schedule's input, and returns its outcome.
    pub fn scheduled(&self, function: Function, input: Value, context: Context) -> LocalRun<'_, Result<Value, String>> {
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

    /// Invokes a function with the event of a stream or a queue, and returns its response.
    pub fn deliver(&self, function: Function, event: Value) -> Run<'_, Result<Value, String>> {
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

    /// Invokes `settle` with a batch of settlement results.
    pub fn settle_batch(&self, event: SqsEvent) -> Run<'_, SqsBatchResponse> {
        self.settle.handle(LambdaEvent::new(event, self.context(SETTLE_TIMEOUT))).boxed()
    }

    /// The context of an invocation that may take this long.
    fn context(&self, timeout: TimeDelta) -> Context {
        context(self.clock.instant() + timeout)
    }

    /// Invokes an HTTP function with an API Gateway event.
    pub fn invoke(&self, function: HttpFunction, event: ApiGatewayV2httpRequest) -> Run<'_, ApiGatewayV2httpResponse> {
        match function {
            HttpFunction::Ingest => self.ingest.handle(event).boxed(),
            HttpFunction::QueryAccount => self.query_account.handle(event).boxed(),
            HttpFunction::QueryDue => self.query_due.handle(event).boxed(),
            HttpFunction::Webhooks => self.webhooks.handle(event).boxed(),
            HttpFunction::Console => self.console.handle(event).boxed(),
        }
    }
}

/// The calendars of a bank on one machine. Its rule is `none`, so only requests with a rule of their own move.
pub(crate) const CALENDARS: &str = "EUR=T2,GBP=GB,USD=FED";

/// The environment of the functions on one machine.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The names of the tables.
    pub tables: TableNames,
    /// The URL of DynamoDB.
    pub endpoint: String,
    /// The access key. The embedded engine ignores it. DynamoDB Local has a database for each, and a write takes longer
    /// the more its streams hold.
    pub access_key: String,
    /// The bank's time zone.
    pub time_zone: String,
    /// How many days ahead a payment may be.
    pub horizon_days: u32,
    /// How many payments a sweep claims per second on each shard; 0 is no limit.
    pub claims_per_second: u32,
    /// How many results an invocation settles per second; 0 is no limit.
    pub settlements_per_second: u32,
    /// How many payments the archive moves per second on each shard; 0 is no limit.
    pub moves_per_second: u32,
    /// The most settlements of one report.
    pub max_report_rows: u32,
    /// The claim that names a token's accounts.
    pub account_claim: String,
    /// How many shards the due payments are spread over.
    pub shards: u16,
    /// The most dispatch attempts of a payment.
    pub dispatch_attempts: u32,
    /// Whether the data of new payments is compressed.
    pub compress_details: bool,
    /// Whether scheduled payments can be amended.
    pub amendments: bool,
    /// Whether events are appended to the log.
    pub event_log: bool,
    /// Whether they are delivered to webhook endpoints.
    pub webhooks: bool,
    /// Whether there is a console.
    pub console: bool,
    /// The calendars of currencies.
    pub calendars: String,
    /// The cut-offs of calendars.
    pub cut_offs: String,
    /// What happens to payments of closed dates, if their requests do not say so.
    pub date_rule: String,
    /// Whether the gateway requires tokens, so that operators sign in to the console.
    pub require_tokens: bool,
}

impl Environment {
    /// Returns the settings of one machine, with DynamoDB at `endpoint` and a bank in London. Its engine has no partitions,
    /// so there are fewer shards than in the template, each is faster, and one invocation settles as fast as it can.
    pub fn at(endpoint: String) -> Self {
        let tables = TableNames {
            payments: "payments".to_owned(),
            history: "payment-history".to_owned(),
            log: "payments-log".to_owned(),
        };
        Self {
            tables,
            endpoint,
            access_key: "local".to_owned(),
            time_zone: "Europe/London".to_owned(),
            horizon_days: 731,
            claims_per_second: 200,
            settlements_per_second: 0,
            moves_per_second: 100,
            max_report_rows: 100_000,
            account_claim: "custom:accounts".to_owned(),
            shards: 10,
            dispatch_attempts: 8,
            compress_details: true,
            amendments: true,
            event_log: true,
            webhooks: true,
            console: true,
            calendars: String::new(),
            cut_offs: String::new(),
            date_rule: "none".to_owned(),
            require_tokens: false,
        }
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<String> {
        Some(match name {
            "PAYMENTS_TABLE" => self.tables.payments.clone(),
            "HISTORY_TABLE" => self.tables.history.clone(),
            "LOG_TABLE" => self.tables.log.clone(),
            "DYNAMODB_ENDPOINT" => self.endpoint.clone(),
            "BUSINESS_TIME_ZONE" => self.time_zone.clone(),
            "HORIZON_DAYS" => self.horizon_days.to_string(),
            "CLAIMS_PER_SECOND_PER_SHARD" => self.claims_per_second.to_string(),
            "SETTLEMENTS_PER_SECOND" => self.settlements_per_second.to_string(),
            "MOVES_PER_SECOND_PER_SHARD" => self.moves_per_second.to_string(),
            // Not opened here: the report store is one of the dependencies.
            "REPORTS_URL" | "JOURNAL_URL" => "file:///reports".to_owned(),
            "MAX_REPORT_ROWS" => self.max_report_rows.to_string(),
            "ACCOUNT_CLAIM" => self.account_claim.clone(),
            "WRITE_SHARDS" | "READ_SHARDS" => self.shards.to_string(),
            "AMENDMENTS" => self.amendments.to_string(),
            "COMPRESS_DETAILS" => self.compress_details.to_string(),
            "EVENT_LOG" => self.event_log.to_string(),
            // In this process the master secret is one of the dependencies.
            "WEBHOOK_SECRET" if self.webhooks => format!("given:{WEBHOOK_MASTER}"),
            "WEBHOOK_SECRET" => String::new(),
            // One machine has no event bus.
            "EVENT_BUS" => String::new(),
            "CALENDARS" => self.calendars.clone(),
            "CUT_OFFS" => self.cut_offs.clone(),
            "DATE_RULE" => self.date_rule.clone(),
            // Without tokens nobody signs in. The port is not known yet, so the provider's addresses are paths.
            "CONSOLE_CLIENT_ID" | "CONSOLE_OPERATE_CLIENT_ID" | "CONSOLE_AUTHORIZE_URL" | "CONSOLE_TOKEN_URL"
                if !self.require_tokens =>
            {
                String::new()
            }
            "CONSOLE_CLIENT_ID" | "CONSOLE_OPERATE_CLIENT_ID" => CONSOLE_CLIENT.to_owned(),
            "CONSOLE_AUTHORIZE_URL" => AUTHORIZE_PATH.to_owned(),
            "CONSOLE_TOKEN_URL" => TOKEN_PATH.to_owned(),
            "PAUSED" => "none".to_owned(),
            "WEBHOOKS" => self.webhooks.to_string(),
            "CONSOLE" => self.console.to_string(),
            "MAX_DISPATCH_ATTEMPTS" => self.dispatch_attempts.to_string(),
            _ => return None,
        })
    }

    /// Returns the functions in this environment, each with what `of` returns for it.
    pub fn functions(&self, of: impl Fn(Function) -> Result<Dependencies>) -> Result<Functions> {
        let get = |name: &str| self.get(name);
        Functions::new(&Lookup::new(&get), of)
    }

    /// Returns the functions' DynamoDB client.
    pub fn client(&self) -> Client {
        dynamodb_at(&self.endpoint, &self.access_key)
    }

    /// Returns the stream of the hot table.
    pub async fn stream(&self) -> Result<DynamoDbStream> {
        self.stream_over(Builder::new().build_http()).await
    }

    /// Returns the stream of the hot table, read through an HTTP client.
    pub(crate) async fn stream_over(&self, http_client: impl HttpClient + 'static) -> Result<DynamoDbStream> {
        self.stream_of(&self.tables.payments, http_client).await
    }

    /// Returns the stream of a table, read through an HTTP client.
    pub(crate) async fn stream_of(
        &self,
        table: &str,
        http_client: impl HttpClient + 'static,
    ) -> Result<DynamoDbStream> {
        let config = aws_sdk_dynamodbstreams::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("us-east-1"))
            .credentials_provider(Credentials::new(&self.access_key, "local", None, None, "any"))
            .http_client(http_client)
            .endpoint_url(&self.endpoint)
            .timeout_config(TimeoutConfig::builder().operation_timeout(STREAM_TIMEOUT).build());
        let client = aws_sdk_dynamodbstreams::Client::from_conf(config.build());
        Ok(DynamoDbStream::of_table(client, table).await?)
    }
}
