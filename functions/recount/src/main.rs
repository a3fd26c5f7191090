//! The `recount` function's start.

use lambda_runtime::{Error, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, dynamodb, log_as_json};
use payments_store::Store;
use recount::{Config, Recount};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let client = dynamodb(config.data.endpoint.as_deref()).await;
    let store = Store::new(client, config.data.tables.clone());
    let recount = Recount::new(config, store, Clock::system(), Metrics::stdout(&lookup));
    run(service_fn(|event| recount.handle(event))).await
}
