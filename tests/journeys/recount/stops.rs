//! A recount that ends before its last date: it ends in time, and names the dates that are left.

use chrono::DateTime;
use payments_model::zone_data_number;
use payments_tests::prelude::*;
use recount::RecountOutcome;

use super::{
    AFTER, BEFORE, DAY, NIGHT, a_counted_day, alter, exact, finding, interfered, of_day, recount_with, run_of,
};

/// Recounts the date and its neighbours, with so many seconds from that night on.
async fn recount_within(functions: &payments_bank::Functions, seconds: u64) -> Result<RecountOutcome> {
    let deadline = u64::try_from(DateTime::parse_from_rfc3339(NIGHT)?.timestamp_millis())? + 1_000 * seconds;
    run_of(functions, "recount", (BEFORE, AFTER), deadline).await
}

/// Whether a call reads the payments of a date.
fn reads_payments(call: &Call, date: &str) -> bool {
    let from = &call.input()["ExpressionAttributeValues"][":from"]["S"];
    call.input()["IndexName"] == "due" && from.as_str().is_some_and(|from| from.contains(date))
}

/// The outcome of a run that left dates after some that were exact.
fn left(exact_dates: u64, dates: u64, next: &str, because: &'static str) -> RecountOutcome {
    let next = Some(next.to_owned());
    RecountOutcome { dates_left: dates, next, left_because: Some(because), ..exact(exact_dates) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn the_next_run_continues_at_the_date_of_the_deadline() -> Result<()> {
    let late = a_counted_day().await?;
    assert_eq!(recount_within(late.functions(), 0).await?, left(0, 3, BEFORE, "deadline"));
    assert!(late.recorder.take_operations().is_empty());
    assert_eq!(late.metric("RecountDatesLeft")?, 3);
    for (exact, at) in [BEFORE, DAY, AFTER].into_iter().enumerate() {
        let world = a_counted_day().await?;
        // Sixty seconds, six of which are reserved.
        let passes = |world: Arc<World>| async move { world.set_clock("2090-06-16T02:30:54Z") };
        let functions = interfered(&world, move |call| reads_payments(call, at), passes).await?;
        let exact = u64::try_from(exact)?;
        assert_eq!(recount_within(&functions, 60).await?, left(exact, 3 - exact, at, "deadline"), "{at}");
    }
    Ok(())
}

#[tokio::test]
async fn a_date_without_time_for_a_second_look_is_left() -> Result<()> {
    let world = a_counted_day().await?;
    alter(&world, 0, &[("PENDING", 1)]).await?;
    // Fourteen seconds, seven of which are reserved, are too few for a pause of ten.
    assert_eq!(recount_within(world.functions(), 14).await?, left(2, 1, DAY, "deadline"));
    assert_eq!(finding(&world).await?, None);
    let clock = of_day(world.functions(), "recount").await?;
    assert_eq!(clock.drifts[0].found_at, "2090-06-16T02:30:17Z", "the first run has waited 7 s and not 10");
    // Twenty-two are enough.
    world.set_clock(NIGHT)?;
    let report = recount_within(world.functions(), 22).await?;
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
        let lasting = world.functions_meeting(trouble, |call| reads_payments(call, DAY)).await?;
        assert_eq!(recount_with(&lasting).await?, left(1, 2, DAY, because), "{trouble:?}");
        let passing = world.functions_meeting(trouble, |call| call.number % 7 == 0).await?;
        assert_eq!(recount_with(&passing).await?, exact(3), "{trouble:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_permanent_error_fails_the_run_and_the_findings_are_measured() -> Result<()> {
    let world = a_counted_day().await?;
    let refused = Fate::Refuse(400, "AccessDeniedException");
    let refused = world.functions_meeting(refused, |call| reads_payments(call, DAY)).await?;
    let error = recount_with(&refused).await;
    assert_eq!(error.map_err(|error| error.to_string()), Err("DynamoDB rejected Query".to_owned()));
    let lines = world.outside.metrics.take().join("\n");
    let zones = format!(r#""TimeZoneData":{}"#, zone_data_number());
    for metric in [r#""DatesExact":1"#, r#""RecountDatesLeft":2"#, &zones] {
        assert!(lines.contains(metric), "{metric}: {lines}");
    }
    Ok(())
}
