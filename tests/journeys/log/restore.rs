//! Readers of the log learn the changes that a restore took back, whenever the operator's steps are interrupted.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_machine::Fate;
use payments_restore::{begin, begin_restored};
use payments_store::{Item, Missed};
use payments_tests::{CrashPoints, Way};

use super::between::failing;
use super::*;

/// The instant to which the table is restored. Later changes happen a minute later.
const T: &str = "2026-11-20T09:30:00Z";
const LATER: &str = "2026-11-20T09:31:00Z";

impl Log {
    /// The head of the only payment of an account, and its id.
    async fn head_of(&self, n: usize) -> Result<(Item, String)> {
        let head = self.heads(&account(n)).await?.pop().context("no head")?;
        let id = head["sk"].as_s().ok().and_then(|sort| sort.rsplit('#').next()).context("no id")?.to_owned();
        Ok((head, id))
    }

    async fn cancel_of(&self, n: usize) -> Result<()> {
        self.cancel(&account(n), &self.head_of(n).await?.1).await
    }
}

/// A bank whose hot table was restored, up to where the log's epoch must begin. After T one of four payments is cancelled, and a fifth is
/// created. Neither is in the restored table.
async fn restored() -> Result<Log> {
    let mut log = Log::with(&[4]).await?;
    let table = log.environment.tables.payments.clone();
    let at_t = log.items_of(&table).await?;
    log.set_clock(LATER)?;
    log.cancel_of(0).await?;
    log.segment(1).await?;

    begin(&log.store().await).await?;
    log.create(1).await?;
    assert_fails(log.count().await, "A new epoch of the log");

    for item in log.items_of(&table).await? {
        log.delete(&table, &item).await?;
    }
    let is_checkpoint = |item: &Item| item["pk"].as_s().is_ok_and(|pk| pk.starts_with("CHECKPOINT"));
    log.put_items(&table, at_t.into_iter().filter(|item| !is_checkpoint(item))).await?;
    // The new table's stream begins after this.
    let mut counting = Counting::start(&log).await?;
    counting.skip().await?;
    log.counting = Mutex::new(counting);
    Ok(log)
}

/// The last event of each payment, by epoch and version, in whatever order they come.
fn folded(mut events: Vec<Value>) -> BTreeMap<String, Value> {
    fastrand::Rng::with_seed(7).shuffle(&mut events);
    let mut last: BTreeMap<String, Value> = BTreeMap::new();
    let place = |event: &Value| (event["epoch"].as_u64(), event["version"].as_u64());
    for event in events {
        let Some(payment) = event["paymentId"].as_str().map(str::to_owned) else { continue };
        if last.get(&payment).is_none_or(|before| place(before) < place(&event)) {
            last.insert(payment, event);
        }
    }
    last.retain(|_, event| event["version"] != 0);
    last
}

#[tokio::test]
async fn readers_learn_what_a_restore_took_back_and_then_what_happens() -> Result<()> {
    let log = restored().await?;
    let old_end = log.end().await?;
    assert_eq!(
        begin(&log.store().await).await?,
        format!(
            "The epoch has ended at {old_end}; nothing is counted until finish, so finish within a day. Restore the tables, run rebuild until \
             nothing is left to do, then run finish."
        )
    );
    let done = log.finish_tables(T).await?;
    assert!(done.starts_with("The log takes the changes of arn:"), "{done}");
    assert_eq!(log.finish_tables(T).await?, done);

    let mut told = log.news().await?;
    assert_eq!(types(&told), ["log.restored", "payment.restored", "payment.restored"]);
    assert_has(&told[0], &json!({ "restoredTo": T, "endCursor": old_end.to_string() }));
    told[1..].sort_by_key(|event| event["version"].as_u64());
    assert_has(&told[1], &json!({ "version": 0, "status": null }));
    assert_has(&told[2], &json!({ "version": 1, "status": "SCHEDULED" }));

    // The client sends again what is missing, and cancels another payment.
    log.send_creates(4..6).await?;
    log.cancel_of(1).await?;
    log.count().await?;
    let last = folded(log.events().await?);
    assert_eq!(last.len(), 6);
    for n in 0..6 {
        let (head, id) = log.head_of(n).await?;
        assert_eq!(text(text_of(&last[&id]["status"])), head["status"], "{}", last[&id]);
    }
    Ok(())
}

#[tokio::test]
async fn a_step_that_is_killed_at_any_call_goes_on() -> Result<()> {
    let mut points = CrashPoints::new("restore", [Fate::KillBefore, Fate::KillAfter].map(Way::once));
    while let Some(point) = points.next_case() {
        let log = restored().await?;
        let tables = log.environment.tables.clone();
        let run = async |client| log.finish_in(&Store::new(client, tables), Some(T), None).await;
        failing(&log, &mut points, point, |_| true, run).await?;
        log.finish_tables(T).await?;
        let told = log.news().await?;
        assert_eq!(types(&told), ["log.restored", "payment.restored", "payment.restored"], "{point:?}");
    }
    assert!(points.cases() > 17, "{points:?}");
    Ok(())
}

