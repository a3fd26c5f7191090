//! Settlement results that contradict payments or each other by amount or transaction id.
//!
//! In a month, the transaction service moves what it was asked to.

use anyhow::Result;
use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::invariants::{Stage, violations};
use crate::poison::bodies;
use crate::transaction_service::{read_requests, result_of};

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
            fixture.results.send(result.to_string(), fixture.time.now())?;
        }
        fixture.settle_all().await?;
        fixture.pass_visibility();
        assert!(fixture.settle_step().await.is_none(), "nothing is left in the queue");
        let lines = fixture.metrics.take();
        for (metric, want) in
            [("ResultsOfOtherTransfers", 3 * often), ("Processed", 0), ("Failed", 0), ("RepeatedResults", 0)]
        {
            assert_eq!(fixture.metric(&lines, metric), want, "{metric}");
        }
        let mut found = bodies(&fixture.dead_results, &fixture);
        found.dedup();
        assert_eq!(found, dead);
        assert_eq!(violations(&fixture, &intents, stage).await?, [""; 0]);
        for request in &requests {
            fixture.results.send(result_of(request).to_string(), fixture.time.now())?;
        }
        fixture.settle_all().await?;
        let lines = fixture.metrics.take();
        assert_eq!(fixture.metric(&lines, "Processed") + fixture.metric(&lines, "Failed"), corrected);
        assert_eq!(violations(&fixture, &intents, Stage::Finished).await?, [""; 0]);
    }
    fixture.assert_counters_exact().await
}

/// The check reads an index, which may lag: of two payments settled within the lag neither sees the other. A repeated
/// delivery of either result does.
#[tokio::test]
async fn a_shared_transaction_id_raises_its_alarm() -> Result<()> {
    let fixture = Fixture::start().await?;
    let intents = fixture.pending(2).await?;
    let tell = || -> Result<()> {
        for intent in &intents {
            let result = json!({ "v": 1, "kind": "settlement", "paymentId": intent.accepted, "amountMinor": intent.amount, "currency": intent.currency, "payeeAccountId": intent.payee, "status": "PROCESSED", "transactionId": "T-same" });
            fixture.results.send(result.to_string(), fixture.time.now())?;
        }
        Ok(())
    };
    drop(fixture.metrics.take());
    // The first settlement sees none beside it, the second one does, and so do both repetitions.
    for seen in [1, 2] {
        tell()?;
        fixture.settle_all().await?;
        assert_eq!(fixture.metric(&fixture.metrics.take(), "SharedTransactionIds"), seen);
    }
    fixture.assert_counters_exact().await
}
