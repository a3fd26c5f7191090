//! The program of the `webhooks` function.

use std::convert::Infallible;

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, WebhookMaster, http_store, log_as_json};
use webhooks::{Config, Webhooks};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = http_store(&config.data).await;
    let master = WebhookMaster::configured(&config.webhook_secret).await?;
    let webhooks = Webhooks::new(config, store, master, Clock::system(), Metrics::stdout(&lookup)?);
    run(service_fn(|event: LambdaEvent<_>| async { Ok::<_, Infallible>(webhooks.handle(event.payload).await) })).await
}
