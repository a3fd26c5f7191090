//! The program of the `stream-aggregator` function.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, log_as_json, store};
use stream_aggregator::{Aggregator, Config};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = store(&config.data).await;
    let aggregator = Aggregator::new(config, store, Clock::system(), Metrics::stdout(&lookup)?);
    run(service_fn(|event: LambdaEvent<_>| aggregator.handle(event))).await
}
