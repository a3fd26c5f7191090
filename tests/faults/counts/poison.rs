//! Poison in the stream: records that cannot be read are counted as such and stop no others. A wrong mapping stops
//! everything with an error. The aggregator never receives its own writes.

use std::sync::Mutex;

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use payments_delivery::{DeliveryOutcome, Invocation, Position, StreamMapping, StreamSettings};
use payments_lab::laws::counters::between;
use payments_machine::layers::attributes::{key_of, number, text};
use payments_machine::triggers::stream_settings;
use serde_json::{Value, json};

use super::made::Made;
use super::shards;
use crate::kit::fixture::Fixture;
use crate::recount::{checkpoints, counters};
use payments_tests::counting::{aggregate, drain, next_batch};

const DAY: &str = "2026-12-01";

#[tokio::test]
async fn an_unreadable_record_is_counted_as_such_and_stops_no_other() -> Result<()> {
    let (fixture, mut made) = Made::start().await?;
    made.put(made.head(0, DAY, "SCHEDULED", "GBP"))?;
    let poison = made.head(1, DAY, "SCHEDULED", "GBP");
    let key = key_of(&poison);
    let damaged = |name: &str, value: Value| {
        let mut head = poison.clone();
        head[name] = value;
        head
    };
    // Two have a date; one has an unreadable new image, the other an unreadable old one.
    made.push(&key, None, Some(damaged("amountMinor", json!({ "N": "0.5" }))))?;
    made.push(&key, Some(damaged("status", json!({ "S": "ASLEEP" }))), Some(poison.clone()))?;
    // Three have none: an invalid due key, invalid images, no image.
    made.push(&key, None, Some(damaged("due", json!({ "S": "some day" }))))?;
    made.push(&key, Some(json!(7)), Some(json!("no image")))?;
    made.push(&key, None, None)?;
    made.put(made.head(2, DAY, "SCHEDULED", "GBP"))?;

    let mut want = made.counts();
    want.extend([(format!("{DAY} unparsed"), 2), ("? unparsed".to_owned(), 3)]);
    let delivered = made.deliver(&fixture).await?;
    assert!(delivered.iter().all(|delivery| delivery.outcome == DeliveryOutcome::Succeeded), "{delivered:?}");
    assert_eq!(between(&counters(&fixture).await?, &want), [""; 0]);
    assert_eq!(fixture.measured(["Counted", "Skipped", "ChangesUnparsed"]), [2, 0, 5]);

    made.deliver(&fixture).await?;
    assert_eq!(between(&counters(&fixture).await?, &want), [""; 0], "poison is counted once, too");
    assert_eq!(fixture.measured(["Counted", "Skipped", "ChangesUnparsed"]), [0, 7, 0]);

    // A batch of poison alone moves the checkpoint too.
    made.push(&key, None, None)?;
    want.insert("? unparsed".to_owned(), 4);
    for time in ["first", "second"] {
        made.deliver(&fixture).await?;
        assert_eq!(between(&counters(&fixture).await?, &want), [""; 0], "the {time} time");
    }
    Ok(())
}

/// The first event of a stream.
async fn first_event(made: &Made) -> Result<Value> {
    let seen = Mutex::new(None);
    let see = |event: Value| {
        drop(seen.lock().map(|mut seen| seen.replace(event)));
        async { Ok(json!({ "state": {} })) }
    };
    next_batch(&mut made.mapping()?, shards::beginning(), see).await?;
    seen.into_inner().ok().flatten().context("no event")
}

#[tokio::test]
async fn a_wrong_mapping_is_an_error_and_changes_nothing() -> Result<()> {
    let (fixture, mut made) = Made::start().await?;
    made.put(made.head(0, DAY, "SCHEDULED", "GBP"))?;
    let event = first_event(&made).await?;
    let other = event["eventSourceARN"].as_str().unwrap_or_default().replace("/payments", "/payroll");
    for (field, value, names) in [
        ("shardId", Value::Null, "set TumblingWindowInSeconds on"),
        ("eventSourceARN", json!(other), "set Stream on"),
        ("eventSourceARN", Value::Null, "set Stream on"),
    ] {
        let mut event = event.clone();
        event[field] = value;
        let error = aggregate(&fixture.functions, event).await.expect_err(field);
        assert!(error.contains(names), "{field}: {error}");
    }

    // The mapping repeats the batch, and nothing is lost once it is set up correctly.
    let settings = StreamSettings { tumbling_window: None, ..stream_settings("stream-aggregator", None)? };
    let mut windowless = StreamMapping::new(settings, made.stream.clone())?;
    for _ in 0..20 {
        let step =
            next_batch(&mut windowless, shards::beginning(), |event| aggregate(&fixture.functions, event)).await?;
        assert!(matches!(step[0].outcome, DeliveryOutcome::Retrying { remaining: 1, .. }), "{step:?}");
    }
    assert_eq!((fixture.faults.calls(), counters(&fixture).await?.len()), (0, 0));
    made.deliver(&fixture).await?;
    made.assert_counted(&fixture, "").await?;
    Ok(())
}

