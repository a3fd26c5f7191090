//! Sending to an SQS with scripted replies, and to the queue in this process.

use std::sync::{Arc, Mutex};

use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use chrono::DateTime;
use payments_model::{Actor, Details, Instruction, JsonText, Money, Outage, OutageKind};
use payments_queue::Queue;
use payments_queue::in_process::QueueSettings;
use serde_json::{Value, json};

use super::*;

fn request(number: i64, data_bytes: usize) -> PaymentRequest {
    request_of("acc-1", number, data_bytes)
}

fn request_of(account: &str, number: i64, data_bytes: usize) -> PaymentRequest {
    let instruction = Instruction {
        account: account.parse().unwrap(),
        payee: "landlord-7".parse().unwrap(),
        money: Money { amount: number.try_into().unwrap(), currency: "GBP".parse().unwrap() },
        scheduled_for: "2026-12-01T09:30:00Z".parse().unwrap(),
        date_rule: None,
        reference: None,
        data: Some(JsonText::from_stored(format!("\"{}\"", "x".repeat(data_bytes))).unwrap().into()),
    };
    let id = "626e8292-8e84-575a-b684-0af73927405b".parse().unwrap();
    let (zone, shards) = ("UTC".parse().unwrap(), "10".parse().unwrap());
    let now = "2026-11-20T08:00:00Z".parse().unwrap();
    let details = Details::accept(id, instruction, zone, shards, now, Actor::client("feed"));
    PaymentRequest::new(&details, 1)
}

fn requests(count: i64, data_bytes: usize) -> Vec<PaymentRequest> {
    (1..=count).map(|number| request(number, data_bytes)).collect()
}

fn amount(body: &str) -> i64 {
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    body["amountMinor"].as_i64().unwrap()
}

/// SQS's reply to a call's JSON: a status and a body.
type Script = dyn Fn(&Value) -> (u16, Value) + Send + Sync;

/// An SQS with scripted replies, which records the calls.
#[derive(Clone)]
struct Scripted {
    script: Arc<Script>,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

impl HttpConnector for Scripted {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let call: Value = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        let (status, reply) = (self.script)(&call);
        self.calls.lock().unwrap().push(call);
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status.try_into().unwrap(), SdkBody::from(reply.to_string()))))
    }
}

impl HttpClient for Scripted {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl Scripted {
    fn by(script: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), calls: Arc::default() }
    }

    fn queue(&self) -> SqsQueue {
        let config = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("local"))
            .credentials_provider(Credentials::new("key", "secret", None, None, "test"))
            .retry_config(RetryConfig::disabled())
            .http_client(self.clone())
            .build();
        SqsQueue { client: Client::from_conf(config), queue_url: "http://127.0.0.1:9/queue".to_owned() }
    }

    /// The number of messages of each call.
    fn batches(&self) -> Vec<usize> {
        let entries = |call: &Value| call["Entries"].as_array().unwrap().len();
        self.calls.lock().unwrap().iter().map(entries).collect()
    }
}

/// A reply to a batch: amounts in `failing` fail, those in `unmentioned` are left out, the others are sent.
fn reply(call: &Value, failing: &[i64], unmentioned: &[i64]) -> Value {
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for entry in call["Entries"].as_array().unwrap() {
        let (id, number) = (&entry["Id"], amount(entry["MessageBody"].as_str().unwrap()));
        if failing.contains(&number) {
            failed.push(json!({"Id": id, "Code": "InternalError", "SenderFault": false, "Message": "try again"}));
        } else if !unmentioned.contains(&number) {
            successful.push(json!({"Id": id, "MessageId": number.to_string(), "MD5OfMessageBody": ""}));
        }
    }
    json!({"Successful": successful, "Failed": failed})
}

/// Whether a call holds the message with this amount.
fn holds(call: &Value, number: i64) -> bool {
    call["Entries"].as_array().unwrap().iter().any(|entry| amount(entry["MessageBody"].as_str().unwrap()) == number)
}

fn failures(results: &[Result<(), QueueError>]) -> Vec<(usize, OutageKind)> {
    results.iter().enumerate().filter_map(|(index, sent)| Some((index + 1, sent.as_ref().err()?.kind()))).collect()
}

#[tokio::test]
async fn each_message_has_its_own_result_in_order() {
    let sqs = Scripted::by(|call| (200, reply(call, &[3, 17, 25], &[12])));
    let results = sqs.queue().send(&requests(25, 10), DateTime::UNIX_EPOCH).await;
    assert_eq!(results.len(), 25);
    let unavailable = OutageKind::Unavailable;
    let want = vec![(3, unavailable), (12, unavailable), (17, unavailable), (25, unavailable)];
    assert_eq!(failures(&results), want);
    assert_eq!(sqs.batches(), [10, 10, 5]);
}

