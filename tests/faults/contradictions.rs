//! Settlement results that contradict payments or each other by amount or transaction id.
//!
//! In a month, the transaction service moves what it was asked to.

use anyhow::{Context as _, Result};
use payments_lab::facts::intent::Intent;
use payments_lab::facts::results::processed;
use payments_model::PaymentId;
use serde_json::{Value, json};

use crate::kit::fixture::Fixture;
use crate::kit::invariants::Stage;
use crate::kit::transaction_service::{read_requests, result_of};
use crate::poison::bodies;

/// The payments that do not have exactly one finding, which is open.
pub(crate) async fn without_one_finding(fixture: &Fixture, intents: &[Intent]) -> Result<Vec<String>> {
    let store = fixture.world.store().await;
    let open = store.open_findings(None, u16::MAX).await?.findings;
    let open: Vec<PaymentId> = open.into_iter().map(|open| Ok(open?.key.slot.payment_id)).collect::<Result<_>>()?;
    let mut wrong = Vec::new();
    for intent in intents {
        let id: PaymentId = intent.accepted.as_deref().context("it was accepted")?.parse()?;
        let found = store.findings_of(id).await?.len();
        let marks = open.iter().filter(|open| **open == id).count();
        if (found, marks) != (1, 1) {
            wrong.push(format!("{id} has {found} findings, and {marks} are open"));
        }
    }
    Ok(wrong)
}

#[tokio::test]
async fn a_result_of_another_transfer_settles_nothing_and_a_corrected_one_settles() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.pending(3).await?;
    fixture.dispatch_all().await?;
    let requests = read_requests(&fixture.requests, &fixture.time)?;
    let mut wrong: Vec<Value> = requests.iter().map(result_of).collect();
    wrong[0]["amountMinor"] = json!(requests[0]["amountMinor"].as_u64().unwrap_or_default() + 1);
    wrong[1]["currency"] = json!("SEK");
    wrong[2]["payeeAccountId"] = json!("somebody-else");
    let mut dead: Vec<String> = wrong.iter().map(Value::to_string).collect();
    dead.sort();
    let often = u64::from(fixture.most_receives());
    // Before the payments are settled, and after that.
    for (stage, corrected) in [(Stage::UnderWay, 3), (Stage::Finished, 0)] {
        drop(fixture.metrics.take());
        for result in &wrong {
            fixture.send_result(result)?;
        }
        fixture.settle_all().await?;
        fixture.pass_visibility();
        assert!(fixture.settle_step().await.is_none(), "nothing is left in the queue");
        let metrics = ["ResultsOfOtherTransfers", "Processed", "Failed", "RepeatedResults"];
        assert_eq!(fixture.measured(metrics), [3 * often, 0, 0, 0]);
        let mut found = bodies(&fixture.dead_results, &fixture);
        found.dedup();
        assert_eq!(found, dead);
        fixture.assert_lawful(&intents, stage).await?;
        for request in &requests {
            fixture.send_result(&result_of(request))?;
        }
        fixture.settle_all().await?;
        let [processed, failed] = fixture.measured(["Processed", "Failed"]);
        assert_eq!(processed + failed, corrected);
        fixture.assert_lawful(&intents, Stage::Finished).await?;
    }
    fixture.assert_counters_exact().await
}

/// The check reads an index, which may lag: of two payments settled within the lag neither sees the other. A repeated
/// delivery of either result does.
#[tokio::test]
async fn a_shared_transaction_id_raises_its_alarm() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.pending(2).await?;
    drop(fixture.metrics.take());
    // The first settlement sees none beside it, the second one does, and so do both repetitions.
    for seen in [1, 2] {
        for intent in &intents {
            fixture.send_result(&processed(&intent.transfer(), "T-same"))?;
        }
        fixture.settle_all().await?;
        assert_eq!(fixture.measured(["SharedTransactionIds"]), [seen]);
    }
    fixture.assert_counters_exact().await
}
