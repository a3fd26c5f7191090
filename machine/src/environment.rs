//! The environment of the functions on one machine: the variables that `template.yaml` gives them.

use std::time::Duration;

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodbstreams::config::timeout::TimeoutConfig;
use aws_sdk_dynamodbstreams::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_http_client::Builder;
use aws_smithy_runtime_api::client::http::HttpClient;
use payments_boot::{WebhookMaster, dynamodb_at};
use payments_delivery::DynamoDbStream;
use payments_store::TableNames;

use crate::event::DEVELOPMENT_CLIENT;
use crate::template::Template;

/// The longest that one read of the stream may take. A page has at most a thousand records.
const STREAM_TIMEOUT: Duration = Duration::from_secs(10);

/// The calendars of a bank on one machine. Its rule is `none`, so only requests with a rule of their own move.
pub const CALENDARS: &str = "EUR=T2,GBP=GB,USD=FED";

/// The `aud` of a token, or its `client_id` if it has no `aud`.
pub const AUDIENCE: &str = "local-client";

/// The `client_id` of the tokens with which operators use the console. It is a public client: it has no secret.
pub const CONSOLE_CLIENT: &str = "local-console";

/// The path that issues tokens, if the API requires them. It is not a path of the bank's API: on AWS it belongs to the
/// identity provider.
pub const TOKEN_PATH: &str = "/oauth2/token";

/// The path where a person signs in to the console, and gets a code for a token. It is the identity provider's, too.
pub const AUTHORIZE_PATH: &str = "/oauth2/authorize";

/// The master secret of webhooks on one machine. It need not be secret: receivers of one machine derive theirs from it.
const WEBHOOK_MASTER: &str = "the master secret of one machine's webhooks";

