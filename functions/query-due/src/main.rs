//! The `query-due` function's start.

use std::convert::Infallible;

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use payments_boot::{Clock, Lookup, dynamodb, log_as_json};
use payments_store::Store;
use query_due::{Config, QueryDue};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let config = Config::read(&Lookup::environment())?;
    let client = dynamodb(config.data.endpoint.as_deref()).await;
    let store = Store::new(client, config.data.tables.clone());
    let query = QueryDue::new(config, store, Clock::system());
    run(service_fn(|event: LambdaEvent<_>| async { Ok::<_, Infallible>(query.handle(event.payload).await) })).await
}