#[tokio::test]
async fn a_failed_call_fails_its_own_batch_only() {
    let coded = |code: &str| json!({"__type": format!("com.amazonaws.sqs#{code}"), "message": "no"});
    for (status, said, kind) in [
        (400, coded("QueueDoesNotExist"), OutageKind::Broken),
        (400, coded("RequestThrottled"), OutageKind::Throttled),
        (500, coded("Whatever"), OutageKind::Unavailable),
        (200, json!("not a reply"), OutageKind::Unavailable),
    ] {
        let answer = (status, said.clone());
        let sqs = Scripted::by(move |call| if holds(call, 11) { answer.clone() } else { (200, reply(call, &[], &[])) });
        let results = sqs.queue().send(&requests(25, 10), DateTime::UNIX_EPOCH).await;
        let want: Vec<_> = (11..=20).map(|number| (number, kind)).collect();
        assert_eq!(failures(&results), want, "{status} {said}");
    }
}

#[tokio::test]
async fn each_account_is_a_group_of_its_own() {
    let longest = "Az09._-".repeat(7)[..MAX_ACCOUNT_ID_BYTES].to_owned();
    let accounts = ["acc-1", "acc-2", &longest, "acc-1"];
    let sqs = Scripted::by(|call| (200, reply(call, &[], &[])));
    let requests: Vec<_> = accounts.iter().zip(1..).map(|(account, number)| request_of(account, number, 10)).collect();
    assert_eq!(failures(&sqs.queue().send(&requests, DateTime::UNIX_EPOCH).await), vec![]);
    let calls = sqs.calls.lock().unwrap();
    let groups = calls[0]["Entries"].as_array().unwrap().iter().map(|entry| entry["MessageGroupId"].as_str().unwrap());
    let groups: Vec<&str> = groups.collect();
    assert_eq!(groups, accounts);
    // SQS accepts up to 128 letters, digits and !"#$%&'()*+,-./:;<=>?@[\]^_`{|}~
    let accepted = |group: &&str| group.len() <= MAX_GROUP_BYTES && group.chars().all(|c| c.is_ascii_graphic());
    assert!(groups.iter().all(accepted), "{groups:?}");
}

#[tokio::test]
async fn nothing_to_send_makes_no_call() {
    let sqs = Scripted::by(|call| (200, reply(call, &[], &[])));
    assert!(sqs.queue().send(&[], DateTime::UNIX_EPOCH).await.is_empty());
    assert_eq!(sqs.batches(), [0_usize; 0]);
}

#[tokio::test]
async fn the_queue_in_this_process_gets_the_same_messages() {
    let queue = Queue::new(QueueSettings::named("requests"));
    let sent = TransactionQueue::send(&queue, &requests(3, 10), DateTime::UNIX_EPOCH).await;
    assert_eq!(failures(&sent), vec![]);
    let received = queue.receive(10, DateTime::UNIX_EPOCH);
    assert_eq!(received.iter().map(|message| amount(&message.body)).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(received[0].body, request(1, 10).to_json().unwrap());
}

/// Messages with bodies of these sizes.
fn messages<'a>(account: &'a AccountId, sizes: &[usize]) -> Vec<Message<'a>> {
    sizes.iter().map(|size| Message { group: account, body: Ok("x".repeat(*size)) }).collect()
}

proptest::proptest! {
    #[test]
    fn batches_keep_both_limits_and_have_each_message_once(sizes in proptest::collection::vec(0_usize..100_000, 0..60)) {
        let account = "acc-1".parse().unwrap();
        let batches = batches(&messages(&account, &sizes));
        let mut next = 0;
        for batch in batches {
            proptest::prop_assert_eq!(batch.start, next);
            proptest::prop_assert!((1..=MAX_BATCH_MESSAGES).contains(&batch.len()));
            let bytes: usize = sizes[batch.clone()].iter().sum();
            proptest::prop_assert!(bytes <= MAX_BATCH_BYTES);
            next = batch.end;
        }
        proptest::prop_assert_eq!(next, sizes.len());
    }
}

#[test]
fn a_message_beyond_the_limit_has_its_own_batch() {
    let account = "acc-1".parse().unwrap();
    assert_eq!(batches(&messages(&account, &[10, MAX_BATCH_BYTES + 1, 10])), [0..1, 1..2, 2..3]);
}

#[test]
fn failed_entries_have_the_kind_of_their_code() {
    for (code, sender_fault, want) in [
        ("InternalError", false, OutageKind::Unavailable),
        ("AWS.SimpleQueueService.RequestThrottled", true, OutageKind::Throttled),
        ("KmsThrottled", true, OutageKind::Throttled),
        ("InvalidMessageContents", true, OutageKind::Broken),
    ] {
        let entry = BatchResultErrorEntry::builder().id("0").code(code).sender_fault(sender_fault).build().unwrap();
        let error = entry_error(&entry);
        assert_eq!(error.kind(), want, "{code}");
        assert_eq!(error.source().unwrap().to_string(), format!("{code}: "));
    }
}
