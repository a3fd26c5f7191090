//! The planned outages of a month: the parts that break on its second day, and their alarms.

use chrono::TimeDelta;
use clap::ValueEnum;

/// The beginning of the first outage, in the middle of the month's second day.
const BEGINS_AFTER: TimeDelta = TimeDelta::hours(24 + 9);

/// The time from one outage to the next.
const APART: TimeDelta = TimeDelta::hours(3);

/// The time from an alarm to the operator's first action.
const OPERATOR_COMES_AFTER: TimeDelta = TimeDelta::minutes(20);

/// An outage. It lasts until an operator's actions end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Outage {
    /// Both mappings of the stream are disabled.
    StreamStandsStill,
    /// The same, and nobody comes for 30 hours. The stream keeps its records for 24.
    RecordsTrimmed,
    /// The mapping of `dispatch` is disabled.
    DispatchDisabled,
    /// The mapping of `settle` is disabled.
    SettleDisabled,
    /// The transaction service is away for two days.
    ServiceAway,
    /// Sweeps never come.
    NoSweeps,
    /// Redrives never come.
    NoRedrives,
    /// The report store rejects every call.
    ReportsFail,
    /// Every run of the archive fails.
    ArchiveFails,
    /// The archive never comes.
    NoArchive,
    /// The recount never comes.
    NoRecount,
    /// The journal is never written.
    NoJournal,
    /// DynamoDB throttles the writes of heads for hours.
    WritesThrottled,
    /// The API's functions fail.
    ApiFails,
    /// Results of payments that do not exist here.
    UnknownResults,
    /// The transaction service contradicts itself.
    Contradictions,
    /// A cancelled payment is processed.
    CancelledProcessed,
    /// The head of a scheduled payment is damaged by hand.
    ScheduledDamaged,
    /// The head of a pending payment is damaged by hand.
    PendingDamaged,
    /// The head of a settled payment is damaged by hand.
    SettledDamaged,
    /// A head's amount is damaged by hand, so no counter can count it.
    AmountDamaged,
    /// A head disagrees with its details.
    Disagreement,
}

/// The alarms of an outage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    /// The alarms that must go off, each within this time of the outage's beginning. The first leads to the cause.
    pub(crate) must: Vec<(&'static str, TimeDelta)>,
    /// The alarms that may go off beside them: consequences of the outage, or of its end.
    pub(crate) may: Vec<&'static str>,
}

impl Outage {
    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// All outages.
    pub const ALL: [Self; 22] = [
        Self::StreamStandsStill,
        Self::RecordsTrimmed,
        Self::DispatchDisabled,
        Self::SettleDisabled,
        Self::ServiceAway,
        Self::NoSweeps,
        Self::NoRedrives,
        Self::ReportsFail,
        Self::ArchiveFails,
        Self::NoArchive,
        Self::NoRecount,
        Self::NoJournal,
        Self::WritesThrottled,
        Self::ApiFails,
        Self::UnknownResults,
        Self::Contradictions,
        Self::CancelledProcessed,
        Self::ScheduledDamaged,
        Self::PendingDamaged,
        Self::SettledDamaged,
        Self::AmountDamaged,
        Self::Disagreement,
    ];

    /// Returns when each of some outages begins, after the beginning of the month.
    pub(crate) fn beginnings(outages: &[Self]) -> impl Iterator<Item = (Self, TimeDelta)> {
        let begins = std::iter::successors(Some(BEGINS_AFTER), |last| Some(*last + APART));
        outages.iter().copied().zip(begins)
    }

    /// The time from an alarm to the operator's first action.
    pub(crate) fn operator_comes_after(outages: &[Self]) -> TimeDelta {
        if outages.contains(&Self::RecordsTrimmed) { TimeDelta::hours(30) } else { OPERATOR_COMES_AFTER }
    }

    /// Whether an alarm leads to what is broken or damaged: its entry says where the log names that.
    pub(crate) fn is_named_by(self, alarm: &str) -> bool {
        self.expected().must.first().is_some_and(|(first, _)| *first == alarm)
    }

