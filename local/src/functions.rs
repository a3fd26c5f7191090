//! The functions, wired as the template wires them, over one store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use archive::Archive;
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodbstreams::config::timeout::TimeoutConfig;
use aws_sdk_dynamodbstreams::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::HttpClient;
use daily_due_sweeper::Sweeper;
use dispatch::Dispatch;
use ingest::Ingest;
use lambda_runtime::{Context, LambdaEvent};
use object_store::ObjectStore;
use payments_boot::{Clock, Lookup, Metrics, dynamodb};
use payments_delivery::DynamoDbStream;
use payments_queue::TransactionQueue;
use payments_store::{Store, TableNames};
use query_account::QueryAccount;
use query_due::QueryDue;
use recount::Recount;
use report::{Report, Storage};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use settle::Settle;
use stream_aggregator::Aggregator;

use crate::plant::{chain, read, written};

/// The longest one read of the stream may take: a page is at most a thousand records.
const STREAM_TIMEOUT: Duration = Duration::from_secs(10);

/// Every function of the bank.
#[derive(Debug, Clone)]
pub struct Functions {
    pub(crate) ingest: Ingest,
    pub(crate) query_account: QueryAccount,
    pub(crate) query_due: QueryDue,
    /// Sweeps and redrives.
    pub sweeper: Sweeper,
    /// Moves past payments to history.
    pub archive: Archive,
    /// Sends what became pending.
    pub dispatch: Dispatch,
    /// Settles what comes back.
    pub settle: Settle,
    /// Reports what is settled.
    pub report: Report,
    /// Keeps the counters.
    pub aggregator: Aggregator,
    /// Compares the counters with the payments, and repairs them.
    pub recount: Recount,
}

/// What lies outside of the functions and their tables.
#[derive(Debug, Clone)]
pub struct Outside {
    /// The way to the transaction service.
    pub requests: TransactionQueue,
    /// The time.
    pub clock: Clock,
    /// Where metrics go.
    pub metrics: Metrics,
    /// Where reports are stored.
    pub reports: Arc<dyn ObjectStore>,
}

/// What the functions work with besides their configuration.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Both tables.
    pub store: Store,
    /// The way to the transaction service.
    pub requests: TransactionQueue,
    /// The time.
    pub clock: Clock,
    /// Where metrics go.
    pub metrics: Metrics,
    /// Where reports are stored.
    pub reports: Arc<dyn ObjectStore>,
}

impl Functions {
    /// Wires the functions. They read their configuration as they do on AWS: through the lookup.
    ///
    /// # Errors
    /// Where a variable is missing or does not do.
    pub fn new(lookup: &Lookup<'_>, surroundings: &Surroundings) -> Result<Self> {
        Self::each(lookup, |_| Ok(surroundings.clone()))
    }

    /// The same, where each function, by the name of its package, has surroundings of its own.
    ///
    /// # Errors
    /// Where a variable is missing or does not do, or a function has no surroundings.
    pub fn each(lookup: &Lookup<'_>, of: impl Fn(&'static str) -> Result<Surroundings>) -> Result<Self> {
        let own = |function| of(function).map(|Surroundings { store, clock, metrics, .. }| (store, clock, metrics));
        let (store, clock, _) = own("ingest")?;
        let ingest = Ingest::new(ingest::Config::read(lookup)?, store, clock);
        let (store, clock, _) = own("query-account")?;
        let query_account = QueryAccount::new(query_account::Config::read(lookup)?, store, clock);
        let (store, clock, _) = own("query-due")?;
        let query_due = QueryDue::new(query_due::Config::read(lookup)?, store, clock);
        let (store, clock, metrics) = own("daily-due-sweeper")?;
        let sweeper = Sweeper::new(daily_due_sweeper::Config::read(lookup)?, store, clock, metrics);
        let (store, clock, metrics) = own("archive")?;
        let archive = Archive::new(archive::Config::read(lookup)?, store, clock, metrics);
        let Surroundings { store, requests, clock, metrics, .. } = of("dispatch")?;
        let dispatch = Dispatch::new(store, requests, clock, metrics);
        let (store, clock, metrics) = own("stream-aggregator")?;
        let aggregator = Aggregator::new(stream_aggregator::Config::read(lookup)?, store, clock, metrics);
        let Surroundings { store, reports, clock, metrics, .. } = of("report")?;
        let report = Report::new(report::Config::read(lookup)?, store, reports, clock, metrics);
        let (store, clock, metrics) = own("recount")?;
        let recount = Recount::new(recount::Config::read(lookup)?, store, clock, metrics);
        let (store, clock, metrics) = own("settle")?;
        let settle = Settle::new(settle::Config::read(lookup)?, store, clock, metrics);
        Ok(Self { ingest, query_account, query_due, sweeper, archive, dispatch, settle, report, aggregator, recount })
    }

    /// Invokes the scheduled function of this name with a schedule's input, and returns its report.
    ///
    /// # Errors
    /// The function's error, or that it does not know such an input.
    pub async fn scheduled(&self, function: &str, input: Value, context: Context) -> Result<Value, String> {
        async fn run<Request: DeserializeOwned, Report: Serialize, Answer>(
            input: Value,
            context: Context,
            handle: impl FnOnce(LambdaEvent<Request>) -> Answer,
        ) -> Result<Value, String>
        where
            Answer: Future<Output = Result<Report, lambda_runtime::Error>>,
        {
            let report = handle(LambdaEvent::new(read(input)?, context)).await;
            written(&report.map_err(|error| chain(&*error))?)
        }
        match function {
            "daily-due-sweeper" => run(input, context, |event| self.sweeper.handle(event)).await,
            "archive" => run(input, context, |event| self.archive.handle(event)).await,
            "report" => run(input, context, |event| self.report.handle(event)).await,
            "recount" => run(input, context, |event| self.recount.handle(event)).await,
            other => Err(format!("nothing here runs {other}")),
        }
    }

    /// Invokes the HTTP function of this name with an API Gateway event.
    pub async fn invoke(&self, function: &str, event: ApiGatewayV2httpRequest) -> ApiGatewayV2httpResponse {
        match function {
            "ingest" => self.ingest.handle(event).await,
            "query-due" => self.query_due.handle(event).await,
            _ => self.query_account.handle(event).await,
        }
    }
}

