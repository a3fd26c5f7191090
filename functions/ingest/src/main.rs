//! The program of the `ingest` function.

use std::convert::Infallible;

use ingest::{Config, Ingest};
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use payments_boot::{Clock, Lookup, http_store, log_as_json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let config = Config::read(&Lookup::environment())?;
    let store = http_store(&config.data).await;
    let ingest = Ingest::new(config, store, Clock::system());
    run(service_fn(|event: LambdaEvent<_>| async { Ok::<_, Infallible>(ingest.handle(event.payload).await) })).await
}
