//! The program of the `daily-due-sweeper` function.

use daily_due_sweeper::{Config, Sweeper};
use lambda_runtime::{Error, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, log_as_json, switched_store};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = switched_store(&config.data).await;
    let sweeper = Sweeper::new(config, store, Clock::system(), Metrics::stdout(&lookup)?);
    run(service_fn(|event| sweeper.handle(event))).await
}
