//! The Rust client administers webhook endpoints. Its other calls are checked beside the other clients, in
//! `clients/rust/checks`.

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use payments_tests::prelude::*;
use scheduled_payments::{Bank, BoxError, EndpointOrder, Error, Transport};

use super::{exchange, request, start};

/// HTTP without TLS: the client's own needs crates that `cargo local` does not build.
#[derive(Debug)]
struct Plain(String);

#[async_trait]
impl Transport for Plain {
    async fn exchange(&self, sent: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
        let (head, body) = sent.into_parts();
        let path = head.uri.path_and_query().context("a path")?;
        let mut headers = String::new();
        for (name, value) in &head.headers {
            headers += &format!("{name}: {}\n", value.to_str()?);
        }
        let text = request(head.method.as_str(), path.as_str(), &headers, std::str::from_utf8(&body)?);
        let reply = exchange(&self.0, &text).await?;
        let mut response = Response::builder().status(reply.status);
        for (name, value) in reply.head.lines().skip(1).filter_map(|line| line.split_once(": ")) {
            response = response.header(name, value);
        }
        Ok(response.body(reply.body.into())?)
    }
}

/// The problem's kind, if a call was refused.
fn refused<T>(answer: Result<T, Error>) -> Option<String> {
    if let Err(Error::Problem(problem)) = answer { Some(problem.kind().to_owned()) } else { None }
}

#[tokio::test]
async fn webhook_endpoints_are_administered_with_the_rust_client() -> Result<()> {
    let system = start(|_| {}).await?;
    let bank = Bank::over(Arc::new(Plain(system.api_url())), &system.api_url()).build()?;
    // Nobody listens there, and no event comes.
    let order = EndpointOrder { url: "http://127.0.0.1:1/hook".to_owned(), ..EndpointOrder::default() };
    let (created, is_new) = bank.put_webhook_endpoint("erp", &order).await?;
    assert_eq!((created.id.as_str(), created.status.as_str(), is_new), ("erp", "enabled", true));

    let order = EndpointOrder { disabled: true, description: "ERP".to_owned(), ..order };
    let (disabled, is_new) = bank.put_webhook_endpoint("erp", &order).await?;
    assert_eq!((disabled.description.as_str(), disabled.status.as_str(), is_new), ("ERP", "disabled", false));
    assert_eq!(disabled.disabled_by.as_deref(), Some("operator"));
    assert_eq!(bank.webhook_endpoint("erp").await?, disabled);
    assert_eq!(bank.webhook_endpoints().await?, [disabled]);

    assert!(bank.test_webhook_endpoint("erp").await?.test_asked_at.is_some());
    assert_eq!(bank.replay_webhook_events("erp", &created.cursor).await?.cursor, created.cursor);
    assert_eq!(bank.rotate_webhook_secret("erp", 2).await?.secret_generation, 2);
    let generations: Vec<u32> = bank.webhook_secrets("erp").await?.iter().map(|secret| secret.generation).collect();
    assert_eq!(generations, [2, 1]);
    assert_eq!(refused(bank.skip_webhook_event("erp", "no event").await).as_deref(), Some("not-blocking"));

    bank.delete_webhook_endpoint("erp").await?;
    assert_eq!(refused(bank.webhook_endpoint("erp").await).as_deref(), Some("no-such-endpoint"));
    assert_eq!(bank.webhook_endpoints().await?, []);
    system.stop().await
}
