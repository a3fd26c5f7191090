//! Findings of `settle` alone over the machine: each contradicting result once, until an operator closes it for good.

use anyhow::{Context as _, Result};
use aws_lambda_events::sqs::SqsEvent;
use chrono::TimeDelta;
use lambda_runtime::LambdaEvent;
use payments_machine::given::Given;
use payments_model::{Actor, Details, Finding, FindingClosed, Head, ResultHash, Settlement, Told};
use payments_store::{Cancelled, ClosedFinding};
use serde_json::{Value, json};
use settle::{Config, Settle};

/// `settle` on a machine.
struct Alone {
    given: Given,
    settle: Settle,
}

impl Alone {
    async fn start() -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
        let settle = given.function("settle", Config::read, Settle::new)?;
        Ok(Self { given, settle })
    }

    /// Delivers results in one batch. Returns the metrics that they raised.
    async fn deliver(&self, results: &[Value]) -> Result<String> {
        let records = results.iter().enumerate();
        let records: Vec<_> =
            records.map(|(n, result)| json!({ "messageId": n.to_string(), "body": result.to_string() })).collect();
        let event: SqsEvent = serde_json::from_value(json!({ "Records": records }))?;
        let response = self.settle.handle(LambdaEvent::new(event, self.given.context())).await;
        assert_eq!(response.batch_item_failures, []);
        Ok(self.given.raised()?.join(", "))
    }

    async fn findings(&self, details: &Details) -> Result<Vec<Finding>> {
        Ok(self.given.store.findings_of(details.payment_id).await?.into_iter().collect::<Result<_, _>>()?)
    }

    async fn open(&self) -> Result<Vec<Finding>> {
        let open = self.given.store.open_findings(None, 10).await?;
        assert!(open.next.is_none());
        Ok(open.findings.into_iter().collect::<Result<_, _>>()?)
    }

    async fn cancelled(&self, key: &str) -> Result<Details> {
        let details = self.given.scheduled(key, "2026-11-20").await?;
        let now = self.given.stack.clock.now();
        let cancelled = self.given.store.cancel_payment(&details, now, &Actor::client("test")).await?;
        assert!(matches!(cancelled, Cancelled::Done(_)));
        Ok(details)
    }
}

/// The result that processes a payment.
fn processed(details: &Details, transaction_id: &str) -> Value {
    json!({
        "v": 1, "kind": "settlement", "paymentId": details.payment_id.to_string(), "amountMinor": 500,
        "currency": "GBP", "payeeAccountId": "landlord", "status": "PROCESSED", "transactionId": transaction_id,
    })
}

/// The finding of such a result.
fn finding(head: &Head, settlement: Settlement) -> Result<Finding> {
    let (money, payee) = (head.money, head.payee.clone());
    let (key, stands) = (head.key(), head.state.clone());
    let told = Told { settlement, money, payee: payee.clone() };
    Ok(Finding { key, money, payee, stands, told, found_at: "2026-11-20T09:00:00Z".parse()?, closed: None })
}

#[tokio::test]
async fn each_contradicting_result_is_a_finding_once() -> Result<()> {
    let alone = Alone::start().await?;
    let settled = alone.given.pending("settled").await?;
    let cancelled = alone.cancelled("cancelled").await?;
    assert_eq!(alone.deliver(&[processed(&settled, "TX-1")]).await?, "Processed 1");
    assert!(alone.open().await?.is_empty(), "a result that settles is not a finding");
    let contradicting = [processed(&settled, "TX-2"), processed(&cancelled, "TX-3")];
    // Both twice in one batch, which `settle` handles at the same time, and later again.
    let twice: Vec<_> = contradicting.iter().chain(&contradicting).cloned().collect();
    assert_eq!(alone.deliver(&twice).await?, "CancelledPaymentsProcessed 2, ConflictingResults 2");
    alone.given.pass(TimeDelta::hours(1));
    assert_eq!(alone.deliver(&contradicting).await?, "CancelledPaymentsProcessed 1, ConflictingResults 1");
    let mut all = Vec::new();
    for (details, transaction_id) in [(&settled, "TX-2"), (&cancelled, "TX-3")] {
        let head = alone.given.store.head(&details.key()).await?.context("a head")?;
        let want = finding(&head, Settlement::Processed(transaction_id.parse()?))?;
        assert_eq!(alone.findings(details).await?, std::slice::from_ref(&want));
        all.push(want);
    }
    all.sort_by_key(|finding| finding.key.slot.payment_id.to_string());
    assert_eq!(alone.open().await?, all);
    Ok(())
}

#[tokio::test]
async fn a_repeated_result_reopens_no_finding() -> Result<()> {
    let alone = Alone::start().await?;
    let settled = alone.given.pending("settled").await?;
    let second = processed(&settled, "TX-2");
    drop(alone.deliver(&[processed(&settled, "TX-1"), second.clone()]).await?);
    drop(alone.deliver(std::slice::from_ref(&second)).await?);
    let [found] = &alone.open().await?[..] else { panic!("one finding is open") };
    let (id, hash) = (settled.payment_id, found.told.hash());
    let closed = |by: &str| FindingClosed {
        at: "2026-11-20T10:00:00Z".parse().unwrap(),
        by: Actor::operator(by),
        reason: "the service sent a copy of another payment's".to_owned(),
    };
    let close = async |by: &str| alone.given.store.close_finding(id, &hash, &closed(by)).await;
    assert_eq!(close("ada").await?, ClosedFinding::Done);
    assert_eq!(close("ada").await?, ClosedFinding::Done, "as after a lost reply");
    assert_eq!(close("grace").await?, ClosedFinding::Before(closed("ada")));
    assert_eq!(alone.deliver(&[second]).await?, "ConflictingResults 1");
    assert_eq!(alone.open().await?, []);
    assert_eq!(alone.findings(&settled).await?, [Finding { closed: Some(closed("ada")), ..found.clone() }]);
    let other: ResultHash = "0123456789abcdef".parse()?;
    assert_eq!(alone.given.store.close_finding(id, &other, &closed("ada")).await?, ClosedFinding::Missing);
    // Another contradicting result is another finding.
    drop(alone.deliver(&[processed(&settled, "TX-3")]).await?);
    assert_eq!((alone.open().await?.len(), alone.findings(&settled).await?.len()), (1, 2));
    Ok(())
}

#[tokio::test]
async fn open_findings_come_in_parts() -> Result<()> {
    let alone = Alone::start().await?;
    for n in 0..3 {
        let cancelled = alone.cancelled(&format!("cancelled-{n}")).await?;
        drop(alone.deliver(&[processed(&cancelled, "TX-1")]).await?);
    }
    for (most, found) in [(2, 2), (4, 3)] {
        let open = alone.given.store.open_findings(None, most).await?;
        assert_eq!((open.findings.len(), open.next.is_some()), (found, most == 2));
    }
    Ok(())
}
