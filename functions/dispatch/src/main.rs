//! The program of the `dispatch` function.

use std::sync::Arc;

use dispatch::{Config, Dispatch};
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, log_as_json, switched_sqs, switched_store};
use payments_sqs::SqsQueue;

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = switched_store(&config.data).await;
    let queue = Arc::new(SqsQueue { client: switched_sqs().await, queue_url: config.queue_url });
    let dispatch = Dispatch::new(store, queue, Clock::system(), Metrics::stdout(&lookup)?);
    run(service_fn(|event: LambdaEvent<_>| dispatch.handle(event.payload))).await
}
