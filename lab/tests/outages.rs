//! Planned outages: each raises its own alarms in time, actions of docs/alarms.md end them, and all guarantees hold.
//!
//! A month has several of them, three hours apart, that do not hide each other.

use std::collections::BTreeSet;

use anyhow::Result;
use payments_allocator as _;
use payments_lab::{Outage, Settings, play};

/// The outages of each month, with its days and its payments a day.
const MONTHS: [(&[Outage], u32, usize); 6] = [
    (
        &[
            Outage::StreamStandsStill,
            Outage::NoSweeps,
            Outage::DispatchDisabled,
            Outage::SettleDisabled,
            Outage::NoRedrives,
        ],
        3,
        10,
    ),
    (&[Outage::ServiceAway, Outage::NoArchive, Outage::NoRecount, Outage::NoJournal], 2, 10),
    (
        &[
            Outage::UnknownResults,
            Outage::Contradictions,
            Outage::CancelledProcessed,
            Outage::ReportsFail,
            Outage::ArchiveFails,
        ],
        3,
        10,
    ),
    (
        &[
            Outage::AmountDamaged,
            Outage::ScheduledDamaged,
            Outage::SettledDamaged,
            Outage::PendingDamaged,
            Outage::Disagreement,
        ],
        3,
        12,
    ),
    (&[Outage::ApiFails, Outage::WritesThrottled], 2, 10),
    // The only outage that loses changes: the counters never saw them. A recount and a repair make
    // up for it. Changes after the repair bring the log's mark.
    (&[Outage::RecordsTrimmed], 6, 12),
];

/// Plays a month, which judges its alarms, too.
fn check(place: usize) -> Result<()> {
    let (outages, days, payments) = MONTHS[place];
    let month = play(&Settings { outages, ..Settings::new(3, days, payments).healthy() })?;
    assert_eq!(month.violations, [""; 0]);
    Ok(())
}

#[test]
fn what_stands_still_is_resumed() -> Result<()> {
    check(0)
}

#[test]
fn what_no_longer_comes_is_waited_for_or_resumed() -> Result<()> {
    check(1)
}

#[test]
fn what_the_transaction_service_gets_wrong_changes_nothing_and_what_fails_is_mended() -> Result<()> {
    check(2)
}

#[test]
fn what_is_damaged_by_hand_is_corrected_by_hand() -> Result<()> {
    check(3)
}

#[test]
fn what_is_throttled_or_rejected_is_tried_again() -> Result<()> {
    check(4)
}

#[test]
fn counters_are_repaired_after_records_were_trimmed() -> Result<()> {
    check(5)
}

#[test]
fn every_outage_is_played_here() {
    let played: BTreeSet<Outage> = MONTHS.iter().flat_map(|(outages, ..)| outages.iter().copied()).collect();
    assert_eq!(played, Outage::ALL.into());
}
