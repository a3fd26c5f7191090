//! The queue of requests, through SQS's own SDK over layers.

use std::sync::Arc;

use aws_sdk_sqs::config::{BehaviorVersion, Builder, Credentials, Region};
use aws_sdk_sqs::{Client, Config};
use payments_machine::Layers;
use payments_machine::layers::own_quota;
use payments_sqs::SqsQueue;

/// Returns the queue. Its SDK retries as `set` says, or as it does by itself.
pub fn queue_over(layers: Layers, set: impl FnOnce(Builder) -> Builder) -> Arc<SqsQueue> {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("local"))
        .credentials_provider(Credentials::new("local", "local", None, None, "lab"))
        .http_client(layers)
        .retry_partition(own_quota());
    let queue_url = "http://127.0.0.1:9/payment-requests".to_owned();
    Arc::new(SqsQueue { client: Client::from_conf(set(config).build()), queue_url })
}
