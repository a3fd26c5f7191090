//! The `archive` function's start.

use archive::{Archive, Config};
use lambda_runtime::{Error, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, dynamodb, log_as_json};
use payments_store::Store;

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let client = dynamodb(config.data.endpoint.as_deref()).await;
    let store = Store::new(client, config.data.tables.clone());
    let archive = Archive::new(config, store, Clock::system(), Metrics::stdout(&lookup));
    run(service_fn(|event| archive.handle(event))).await
}
