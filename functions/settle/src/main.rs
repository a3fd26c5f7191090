//! The program of the `settle` function.

use std::convert::Infallible;

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, log_as_json, store};
use settle::{Config, Settle};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = store(&config.data).await;
    let settle = Settle::new(config, store, Clock::system(), Metrics::stdout(&lookup)?);
    run(service_fn(|event: LambdaEvent<_>| async { Ok::<_, Infallible>(settle.handle(event).await) })).await
}
