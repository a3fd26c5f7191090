//! The program of the `archive` function.

use archive::{Archive, Config};
use lambda_runtime::{Error, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, log_as_json, store};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = store(&config.data).await;
    let archive = Archive::new(config, store, Clock::system(), Metrics::stdout(&lookup)?);
    run(service_fn(|event| archive.handle(event))).await
}
