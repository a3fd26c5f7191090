//! Gaps of the log are marked in it: records that the stream dropped, and changes that a repair found.

use super::*;

/// The marks of gaps in the log.
async fn gaps(log: &Log) -> Result<Vec<Value>> {
    let mut events = log.events().await?;
    events.retain(|event| event["type"] == "log.gap");
    Ok(events)
}

#[tokio::test]
async fn a_record_that_is_almost_dropped_marks_a_gap_before_it() -> Result<()> {
    let log = Log::open().await?;
    for (age, gaps) in [(23, 0), (24, 1)] {
        log.create(2).await?;
        log.forget();
        let made_at = log.now().saturating_add(-TimeDelta::hours(age));
        log.counting.lock().await.count_made_at(log.functions(), made_at).await?;
        assert_eq!(log.metric("LogGaps")?, gaps, "{age} hours");
    }
    let scheduled = "payment.scheduled";
    assert_eq!(types(&log.events().await?), [scheduled, scheduled, "log.gap", scheduled, scheduled]);
    assert_has(
        &gaps(&log).await?[0],
        &json!({ "until": "2026-11-19T09:00:00Z", "since": null, "id": "3622140-gap-2" }),
    );
    // A new mapping reads all of it again, and marks nothing twice.
    let made_at = log.now().saturating_add(-TimeDelta::hours(24));
    Counting::start(&log).await?.count_made_at(log.functions(), made_at).await?;
    assert_eq!(log.events().await?.len(), 5);
    Ok(())
}

/// A stream shard that ended and was dropped leaves no old record behind. But what is not counted is drift.
#[tokio::test]
async fn what_the_counters_lack_is_a_gap_once_they_are_repaired() -> Result<()> {
    let log = Log::with(&[1]).await?;
    log.create(1).await?;
    log.counting.lock().await.skip().await?;
    for (now, action, repaired, marked) in [
        // The missing change may be late.
        ("2026-11-20T10:00:00Z", "recount", 0, 0),
        ("2026-11-21T12:00:00Z", "repair", 1, 1),
        ("2026-11-22T12:00:00Z", "repair", 0, 1),
    ] {
        log.set_clock(now)?;
        let request = json!({ "action": action, "from": "2026-12-01", "to": "2026-12-03", "ticket": "INC-1" });
        assert_eq!(log.run("recount", request).await?["repaired"], repaired, "{now}");
        log.segment(1).await?;
        assert_eq!(gaps(&log).await?.len(), marked, "{now}");
    }
    assert_has(&gaps(&log).await?[0], &json!({ "since": null, "until": "2026-11-20T10:00:10Z" }));
    Ok(())
}
