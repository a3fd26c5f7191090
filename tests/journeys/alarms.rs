//! The alarms of the template over metrics: none goes off on a healthy day, and each fault sets off its own.

mod aws;
mod day;
mod fault;
mod own;
mod publish;

use payments_alarms::{Alarm, AlarmState, Change, EXTRA_DATAPOINTS, Metric, Samples, history};
use payments_tests::prelude::*;
use payments_tests::template;

use day::{Day, healthy, ids};
use fault::Fault;

/// CloudWatch looks back for data points beyond an alarm's periods, and does not say how many. Both must hold.
const LOOKS_BACK: [usize; 2] = [0, EXTRA_DATAPOINTS];

/// The changes of an alarm during the day.
fn changes(alarm: &Alarm, samples: &Samples, day: &Day, extra: usize) -> Result<Vec<Change>> {
    history(alarm, samples, (day.begin, day.end), extra)
}

/// The faults that set off other alarms than theirs.
async fn wrong(faults: &[Fault]) -> Result<Vec<String>> {
    let (day, alarms) = (healthy().await?, Alarm::all(&template()?)?);
    let mut wrong = Vec::new();
    for fault in faults {
        let samples = fault.in_day(day);
        let wanted: BTreeSet<&str> = fault.alarms.iter().copied().collect();
        for extra in LOOKS_BACK {
            let mut off = BTreeSet::new();
            // The others see the healthy day.
            for alarm in alarms.iter().filter(|alarm| fault.concerns(alarm)) {
                let goes_off = |change: &Change| change.state == AlarmState::Alarm;
                if changes(alarm, &samples, day, extra)?.iter().any(goes_off) {
                    off.insert(alarm.name.as_str());
                }
            }
            if off != wanted {
                wrong.push(format!("{}, looking back {extra}: {off:?} and not {wanted:?}", fault.what));
            }
        }
    }
    Ok(wrong)
}

#[tokio::test]
async fn no_alarm_goes_off_on_a_healthy_day() -> Result<()> {
    let day = healthy().await?;
    let alarms = Alarm::all(&template()?)?;
    ensure!(alarms.len() >= 30, "{} alarms", alarms.len());
    for extra in LOOKS_BACK {
        for alarm in &alarms {
            let changes = changes(alarm, &day.samples, day, extra)?;
            let states: Vec<AlarmState> = changes.iter().map(|change| change.state).collect();
            assert_eq!(states, [AlarmState::Ok], "{}, looking back {extra}: {changes:?}", alarm.name);
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_alarm_has_a_fault_that_sets_off_it_and_no_other() -> Result<()> {
    let day = healthy().await?;
    let faults = [own::faults(day).await?, aws::faults(day)?].concat();
    let meant: BTreeSet<&str> = faults.iter().filter_map(|fault| fault.alarms.first().copied()).collect();
    let alarms = Alarm::all(&template()?)?;
    assert_eq!(meant, alarms.iter().map(|alarm| alarm.name.as_str()).collect());
    let wrong = wrong(&faults).await?;
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// The healthy day has samples of every metric that is emitted without a fault, under the names that alarms have.
#[tokio::test]
async fn the_healthy_day_has_the_metrics_of_the_alarms() -> Result<()> {
    let day = healthy().await?;
    let known: BTreeSet<&Metric> = day.samples.metrics().collect();
    // A healthy day has no samples of these: they show failures and changes, or an event bus
    // or an expected feed, which one machine does not have.
    let only_of_faults = "Errors WriteThrottleEvents 5xx DroppedEventCount FailedInvokeEventCount PaymentsUnreadable BusSegmentsBehind \
         BusMissed FeedMissing WebhookEndpointsChanged FourEyesBypassed UndoUnfinished";
    for alarm in &Alarm::all(&template()?)? {
        for metric in alarm.series().iter().map(|series| &series.metric) {
            let missing = !known.contains(metric) && only_of_faults.split(' ').all(|name| name != metric.name);
            assert!(!missing, "{}: {metric:?}", alarm.name);
        }
    }
    Ok(())
}

/// DynamoDB's throttles have no samples without throttling, and alarms on them keep their state then.
#[tokio::test]
async fn an_alarm_ends_with_its_fault() -> Result<()> {
    let day = healthy().await?;
    let fault =
        aws::faults(day)?.into_iter().find(|fault| fault.alarms == ["WriteThrottles"]).context("no throttles")?;
    let alarms = Alarm::all(&template()?)?;
    let alarm = alarms.iter().find(|alarm| alarm.name == "WriteThrottles").context("no alarm")?;
    for extra in LOOKS_BACK {
        let states: Vec<AlarmState> =
            changes(alarm, &fault.in_day(day), day, extra)?.iter().map(|change| change.state).collect();
        assert_eq!(states, [AlarmState::Ok, AlarmState::Alarm, AlarmState::Ok], "looking back {extra}");
    }
    Ok(())
}

#[test]
fn functions_and_mappings_have_the_names_of_the_template() -> Result<()> {
    let ids = ids()?;
    assert_eq!(ids.function("settle")?, "SettleFunction");
    assert_eq!(
        ids.mappings(),
        [
            "DispatchFunctionBecamePending",
            "PublishFunctionSegmentAppended",
            "SettleFunctionReport",
            "StreamAggregatorFunctionHeadChanged",
        ]
    );
    Ok(())
}
