//! Calls of Lambda and SQS with scripted answers.

use std::sync::Mutex;

use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};

use super::*;

/// The answer of each call: its status and its body.
type Answers = Vec<(&'static str, u16, Value)>;

/// Services that answer each call in turn, and the calls: their names and inputs.
#[derive(Debug, Clone)]
struct Scripted {
    answers: Arc<Mutex<Answers>>,
    calls: Arc<Mutex<Vec<(String, Value)>>>,
}

impl HttpConnector for Scripted {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").and_then(|target| target.split_once('.'));
        let path = request.uri().rsplit_once("://").and_then(|(_, rest)| rest.split_once('/')).unwrap().1;
        let kind = request.headers().get("x-amz-invocation-type").unwrap_or_default();
        let called = target.map_or_else(|| format!("{kind} /{path}"), |(_, call)| call.to_owned());
        let input = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        let (expected, status, answer) = self.answers.lock().unwrap().remove(0);
        assert!(called.contains(expected), "{called} instead of {expected}");
        self.calls.lock().unwrap().push((called, input));
        let body = SdkBody::from(answer.to_string());
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status.try_into().unwrap(), body)))
    }
}

/// Operations on services that give these answers; and the calls.
fn services(answers: Answers) -> (AwsOperations, Scripted) {
    let scripted = Scripted { answers: Arc::new(Mutex::new(answers)), calls: Arc::default() };
    let connector = SharedHttpConnector::new(scripted.clone());
    let http: SharedHttpClient = http_client_fn(move |_: &HttpConnectorSettings, _| connector.clone());
    let credentials = Credentials::new("key", "secret", None, None, "test");
    let sqs = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("local"))
        .credentials_provider(credentials.clone())
        .retry_config(RetryConfig::disabled())
        .http_client(http.clone());
    let lambda = aws_sdk_lambda::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("local"))
        .credentials_provider(credentials)
        .retry_config(RetryConfig::disabled())
        .http_client(http);
    let get = |name: &str| {
        let folder = format!("file://{}/console-reports", std::env::temp_dir().display());
        Some(if name == "REPORTS_URL" { folder } else { format!("https://any.example/{}", name.to_lowercase()) })
    };
    let lookup = Lookup::new(&get);
    let resources = Resources::read(&lookup).unwrap();
    let operations = AwsOperations {
        files: resources.reports.open_with_links("REPORTS_URL", &lookup).unwrap(),
        resources,
        lambda: aws_sdk_lambda::Client::from_conf(lambda.build()),
        sqs: aws_sdk_sqs::Client::from_conf(sqs.build()),
    };
    (operations, scripted)
}

fn attributes(waiting: &str) -> (&'static str, u16, Value) {
    let attributes = json!({
        "ApproximateNumberOfMessages": waiting, "ApproximateNumberOfMessagesNotVisible": "2", "QueueArn": "arn:any",
    });
    ("GetQueueAttributes", 200, json!({ "Attributes": attributes }))
}

fn tasks(status: &str) -> (&'static str, u16, Value) {
    let task = json!({
        "Status": status, "SourceArn": "arn:any", "ApproximateNumberOfMessagesMoved": 3,
        "ApproximateNumberOfMessagesToMove": 7, "StartedTimestamp": 1_795_165_200_000_i64,
    });
    ("ListMessageMoveTasks", 200, json!({ "Results": [task] }))
}

fn rejected(call: &'static str, status: u16, code: &str) -> (&'static str, u16, Value) {
    (call, status, json!({ "__type": code, "message": "no" }))
}