/// Returns the master secret of webhooks on one machine.
pub fn webhook_master() -> Result<WebhookMaster> {
    Ok(WebhookMaster::given(WEBHOOK_MASTER.parse()?))
}

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
    /// The most days ahead of a payment.
    pub horizon_days: u32,
    /// The claims of a sweep per second on each shard; 0 for no limit.
    pub claims_per_second: u32,
    /// The settlements of an invocation per second; 0 for no limit.
    pub settlements_per_second: u32,
    /// The payments that the archive moves per second on each shard; 0 for no limit.
    pub moves_per_second: u32,
    /// The days after which a date is sealed.
    pub seal_after_days: u32,
    /// The days after which the data of a sealed part is cleared.
    pub clear_after_days: u32,
    /// The days for which sealed payments are kept, or 0.
    pub kept_days: u32,
    /// The most payments of one sealed part.
    pub max_part_rows: u32,
    /// The most settlements of one report.
    pub max_report_rows: u32,
    /// The claim that names a token's accounts.
    pub account_claim: String,
    /// The clients whose tokens pass without that claim, separated by commas.
    pub machine_clients: String,
    /// The number of shards of due payments.
    pub shards: u16,
    /// The most dispatch attempts of a payment.
    pub dispatch_attempts: u32,
    /// Whether there is a console.
    pub console: bool,
    /// The largest amounts of new payments.
    pub max_payment: String,
    /// The limit of each due date.
    pub max_day: String,
    /// The time by which a feed is expected; empty for none.
    pub feed_by: String,
    /// The least number of payments of that feed.
    pub feed_payments: String,
    /// The clients whose creates and amendments are refused, separated by commas.
    pub refused_clients: String,
    /// The calendars of currencies.
    pub calendars: String,
    /// The cut-offs of calendars.
    pub cut_offs: String,
    /// The minutes before a cut-off by which a payment must be created and due.
    pub cut_off_lead_minutes: String,
    /// The date rule of payments whose requests have none.
    pub date_rule: String,
    /// Whether the gateway requires tokens, so that operators sign in to the console.
    pub require_tokens: bool,
    /// The paused part, as the console shows it: `none`, `sending` or `settling`.
    pub paused: &'static str,
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
        // A template that cannot be read stops the start of the stack.
        let of_template = |name: &str| Template::ours().and_then(|it| it.default_of(name)).unwrap_or_default();
        Self {
            tables,
            endpoint,
            access_key: "local".to_owned(),
            time_zone: of_template("BusinessTimeZone"),
            horizon_days: of_template("HorizonDays").parse().unwrap_or_default(),
            claims_per_second: 200,
            settlements_per_second: 0,
            moves_per_second: 100,
            seal_after_days: 50,
            clear_after_days: 36,
            kept_days: 0,
            max_part_rows: 10_000,
            max_report_rows: 100_000,
            account_claim: of_template("AccountClaim"),
            machine_clients: [DEVELOPMENT_CLIENT, AUDIENCE, CONSOLE_CLIENT].join(","),
            shards: 10,
            dispatch_attempts: of_template("MaxDispatchAttempts").parse().unwrap_or_default(),
            console: true,
            max_payment: of_template("MaxPayment"),
            max_day: of_template("MaxDay"),
            feed_by: of_template("FeedBy"),
            feed_payments: of_template("FeedPayments"),
            refused_clients: of_template("RefusedClients"),
            calendars: of_template("Calendars"),
            cut_offs: of_template("CutOffs"),
            cut_off_lead_minutes: of_template("CutOffLeadMinutes"),
            date_rule: of_template("DateRule"),
            require_tokens: false,
            paused: "none",
        }
    }

    /// Whether every variable of the template can be read on this machine.
    pub(crate) fn check(&self) -> Result<()> {
        Template::ours()?.check_variables(&|id| self.given(id))
    }

    /// Returns a variable of a function as the template gives it to the function on this machine. The start has read it before.
    pub fn get(&self, package: &str, name: &str) -> Option<String> {
        match name {
            "DYNAMODB_ENDPOINT" => Some(self.endpoint.clone()),
            // Tests alone have reports of a few rows.
            "MAX_REPORT_ROWS" => Some(self.max_report_rows.to_string()),
            "MAX_PART_ROWS" => Some(self.max_part_rows.to_string()),
            // Tests and `cargo local` seal and clear earlier.
            "SEAL_AFTER_DAYS" => Some(self.seal_after_days.to_string()),
            "CLEAR_AFTER_DAYS" => Some(self.clear_after_days.to_string()),
            _ => Template::ours().and_then(|it| it.variable(package, name, &|id| self.given(id))).ok().flatten(),
        }
    }

    /// Returns the value of a parameter, the name of a resource, or whether a condition is met, where it is another than in the template.
    fn given(&self, id: &str) -> Option<String> {
        Some(match id {
            "PaymentsTable" => self.tables.payments.clone(),
            "HistoryTable" => self.tables.history.clone(),
            "LogTable" => self.tables.log.clone(),
            "BusinessTimeZone" => self.time_zone.clone(),
            "HorizonDays" => self.horizon_days.to_string(),
            "ClaimsPerSecondPerShard" => self.claims_per_second.to_string(),
            "SettlementsPerSecond" => self.settlements_per_second.to_string(),
            "MovesPerSecondPerShard" => self.moves_per_second.to_string(),
            "AccountClaim" => self.account_claim.clone(),
            "WriteShards" | "ReadShards" => self.shards.to_string(),
            "MaxDispatchAttempts" => self.dispatch_attempts.to_string(),
            "KeptDays" => self.kept_days.to_string(),
            "MaxPayment" => self.max_payment.clone(),
            "MaxDay" => self.max_day.clone(),
            "FeedBy" => self.feed_by.clone(),
            "FeedPayments" => self.feed_payments.clone(),
            "RefusedClients" => self.refused_clients.clone(),
            "Calendars" => self.calendars.clone(),
            "CutOffs" => self.cut_offs.clone(),
            "CutOffLeadMinutes" => self.cut_off_lead_minutes.clone(),
            "DateRule" => self.date_rule.clone(),
            "Paused" => self.paused.to_owned(),
            // The machines are named, as with an issuer of the bank's own.
            "HasOwnIssuer" => false.to_string(),
            "MachineClients" => self.machine_clients.clone(),
            "HasConsole" => self.console.to_string(),
            // Without tokens nobody signs in. The port is not known yet, so the provider's addresses are paths.
            "PersonClaim" if self.require_tokens => "sub".to_owned(),
            "ConsoleClientId" | "ConsoleOperateClientId" if self.require_tokens => CONSOLE_CLIENT.to_owned(),
            "ConsoleAuthorizeUrl" if self.require_tokens => AUTHORIZE_PATH.to_owned(),
            "ConsoleTokenUrl" if self.require_tokens => TOKEN_PATH.to_owned(),
            // The store of files is one of the dependencies. A name of a bucket has no capitals.
            "ReportsBucket" | "AttemptsBucket" | "SealedBucket" => "one-machine".to_owned(),
            // In this process the master secret is one of the dependencies, like the resources that
            // the names stand for.
            "WebhookMaster" => format!("given:{WEBHOOK_MASTER}"),
            _ => return None,
        })
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
        Ok(DynamoDbStream::for_table(client, table).await?)
    }
}
