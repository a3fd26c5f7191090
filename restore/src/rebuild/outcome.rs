//! The changes and findings of a restore, and their texts.

use std::collections::BTreeMap;
use std::fmt;

use payments_model::{BusinessDate, DuePayment, Status};
use serde::Serialize;

/// The change of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The head gets the versions of the log that it lacks.
    Moved,
    /// The head is missing, and is built from the details and events.
    Built,
    /// The head becomes that of the long-term table.
    Completed,
    /// The settled head comes back into the hot table: no report lists the payment, or the due date is not over.
    PutBack,
    /// The long-term table lacks the settled head, which is copied there.
    Copied,
    /// The long-term table has the payment's end, so the hot table's head is removed.
    Removed,
    /// A published report lists the payment, so the head no longer waits for a report.
    Reported,
}

/// A finding that somebody must look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The head is newer than the log, and stays.
    Above,
    /// Head, log, long-term table or report contradict each other. Nothing changes.
    Differs,
    /// The log lacks versions in between. Nothing changes.
    Incomplete,
    /// The first details are lost, and there is no head; or the details of the amendment in force are lost, and nothing
    /// is sent for the head.
    DetailsLost,
    /// A report lists the payment, and no table has its settlement.
    ReportedUnsettled,
    /// `--except` names a change, but the payment was sent or settled, or is archived. The change is restored.
    Kept,
    /// `--except` names a change, which is left out.
    LeftOut,
    /// Something else than this system changed the payment.
    Irregular,
    /// An item cannot be read.
    Unreadable,
    /// There are details, and neither a head nor an event. Nothing changes.
    NoEvent,
    /// The log or the journal has a hole or a gap.
    Gap,
    /// The long-term table that was replaced cannot be read, so findings of contradicting results may be lost, and their closings.
    ContradictionsLost,
}

impl Change {
    fn text(self) -> &'static str {
        match self {
            Self::Moved => "get the versions that they lack",
            Self::Built => "are built from details and events",
            Self::Completed => "become what the long-term table says",
            Self::PutBack => "come back: no report lists their settlement, or their date is not over",
            Self::Copied => "are copied to the long-term table",
            Self::Removed => "are removed: the long-term table has their end",
            Self::Reported => "wait for no report: a published one lists them",
        }
    }
}

impl Finding {
    fn text(self) -> &'static str {
        match self {
            Self::Above => "newer than the log",
            Self::Differs => "DIFFERENT",
            Self::Incomplete => "INCOMPLETE",
            Self::DetailsLost => "DETAILS LOST",
            Self::ReportedUnsettled => "REPORTED, BUT NOT SETTLED",
            Self::Kept => "KEPT IN SPITE OF --except",
            Self::LeftOut => "left out",
            Self::Irregular => "changed by something else",
            Self::Unreadable => "UNREADABLE",
            Self::NoEvent => "details alone",
            Self::Gap => "GAP",
            Self::ContradictionsLost => "CONTRADICTIONS LOST",
        }
    }
}

impl Finding {
    /// The meaning, and what somebody must do about it.
    fn meaning(self) -> &'static str {
        match self {
            Self::Above => "The table has a change that the log lacks. It stays.",
            Self::Differs => {
                "Tables, log or report contradict each other, and nothing is changed. Compare the payment by hand."
            }
            Self::Incomplete => {
                "The log lacks changes of this payment, so it stays as restored. If that is SCHEDULED, it is paid when the \
                 sweep runs again, although it may be amended or cancelled: ask its client, and the transaction service. \
                 Cancel what must not be paid before that: `cargo restore cancel --payment ACCOUNT/ID`."
            }
            Self::DetailsLost => {
                "The restored long-term table does not know this payment. If it was SCHEDULED, its client sends it again with \
                 the same key. Otherwise first ask the transaction service. If an amendment lost its details, or they differ \
                 from the log, nothing is sent: end it after the restore, as docs/restore.md says in A payment whose \
                 amendment has no details."
            }
            Self::ReportedUnsettled => {
                "Its result must come again before it may be reported: ask the transaction service."
            }
            Self::Kept => {
                "It was sent or settled, or is archived, so it is restored in spite of --except. If an earlier instant is \
                 named, T is after the fault: begin again with an earlier T."
            }
            Self::LeftOut => {
                "--except names it. Its details stay: if a client sends it again with the same key, it is created, unless it \
                 was amended."
            }
            Self::Irregular => "The log has a `payment.irregular` of it. Compare the payment by hand.",
            Self::Unreadable => "Correct the item by hand, then repeat.",
            Self::NoEvent => "It was accepted, and never logged. Ask its client.",
            Self::Gap => {
                "The log lacks changes of that time: ask those who cancel, and the transaction service. If --apply is refused \
                 for it, nobody knows what was cancelled meanwhile, and the sweep pays it: read the journal, and copy files \
                 that your copy lacks. If it is still refused, give --accept-gaps, and also do Without log and journal of \
                 docs/restore.md before anything is swept."
            }
            Self::ContradictionsLost => {
                "Findings of results that contradicted their payments since the restored instant are lost until the results come \
                 again, and those that were closed since are open again: ask the transaction service which results it sent."
            }
        }
    }
}

