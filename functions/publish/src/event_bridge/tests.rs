//! Putting events on an EventBridge with scripted answers.

use std::sync::{Arc, Mutex};

use aws_sdk_eventbridge::config::retry::RetryConfig;
use aws_sdk_eventbridge::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};

use super::*;

/// An EventBridge that always gives one answer, and records the calls.
#[derive(Debug, Clone)]
struct Scripted {
    status: u16,
    answer: Value,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl HttpConnector for Scripted {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let call = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        self.calls.lock().unwrap().push(call);
        let (status, body) = (self.status.try_into().unwrap(), SdkBody::from(self.answer.to_string()));
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status, body)))
    }
}

/// A bus whose EventBridge always gives one answer, and the calls.
fn bus(status: u16, answer: Value) -> (EventBridge, Arc<Mutex<Vec<Value>>>) {
    let scripted = Scripted { status, answer, calls: Arc::default() };
    let calls = Arc::clone(&scripted.calls);
    let config = aws_sdk_eventbridge::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("local"))
        .credentials_provider(Credentials::new("key", "secret", None, None, "test"))
        .retry_config(RetryConfig::disabled())
        .http_client(http_client_fn(move |_: &HttpConnectorSettings, _| SharedHttpConnector::new(scripted.clone())))
        .build();
    (EventBridge::new(Client::from_conf(config), "payments".to_owned()), calls)
}

/// Puts three events.
async fn put_three(status: u16, answer: Value) -> (Put, Value) {
    let (bus, calls) = bus(status, answer);
    let event = |id: &str| BusEvent {
        id: id.to_owned(),
        kind: "payment.failed".to_owned(),
        at: "2026-11-20T09:00:00Z".to_owned(),
        detail: r#"{"specversion":"1.0"}"#.to_owned(),
    };
    let put = bus.put(["a", "b", "c"].map(event).into()).await;
    let call = calls.lock().unwrap()[0].clone();
    (put, call)
}

/// Puts three events, and returns the ids of those that are left, the reason for the first, and the call.
async fn put(status: u16, answer: Value) -> (Vec<String>, Option<String>, Value) {
    let (put, call) = put_three(status, answer).await;
    (put.left.into_iter().map(|event| event.id).collect(), put.why.map(|why| why.to_string()), call)
}

#[tokio::test]
async fn an_entry_names_bus_source_type_and_time() {
    let accepted =
        json!({ "FailedEntryCount": 0, "Entries": [{ "EventId": "1" }, { "EventId": "2" }, { "EventId": "3" }] });
    let (left, why, call) = put(200, accepted).await;
    assert_eq!((left, why), (vec![], None));
    let want = json!({
        "EventBusName": "payments", "Source": "scheduled-payments", "DetailType": "payment.failed",
        "Detail": r#"{"specversion":"1.0"}"#, "Time": 1_795_165_200,
    });
    assert_eq!((call["Entries"].as_array().unwrap().len(), &call["Entries"][0]), (3, &want));
}

#[tokio::test]
async fn a_call_that_succeeds_can_leave_events_out() {
    let throttled = json!({ "ErrorCode": "ThrottlingException", "ErrorMessage": "slower" });
    let answer = json!({ "FailedEntryCount": 1, "Entries": [{ "EventId": "1" }, throttled, { "EventId": "3" }] });
    let (left, why, _) = put(200, answer).await;
    assert_eq!(left, ["b"]);
    assert_eq!(why.unwrap(), "the event bus rejects the event b: ThrottlingException: slower");
    // If the results contradict the count, the results are right.
    let short = json!({ "FailedEntryCount": 0, "Entries": [{ "EventId": "1" }] });
    let (left, why, _) = put(200, short).await;
    assert_eq!(left, ["b", "c"]);
    assert_eq!(why.unwrap(), "the event bus says nothing of the event b");
}

#[tokio::test]
async fn a_call_that_fails_leaves_all_events() {
    let (left, why, _) = put(400, json!({ "__type": "AccessDeniedException", "message": "not allowed" })).await;
    assert_eq!(left, ["a", "b", "c"]);
    assert_eq!(why.unwrap(), "the event bus rejected a call or did not answer it");
}

#[tokio::test]
async fn an_event_that_is_never_accepted_is_not_left() {
    for (code, is_never_accepted) in [
        ("InvalidArgument", true),
        ("MalformedDetail", true),
        ("RedactionFailure", true),
        ("ThrottlingException", false),
        ("InternalFailure", false),
        ("AccessDeniedException", false),
        ("NotAuthorizedForDetailTypeException", false),
        ("NotAuthorizedForSourceException", false),
        ("InvalidAccountIdException", false),
        ("SomethingNew", false),
    ] {
        let rejected = json!({ "ErrorCode": code, "ErrorMessage": "no" });
        let answer = json!({ "FailedEntryCount": 1, "Entries": [{ "EventId": "1" }, rejected, { "EventId": "3" }] });
        let (put, _) = put_three(200, answer).await;
        assert_eq!((put.never.len(), put.left.len()), if is_never_accepted { (1, 0) } else { (0, 1) }, "{code}");
        assert_eq!(put.why.is_none(), is_never_accepted, "{code}");
    }
}

#[tokio::test]
async fn a_bus_is_missing_only_if_event_bridge_says_so() {
    let (found, calls) = bus(200, json!({ "Name": "payments" }));
    found.check().await.unwrap();
    assert_eq!(calls.lock().unwrap()[..], [json!({ "Name": "payments" })]);
    let (gone, _) = bus(400, json!({ "__type": "ResourceNotFoundException", "message": "no such bus" }));
    assert!(matches!(gone.check().await, Err(BusError::Missing(name)) if name == "payments"));
    let (denied, _) = bus(400, json!({ "__type": "AccessDeniedException", "message": "not allowed" }));
    assert!(matches!(denied.check().await, Err(BusError::Call(_))));
}
