//! How a recount ends before its last date: in time, naming what is left.

use std::sync::Arc;

use anyhow::Result;
use chrono::DateTime;
use payments_machine::{Call, Fate, Recorder};
use payments_model::zone_data_number;
use recount::RecountOutcome;

use super::{AFTER, BEFORE, DAY, NIGHT, NO_DEADLINE, a_counted_day, alter, finding, interfered, run_of};

/// The deadline of an invocation with so many seconds from that night on.
fn deadline(seconds: u64) -> Result<u64> {
    Ok(u64::try_from(DateTime::parse_from_rfc3339(NIGHT)?.timestamp_millis())? + 1_000 * seconds)
}

/// Whether a call reads the payments of a date.
fn reads_payments(call: &Call, date: &str) -> bool {
    let from = &call.input()["ExpressionAttributeValues"][":from"]["S"];
    call.input()["IndexName"] == "due" && from.as_str().is_some_and(|from| from.contains(date))
}

fn left(dates: u64, next: &str, because: &'static str) -> RecountOutcome {
    RecountOutcome {
        dates_left: dates,
        next: Some(next.to_owned()),
        left_because: Some(because),
        ..RecountOutcome::default()
    }
}

#[tokio::test]
async fn a_run_without_time_leaves_every_date() -> Result<()> {
    let world = a_counted_day().await?;
    let report = run_of(world.functions(), "recount", (BEFORE, AFTER), deadline(0)?).await?;
    assert_eq!(report, left(3, BEFORE, "deadline"));
    assert!(world.recorder.take_operations().is_empty());
    assert_eq!(world.metric("RecountDatesLeft")?, 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn the_next_run_continues_at_the_date_of_the_deadline() -> Result<()> {
    for (at, want) in [
        (BEFORE, left(3, BEFORE, "deadline")),
        (DAY, RecountOutcome { exact: 1, ..left(2, DAY, "deadline") }),
        (AFTER, RecountOutcome { exact: 2, ..left(1, AFTER, "deadline") }),
    ] {
        let world = Arc::new(a_counted_day().await?);
        let inside = Arc::clone(&world);
        let functions = interfered(
            &world,
            move |call| reads_payments(call, at),
            move || {
                let world = Arc::clone(&inside);
                // Sixty seconds, six of which are reserved.
                async move { world.set_clock("2090-06-16T02:30:54Z") }
            },
        );
        let functions = functions.await?;
        assert_eq!(run_of(&functions, "recount", (BEFORE, AFTER), deadline(60)?).await?, want, "{at}");
    }
    Ok(())
}

#[tokio::test]
async fn a_date_without_time_for_a_second_look_is_left() -> Result<()> {
    let world = a_counted_day().await?;
    alter(&world, 0, &[("PENDING", 1)]).await?;
    // Fourteen seconds, seven of which are reserved, are too few for a pause of ten.
    let report = run_of(world.functions(), "recount", (BEFORE, AFTER), deadline(14)?).await?;
    assert_eq!(report, RecountOutcome { exact: 2, ..left(1, DAY, "deadline") });
    assert_eq!(finding(&world).await?, None);
    let clock = run_of(world.functions(), "recount", (DAY, DAY), NO_DEADLINE).await?;
    assert_eq!(clock.drifts[0].found_at, "2090-06-16T02:30:17Z", "the first run has waited 7 s and not 10");
    // Twenty-two are enough.
    world.set_clock(NIGHT)?;
    let report = run_of(world.functions(), "recount", (BEFORE, AFTER), deadline(22)?).await?;
    assert_eq!((report.exact, report.drifted, report.dates_left), (2, 1, 0));
    Ok(())
}

#[tokio::test]
async fn a_lasting_error_leaves_the_rest_and_a_passing_one_nothing() -> Result<()> {
    for (trouble, because) in [
        (Fate::Refuse(400, "ThrottlingException"), "throttled"),
        (Fate::Refuse(400, "ProvisionedThroughputExceededException"), "throttled"),
        (Fate::Refuse(503, "ServiceUnavailable"), "unavailable"),
        (Fate::LoseReply, "unavailable"),
    ] {
        let world = a_counted_day().await?;
        let lasting = Recorder::with_fate(move |call| if reads_payments(call, DAY) { trouble } else { Fate::Pass });
        let functions = world.functions_over(&lasting).await?;
        let report = run_of(&functions, "recount", (BEFORE, AFTER), NO_DEADLINE).await?;
        assert_eq!(report, RecountOutcome { exact: 1, ..left(2, DAY, because) }, "{trouble:?}");
        let passing = Recorder::with_fate(move |call| if call.number % 7 == 0 { trouble } else { Fate::Pass });
        let functions = world.functions_over(&passing).await?;
        let report = run_of(&functions, "recount", (BEFORE, AFTER), NO_DEADLINE).await?;
        assert_eq!(report, RecountOutcome { exact: 3, ..RecountOutcome::default() }, "{trouble:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_permanent_error_fails_the_run_and_the_findings_are_measured() -> Result<()> {
    let world = a_counted_day().await?;
    let refused = Fate::Refuse(400, "AccessDeniedException");
    let recorder = Recorder::with_fate(move |call| if reads_payments(call, DAY) { refused } else { Fate::Pass });
    let functions = world.functions_over(&recorder).await?;
    let error = run_of(&functions, "recount", (BEFORE, AFTER), NO_DEADLINE).await;
    assert_eq!(error.map_err(|error| error.to_string()), Err("DynamoDB rejected Query".to_owned()));
    let lines = world.outside.metrics.take().join("\n");
    assert!(lines.contains(r#""DatesExact":1"#) && lines.contains(r#""RecountDatesLeft":2"#), "{lines}");
    assert!(lines.contains(&format!(r#""TimeZoneData":{}"#, zone_data_number())), "{lines}");
    Ok(())
}
