//! The way from an SDK to the embedded engine without a socket.

use std::fmt;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinError;

use crate::interceptor::{Answer, respond};

/// An HTTP client for the SDKs of DynamoDB and its streams. Clones call the same engine.
#[derive(Clone)]
pub struct Direct(pub(super) Database);

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Direct")
    }
}

impl HttpClient for Direct {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Direct {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let engine = self.clone();
        // On another thread, if there is one: the caller goes on with its other calls meanwhile.
        match Handle::try_current() {
            Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::MultiThread => {
                let answered = runtime.spawn(async move { engine.answer(&request) });
                let ended = |error: JoinError| ConnectorError::other(error.into(), None);
                HttpConnectorFuture::new(async move { answered.await.map_err(ended)? })
            }
            _ => HttpConnectorFuture::ready(engine.answer(&request)),
        }
    }
}

impl Direct {
    /// Runs an operation on JSON.
    pub fn call(&self, operation: &str, input: &Value) -> Result<Value, DynoxideError> {
        self.run(operation, input.to_string().as_bytes())
    }

    fn answer(&self, request: &HttpRequest) -> Answer {
        let operation = request.headers().get("x-amz-target").unwrap_or_default().rsplit('.').next();
        match self.run::<String>(operation.unwrap_or_default(), request.body().bytes().unwrap_or_default()) {
            Ok(body) => respond(200, body),
            Err(error) => respond(error.status_code(), error.to_json()),
        }
    }

    /// Runs an operation that this system uses.
    fn run<Form: OutputForm>(&self, operation: &str, input: &[u8]) -> Result<Form, DynoxideError> {
        let Self(database) = self;
        match operation {
            "PutItem" => run(input, |input| database.put_item(input)),
            "GetItem" => run(input, |input| database.get_item(input)),
            "UpdateItem" => run(input, |input| database.update_item(input)),
            "DeleteItem" => run(input, |input| database.delete_item(input)),
            "Query" => run(input, |input| database.query(input)),
            "BatchGetItem" => run(input, |input| database.batch_get_item(input)),
            "BatchWriteItem" => run(input, |input| database.batch_write_item(input)),
            "TransactWriteItems" => run(input, |input| database.transact_write_items(input)),
            "Scan" => run(input, |input| database.scan(input)),
            "CreateTable" => run(input, |input| database.create_table(input)),
            "DescribeTable" => run(input, |input| database.describe_table(input)),
            "UpdateTable" => run(input, |input| database.update_table(input)),
            "UpdateTimeToLive" => run(input, |input| database.update_time_to_live(input)),
            "DescribeTimeToLive" => run(input, |input| database.describe_time_to_live(input)),
            "ListStreams" => run(input, |input| database.list_streams(input)),
            "DescribeStream" => run(input, |input| database.describe_stream(input)),
            "GetShardIterator" => run(input, |input| database.get_shard_iterator(input)),
            "GetRecords" => run(input, |input| database.get_records(input)),
            other => Err(DynoxideError::ValidationException(format!("this way has no operation {other}"))),
        }
    }
}

/// What an operation's output is made into.
trait OutputForm: Sized {
    fn of(output: &impl Serialize) -> serde_json::Result<Self>;
}

/// The body of a response.
impl OutputForm for String {
    fn of(output: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::to_string(output)
    }
}

/// JSON that nobody needs as text: whole tables are read in this form.
impl OutputForm for Value {
    fn of(output: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::to_value(output)
    }
}

fn run<Input: DeserializeOwned, Output: Serialize, Form: OutputForm>(
    input: &[u8],
    operation: impl FnOnce(Input) -> Result<Output, DynoxideError>,
) -> Result<Form, DynoxideError> {
    let input =
        serde_json::from_slice(input).map_err(|error| DynoxideError::SerializationException(error.to_string()))?;
    let output = operation(input)?;
    Form::of(&output).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}
