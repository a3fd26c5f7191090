//! The program of the `report` function.

use lambda_runtime::{Error, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, log_as_json, store};
use report::{Config, Report};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = store(&config.data).await;
    let files = config.storage.open("REPORTS_URL", &lookup)?;
    let attempts = config.attempts.open("ATTEMPTS_URL", &lookup)?;
    let report = Report::new(config, store, (files, attempts), Clock::system(), Metrics::stdout(&lookup)?);
    run(service_fn(|event| report.handle(event))).await
}
