//! The program of the `publish` function.

use lambda_runtime::{Error, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, log_as_json, store};
use publish::{Config, EventBridge, Publish, Webhooks};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = store(&config.data).await;
    let files = config.storage.open("JOURNAL_URL", &lookup)?;
    let webhooks = Webhooks::configured(&config).await?;
    let publish = Publish::new(store, files, webhooks, Clock::system(), Metrics::stdout(&lookup)?);
    let publish = publish.with_bus(EventBridge::configured(&config).await);
    run(service_fn(|event| publish.handle(event))).await
}
