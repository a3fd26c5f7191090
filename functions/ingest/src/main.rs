//! The `ingest` function's start.

use std::convert::Infallible;

use ingest::{Config, Ingest};
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use payments_boot::{Clock, Lookup, dynamodb, log_as_json};
use payments_store::Store;

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let config = Config::read(&Lookup::environment())?;
    let client = dynamodb(config.data.endpoint.as_deref()).await;
    let store = Store::new(client, config.data.tables.clone());
    let ingest = Ingest::new(config, store, Clock::system());
    run(service_fn(|event: LambdaEvent<_>| async { Ok::<_, Infallible>(ingest.handle(event.payload).await) })).await
}
