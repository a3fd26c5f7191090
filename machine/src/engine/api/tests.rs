//! The API beside the engine's own server, which answers as DynamoDB does.

use dynoxide::Database;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::server::{Limits, Server, listen};

/// A request: its method, path, headers and body.
type Request = (&'static str, &'static str, &'static str, String);

const SIGNED: &str = "X-Amz-Date: 20261127T000000Z\r\n\
                      Authorization: AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host, Signature=f\r\n";

async fn exchange(url: &str, (method, path, headers, body): &Request) -> (String, String) {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// The parts of an answer that clients read: the status, the content type and the body, whose members have no order.
fn read(head: &str, body: &str) -> (String, Option<String>, Value) {
    let content_type = head.lines().find_map(|line| line.strip_prefix("content-type: "));
    let body = serde_json::from_str(body).unwrap_or_else(|_| body.into());
    (head.lines().next().unwrap_or_default().to_owned(), content_type.map(str::to_owned), body)
}

/// The API and the engine's own server, each over a database of its own.
async fn both() -> (Server, String) {
    let database = || Database::memory().unwrap();
    let listener = listen(0, "").await.unwrap();
    let api = Server::start(listener, router(Direct(database())), Limits::default()).unwrap();
    let listener = listen(0, "").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(dynoxide::server::serve_with_shutdown(listener, database(), std::future::pending()));
    (api, url)
}

fn calls() -> Vec<Request> {
    let headers = |target: &str, json: &str| -> &'static str {
        format!("Content-Type: {json}\r\nX-Amz-Target: {target}\r\n{SIGNED}").leak()
    };
    let call = |operation: &str, body: &str| -> Request {
        ("POST", "/", headers(&format!("DynamoDB_20120810.{operation}"), AMZ_JSON), body.to_owned())
    };
    let table = r#"{"TableName":"things","BillingMode":"PAY_PER_REQUEST",
        "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}"#;
    let item = |item: &str| format!(r#"{{"TableName":"things","Item":{item}}}"#);
    let key = r#"{"TableName":"things","Key":{"id":{"S":"a"}}}"#;
    vec![
        call("ListTables", "{}"),
        call("CreateTable", &table.replace("things", "t")),
        call("CreateTable", table),
        call("CreateTable", table),
        call("PutItem", &item(r#"{"id":{"S":"a"},"n":{"N":"1.50"},"s":{"NS":["3","1"]}}"#)),
        call("GetItem", key),
        call("GetItem", &key.replace("things", "nothing")),
        call("PutItem", &item(r#"{"n":{"N":"1"}}"#)),
        call("PutItem", &item(r#"{"id":{"S":""}}"#)),
        call("PutItem", &item(r#"{"id":{"S":"b"},"n":{"N":"x"}}"#)),
        call("BatchWriteItem", r#"{"RequestItems":{"things":[{"PutRequest":{"Item":{"id":{"NULL":false}}}}]}}"#),
        call("PutItem", &item(r#"{"id":{"S":"b"},"s":{"SS":[]}}"#)),
        call("PutItem", &item(r#"{"id":{}}"#)),
        call("PutItem", &item(r#"{"id":{"S":"b","N":"1"}}"#)),
        call("PutItem", "{}"),
        call("TransactGetItems", r#"{"TransactItems":[{"Get":{"TableName":"things","Key":{"id":{"S":"a"}}}}]}"#),
        call(
            "TransactWriteItems",
            r#"{"TransactItems":[{"ConditionCheck":{"TableName":"things","Key":{"id":{"S":"a"}},"ConditionExpression":"attribute_not_exists(id)"}}]}"#,
        ),
        call("ExecuteStatement", r#"{"Statement":"SELECT * FROM things"}"#),
        call("BatchExecuteStatement", r#"{"Statements":[{"Statement":"SELECT * FROM things WHERE id = 'a'"}]}"#),
        call("ExecuteTransaction", r#"{"TransactStatements":[{"Statement":"DELETE FROM things WHERE id = 'a'"}]}"#),
        call("ListTagsOfResource", r#"{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/nothing"}"#),
        ("POST", "/", headers("DynamoDBStreams_20120810.ListStreams", AMZ_JSON), "{}".to_owned()),
        ("POST", "/", headers("DynamoDB_20120810.ListTables", "application/json; charset=utf-8"), "{}".to_owned()),
        ("POST", "/", headers("DynamoDB_20120810.ListTables", "text/plain"), "{}".to_owned()),
        call("ListTables", ""),
        call("ListTables", "{"),
        call("NoSuchOperation", "{}"),
        ("POST", "/", headers("OtherService.ListTables", AMZ_JSON), "{}".to_owned()),
        ("POST", "/", "Content-Type: application/json\r\n", "{}".to_owned()),
        (
            "POST",
            "/",
            "Content-Type: application/json\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n",
            "{}".to_owned(),
        ),
        ("POST", "/", "", String::new()),
        ("POST", "/things", headers("DynamoDB_20120810.ListTables", AMZ_JSON), "{}".to_owned()),
        ("GET", "/", "", String::new()),
        ("GET", "/shell", "", String::new()),
        ("OPTIONS", "/", "", String::new()),
        ("PUT", "/", headers("DynamoDB_20120810.ListTables", AMZ_JSON), "{}".to_owned()),
    ]
}

#[tokio::test]
async fn clients_read_what_the_engines_own_server_says() {
    let (api, own) = both().await;
    for request in calls() {
        let (our_head, our_body) = exchange(&api.url(), &request).await;
        let (head, body) = exchange(&own, &request).await;
        // The tables differ in the time of their creation.
        if request.2.contains("CreateTable") && head.contains("200") {
            assert!(our_head.contains("200"), "{our_body}");
            continue;
        }
        assert_eq!(read(&our_head, &our_body), read(&head, &body), "{request:?}");
    }
    api.stop().await.unwrap();
}

/// The engine's own server can replace this one once this test fails.
#[tokio::test]
async fn the_engines_own_server_lets_in_every_site() {
    let (api, own) = both().await;
    let page = ("OPTIONS", "/", "Origin: http://evil.example\r\n", String::new());
    assert!(exchange(&own, &page).await.0.contains("access-control-allow-origin: *"));
    assert!(exchange(&api.url(), &page).await.0.starts_with("HTTP/1.1 403"));
    api.stop().await.unwrap();
}

#[tokio::test]
async fn a_body_has_at_most_16_mb() {
    let (api, _own) = both().await;
    let padded = |length: usize| format!("{{{}}}", " ".repeat(length - 2));
    let headers: &str =
        format!("X-Amz-Target: DynamoDB_20120810.ListTables\r\nContent-Type: {AMZ_JSON}\r\n{SIGNED}").leak();
    let (head, body) = exchange(&api.url(), &("POST", "/", headers, padded(MAX_BODY_BYTES))).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(serde_json::from_str::<Value>(&body).is_ok_and(|body| body["TableNames"].is_array()), "{body}");
    // The limit is passed with the last byte, so nothing that is not read resets the connection.
    let (head, _) = exchange(&api.url(), &("POST", "/", headers, padded(MAX_BODY_BYTES + 1))).await;
    assert!(head.starts_with("HTTP/1.1 413"), "{head}");
    api.stop().await.unwrap();
}
