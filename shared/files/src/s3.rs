//! Files in a bucket of S3.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum};
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::signer::{Method, Signer as _};
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use payments_boot::{ConfigError, Lookup};

use crate::transport::SdkTransport;

/// The most retries of one call to S3.
const MAX_RETRIES: usize = 2;

/// The time after which a call to S3 is not retried. With the last try's own timeout of 10 s, a call takes
/// at most 20 s.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest wait between two tries. Waits start at 100 ms and double.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The value of the variables with credentials.
const ROLE: &str = "the credentials of the function's role, which Lambda sets";

/// Opens a bucket with the credentials of the function's role, which Lambda sets in the environment. A try of a call takes `attempt` at most.
pub(super) fn open(
    lookup: &Lookup<'_>,
    bucket: &str,
    attempt: Duration,
    invalid: &dyn Fn(&dyn Display) -> ConfigError,
) -> Result<Arc<AmazonS3>, ConfigError> {
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_region(lookup.required::<String>("AWS_REGION", "the region, which Lambda sets")?)
        .with_access_key_id(lookup.required::<String>("AWS_ACCESS_KEY_ID", ROLE)?)
        .with_secret_access_key(lookup.required::<String>("AWS_SECRET_ACCESS_KEY", ROLE)?);
    // A role's credentials have a token; those of an emulator need not.
    if let Some(token) = lookup.text("AWS_SESSION_TOKEN") {
        builder = builder.with_token(token);
    }
    // All AWS clients read these variables for another endpoint than AWS's.
    if let Some(url) = lookup.text("AWS_ENDPOINT_URL_S3").or_else(|| lookup.text("AWS_ENDPOINT_URL")) {
        builder = builder.with_allow_http(url.starts_with("http:")).with_endpoint(url);
    }
    bounded(builder, attempt).map(Arc::new).map_err(|error| invalid(&error))
}

/// S3 over the SDK's transport, with bounded retries.
fn bounded(builder: AmazonS3Builder, attempt: Duration) -> Result<AmazonS3, object_store::Error> {
    let backoff = BackoffConfig { max_backoff: LONGEST_WAIT, ..BackoffConfig::default() };
    let retry = RetryConfig { backoff, max_retries: MAX_RETRIES, retry_timeout: RETRY_TIMEOUT };
    // A bucket whose objects are locked takes no put without a checksum (*Amazon S3 API, PutObject*).
    builder
        .with_checksum_algorithm(Checksum::SHA256)
        .with_http_connector(SdkTransport { attempt })
        .with_retry(retry)
        .build()
}

/// The files below a prefix.
pub(super) fn below(prefix: &Path, files: Arc<AmazonS3>) -> Arc<dyn ObjectStore> {
    if prefix.as_ref().is_empty() { files } else { Arc::new(PrefixStore::new(files, prefix.clone())) }
}

/// A link with which anybody can download a file below a prefix for `lasts`.
pub(super) async fn link(
    bucket: &AmazonS3,
    prefix: &Path,
    path: &str,
    lasts: Duration,
) -> Result<String, object_store::Error> {
    let path = prefix.parts().chain(Path::from(path).parts()).collect();
    Ok(bucket.signed_url(Method::GET, &path, lasts).await?.into())
}

#[cfg(test)]
mod tests;
