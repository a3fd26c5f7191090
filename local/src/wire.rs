//! The wire between the functions and DynamoDB, opened: it counts what each operation costs on
//! each table and index, lists the calls, and lets a test break them.
//!
//! It sits below the SDK, so that retries, timeouts and error types are the real ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws_smithy_http_client::Builder;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::{Value, json};

/// One try of one call, as the wire sees it before it is sent.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its number among all tries on this wire, from 0.
    pub number: usize,
    /// The operation, such as `PutItem`.
    pub operation: String,
    /// Its input.
    pub input: Value,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes through.
    Pass,
    /// It is answered with this status and error code, and not done.
    Refuse(u16, &'static str),
    /// It never arrives.
    LoseRequest,
    /// It is done, and its answer never arrives.
    LoseReply,
}

/// Decides the fate of each call.
pub type Decide = dyn Fn(&Call) -> Fate + Send + Sync;

/// What operations cost: half units by operation and place, which is a table's name or
/// `table/index`. Reads can cost half a unit; writes always cost whole ones.
pub type Ledger = BTreeMap<(String, String), u64>;

/// An opened wire. Clones share what they see.
#[derive(Clone)]
pub struct Wire {
    inner: Arc<Inner>,
}

struct Inner {
    real: SharedHttpClient,
    decide: Option<Box<Decide>>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    count: usize,
    operations: Vec<String>,
    ledger: Ledger,
}

impl Wire {
    /// A wire over plain HTTP on which every call goes through.
    #[must_use]
    pub fn open() -> Self {
        Self::deciding(None)
    }

    /// A wire over plain HTTP on which `decide` decides.
    #[must_use]
    pub fn with_fate(decide: impl Fn(&Call) -> Fate + Send + Sync + 'static) -> Self {
        Self::deciding(Some(Box::new(decide)))
    }

    fn deciding(decide: Option<Box<Decide>>) -> Self {
        Self { inner: Arc::new(Inner { real: Builder::new().build_http(), decide, seen: Mutex::default() }) }
    }

    /// The operations seen since the last time, in order, each try on its own.
    #[must_use]
    pub fn take_operations(&self) -> Vec<String> {
        std::mem::take(&mut self.seen().operations)
    }

    /// What was spent since the last time.
    #[must_use]
    pub fn take_ledger(&self) -> Ledger {
        std::mem::take(&mut self.seen().ledger)
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.inner.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn carry(
        self,
        connector: SharedHttpConnector,
        mut request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let number = {
            let mut seen = self.seen();
            seen.operations.push(operation.clone());
            seen.count += 1;
            seen.count - 1
        };
        let fate = self.inner.decide.as_ref().map_or(Fate::Pass, |decide| {
            let input = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or(Value::Null);
            decide(&Call { number, operation: operation.clone(), input })
        });
        match fate {
            Fate::LoseRequest => return Err(lost()),
            Fate::Refuse(status, code) => return refusal(status, code),
            Fate::Pass | Fate::LoseReply => {}
        }
        ask_for_capacity(&mut request);
        let response = connector.call(request).await?;
        let status = response.status();
        let body = ByteStream::new(response.into_body()).collect().await;
        let body = body.map_err(|error| ConnectorError::io(error.into()))?.into_bytes();
        self.enter(&operation, &body);
        if fate == Fate::LoseReply {
            return Err(lost());
        }
        Ok(HttpResponse::new(status, SdkBody::from(body)))
    }

    /// Enters what an answer says it cost.
    fn enter(&self, operation: &str, body: &[u8]) {
        let answer: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let consumed = match answer.get("ConsumedCapacity") {
            Some(Value::Array(several)) => several.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let mut seen = self.seen();
        for consumed in consumed {
            let table = consumed["TableName"].as_str().unwrap_or("?");
            let mut enter = |place: String, capacity: &Value| {
                let spent = half_units(&capacity["CapacityUnits"]);
                *seen.ledger.entry((operation.to_owned(), place)).or_default() += spent;
            };
            enter(table.to_owned(), &consumed["Table"]);
            for (index, capacity) in consumed["GlobalSecondaryIndexes"].as_object().into_iter().flatten() {
                enter(format!("{table}/{index}"), capacity);
            }
        }
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wire({} calls)", self.seen().count)
    }
}

impl HttpClient for Wire {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let connector = self.inner.real.http_connector(settings, components);
        SharedHttpConnector::new(Tap { wire: self.clone(), connector })
    }
}

#[derive(Debug)]
struct Tap {
    wire: Wire,
    connector: SharedHttpConnector,
}

impl HttpConnector for Tap {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.wire.clone().carry(self.connector.clone(), request))
    }
}

/// Has DynamoDB tell what the call costs, table and indexes apart. The SDK has written an object, which is added to
/// at its end: to read and write it anew would take as long as much of the call.
fn ask_for_capacity(request: &mut HttpRequest) {
    let Some(fields) = request.body().bytes().and_then(|body| body.strip_suffix(b"}")) else { return };
    let comma: &[u8] = if fields.ends_with(b"{") { b"" } else { b"," };
    let body = [fields, comma, br#""ReturnConsumedCapacity":"INDEXES"}"#].concat();
    request.headers_mut().insert("content-length", body.len().to_string());
    *request.body_mut() = SdkBody::from(body);
}

/// A number of units, doubled, without a float: `10`, `10.0`, `0.5`.
fn half_units(units: &Value) -> u64 {
    let text = units.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
    2 * whole.parse::<u64>().unwrap_or(0) + u64::from(fraction.starts_with('5'))
}

fn lost() -> ConnectorError {
    ConnectorError::io("the connection was lost".into())
}

fn refusal(status: u16, code: &str) -> Result<HttpResponse, ConnectorError> {
    let body = json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "injected" });
    let status = status.try_into().map_err(|_| ConnectorError::other("no such status".into(), None))?;
    let mut response = HttpResponse::new(status, SdkBody::from(body.to_string()));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_doubled_exactly() {
        for (units, want) in [(json!(10.0), 20), (json!(0.5), 1), (json!(2), 4), (json!(128.5), 257), (Value::Null, 0)]
        {
            assert_eq!(half_units(&units), want, "{units}");
        }
    }
}
