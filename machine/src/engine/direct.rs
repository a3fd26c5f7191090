//! The way from an SDK to the embedded engine without a socket.

use std::fmt;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinError;

/// DynamoDB's message about a value without a type.
const EMPTY_VALUE: &str = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes";

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
        // On another thread, if there is one: the caller continues with its other calls meanwhile.
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

    fn answer(&self, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let operation = request.headers().get("x-amz-target").unwrap_or_default().rsplit('.').next();
        match self.run::<String>(operation.unwrap_or_default(), request.body().bytes().unwrap_or_default()) {
            Ok(body) => respond(200, body),
            Err(error) => respond(error.status_code(), error.to_json()),
        }
    }

    fn run<Form: OutputForm>(&self, name: &str, input: &[u8]) -> Result<Form, DynoxideError> {
        match operation(name) {
            Some(operation) => operation(&self.0, input),
            None => Err(DynoxideError::ValidationException(format!("the engine has no operation {name}"))),
        }
    }
}

/// Returns a response with a JSON body.
pub(crate) fn respond(status: u16, body: impl Into<SdkBody>) -> Result<HttpResponse, ConnectorError> {
    let status = status.try_into().map_err(|_| ConnectorError::other("no such status".into(), None))?;
    let mut response = HttpResponse::new(status, body.into());
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    Ok(response)
}

/// An operation on JSON.
pub(super) type Operation<Form> = fn(&Database, &[u8]) -> Result<Form, DynoxideError>;

/// Returns an operation of DynamoDB or its streams by its name.
pub(super) fn operation<Form: OutputForm>(name: &str) -> Option<Operation<Form>> {
    Some(match name {
        "PutItem" => |database, input| enveloped(run(input, |input| database.put_item(input))),
        "GetItem" => |database, input| run(input, |input| database.get_item(input)),
        "UpdateItem" => |database, input| enveloped(run(input, |input| database.update_item(input))),
        "DeleteItem" => |database, input| enveloped(run(input, |input| database.delete_item(input))),
        "Query" => |database, input| run(input, |input| database.query(input)),
        "BatchGetItem" => |database, input| run(input, |input| database.batch_get_item(input)),
        "BatchWriteItem" => |database, input| run(input, |input| database.batch_write_item(input)),
        "TransactGetItems" => |database, input| run(input, |input| database.transact_get_items(input)),
        "TransactWriteItems" => |database, input| run(input, |input| database.transact_write_items(input)),
        "Scan" => |database, input| run(input, |input| database.scan(input)),
        "CreateTable" => |database, input| run(input, |input| database.create_table(input)),
        "DeleteTable" => |database, input| run(input, |input| database.delete_table(input)),
        "DescribeTable" => |database, input| run(input, |input| database.describe_table(input)),
        "ListTables" => |database, input| run(input, |input| database.list_tables(input)),
        "UpdateTable" => |database, input| run(input, |input| database.update_table(input)),
        "UpdateTimeToLive" => |database, input| run(input, |input| database.update_time_to_live(input)),
        "DescribeTimeToLive" => |database, input| run(input, |input| database.describe_time_to_live(input)),
        "ListStreams" => |database, input| run(input, |input| database.list_streams(input)),
        "DescribeStream" => |database, input| run(input, |input| database.describe_stream(input)),
        "GetShardIterator" => |database, input| run(input, |input| database.get_shard_iterator(input)),
        "GetRecords" => |database, input| run(input, |input| database.get_records(input)),
        "ExecuteStatement" => |database, input| run(input, |input| database.execute_statement(input)),
        "BatchExecuteStatement" => |database, input| run(input, |input| database.batch_execute_statement(input)),
        "ExecuteTransaction" => |database, input| run(input, |input| database.execute_transaction(input)),
        "TagResource" => |database, input| run(input, |input| database.tag_resource(input)),
        "UntagResource" => |database, input| run(input, |input| database.untag_resource(input)),
        "ListTagsOfResource" => |database, input| run(input, |input| database.list_tags_of_resource(input)),
        "SearchVectors" => |database, input| run(input, |input| database.search_vectors(input)),
        _ => return None,
    })
}

/// A form of an operation's output.
pub(super) trait OutputForm: Sized {
    fn from_output(output: &impl Serialize) -> serde_json::Result<Self>;
}

/// The body of a response.
impl OutputForm for String {
    fn from_output(output: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::to_string(output)
    }
}

/// JSON that nobody needs as text: whole tables are read in this form.
impl OutputForm for Value {
    fn from_output(output: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::to_value(output)
    }
}

fn run<Input: DeserializeOwned, Output: Serialize, Form: OutputForm>(
    input: &[u8],
    operation: impl FnOnce(Input) -> Result<Output, DynoxideError>,
) -> Result<Form, DynoxideError> {
    let input = serde_json::from_slice(input).map_err(|error| malformed(&error))?;
    let output = operation(input)?;
    Form::from_output(&output).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// Returns DynamoDB's error for an input that the operation cannot have. The engine's readers put the kind of error before
/// its text. Of what serde says itself, only a wrong type is a SerializationException.
fn malformed(error: &serde_json::Error) -> DynoxideError {
    if !error.is_data() {
        return DynoxideError::SerializationException(String::new());
    }
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(&*text, |(text, _)| text);
    let says = |sign| text.contains(sign);
    match text.split_once(':') {
        Some(("VALIDATION_REQUEST", text)) => DynoxideError::EnvelopedValidation(text.to_owned()),
        Some(("VALIDATION" | "VALIDATION_AS_READ", text)) => DynoxideError::ValidationException(text.to_owned()),
        Some(("SERIALIZATION" | "SERIALIZATION_AS_READ", text)) => {
            DynoxideError::SerializationException(text.to_owned())
        }
        _ if says("empty AttributeValue") => DynoxideError::ValidationException(EMPTY_VALUE.to_owned()),
        _ if ["missing field", "unknown variant", "invalid type: null", "Supplied AttributeValue"]
            .into_iter()
            .any(says) =>
        {
            DynoxideError::ValidationException(text.to_owned())
        }
        _ => DynoxideError::SerializationException(text.to_owned()),
    }
}

/// DynamoDB counts the errors in the write of one item.
fn enveloped<Form>(result: Result<Form, DynoxideError>) -> Result<Form, DynoxideError> {
    result.map_err(|error| match error {
        DynoxideError::EnvelopedValidation(text) => {
            DynoxideError::ValidationException(format!("1 validation error detected: {text}"))
        }
        other => other,
    })
}
