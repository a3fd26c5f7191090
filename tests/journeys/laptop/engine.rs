//! The embedded engine's port: programs call it as DynamoDB, and no browser may.

use anyhow::Result;
use payments_local::{Options, System};

use crate::laptop::gateway::{exchange, fixed_clock, options};

fn call(operation: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    let signature =
        "AWS4-HMAC-SHA256 Credential=a/20261127/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=b";
    format!(
        "POST / HTTP/1.1\nHost: 127.0.0.1\nConnection: close\nContent-Type: application/x-amz-json-1.0\n\
         X-Amz-Target: DynamoDB_20120810.{operation}\nX-Amz-Date: 20261127T000000Z\nAuthorization: {signature}\n{headers}\
         Content-Length: {length}\n\n{body}"
    )
}

#[tokio::test]
async fn what_a_browser_sends_to_the_engine_is_refused() -> Result<()> {
    let get = "GET / HTTP/1.1\nHost: 127.0.0.1\nConnection: close\n";
    let preflight = "OPTIONS / HTTP/1.1\nHost: 127.0.0.1\nConnection: close\nOrigin: http://evil.example\n\
                     Access-Control-Request-Method: POST\nAccess-Control-Request-Headers: x-amz-target\n\n";
    for require_tokens in [false, true] {
        let system = System::start(&Options { require_tokens, ..options()? }, &fixed_clock()).await?;
        let engine = system.dynamodb_url().to_owned();
        for (request, status) in [
            (preflight.to_owned(), "403"),
            (call("ListTables", "Origin: http://evil.example\n", "{}"), "403"),
            (call("ListTables", "Origin: null\n", "{}"), "403"),
            // The name of the page leads to this machine.
            (call("ListTables", "Origin: http://127.0.0.1\n", "{}"), "403"),
            (call("DeleteTable", "Origin: http://evil.example\n", r#"{"TableName":"payments"}"#), "403"),
            (format!("{get}Origin: http://evil.example\n\n"), "403"),
            (format!("{get}\n"), "200"),
            (call("ListTables", "", "{}"), "200"),
            // As a container calls this machine.
            (call("ListTables", "", "{}").replace("Host: 127.0.0.1", "Host: host.docker.internal:8000"), "200"),
        ] {
            let reply = exchange(&engine, &request).await?;
            assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{request}\n{reply}");
            assert!(!reply.to_lowercase().contains("access-control-"), "{request}\n{reply}");
            let is_list = request.contains("ListTables") && status == "200";
            assert_eq!(reply.contains(r#"{"TableNames":["#), is_list, "{request}\n{reply}");
            assert!(reply.contains("\r\nx-amzn-requestid: "), "{reply}");
        }
        system.stop().await?;
    }
    Ok(())
}
