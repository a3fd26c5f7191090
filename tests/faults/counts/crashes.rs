//! A batch of several transactions, with each of its calls failing in each way.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use payments_delivery::DeliveryOutcome;
use payments_machine::Fate;
use payments_model::BusinessDate;
use payments_store::MAX_DATES_PER_COMMIT;
use payments_tests::{CrashPoint, note_case};

use super::fault::{Fault, WAYS};
use super::made::Made;
use super::shards;
use crate::kit::fault_plan::{CANCELLED_BY_CONDITION, CANCELLED_BY_CONFLICT, REPLY_LOST_ONCE};
use payments_tests::counting::{aggregate, drain, next_batch};

/// The calls of such a batch: one read of the checkpoint, one of the log's head, and three transactions.
const CALLS: usize = 5;

/// The number of reads among these calls. No other transaction cancels a read.
const READS: usize = 2;

#[tokio::test]
async fn a_batch_of_several_transactions_is_counted_once_wherever_it_fails() -> Result<()> {
    let (fixture, mut made) = Made::start().await?;
    let first: BusinessDate = "2026-12-01".parse()?;
    for n in 0..2 * MAX_DATES_PER_COMMIT + 2 {
        let date = first.plus_days(u32::try_from(n)?).to_string();
        made.put(made.head(n, &date, "SCHEDULED", "GBP"))?;
    }
    let calls = (0..CALLS).flat_map(|call| WAYS.map(|way| Fault::Call(CrashPoint { call, way })));
    for fault in calls.chain([Fault::None, Fault::AnswerLost]) {
        fixture.forget_counts().await?;
        let mut mapping = made.mapping()?;
        let function = |event| async {
            let answer = aggregate(&fixture.functions, event).await;
            if fault == Fault::AnswerLost { Err("the answer is lost".to_owned()) } else { answer }
        };
        let run = fault.run(&fixture.faults, next_batch(&mut mapping, shards::beginning(), function)).await;
        let deliveries = run.answer.transpose()?;
        let (call, way) = match fault {
            Fault::Call(CrashPoint { call, way }) => (call, Some(way)),
            _ => (0, None),
        };
        let is_cancelled = way.is_some_and(|way| [CANCELLED_BY_CONFLICT, CANCELLED_BY_CONDITION].contains(&way));
        assert_eq!(run.failed, fault != Fault::None && !(is_cancelled && call < READS), "{fault:?}");
        // The aggregator tries a conflict again, and the SDK a lost reply.
        let is_retried = is_cancelled || way == Some(REPLY_LOST_ONCE);
        let succeeded = deliveries.is_some_and(|all| all.iter().all(|one| one.outcome == DeliveryOutcome::Succeeded));
        assert_eq!(succeeded, is_retried || !run.failed, "{fault:?}");

        drain(&mut mapping, shards::beginning(), |event| aggregate(&fixture.functions, event)).await?;
        made.assert_counted(&fixture, &format!("{fault:?}, then tried again")).await?;
        if let (Fault::Call(CrashPoint { call, way }), true) = (fault, run.failed) {
            note_case("batch-of-transactions", way.name, call)?;
        }
    }
    made.deliver(&fixture).await?;
    made.assert_counted(&fixture, "delivered once more").await?;
    Ok(())
}

/// The SDK repeats a transaction whose reply was lost with the same token, and DynamoDB answers as before. The
/// aggregator does not mistake that for another's commit.
#[tokio::test]
async fn a_reply_that_is_lost_once_is_no_conflict() -> Result<()> {
    let (fixture, mut made) = Made::start().await?;
    made.put(made.head(1, "2026-12-01", "SCHEDULED", "GBP"))?;
    let tokens: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&tokens);
    fixture.faults.inject(move |call| {
        if call.operation != "TransactWriteItems" {
            return Fate::Pass;
        }
        let token = call.input()["ClientRequestToken"].as_str().unwrap_or_default().to_owned();
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(token);
        if call.tried == 0 { Fate::LoseReply } else { Fate::Pass }
    });
    made.deliver(&fixture).await?;
    let tokens = tokens.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(tokens.len() == 2 && tokens[0] == tokens[1] && !tokens[0].is_empty(), "{tokens:?}");
    assert_eq!(fixture.measured(["Counted", "Commits", "Conflicts"]), [1, 1, 0]);
    made.assert_counted(&fixture, "").await?;
    Ok(())
}