#[tokio::test]
async fn finish_says_what_is_wrong_and_changes_nothing() -> Result<()> {
    const NOW: &str = "2026-11-20T09:00:00Z";
    let log = Log::open().await?;
    let store = log.store().await;
    for step in [begin(&store).await?, log.finish_tables(NOW).await?] {
        assert!(step.starts_with("The log has never begun, so there is nothing to do."), "{step}");
    }
    log.segment(1).await?;
    let (before, stream) = (log.head().await?, log.stream().await?.arn().to_owned());
    for (place, to, want) in [
        ("/index/", NOW, "names another table"),
        ("/stream/", "2026-11-20T09:00:01Z", "is not over yet"),
        ("/stream/9", NOW, "run `cargo restore begin --apply` first"),
    ] {
        let stream = stream.replace("/stream/", place);
        let restored = Restored { stream, tables_to: Some(to.parse()?), log_to: None, clear_from: Some(log.now()) };
        assert_fails(finish(&store, &restored, || log.now(), |_, _| {}).await, want);
    }
    assert_eq!(log.head().await?, before);
    assert_eq!(store.cleared("2026-11-20".parse()?).await?.not_before, None);
    Ok(())
}

/// The log's own table was restored, and has a segment that its head does not count: it was appended, so it belongs to the log.
#[tokio::test]
async fn a_segment_that_a_restored_head_does_not_count_is_read() -> Result<()> {
    const RESTORED_TO: &str = "2026-11-20T11:00:00Z";
    let log = Log::with(&[1, 1, 1]).await?;
    log.set_head("SET #next = :value", AttributeValue::N("2".to_owned())).await?;
    log.set_clock("2026-11-20T12:00:00Z")?;
    begin_restored(&log.store().await, RESTORED_TO.parse()?, log.now()).await?;
    log.finish_log(RESTORED_TO).await?;
    let found = log.events().await?;
    assert_eq!(types(&found[3..]), ["log.restored", "log.gap"]);
    assert_eq!((&found[3]["endCursor"], &found[4]["since"]), (&json!("3622140.4.0"), &json!("2026-11-20T10:00:00Z")));
    Ok(())
}

/// The log's head counts a segment that the log lacks: after the restore begins, no reader finds a hole.
#[tokio::test]
async fn a_restored_log_ends_behind_its_last_segment() -> Result<()> {
    let log = Log::with(&[1, 1, 1]).await?;
    log.tear(3).await?;
    assert!(log.events().await.is_err(), "there is a hole");
    begin_restored(&log.store().await, "2026-11-20T09:00:00Z".parse()?, log.now()).await?;
    assert_eq!(log.events().await?.len(), 2);
    Ok(())
}

/// A gap cannot be forgotten: what is noted at the same moment by others is kept, and `begin` notes what `finish` may not be told.
#[tokio::test]
async fn what_is_missing_is_noted_by_all_and_told_by_finish() -> Result<()> {
    const RESTORED_TO: &str = "2026-11-20T08:30:00Z";
    let log = Log::with(&[1]).await?;
    let store = log.store().await;
    let notes = (0..10).map(|n| {
        let (since, store) = (format!("2026-11-20T08:00:{:02}Z", (n + 3) % 10).parse(), &store);
        async move {
            let missed = Missed { since: Some(since?), until: "2026-11-20T09:00:00Z".parse()? };
            anyhow::Ok(store.note_missed(missed).await?)
        }
    });
    futures::future::try_join_all(notes).await?;
    let missed = log.head().await?.missed.context("nothing was noted")?;
    assert_eq!(missed.since, Some("2026-11-20T08:00:00Z".parse()?));
    log.set_clock("2026-11-20T12:00:00Z")?;
    begin_restored(&store, RESTORED_TO.parse()?, log.now()).await?;
    log.finish_tables(RESTORED_TO).await?;
    assert_eq!(store.cleared("2026-11-20".parse()?).await?.not_before, Some(log.now()));
    let found = log.events().await?;
    let gap = found.iter().find(|event| event["type"] == "log.gap").context("no gap")?;
    assert_has(gap, &json!({ "since": "2026-11-20T07:30:00Z", "until": "2026-11-20T12:00:00Z" }));
    Ok(())
}

/// The log's own table was restored: it counts segments that it lacks.
#[tokio::test]
async fn a_torn_log_goes_on_in_a_new_epoch_and_no_number_is_used_again() -> Result<()> {
    const RESTORED_TO: &str = "2026-11-20T11:00:00Z";
    let log = Log::with(&[1, 1, 1]).await?;
    let store = log.store().await;
    log.tear(3).await?;
    log.set_clock("2026-11-20T12:00:00Z")?;
    // Meanwhile a change was counted without the log.
    store.note_missed(Missed { since: Some("2026-11-20T10:30:00Z".parse()?), until: log.now() }).await?;
    assert_fails(log.finish_log(RESTORED_TO).await, "run `cargo restore begin --apply` first");
    begin(&store).await?;
    log.finish_log(RESTORED_TO).await?;
    log.segment(1).await?;
    let found = log.events().await?;
    let scheduled = "payment.scheduled";
    assert_eq!(types(&found), [scheduled, scheduled, "log.restored", "log.gap", scheduled]);
    assert_eq!(found[2]["endCursor"], "3622140.3.0");
    assert_has(&found[3], &json!({ "since": "2026-11-20T10:30:00Z", "until": "2026-11-20T12:00:00Z" }));
    assert_eq!(log.head().await?.missed, None);
    Ok(())
}