/// The reports in a folder of this machine, which is made where it is missing.
///
/// # Errors
/// Where the folder cannot be used.
pub fn reports_in(folder: &Path) -> Result<Arc<dyn ObjectStore>> {
    let explain =
        || format!("cannot keep reports in {}; give --reports a folder that can be written", folder.display());
    let folder = std::path::absolute(folder).with_context(explain)?;
    Storage::Folder(folder.clone()).open(&Lookup::environment()).with_context(explain)
}

/// The environment that the template gives the functions, for one machine.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The names of the tables.
    pub tables: TableNames,
    /// Where DynamoDB answers.
    pub endpoint: String,
    /// Who asks there. The embedded engine does not care; DynamoDB Local has a database for each, and takes the
    /// longer for a write the more its streams hold.
    pub access_key: String,
    /// The bank's time zone.
    pub time_zone: String,
    /// How many days ahead a payment may be.
    pub horizon_days: u32,
    /// How many payments a sweep claims per second and shard; 0 for as many as there can be.
    pub claims_per_second: u32,
    /// How many payments the archive moves per second and shard; 0 likewise.
    pub moves_per_second: u32,
    /// The most settlements of one report.
    pub max_report_rows: u32,
    /// The claim that names a token's accounts.
    pub account_claim: String,
}

impl Environment {
    /// A bank in London on the engine at `endpoint`, with the tables that the template names.
    #[must_use]
    pub fn at(endpoint: String) -> Self {
        let tables = TableNames { payments: "payments".to_owned(), history: "payment-history".to_owned() };
        Self {
            tables,
            endpoint,
            access_key: "local".to_owned(),
            time_zone: "Europe/London".to_owned(),
            horizon_days: 731,
            claims_per_second: 200,
            moves_per_second: 100,
            max_report_rows: 100_000,
            account_claim: "custom:accounts".to_owned(),
        }
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        Some(match name {
            "PAYMENTS_TABLE" => self.tables.payments.clone(),
            "HISTORY_TABLE" => self.tables.history.clone(),
            "DYNAMODB_ENDPOINT" => self.endpoint.clone(),
            "BUSINESS_TIME_ZONE" => self.time_zone.clone(),
            "HORIZON_DAYS" => self.horizon_days.to_string(),
            "CLAIMS_PER_SECOND_PER_SHARD" => self.claims_per_second.to_string(),
            "MOVES_PER_SECOND_PER_SHARD" => self.moves_per_second.to_string(),
            // Not opened here: what it would name is in the surroundings.
            "REPORTS_URL" => "file:///reports".to_owned(),
            "MAX_REPORT_ROWS" => self.max_report_rows.to_string(),
            "ACCOUNT_CLAIM" => self.account_claim.clone(),
            "WRITE_SHARDS" | "READ_SHARDS" => "10".to_owned(),
            _ => return None,
        })
    }

    /// The functions in this environment, on tables that are created where they are missing.
    ///
    /// # Errors
    /// Where a variable does not do or the engine does not answer.
    pub async fn functions(&self, outside: &Outside) -> Result<Functions> {
        let client = self.client().await;
        payments_store::schema::create_tables(&client, &self.tables).await?;
        self.functions_over(client, outside)
    }

    /// The same over a client of the caller's, on tables that are there.
    ///
    /// # Errors
    /// Where a variable does not do.
    pub fn functions_over(&self, client: Client, outside: &Outside) -> Result<Functions> {
        let get = |name: &str| self.get(name);
        let store = Store::new(client, self.tables.clone());
        let Outside { requests, clock, metrics, reports } = outside.clone();
        Functions::new(&Lookup::new(&get), &Surroundings { store, requests, clock, metrics, reports })
    }

    /// The functions' client.
    pub async fn client(&self) -> Client {
        let client = dynamodb(Some(&self.endpoint)).await;
        Client::from_conf(client.config().to_builder().credentials_provider(self.credentials()).build())
    }

    /// The same over an HTTP client of the caller's.
    pub async fn client_over(&self, http: impl HttpClient + 'static) -> Client {
        let client = self.client().await;
        Client::from_conf(client.config().to_builder().http_client(http).build())
    }

    fn credentials(&self) -> Credentials {
        Credentials::new(&self.access_key, "local", None, None, "any")
    }

    /// The stream of the hot table.
    ///
    /// # Errors
    /// Where the table has none or the engine does not answer.
    pub async fn stream(&self) -> Result<DynamoDbStream> {
        let config = aws_sdk_dynamodbstreams::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("us-east-1"))
            .credentials_provider(self.credentials())
            .endpoint_url(&self.endpoint)
            .timeout_config(TimeoutConfig::builder().operation_timeout(STREAM_TIMEOUT).build());
        let client = aws_sdk_dynamodbstreams::Client::from_conf(config.build());
        Ok(DynamoDbStream::of_table(client, &self.tables.payments).await?)
    }
}
