//! The kinds of items in the tables, by their keys. Each has golden items in `tests/golden`.

use payments_model::{BusinessDate, UndoId};

use crate::counters::{checkpoint, repair};
use crate::key::audit::parse_audit_sort;
use crate::key::finding::{parse_finding_sort, parse_open_finding_sort};
use crate::key::{
    DETAILS_SORT, LANES, claims_partition, cleared_partition, control_partition, parse_details_sort, parse_head_key,
    parse_payment_partition, undo_partition,
};
use crate::log::consumer::{CONSUMERS, WEBHOOK};
use crate::log::head::HEAD;
use crate::payment::finding::OPEN;
use crate::report::job;
use crate::runs::cleared::NOT_BEFORE;
use crate::runs::figures::FIGURES;
use crate::runs::last::{Job, LAST};
use crate::runs::release::RELEASE;
use crate::runs::switch::SWITCH;
use crate::runs::undo::OPEN as OPEN_UNDOS;
use crate::webhook::endpoint::{CREATED, ENDPOINTS};

payments_model::kinds! {
    /// A kind of items. A new kind is added here: in tests, a call that writes an item of an unknown kind is denied.
    ItemKind {
        /// The head of a payment.
        Head = "head",
        /// The details that created a payment.
        FirstDetails = "first-details",
        /// The details of an amendment.
        AmendedDetails = "amended-details",
        /// The counter of a date and a lane.
        Counter = "counter",
        /// The last counted record of a stream shard.
        Checkpoint = "checkpoint",
        /// The report's last run.
        ReportRun = "report-run",
        /// The drift that a recount found.
        Drift = "drift",
        /// A settlement result that contradicts its payment.
        Finding = "finding",
        /// The mark of an open finding.
        OpenFinding = "open-finding",
        /// The intent of an operator's action.
        AuditIntent = "audit-intent",
        /// The outcome of an operator's action.
        AuditOutcome = "audit-outcome",
        /// The decision of a second person on an action.
        Approval = "approval",
        /// The head of the log.
        LogHead = "log-head",
        /// A segment of the log.
        Segment = "segment",
        /// The position of the journal or an event bus in the log.
        Consumer = "consumer",
        /// The position of a webhook endpoint in the log, and its deliveries.
        Deliveries = "deliveries",
        /// A webhook endpoint.
        Endpoint = "endpoint",
        /// The number of webhook endpoints that were created.
        EndpointsCreated = "endpoints-created",
        /// The last run of a job.
        LastRun = "last-run",
        /// The figures of a day.
        Figures = "figures",
        /// The sealed parts of a date whose data was cleared.
        ClearedParts = "cleared-parts",
        /// The instant before which nothing is cleared.
        ClearNotBefore = "clear-not-before",
        /// The switch that stops claims and sends.
        Switch = "switch",
        /// The reserved claims of a date that has a limit.
        DayClaims = "day-claims",
        /// The release of a date that its limit holds.
        DayRelease = "day-release",
        /// An undo, with its plans and runs.
        Undo = "undo",
        /// The ids of open undos.
        OpenUndos = "open-undos",
    }
}

