//! The program of the `console` function.

use std::convert::Infallible;

use console::{AwsOperations, Config, Console};
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, http_store, log_as_json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = http_store(&config.data).await;
    let operations = AwsOperations::configured(&config.resources, &lookup).await?;
    let files = config.sealed.open_for_people("SEALED_URL", &lookup)?;
    let console = Console::new(config, store, operations, files, Clock::system(), Metrics::stdout(&lookup)?);
    run(service_fn(|event: LambdaEvent<_>| async { Ok::<_, Infallible>(console.handle(event.payload).await) })).await
}
