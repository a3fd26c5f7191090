//! The program of the `query-account` function.

use std::convert::Infallible;

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use payments_boot::{Clock, Lookup, Metrics, http_store, log_as_json};
use query_account::{Config, QueryAccount};

#[tokio::main]
async fn main() -> Result<(), Error> {
    log_as_json();
    let lookup = Lookup::environment();
    let config = Config::read(&lookup)?;
    let store = http_store(&config.data).await;
    let files = config.sealed.open_for_people("SEALED_URL", &lookup)?;
    let query = QueryAccount::new(config, store, files, Clock::system(), Metrics::stdout(&lookup)?);
    run(service_fn(|event: LambdaEvent<_>| async { Ok::<_, Infallible>(query.handle(event.payload).await) })).await
}
