//! The `dispatch` function's start.

use dispatch::{Config, Dispatch};
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, dynamodb, log_as_json, sqs};
use payments_queue::TransactionQueue;
use payments_store::Store;

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let client = dynamodb(config.data.endpoint.as_deref()).await;
    let queue = TransactionQueue::Sqs { client: sqs().await, queue_url: config.queue_url };
    let dispatch =
        Dispatch::new(Store::new(client, config.data.tables), queue, Clock::system(), Metrics::stdout(&lookup));
    run(service_fn(|event: LambdaEvent<_>| dispatch.handle(event.payload))).await
}
