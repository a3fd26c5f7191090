//! A function's first call of DynamoDB uses the connection that its start has opened.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use payments_boot::{dynamodb, dynamodb_at};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The requests: the connection's number and the method.
type Came = Arc<Mutex<Vec<(usize, String)>>>;

#[tokio::test]
async fn the_first_call_finds_an_open_connection() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let came = Came::default();
    let engine = tokio::spawn(answer_all(listener, Arc::clone(&came)));
    let client = dynamodb(Some(&url)).await;
    client.get_item().table_name("any").key("pk", AttributeValue::S("any".to_owned())).send().await?;
    engine.abort();
    let came = came.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(came, [(1, "GET".to_owned()), (1, "POST".to_owned())]);
    Ok(())
}

/// The other tests use another client than the deployed one, so both must have the same bounds.
#[tokio::test]
async fn the_deployed_client_has_the_timeouts_and_retries_of_the_tests_client() {
    // Nothing listens there, so no connection opens, which the start tolerates.
    let endpoint = "http://127.0.0.1:1";
    let (deployed, tests) = (dynamodb(Some(endpoint)).await, dynamodb_at(endpoint, "any"));
    let (deployed, tests) = (deployed.config(), tests.config());
    assert_eq!(deployed.timeout_config(), tests.timeout_config());
    assert!(deployed.timeout_config().is_some_and(|timeouts| timeouts.operation_timeout().is_some()));
    let attempts = |config: &aws_sdk_dynamodb::Config| config.retry_config().map(|retries| retries.max_attempts());
    assert_eq!((attempts(deployed), attempts(tests)), (Some(3), Some(3)));
}

/// An engine that answers every request with nothing, and keeps connections.
async fn answer_all(listener: TcpListener, came: Came) -> Result<()> {
    for number in 1.. {
        let (stream, _) = listener.accept().await?;
        let came = Arc::clone(&came);
        tokio::spawn(async move { answer(number, stream, &came).await });
    }
    Ok(())
}

async fn answer(number: usize, stream: TcpStream, came: &Came) -> Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let begin = head.len();
            if stream.read_line(&mut head).await? == 0 {
                return Ok(());
            }
            if let Some(text) = head[begin..].to_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse()?;
            }
        }
        stream.read_exact(&mut vec![0; length]).await?;
        let method = head.split(' ').next().context("a request has a method")?.to_owned();
        came.lock().unwrap_or_else(PoisonError::into_inner).push((number, method));
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await?;
    }
}
