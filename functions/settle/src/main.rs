//! The `settle` function's start.

use std::convert::Infallible;

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, dynamodb, log_as_json};
use payments_store::Store;
use settle::{Config, Settle};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let client = dynamodb(config.data.endpoint.as_deref()).await;
    let store = Store::new(client, config.data.tables.clone());
    let settle = Settle::new(config, store, Clock::system(), Metrics::stdout(&lookup));
    run(service_fn(|event: LambdaEvent<_>| async { Ok::<_, Infallible>(settle.handle(event.payload).await) })).await
}
