//! The `report` function's start.

use lambda_runtime::{Error, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, dynamodb, log_as_json};
use payments_store::Store;
use report::{Config, Report};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let client = dynamodb(config.data.endpoint.as_deref()).await;
    let store = Store::new(client, config.data.tables.clone());
    let files = config.storage.open(&lookup)?;
    let report = Report::new(config, store, files, Clock::system(), Metrics::stdout(&lookup));
    run(service_fn(|event| report.handle(event))).await
}