#[tokio::test]
async fn the_end_of_a_window_is_answered_without_a_call() -> Result<()> {
    let (fixture, mut made) = Made::start().await?;
    made.put(made.head(0, DAY, "SCHEDULED", "GBP"))?;
    let mut mapping = made.mapping()?;
    drain(&mut mapping, shards::beginning(), |event| aggregate(&fixture.functions, event)).await?;
    fixture.faults.clear();
    let answers = Mutex::new(Vec::new());
    let function = |event: Value| async {
        let last = event["isFinalInvokeForWindow"] == true;
        let answer = aggregate(&fixture.functions, event).await;
        drop(answers.lock().map(|mut answers| answers.push((last, answer.clone()))));
        answer
    };
    let later = shards::beginning() + mapping.settings().tumbling_window.context("no window")?;
    let ends = mapping.step(later, function).await?;
    assert!(
        ends.iter().all(|end| (end.invocation, &end.outcome) == (Invocation::WindowEnd, &DeliveryOutcome::Succeeded))
    );
    let answers = answers.into_inner().unwrap_or_default();
    let [(true, Ok(answer))] = answers.as_slice() else { anyhow::bail!("{answers:?}") };
    assert_eq!(answer["state"], json!({}));
    assert_eq!((fixture.faults.calls(), fixture.metrics.take().len()), (0, 1), "one line of metrics, of the batch");
    Ok(())
}

#[tokio::test]
async fn a_checkpoint_is_kept_for_a_week_after_its_last_move() -> Result<()> {
    let (fixture, mut made) = Made::start().await?;
    for (n, moves) in [(0, true), (1, true), (1, false)] {
        if moves {
            made.put(made.head(n, DAY, "SCHEDULED", "GBP"))?;
        }
        fixture.time.pass(TimeDelta::days(3));
        let moved_at = fixture.time.now() - if moves { TimeDelta::zero() } else { TimeDelta::days(3) };
        made.deliver(&fixture).await?;
        let checkpoints = checkpoints(&fixture).await?;
        let [checkpoint] = checkpoints.as_slice() else { anyhow::bail!("{checkpoints:?}") };
        assert_eq!(text(checkpoint, "sk"), made.shard.as_str());
        assert_eq!(text(checkpoint, "sequenceNumber"), made.records.to_string());
        let expires = u64::try_from((moved_at + TimeDelta::days(7)).timestamp())?;
        assert_eq!(number(checkpoint, "expires_at"), expires, "{checkpoint}");
    }
    Ok(())
}

#[tokio::test]
async fn the_aggregator_never_receives_its_own_writes() -> Result<()> {
    let fixture = Fixture::start().await?;
    fixture.created(5).await?;
    let seen = Mutex::new(Vec::new());
    let function = |event: Value| async {
        let keys =
            event["Records"].as_array().into_iter().flatten().map(|record| key_of(&record["dynamodb"]["Keys"]).0);
        drop(seen.lock().map(|mut seen| seen.extend(keys)));
        aggregate(&fixture.functions, event).await
    };
    let delivered = drain(&mut *fixture.aggregating.lock().await, fixture.time.now(), function).await?;
    assert_eq!(delivered.iter().map(|delivery| delivery.records).sum::<usize>(), 5, "{delivered:?}");
    assert_eq!(fixture.faults.tries_of("TransactWriteItems"), 1);

    // The aggregator's own writes are in the stream, and the filter drops them.
    let shard = fixture.source.shards().await?.pop().context("no shard")?;
    let records = fixture.source.read_all(&shard.id, Position::TrimHorizon).await?;
    let own = |record: &&payments_delivery::Record| !key_of(&record.event()["dynamodb"]["Keys"]).0.starts_with("ACCT#");
    assert_eq!(records.iter().filter(own).count(), 2, "a counter and a checkpoint");
    let seen = seen.into_inner().unwrap_or_default();
    assert!(seen.len() == 5 && seen.iter().all(|pk| pk.starts_with("ACCT#")), "{seen:?}");
    fixture.assert_counters_exact().await
}
