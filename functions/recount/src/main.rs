//! The program of the `recount` function.

use lambda_runtime::{Error, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, log_as_json, store};
use recount::{Config, Recount};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = store(&config.data).await;
    let recount = Recount::new(config, store, Clock::system(), Metrics::stdout(&lookup)?);
    run(service_fn(|event| recount.handle(event))).await
}
