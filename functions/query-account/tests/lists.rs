//! `query-account` alone over the machine: one account's payments, and one of them.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use payments_machine::client::{Reply, Request};
use payments_machine::given::Given;
use query_account::{Config, QueryAccount};
use serde_json::Value;

/// A payment that nobody created.
const UNKNOWN: &str = "/accounts/tenant/payments/5f1c1f6e-4f0e-5a37-9d0e-0a3f6b7c8d9e";

/// `query-account` on a machine with three payments of `tenant`.
struct Alone {
    given: Given,
    query: QueryAccount,
}

impl Alone {
    async fn start() -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
        for (key, date) in [("second", "2026-11-22"), ("first", "2026-11-21"), ("third", "2026-11-23")] {
            given.scheduled(key, date).await?;
        }
        let files = Arc::clone(&given.stack.reports);
        let new = |config, store, clock, metrics| QueryAccount::new(config, store, files, clock, metrics);
        let query = given.function("query-account", Config::read, new)?;
        Ok(Self { given, query })
    }

    async fn get(&self, path: &str) -> Result<(u16, Value)> {
        let reply = Reply::from_response(self.query.handle(self.given.http_event(&Request::get(path))?).await)?;
        Ok((reply.status, reply.json()?))
    }

    /// The due dates of an account's payments, over all pages of one.
    async fn dates(&self, account: &str) -> Result<Vec<String>> {
        let path = format!("/accounts/{account}/payments?limit=1");
        let (mut dates, mut next) = (Vec::new(), path.clone());
        for _ in 0..10 {
            let (status, page) = self.get(&next).await?;
            assert_eq!(status, 200, "{page}");
            let payments = page["payments"].as_array().context("no list")?;
            dates.extend(payments.iter().filter_map(|payment| payment["dueDate"].as_str()).map(str::to_owned));
            let Some(cursor) = page["nextCursor"].as_str() else { return Ok(dates) };
            next = format!("{path}&cursor={cursor}");
        }
        anyhow::bail!("the list of {account} has no end")
    }
}

#[tokio::test]
async fn an_account_lists_its_own_payments_by_due_date() -> Result<()> {
    let alone = Alone::start().await?;
    assert_eq!(alone.dates("tenant").await?, ["2026-11-21", "2026-11-22", "2026-11-23"]);
    assert_eq!(alone.dates("landlord").await?, [""; 0]);
    Ok(())
}

#[tokio::test]
async fn a_payment_is_shown_to_its_own_account_alone() -> Result<()> {
    let alone = Alone::start().await?;
    let details = alone.given.pending("pending").await?;
    let id = details.payment_id;
    let (status, payment) = alone.get(&format!("/accounts/tenant/payments/{id}")).await?;
    assert_eq!((status, &payment["status"], &payment["amountMinor"]), (200, &"PENDING".into(), &500.into()));
    for path in [format!("/accounts/landlord/payments/{id}"), UNKNOWN.to_owned()] {
        let (status, problem) = alone.get(&path).await?;
        assert_eq!(status, 404, "{path}: {problem}");
    }
    Ok(())
}
