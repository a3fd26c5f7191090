//! The journal has every event of the log once and in its order, whatever ends a run and whoever else writes.

use payments_machine::Fate;
use payments_tests::{CrashPoints, Way};

use super::between::{at_call, failing};
use super::*;

/// Publishes, and asserts that the journal has all events of the log. Returns the outcome.
async fn publish_all(log: &Log) -> Result<Value> {
    let outcome = log.publish().await?;
    assert_eq!(log.journal().await?, log.events().await?);
    Ok(outcome)
}

#[tokio::test]
async fn a_run_that_is_killed_at_any_call_leaves_files_without_overlap() -> Result<()> {
    let mut points = CrashPoints::new("journal-killed", [Fate::KillBefore, Fate::KillAfter].map(Way::once));
    while let Some(point) = points.next_case() {
        let log = Log::with(&[2, 1]).await?;
        failing(&log, &mut points, point, |_| true, async |client| log.publish_over(client).await).await?;
        // More comes before the next run, which finds the file that the killed one wrote.
        log.segment(1).await?;
        publish_all(&log).await.with_context(|| format!("{point:?}"))?;
    }
    assert!(points.cases() > 7, "{points:?}");
    Ok(())
}

#[tokio::test]
async fn a_run_that_another_one_overtakes_at_any_call_ends_quietly() -> Result<()> {
    for number in 0..6 {
        let log = Log::with(&[2]).await?;
        let other = async {
            log.segment(1).await?;
            log.publish().await.map(drop)
        };
        let overtaken =
            at_call(&log, "journal-overtaken", number, async |client| log.publish_over(client).await, other).await;
        overtaken.with_context(|| format!("overtaken at call {number}"))?;
        publish_all(&log).await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_is_before_a_hole_is_in_a_file_and_what_is_behind_it_is_not() -> Result<()> {
    let log = Log::with(&[1, 1, 1]).await?;
    let before = log.events().await?;
    log.tear(2).await?;
    assert_fails(log.publish().await, "LOG#3622140 / 000000000002");
    assert_eq!(log.journal().await?, before[..1]);
    Ok(())
}
