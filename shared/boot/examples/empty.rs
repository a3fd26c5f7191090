//! The smallest function with a DynamoDB client, as a baseline for the cold starts of the real functions.

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use lambda_runtime::{Error, LambdaEvent, run, service_fn};

#[tokio::main]
async fn main() -> Result<(), Error> {
    payments_boot::log_as_json();
    let client = &Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await);
    run(service_fn(|event: LambdaEvent<serde_json::Value>| async move {
        let region = client.config().region().map(ToString::to_string);
        Ok::<_, Error>(serde_json::json!({ "region": region, "asked": event.payload.is_object() }))
    }))
    .await
}
