//! The program of the `seal` function.

use lambda_runtime::{Error, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, log_as_json, store};
use seal::{Config, Seal};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = store(&config.data).await;
    let files = config.storage.open("SEALED_URL", &lookup)?;
    let seal = Seal::new(config, store, files, Clock::system(), Metrics::stdout(&lookup)?);
    run(service_fn(|event| seal.handle(event))).await
}
