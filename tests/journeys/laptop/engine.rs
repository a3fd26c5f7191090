//! The embedded engine's port: programs call it as DynamoDB, and no browser may.

use super::{exchange, request, start};
use payments_tests::prelude::*;

fn call(operation: &str, headers: &str, body: &str) -> String {
    let signature =
        "AWS4-HMAC-SHA256 Credential=a/20261127/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=b";
    let headers = format!(
        "Content-Type: application/x-amz-json-1.0\nX-Amz-Target: DynamoDB_20120810.{operation}\n\
         X-Amz-Date: 20261127T000000Z\nAuthorization: {signature}\n{headers}"
    );
    request("POST", "/", &headers, body)
}

#[tokio::test]
async fn what_a_browser_sends_to_the_engine_is_refused() -> Result<()> {
    let evil = "Origin: http://evil.example\n";
    let asks = "Access-Control-Request-Method: POST\nAccess-Control-Request-Headers: x-amz-target\n";
    for require_tokens in [false, true] {
        let system = start(|options| options.require_tokens = require_tokens).await?;
        let engine = system.dynamodb_url().to_owned();
        for (request, status) in [
            (request("OPTIONS", "/", &format!("{evil}{asks}"), ""), 403),
            (call("ListTables", evil, "{}"), 403),
            (call("ListTables", "Origin: null\n", "{}"), 403),
            // The name of the page leads to this machine.
            (call("ListTables", "Origin: http://127.0.0.1\n", "{}"), 403),
            (call("DeleteTable", evil, r#"{"TableName":"payments"}"#), 403),
            (request("GET", "/", evil, ""), 403),
            (request("GET", "/", "", ""), 200),
            (call("ListTables", "", "{}"), 200),
            // As a container calls this machine.
            (call("ListTables", "", "{}").replace("Host: 127.0.0.1", "Host: host.docker.internal:8000"), 200),
        ] {
            let reply = exchange(&engine, &request).await?;
            assert_eq!(reply.status, status, "{request}\n{reply}");
            assert!(!reply.to_string().to_lowercase().contains("access-control-"), "{request}\n{reply}");
            let is_list = request.contains("ListTables") && status == 200;
            assert_eq!(reply.body.contains(r#"{"TableNames":["#), is_list, "{request}\n{reply}");
            assert!(reply.header("x-amzn-requestid").is_some(), "{reply}");
        }
        system.stop().await?;
    }
    Ok(())
}
