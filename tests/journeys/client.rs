//! The Rust client administers webhook endpoints. What else it does is checked beside the other clients, in
//! `clients/rust/checks`.

use anyhow::Result;
use payments_local::client::Client;
use payments_tests::World;
use scheduled_payments::{EndpointOrder, Error};

use crate::local::fixed_clock;

/// The problem's kind, if a call was refused.
fn refused<T>(answer: Result<T, Error>) -> Option<String> {
    if let Err(Error::Problem(problem)) = answer { Some(problem.kind().to_owned()) } else { None }
}

#[tokio::test]
async fn webhook_endpoints_are_administered_with_the_rust_client() -> Result<()> {
    let world = World::open().await?;
    let client = Client::of_functions(world.functions().clone(), fixed_clock())?;
    let bank = client.bank();
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
    Ok(())
}