    /// Returns the alarms of the outage. The times are those of docs/alarms.md: an alarm's own periods, after the time
    /// until a function is affected. A payment or a run is affected within hours.
    pub(crate) fn expected(self) -> Expected {
        let (minutes, hours) = (TimeDelta::minutes, TimeDelta::hours);
        // A quarter of an hour (at most three quarters).
        let stopped = minutes(46);
        // 26 hours, of which the last run may have taken off some, and two hours in which older data still counts.
        let nightly = hours(26 + 2) + minutes(10);
        let (must, may): (&[(&'static str, TimeDelta)], &[&'static str]) = match self {
            Self::StreamStandsStill => {
                (&[("DispatchStopped", stopped), ("CountingStopped", stopped)], &["CountsBehind", "CountsDrifted"])
            }
            Self::RecordsTrimmed => (
                &[
                    ("DispatchStopped", stopped),
                    ("CountingStopped", stopped),
                    ("CountsDrifted", hours(48)),
                    // With few changes, drift is the only sign: its repair, and then the next change, bring the mark.
                    ("EventsMissing", hours(120)),
                ],
                &["CountsBehind", "DispatchBehind"],
            ),
            Self::DispatchDisabled => (&[("DispatchStopped", stopped)], &[]),
            Self::SettleDisabled => (&[("ResultsWaiting", hours(1 + 8))], &[]),
            Self::ServiceAway => (&[("RequestsWaiting", hours(1 + 8))], &[]),
            Self::NoSweeps => (&[("PaymentsOverdue", stopped)], &[]),
            Self::NoRedrives => (&[("RedriveFailures", hours(9) + minutes(10))], &[]),
            Self::ReportsFail => (&[("ReportErrors", hours(9))], &["ReportsLate", "JournalBehind"]),
            Self::ArchiveFails => (&[("ArchiveErrors", hours(25))], &[]),
            Self::NoArchive => (&[("ArchiveStopped", nightly)], &["ArchiveOverdue"]),
            Self::NoRecount => (&[("RecountStopped", nightly)], &[]),
            Self::NoJournal => (&[("JournalBehind", stopped)], &[]),
            Self::WritesThrottled => (
                &[("WriteThrottles", minutes(40))],
                &[
                    "PaymentsOverdue",
                    "ApiErrors",
                    "ApiFunctionErrors",
                    "FunctionErrors",
                    "RecordsFailing",
                    "ResultsWaiting",
                    "JournalBehind",
                ],
            ),
            Self::ApiFails => (&[("ApiErrors", minutes(11)), ("ApiFunctionErrors", minutes(11))], &[]),
            Self::UnknownResults => (
                &[
                    ("UnknownPayments", minutes(6)),
                    ("RecordsFailing", minutes(30)),
                    ("ResultDeadLettersAlarm", hours(2)),
                ],
                &[],
            ),
            Self::Contradictions => (&[("ConflictingResults", minutes(6))], &[]),
            Self::CancelledProcessed => (&[("CancelledPaymentsProcessed", minutes(6))], &[]),
            Self::ScheduledDamaged => (&[("SweepFailures", minutes(30))], &["PaymentsOverdue"]),
            Self::PendingDamaged => (
                &[("RedriveFailures", hours(2) + minutes(10))],
                &["RecordsFailing", "ResultDeadLettersAlarm", "DispatchFailuresAlarm"],
            ),
            Self::SettledDamaged => (&[("ReportFailures", hours(1) + minutes(5))], &[]),
            Self::AmountDamaged => (
                &[("ChangesUnparsed", minutes(10)), ("ChangesIrregular", minutes(10)), ("CountsDrifted", hours(26))],
                &["DatesUnreadable", "SweepFailures", "EventsMissing"],
            ),
            Self::Disagreement => {
                (&[("DisagreeingPayments", minutes(30)), ("DispatchFailuresAlarm", minutes(40))], &["RecordsFailing"])
            }
        };
        Expected { must: must.to_vec(), may: may.to_vec() }
    }
}
