//! The program of the `redate` function.

use lambda_runtime::{Error, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, log_as_json, store};
use redate::{Config, Redate};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = store(&config.data).await;
    let redate = Redate::new(config, store, Clock::system(), Metrics::stdout(&lookup)?);
    run(service_fn(|event| redate.handle(event))).await
}
