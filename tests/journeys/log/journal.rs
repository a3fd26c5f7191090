//! The journal has every event of the log once and in its order, whatever ends a run and whoever else writes.

use object_store::PutMode;
use payments_machine::interceptor::Fate;
use payments_tests::{CrashPoints, Way};
use publish::JournalObject;

use super::between::{at_call, failing};
use super::*;

/// Publishes, and then the journal must have what the log has. Returns the outcome.
async fn publish_all(log: &Log) -> Result<Value> {
    let outcome = log.publish().await?;
    assert_eq!(log.journal().await?, log.events().await?);
    Ok(outcome)
}

#[tokio::test]
async fn each_run_writes_what_is_new() -> Result<()> {
    let log = Log::open().await?;
    for (segments, events, files) in [(&[][..], 0, 0), (&[3, 2], 5, 1), (&[], 0, 0), (&[1], 1, 1)] {
        log.segments(segments).await?;
        let written =
            json!({ "journaledEvents": events, "journalFiles": files, "journalSegmentsBehind": 0, "journalMissed": 0 });
        assert_eq!(log.publish().await?, written, "{segments:?}");
    }
    // More than a month in which nothing happens.
    log.expire()?;
    assert_has(&log.publish().await?, &json!({ "journaledEvents": 0, "journalFiles": 0, "journalMissed": 0 }));
    Ok(())
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
async fn a_run_that_is_far_behind_goes_on_where_the_files_end() -> Result<()> {
    let log = Log::open().await?;
    let mut places = Vec::new();
    for _ in 0..4 {
        log.segment(1).await?;
        log.publish().await?;
        places.push(log.place("journal").await?);
    }
    // Its place is lost, as after a restore of the log's table: it finds one file after the other.
    let first = places[0].context("no place")?;
    assert!(log.store().await.move_log_consumer("journal", places[3], first).await?);
    log.segment(1).await?;
    assert_eq!(publish_all(&log).await?["journalFiles"], 1);
    // Runs at the same time write each file once.
    log.segment(1).await?;
    let (one, other) = tokio::try_join!(log.publish(), log.publish())?;
    assert_eq!(one["journalFiles"].as_u64().unwrap_or(0) + other["journalFiles"].as_u64().unwrap_or(0), 1);
    assert_eq!(log.journal().await?, log.events().await?);
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

#[tokio::test]
async fn a_journal_that_disagrees_with_the_log_stands_still() -> Result<()> {
    let log = Log::with(&[1]).await?;
    let next = log.end().await?;
    let end = LogPosition { number: next.number + 1, ..next };
    // The log was restored to an earlier time, and its numbers are used again.
    let put = async |bytes: Option<&'static str>| -> Result<()> {
        let object = JournalObject { first: next, after: end, events: vec!["{}".to_owned()] };
        let bytes = bytes.map_or_else(|| object.encode(), |bytes| Ok(bytes.into()))?;
        log.outside.reports.put_opts(&JournalObject::path(next), bytes.into(), PutMode::Overwrite.into()).await?;
        Ok(())
    };
    put(None).await?;
    log.publish().await?;
    log.segment(1).await?;
    for (bytes, want) in [(None, "has other events than the log"), (Some("none"), "was changed")] {
        put(bytes).await?;
        assert_fails(log.publish().await, want);
        assert_eq!(log.place("journal").await?, Some(next));
    }
    let store = log.store().await;
    assert!(store.move_log_consumer("journal", Some(next), LogPosition { number: 9, ..next }).await?);
    assert_fails(log.publish().await, "before the place 3622140.9.0 of the journal");
    Ok(())
}
