//! The functions, wired as the template wires them, over one store.

use anyhow::Result;
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use ingest::Ingest;
use payments_boot::{Clock, DataConfig, Lookup, dynamodb};
use payments_store::{Store, TableNames};
use query_account::QueryAccount;

/// Every function of the bank.
#[derive(Debug, Clone)]
pub struct Functions {
    ingest: Ingest,
    query_account: QueryAccount,
}

impl Functions {
    /// Wires the functions. They read their configuration as they do on AWS: through the lookup.
    ///
    /// # Errors
    /// Where a variable is missing or does not do.
    pub fn new(lookup: &Lookup<'_>, store: &Store, clock: &Clock) -> Result<Self> {
        Ok(Self {
            ingest: Ingest::new(ingest::Config::read(lookup)?, store.clone(), clock.clone()),
            query_account: QueryAccount::new(query_account::Config::read(lookup)?, store.clone(), clock.clone()),
        })
    }

    /// Invokes the function of this name with an API Gateway event.
    pub async fn invoke(&self, function: &str, event: ApiGatewayV2httpRequest) -> ApiGatewayV2httpResponse {
        match function {
            "ingest" => self.ingest.handle(event).await,
            _ => self.query_account.handle(event).await,
        }
    }
}

/// The environment that the template gives the functions, for one machine.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The names of the tables.
    pub tables: TableNames,
    /// Where DynamoDB answers.
    pub endpoint: String,
    /// The bank's time zone.
    pub time_zone: String,
    /// How many days ahead a payment may be.
    pub horizon_days: u32,
}

impl Environment {
    /// A bank in London on the engine at `endpoint`, with the tables that the template names.
    #[must_use]
    pub fn at(endpoint: String) -> Self {
        let tables = TableNames { payments: "payments".to_owned(), history: "payment-history".to_owned() };
        Self { tables, endpoint, time_zone: "Europe/London".to_owned(), horizon_days: 731 }
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
            "WRITE_SHARDS" | "READ_SHARDS" => "10".to_owned(),
            _ => return None,
        })
    }

    /// The functions in this environment, on tables that are created where they are missing.
    ///
    /// # Errors
    /// Where a variable does not do or the engine does not answer.
    pub async fn functions(&self, clock: &Clock) -> Result<Functions> {
        let get = |name: &str| self.get(name);
        let lookup = Lookup::new(&get);
        let data = DataConfig::read(&lookup)?;
        let client = dynamodb(data.endpoint.as_deref()).await;
        payments_store::schema::create_tables(&client, &data.tables).await?;
        Functions::new(&lookup, &Store::new(client, data.tables), clock)
    }
}