#[tokio::test]
async fn a_function_is_invoked_and_not_waited_for() {
    let (operations, scripted) = services(vec![("Event /", 202, json!({}))]);
    operations.start(Startable::Sweeper, r#"{"action":"sweep"}"#).await.unwrap();
    let calls = scripted.calls.lock().unwrap();
    assert!(calls[0].0.ends_with("sweeper_function/invocations"), "{calls:?}");
    assert_eq!(calls[0].1, json!({ "action": "sweep" }));
}

#[tokio::test]
async fn a_queue_has_numbers_and_the_last_move() {
    let (operations, _) = services(vec![attributes("5")]);
    let state = operations.queue(BankQueue::Results).await.unwrap();
    assert_eq!(state, QueueState { waiting: 5, in_flight: 2, is_closed: false, last_move: None });
    for (policy, is_closed) in [
        (json!({ "Statement": [{ "Effect": "Deny", "Principal": "*", "Action": "sqs:ReceiveMessage" }] }), true),
        (json!({ "Statement": [{ "Effect": "Allow", "Principal": "*", "Action": "sqs:ReceiveMessage" }] }), false),
    ] {
        let (call, status, mut answer) = attributes("5");
        answer["Attributes"]["Policy"] = json!(policy.to_string());
        let (operations, _) = services(vec![(call, status, answer)]);
        assert_eq!(operations.queue(BankQueue::Requests).await.unwrap().is_closed, is_closed, "{policy}");
    }
    let (operations, _) = services(vec![attributes("5"), tasks("COMPLETED")]);
    let last = operations.queue(BankQueue::ResultDeadLetters).await.unwrap().last_move.unwrap();
    assert_eq!((last.status.as_str(), last.moved, last.of), ("COMPLETED", 3, Some(7)));
    assert_eq!(last.started_at.map(|at| at.to_string()).as_deref(), Some("2026-11-20T09:00:00Z"));
    // Numbers that SQS leaves out are not zero.
    for attributes in [json!({}), json!({ "Attributes": { "ApproximateNumberOfMessages": "x" } })] {
        let (operations, _) = services(vec![("GetQueueAttributes", 200, attributes)]);
        assert_eq!(operations.queue(BankQueue::Results).await.unwrap_err().kind, OutageKind::Unavailable);
    }
}

#[tokio::test]
async fn a_sample_hides_nothing_and_has_each_message_once() {
    let message = |id: &str, receives: &str| {
        json!({
            "MessageId": id, "Body": format!("<{id}>"),
            "Attributes": { "SentTimestamp": "1795165200000", "ApproximateReceiveCount": receives },
        })
    };
    let messages = [message("a", "4"), message("b", "1"), message("a", "5")];
    let (operations, scripted) = services(vec![("ReceiveMessage", 200, json!({ "Messages": messages }))]);
    let sampled = operations.sample(BankQueue::DispatchFailures).await.unwrap();
    let sent_at = "2026-11-20T09:00:00Z".parse().ok();
    let known = |id: &str, receives| {
        let (id, body) = (id.to_owned(), format!("<{id}>"));
        SampledMessage { id, body, sent_at, receives: Some(receives) }
    };
    assert_eq!(sampled, [known("a", 5), known("b", 1)]);
    let input = &scripted.calls.lock().unwrap()[0].1;
    for (name, value) in [("VisibilityTimeout", 0), ("MaxNumberOfMessages", 10), ("WaitTimeSeconds", 1)] {
        assert_eq!(input[name], value, "{name}");
    }
    assert_eq!(input["QueueUrl"], "https://any.example/dispatch_failures_url");
}

#[tokio::test]
async fn dead_letters_are_moved_once_at_a_time() {
    const START: &str = "StartMessageMoveTask";
    let moved = |last: Answers| services(std::iter::once(attributes("1")).chain(last).collect());
    let (begun, scripted) = moved(vec![(START, 200, json!({ "TaskHandle": "t" }))]);
    assert_eq!(begun.move_back(BankQueue::ResultDeadLetters).await.unwrap(), MoveBack::Begun);
    {
        let calls = scripted.calls.lock().unwrap();
        assert_eq!(calls[0].1["QueueUrl"], "https://any.example/result_dead_letters_url");
        // The call names only the source, so each message returns to its own queue, as fast as SQS moves them.
        assert_eq!(calls[1].1, json!({ "SourceArn": "arn:any" }));
    }
    let (running, _) = moved(vec![rejected(START, 400, "InvalidParameterValue"), tasks("RUNNING")]);
    assert_eq!(running.move_back(BankQueue::ResultDeadLetters).await.unwrap(), MoveBack::UnderWay);
    for (last, kind) in [
        (vec![rejected(START, 400, "InvalidParameterValue"), tasks("COMPLETED")], OutageKind::Broken),
        (vec![rejected(START, 403, "AccessDenied"), tasks("FAILED")], OutageKind::Broken),
        (vec![rejected(START, 400, "RequestThrottled")], OutageKind::Throttled),
        (vec![rejected(START, 500, "InternalError")], OutageKind::Unavailable),
    ] {
        assert_eq!(moved(last).0.move_back(BankQueue::ResultDeadLetters).await.unwrap_err().kind, kind);
    }
}

#[tokio::test]
async fn a_service_that_fails_is_told_from_one_that_rejects() {
    for (status, code, kind) in [
        (429, "TooManyRequestsException", OutageKind::Throttled),
        (500, "ServiceException", OutageKind::Unavailable),
        (404, "ResourceNotFoundException", OutageKind::Broken),
    ] {
        let (operations, _) = services(vec![rejected("Event /", status, code)]);
        let error = operations.start(Startable::Report, "{}").await.unwrap_err();
        assert_eq!((error.kind, error.service, error.call), (kind, "Lambda", "Invoke"), "{code}");
    }
}