/// A line of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", untagged)]
pub enum Line {
    /// A payment that changes.
    #[serde(rename_all = "camelCase")]
    Change {
        /// The change.
        change: Change,
        /// The payment.
        payment_id: String,
        /// The account.
        account_id: String,
        /// The due time.
        due_at: String,
        /// The head's status after the change.
        to: &'static str,
    },
    /// A payment, or a place, that somebody must look at.
    #[serde(rename_all = "camelCase")]
    Finding {
        /// The kind of finding.
        finding: Finding,
        /// The payment, if the finding is about one.
        #[serde(skip_serializing_if = "Option::is_none")]
        payment_id: Option<String>,
        /// The account.
        #[serde(skip_serializing_if = "Option::is_none")]
        account_id: Option<String>,
        /// The due time.
        #[serde(skip_serializing_if = "Option::is_none")]
        due_at: Option<String>,
        /// The explanation.
        why: String,
    },
}

impl Line {
    pub(crate) fn change(change: Change, payment: &DuePayment, to: Status) -> Self {
        Self::Change {
            change,
            payment_id: payment.payment_id.to_string(),
            account_id: payment.account.to_string(),
            due_at: payment.due_at.to_string(),
            to: to.as_str(),
        }
    }

    pub(crate) fn finding(finding: Finding, payment: &DuePayment, why: String) -> Self {
        Self::Finding {
            finding,
            payment_id: Some(payment.payment_id.to_string()),
            account_id: Some(payment.account.to_string()),
            due_at: Some(payment.due_at.to_string()),
            why,
        }
    }

    pub(crate) fn place(finding: Finding, why: String) -> Self {
        Self::Finding { finding, payment_id: None, account_id: None, due_at: None, why }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change { change, payment_id, account_id, due_at, to } => {
                write!(f, "{payment_id} of {account_id}, due {due_at}: {change:?}, {to}")
            }
            Self::Finding { finding, payment_id: Some(payment), account_id: Some(account), due_at, why } => {
                let due_at = due_at.as_deref().unwrap_or("?");
                write!(f, "{}: {payment} of {account}, due {due_at}: {why}", finding.text())
            }
            Self::Finding { finding, why, .. } => write!(f, "{}: {why}", finding.text()),
        }
    }
}

/// The receivers of a run's output. Both are called often.
pub struct Told<L: Fn(&Line), P: Fn(&str, u64, u64)> {
    /// Called with each line.
    pub line: L,
    /// Called with the kind of work, the amount done, and the whole amount.
    pub progress: P,
}

/// The totals of a run, planned or done.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The number of events that were read.
    pub events: u64,
    /// The number of payments that were looked at: those of the events and reports, and those that ended since.
    pub payments: u64,
    /// The number of payments with each change.
    pub changes: BTreeMap<Change, u64>,
    /// The number of findings of each kind.
    pub findings: BTreeMap<Finding, u64>,
    /// The run that becomes the report's last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_run: Option<u64>,
    /// The dates whose counters or reserved claims were set, or differ from a recount.
    #[serde(serialize_with = "texts")]
    pub counters: Vec<BusinessDate>,
    /// The number of checkpoints and findings of recounts that were deleted, or are to be deleted.
    pub forgotten: u64,
    /// The number of findings of contradicting results that were copied, or are to be copied, or their closings.
    pub contradictions: u64,
}

fn texts<S: serde::Serializer>(dates: &[BusinessDate], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(dates.iter().map(ToString::to_string))
}

impl Outcome {
    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        let is_counted = self.counters.is_empty() && self.forgotten == 0;
        self.changes.is_empty() && self.report_run.is_none() && is_counted && self.contradictions == 0
    }

    pub(crate) fn note(&mut self, line: &Line) {
        match line {
            Line::Change { change, .. } => *self.changes.entry(*change).or_default() += 1,
            Line::Finding { finding, .. } => *self.findings.entry(*finding).or_default() += 1,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} payments, of {} events", self.payments, self.events)?;
        for (change, count) in &self.changes {
            writeln!(f, "{count:>9} heads {}", change.text())?;
        }
        if let Some(run) = self.report_run {
            writeln!(f, "          the report's last run is {run}")?;
        }
        if !self.counters.is_empty() {
            writeln!(f, "{:>9} dates' counters or claims differ from their payments", self.counters.len())?;
        }
        if self.forgotten > 0 {
            writeln!(f, "{:>9} checkpoints and findings of recounts go", self.forgotten)?;
        }
        if self.contradictions > 0 {
            writeln!(f, "{:>9} contradicting results come back, or are closed again", self.contradictions)?;
        }
        for (finding, count) in &self.findings {
            writeln!(f, "{count:>9} to look at: {}. {}", finding.text(), finding.meaning())?;
        }
        if self.is_nothing() { writeln!(f, "Nothing is left to do.") } else { Ok(()) }
    }
}
