//! A batch that takes several transactions, with each of its calls failing in each way.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use payments_delivery::DeliveryOutcome;
use payments_model::BusinessDate;
use payments_store::MAX_DATES_PER_COMMIT;

use super::made::Made;
use super::mishap::{Mishap, Way};
use super::shards;
use crate::aggregation::{aggregate, drain, next_batch};
use crate::recount::{between, counters};
use crate::rig::Rig;
use payments_local::Fate;

/// The calls of a batch on these dates: the checkpoint is read, and three transactions are written.
const CALLS: usize = 4;

#[tokio::test]
async fn a_batch_of_several_transactions_is_counted_once_wherever_it_fails() -> Result<()> {
    let rig = Rig::set_up().await?;
    let mut made = Made::of(&rig).await?;
    let first: BusinessDate = "2026-12-01".parse()?;
    for n in 0..2 * MAX_DATES_PER_COMMIT + 2 {
        let date = first.plus_days(u32::try_from(n)?).to_string();
        made.put(made.head(n, &date, "SCHEDULED", "GBP"))?;
    }
    let calls = (0..CALLS).flat_map(|call| Way::ALL.map(|way| Mishap::Call(call, way)));
    for mishap in calls.chain([Mishap::None, Mishap::AnswerLost]) {
        rig.forget_counts().await?;
        let mut mapping = made.mapping()?;
        let befallen = mishap.befall(&rig.line);
        let function = |event| async {
            let answer = aggregate(&rig.functions, event).await;
            if mishap == Mishap::AnswerLost { Err("the answer is lost".to_owned()) } else { answer }
        };
        let broken =
            rig.line.until_killed(next_batch(&mut mapping, shards::beginning(), function)).await.transpose()?;
        rig.line.mend();
        let befallen = befallen.load(std::sync::atomic::Ordering::Relaxed);
        let on_checkpoint = matches!(mishap, Mishap::Call(0, Way::Conflict | Way::Elsewhere));
        assert_eq!(befallen, mishap != Mishap::None && !on_checkpoint, "{mishap:?}");
        // Meeting another transaction is an ordinary thing.
        let ordinary = matches!(mishap, Mishap::Call(_, Way::Conflict | Way::Elsewhere | Way::ReplyLostOnce));
        let succeeded = broken.is_some_and(|all| all.iter().all(|one| one.outcome == DeliveryOutcome::Succeeded));
        assert_eq!(succeeded, ordinary || !befallen, "{mishap:?}");

        drain(&mut mapping, shards::beginning(), |event| aggregate(&rig.functions, event)).await?;
        assert_eq!(between(&counters(&rig).await?, &made.counts()), [""; 0], "{mishap:?}, then tried again");
    }
    made.deliver(&rig).await?;
    assert_eq!(between(&counters(&rig).await?, &made.counts()), [""; 0], "delivered once more");
    Ok(())
}

/// The SDK sends a transaction whose reply was lost again under its first token, and DynamoDB answers
/// as it did: nobody takes that for somebody else's commit.
#[tokio::test]
async fn a_reply_that_is_lost_once_is_no_conflict() -> Result<()> {
    let rig = Rig::set_up().await?;
    let mut made = Made::of(&rig).await?;
    made.put(made.head(1, "2026-12-01", "SCHEDULED", "GBP"))?;
    let tokens: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&tokens);
    rig.line.break_with(move |call| {
        if call.operation != "TransactWriteItems" {
            return Fate::Pass;
        }
        let token = call.input()["ClientRequestToken"].as_str().unwrap_or_default().to_owned();
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(token);
        if call.tried == 0 { Fate::LoseReply } else { Fate::Pass }
    });
    made.deliver(&rig).await?;
    let tokens = tokens.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(tokens.len() == 2 && tokens[0] == tokens[1] && !tokens[0].is_empty(), "{tokens:?}");
    let lines = rig.metrics.take();
    assert_eq!(["Counted", "Commits", "Conflicts"].map(|name| rig.metric(&lines, name)), [1, 1, 0], "{lines:?}");
    assert_eq!(between(&counters(&rig).await?, &made.counts()), [""; 0]);
    Ok(())
}