impl ItemKind {
    /// The kind of the item at a key. `None` if no item has such a key.
    #[must_use]
    pub fn from_key(partition: &str, sort: &str) -> Option<Self> {
        if partition == control_partition() {
            let is_release = sort.strip_prefix(RELEASE).is_some_and(|date| date.parse::<BusinessDate>().is_ok());
            let kind = if is_release { Self::DayRelease } else { Self::Switch };
            return (is_release || sort == SWITCH).then_some(kind);
        }
        if partition == claims_partition() {
            return sort.parse::<BusinessDate>().ok().map(|_| Self::DayClaims);
        }
        if partition == cleared_partition() {
            let of_date = || sort.parse::<BusinessDate>().ok().map(|_| Self::ClearedParts);
            return if sort == NOT_BEFORE { Some(Self::ClearNotBefore) } else { of_date() };
        }
        if partition == undo_partition() {
            let is_undo = sort.parse::<UndoId>().is_ok();
            return if sort == OPEN_UNDOS { Some(Self::OpenUndos) } else { is_undo.then_some(Self::Undo) };
        }
        let (prefix, rest) = partition.split_once('#')?;
        match prefix {
            "ACCT" => parse_head_key(partition, sort).ok().map(|_| Self::Head),
            "PAY" => {
                parse_payment_partition(partition).ok()?;
                let is_first = sort == DETAILS_SORT;
                let kind = if is_first { Self::FirstDetails } else { Self::AmendedDetails };
                parse_details_sort(sort).ok().map(|_| kind)
            }
            "COUNTS" => rest.parse().is_ok_and(|lane: usize| lane < LANES).then_some(Self::Counter),
            "CHECKPOINT" => match rest {
                checkpoint::CONSUMER => Some(Self::Checkpoint),
                job::CONSUMER if sort == job::JOB => Some(Self::ReportRun),
                repair::CONSUMER => Some(Self::Drift),
                _ => None,
            },
            "AUDIT" => {
                let (_, is_outcome) = parse_audit_sort(sort).ok()?;
                Some(if is_outcome { Self::AuditOutcome } else { Self::AuditIntent })
            }
            "APPROVAL" => parse_audit_sort(sort).ok().filter(|(_, is_outcome)| !is_outcome).map(|_| Self::Approval),
            "LOG" => match rest {
                HEAD => (sort == HEAD).then_some(Self::LogHead),
                CONSUMERS if sort.starts_with(WEBHOOK) => Some(Self::Deliveries),
                CONSUMERS => Some(Self::Consumer),
                epoch => epoch.parse::<u32>().is_ok().then_some(Self::Segment),
            },
            "FINDINGS" if rest == OPEN => parse_open_finding_sort(sort).ok().map(|_| Self::OpenFinding),
            "FINDINGS" => parse_finding_sort(sort).ok().map(|_| Self::Finding),
            "WEBHOOK" if rest == ENDPOINTS => {
                Some(if sort == CREATED { Self::EndpointsCreated } else { Self::Endpoint })
            }
            "RUNS" => match rest {
                LAST => Job::from_name(sort).map(|_| Self::LastRun),
                FIGURES => sort.parse::<BusinessDate>().ok().map(|_| Self::Figures),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_kind_of_its_item_or_none() {
        let id = "626e8292-8e84-575a-b684-0af73927405b";
        for (partition, sort, kind) in [
            ("ACCT#tenant", &*format!("2026-12-01T00:00:00Z#{id}"), Some(ItemKind::Head)),
            ("ACCT#tenant", "2026-12-01", None),
            (&*format!("PAY#{id}"), "DETAILS", Some(ItemKind::FirstDetails)),
            (&*format!("PAY#{id}"), "NOTES", None),
            (&*format!("FINDINGS#{id}"), "FINDING#0123456789abcdef", Some(ItemKind::Finding)),
            (&*format!("FINDINGS#{id}"), "FINDING#0123", None),
            ("FINDINGS#OPEN", &*format!("{id}#0123456789abcdef"), Some(ItemKind::OpenFinding)),
            ("FINDINGS#OPEN", id, None),
            ("CHECKPOINT#recount", "2026-12-01", Some(ItemKind::Drift)),
            ("COUNTS#7", "2026-12-01", Some(ItemKind::Counter)),
            ("COUNTS#8", "2026-12-01", None),
            ("CHECKPOINT#report", "job", Some(ItemKind::ReportRun)),
            ("CHECKPOINT#report", "other", None),
            ("CHECKPOINT#sweep", "job", None),
            ("APPROVAL#2026-11", &*format!("2026-11-20T09:00:00Z#{id}"), Some(ItemKind::Approval)),
            ("APPROVAL#2026-11", &*format!("2026-11-20T09:00:00Z#{id}#outcome"), None),
            ("LOG#HEAD", "HEAD", Some(ItemKind::LogHead)),
            ("LOG#3622140", "000000000001", Some(ItemKind::Segment)),
            ("LOG#CONSUMERS", "journal", Some(ItemKind::Consumer)),
            ("LOG#CONSUMERS", "webhook#shop", Some(ItemKind::Deliveries)),
            ("LOG#OTHERS", "journal", None),
            ("WEBHOOK#ENDPOINTS", "shop", Some(ItemKind::Endpoint)),
            ("WEBHOOK#ENDPOINTS", "#CREATED", Some(ItemKind::EndpointsCreated)),
            ("WEBHOOK#OTHERS", "shop", None),
            ("RUNS#LAST", "sweep", Some(ItemKind::LastRun)),
            ("RUNS#LAST", "sweeps", None),
            ("RUNS#FIGURES", "2026-12-01", Some(ItemKind::Figures)),
            ("RUNS#FIGURES", "sweep", None),
            ("CLEARED", "2026-12-01", Some(ItemKind::ClearedParts)),
            ("CLEARED", "NOT-BEFORE", Some(ItemKind::ClearNotBefore)),
            ("CLEARED", "sweep", None),
            ("RUNS#OTHERS", "sweep", None),
            ("CONTROL", "SWITCH", Some(ItemKind::Switch)),
            ("CONTROL", "RELEASE#2026-12-01", Some(ItemKind::DayRelease)),
            ("CONTROL", "OTHER", None),
            ("CLAIMS", "2026-12-01", Some(ItemKind::DayClaims)),
            ("CLAIMS", "OTHER", None),
            ("UNDO", "0123456789abcdef", Some(ItemKind::Undo)),
            ("UNDO", "open", Some(ItemKind::OpenUndos)),
            ("UNDO", "closed", None),
            ("NOTES#1", "a", None),
        ] {
            assert_eq!(ItemKind::from_key(partition, sort), kind, "{partition} / {sort}");
        }
    }
}
