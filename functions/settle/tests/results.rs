//! `settle` alone over the machine: what a settlement result does to a payment in both tables.

use anyhow::{Context as _, Result};
use aws_lambda_events::sqs::SqsEvent;
use lambda_runtime::{Context, LambdaEvent};
use payments_machine::given::Given;
use payments_machine::invocation::context;
use payments_model::{Details, Head};
use payments_store::StoredHead;
use serde_json::{Value, json};
use settle::{Config, Settle};

/// `settle` on a machine.
struct Alone {
    given: Given,
    settle: Settle,
}

/// A head in the hot table, and in the long-term table.
type Heads = (Option<StoredHead>, Option<Head>);

impl Alone {
    async fn start() -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
        let settle = given.function("settle", Config::read, Settle::new)?;
        Ok(Self { given, settle })
    }

    /// Delivers a result. Returns the metrics that it raised, and whether its message is retried.
    async fn deliver(&self, result: &Value, context: Context) -> Result<(String, bool)> {
        let record = json!({ "messageId": "1", "body": result.to_string() });
        let event: SqsEvent = serde_json::from_value(json!({ "Records": [record] }))?;
        let response = self.settle.handle(LambdaEvent::new(event, context)).await;
        Ok((self.given.raised()?.join(", "), !response.batch_item_failures.is_empty()))
    }

    /// Delivers a result in time.
    async fn settle(&self, result: &Value) -> Result<(String, bool)> {
        self.deliver(result, self.given.context()).await
    }

    async fn heads(&self, details: &Details) -> Result<Heads> {
        let (store, key) = (&self.given.store, details.key());
        Ok((store.stored_head(&key).await?, store.archived_head(&key).await?))
    }
}

/// The result that processes a payment, as the transaction service sends it.
fn processed(details: &Details) -> Value {
    let (id, due_at) = (details.payment_id.to_string(), details.due_at.to_string());
    json!({
        "v": 1, "kind": "settlement", "paymentId": id, "accountId": "tenant", "dueAt": due_at, "amountMinor": 500,
        "currency": "GBP", "payeeAccountId": "landlord", "status": "PROCESSED", "transactionId": format!("TX-{id}"),
    })
}

/// A result with other fields. A null takes a field away.
fn changed(mut result: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().into_iter().flatten() {
        result[name] = value.clone();
    }
    result.as_object_mut().into_iter().for_each(|fields| fields.retain(|_, value| !value.is_null()));
    result
}

#[tokio::test]
async fn a_result_settles_a_payment_in_both_tables_and_a_repeated_one_changes_nothing() -> Result<()> {
    let alone = Alone::start().await?;
    for (key, changes, metric) in [
        ("processed", json!({}), "Processed 1"),
        ("failed", json!({ "status": "FAILED", "transactionId": null, "failureReason": "no funds" }), "Failed 1"),
        ("without-its-place", json!({ "accountId": null, "dueAt": null }), "Processed 1"),
        ("at-a-wrong-place", json!({ "dueAt": "2026-11-19T00:00:00Z" }), "Processed 1"),
    ] {
        let details = alone.given.pending(key).await?;
        let result = changed(processed(&details), &changes);
        assert_eq!(alone.settle(&result).await?, (metric.to_owned(), false), "{key}");
        let (hot, history) = alone.heads(&details).await?;
        let head = hot.as_ref().map(StoredHead::known).context("the hot table lost it")?;
        assert_eq!(format!("{} 1", head.state.status()), metric.to_uppercase(), "{key}");
        assert_eq!((head.version, head.settled_at()), (3, Some(alone.given.stack.clock.now())), "{key}");
        assert!(head.unreported, "{key}");
        assert_eq!(history, Some(Head { unreported: false, ..head.clone() }), "{key}");

        assert_eq!(alone.settle(&result).await?, ("RepeatedResults 1".to_owned(), false), "{key}");
        assert_eq!(alone.heads(&details).await?, (hot, history), "{key}");
    }
    Ok(())
}

#[tokio::test]
async fn a_result_that_does_not_fit_changes_nothing() -> Result<()> {
    let alone = Alone::start().await?;
    let scheduled = alone.given.scheduled("scheduled", "2026-11-20").await?;
    let (pending, settled) = (alone.given.pending("pending").await?, alone.given.pending("settled").await?);
    assert_eq!(alone.settle(&processed(&settled)).await?.0, "Processed 1");
    let failure = json!({ "status": "FAILED", "transactionId": null, "failureReason": "no funds" });
    let unknown = json!({ "paymentId": "5f1c1f6e-4f0e-5a37-9d0e-0a3f6b7c8d9e" });
    for (details, changes, metric, is_retried) in [
        (&scheduled, json!({}), "EarlyResults", true),
        (&pending, unknown, "UnknownPayments", true),
        (&pending, json!({ "amountMinor": 501 }), "ResultsOfOtherTransfers", true),
        (&pending, json!({ "currency": "EUR" }), "ResultsOfOtherTransfers", true),
        (&pending, json!({ "payeeAccountId": "tenant" }), "ResultsOfOtherTransfers", true),
        (&pending, json!({ "status": "SENT" }), "PoisonMessages", true),
        (&settled, json!({ "amountMinor": 501 }), "ResultsOfOtherTransfers", true),
        (&settled, json!({ "transactionId": "TX-2" }), "ConflictingResults", false),
        (&settled, failure, "ConflictingResults", false),
    ] {
        let before = alone.heads(details).await?;
        let result = changed(processed(details), &changes);
        assert_eq!(alone.settle(&result).await?, (format!("{metric} 1"), is_retried), "{changes}");
        assert_eq!(alone.heads(details).await?, before, "{changes}");
    }
    Ok(())
}

#[tokio::test]
async fn a_result_after_the_deadline_is_delivered_again() -> Result<()> {
    let alone = Alone::start().await?;
    let result = processed(&alone.given.pending("pending").await?);
    let late = alone.deliver(&result, context(alone.given.stack.clock.instant())).await?;
    assert_eq!(late, ("OutOfTime 1".to_owned(), true));
    assert_eq!(alone.settle(&result).await?, ("Processed 1".to_owned(), false));
    Ok(())
}

#[tokio::test]
async fn a_second_payment_of_a_transaction_is_settled_and_counted() -> Result<()> {
    let alone = Alone::start().await?;
    for (key, metrics) in [("first", "Processed 1"), ("second", "Processed 1, SharedTransactionIds 1")] {
        let details = alone.given.pending(key).await?;
        let result = changed(processed(&details), &json!({ "transactionId": "TX-1" }));
        assert_eq!(alone.settle(&result).await?, (metrics.to_owned(), false), "{key}");
    }
    Ok(())
}
