//! Cancelling payments: up to a hundred, each as its client would, unless it changed since it was shown.

use std::fmt;
use std::str::FromStr;

use futures::stream::{StreamExt as _, iter};
use payments_boot::Deadline;
use payments_http::{Form, Problem, invalid_field};
use payments_model::payment_id::PaymentIdError;
use payments_model::{Actor, Event, Head, PaymentId, Status, UtcSecond};
use payments_store::{DueSort, Moved, StoreError};

use crate::actions::candidate::{Candidate, shown};
use crate::actions::preview::{Buttons, Preview, counted};
use crate::actions::reason::{REASON, Reason};
use crate::function::Console;

/// The most payments of one action.
const MAX_PAYMENTS: usize = 100;

/// The longest field of ids, in bytes: two ids for each payment, or one with its version.
const MAX_FIELD_BYTES: usize = 8_000;

/// The most payments that are read or cancelled at once.
const AT_ONCE: usize = 16;

/// A cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cancel {
    pub(super) payments: Vec<Chosen>,
    /// The operator's reason, which a confirmation may have.
    reason: Option<Reason>,
}

impl Cancel {
    /// Reads the fields.
    pub(super) fn read(form: &mut Form) -> Result<Self, Problem> {
        Ok(Self { payments: read(form)?, reason: Reason::read(form)? })
    }

    /// The fields as [`Self::read`] reads them.
    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let lines = self.payments.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let reason = self.reason.as_ref().map(|reason| (REASON, reason.as_str().to_owned()));
        [("payments", lines)].into_iter().chain(reason).collect()
    }
}

/// A payment to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chosen {
    id: PaymentId,
    /// Its version in the preview.
    version: Option<u32>,
}

impl Chosen {
    /// Whether a preview has shown its version.
    pub(super) fn is_previewed(&self) -> bool {
        self.version.is_some()
    }
}

/// An id, after a preview with a version: `626e8292-8e84-575a-b684-0af73927405b@2`.
impl FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (id, version) = text.split_once('@').map_or((text, None), |(id, version)| (id, Some(version)));
        let version = version.map(|version| version.parse().map_err(|_| "the version is not a number")).transpose()?;
        Ok(Self { id: id.parse().map_err(|error: PaymentIdError| error.to_string())?, version })
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "{}@{version}", self.id),
            None => write!(f, "{}", self.id),
        }
    }
}

/// Reads the payments, one a line. A repeated id counts once.
fn read(form: &mut Form) -> Result<Vec<Chosen>, Problem> {
    const FIELD: &str = "payments";
    let text = form.take(FIELD, MAX_FIELD_BYTES)?;
    let mut payments: Vec<Chosen> = Vec::new();
    for (place, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let why = |error| invalid_field(FIELD, &format!("line {}: {error}", place + 1));
        let chosen: Chosen = line.trim().parse().map_err(why)?;
        if !payments.iter().any(|known| known.id == chosen.id) {
            payments.push(chosen);
        }
    }
    if payments.is_empty() || payments.len() > MAX_PAYMENTS {
        let why = format!("it has to be 1 to {MAX_PAYMENTS} ids of payments, each on a line");
        return Err(invalid_field(FIELD, &why));
    }
    Ok(payments)
}

impl Console {
    /// Shows each payment, and whether it can be cancelled: two reads for each, and one more for
    /// each that only the long-term table has. Also returns the cancel of those that can be cancelled, as they are, without
    /// a reason, for which the preview asks.
    pub(super) async fn preview_cancel(&self, payments: &[Chosen]) -> Result<(Preview, Cancel), Problem> {
        let deadline = self.deadline();
        let deadline = &deadline;
        let ids: Vec<PaymentId> = payments.iter().map(|chosen| chosen.id).collect();
        let read = iter(ids.into_iter().map(|id| async move {
            if deadline.has_come() {
                return Err(Problem::repeat());
            }
            Ok(self.candidate(id).await?)
        }));
        let candidates: Vec<Result<Candidate, Problem>> = read.buffered(AT_ONCE).collect().await;
        let candidates = candidates.into_iter().collect::<Result<Vec<_>, _>>()?;
        let can: Vec<_> = candidates.iter().filter(|candidate| candidate.can_be_cancelled()).collect();
        let can: Vec<_> =
            can.into_iter().map(|can| Chosen { id: can.id, version: can.head().map(|head| head.version) }).collect();
        let shown = shown(&candidates, self.times());
        let act = format!("Cancel {}", counted(can.len(), "payment"));
        let keep = if can.len() == 1 { "Keep it" } else { "Keep them" };
        let buttons = (!can.is_empty()).then_some(Buttons { act, keep, is_final: true });
        Ok((Preview { shown, buttons }, Cancel { payments: can, reason: None }))
    }

    async fn candidate(&self, id: PaymentId) -> Result<Candidate, StoreError> {
        let read = async {
            let Some(first) = self.store.details(id).await? else { return Ok(None) };
            let head = self.store.head(&first.key()).await?;
            Ok(Some((first, head)))
        };
        match read.await {
            Ok(found) => Ok(Candidate { id, found: Some(found) }),
            Err(error @ StoreError::Unreadable { .. }) => {
                tracing::error!(payment = %id, %error, "a payment cannot be read, and is not offered to be cancelled");
                Ok(Candidate { id, found: None })
            }
            Err(error) => Err(error),
        }
    }

    /// Cancels the payments that are as they were shown: two reads and one write for each.
    ///
    /// # Errors
    /// The first problem that leaves open whether a payment was cancelled. The others are tried all
    /// the same.
    pub(super) async fn cancel_all(
        &self,
        payments: &[Chosen],
        by: &Actor,
        since: UtcSecond,
    ) -> Result<Vec<String>, Problem> {
        let deadline = self.deadline();
        let each = iter(payments.iter().copied().map(|chosen| self.cancel_one(chosen, (by, since), &deadline)));
        // The whole stream is collected, so that no write is in flight when the request is answered.
        let lines: Vec<Result<String, Problem>> = each.buffered(AT_ONCE).collect().await;
        lines.into_iter().collect()
    }

    async fn cancel_one(
        &self,
        chosen: Chosen,
        (by, since): (&Actor, UtcSecond),
        deadline: &Deadline,
    ) -> Result<String, Problem> {
        if deadline.has_come() {
            return Err(Problem::repeat());
        }
        let id = chosen.id;
        Ok(match self.cancel_as_shown(chosen, by).await {
            Ok(Some(Cancelled::Done(head))) => {
                let (at, who) = head.last_change();
                let already = if at >= since && who == by { "" } else { " already" };
                format!("{id}: {}{already}", Status::Cancelled)
            }
            Ok(Some(Cancelled::Other(Status::Scheduled))) => {
                format!("{id}: not cancelled, it was amended since the preview")
            }
            Ok(Some(Cancelled::Other(status))) => format!("{id}: not cancelled, it is {status}"),
            Ok(Some(Cancelled::NoHead)) => format!("{id}: not cancelled, its create did not complete"),
            Ok(None) => format!("{id}: not cancelled, no payment has this id"),
            // This payment is not written to, and the outcomes of the others are shown.
            Err(error @ StoreError::Unreadable { .. }) => {
                tracing::error!(payment = %id, %error, "a payment cannot be cancelled");
                format!("{id}: not cancelled, it cannot be read; the function's log says why")
            }
            Err(error) => return Err(error.into()),
        })
    }

    /// Cancels a payment that has the version of its preview. `None` if there is no such payment.
    async fn cancel_as_shown(&self, chosen: Chosen, by: &Actor) -> Result<Option<Cancelled>, StoreError> {
        let Some(first) = self.store.details(chosen.id).await? else { return Ok(None) };
        let key = first.key();
        let Some(head) = self.store.head(&key).await? else { return Ok(Some(Cancelled::NoHead)) };
        if Some(head.version) != chosen.version {
            return Ok(Some(Cancelled::from_head(head)));
        }
        let Ok(step) = head.transition(&Event::Cancel, self.clock.now(), by.clone()) else {
            return Ok(Some(Cancelled::from_head(head)));
        };
        Ok(Some(match self.store.transition(&key, DueSort::from_head(&head), &step).await? {
            Moved::Done(head) => Cancelled::Done(head),
            Moved::Elsewhere(Some(head)) => Cancelled::from_head(*head),
            // The head was archived in between, or is in the long-term table alone.
            Moved::Elsewhere(None) => match self.store.archived_head(&key).await? {
                Some(head) => Cancelled::from_head(head),
                None => Cancelled::NoHead,
            },
        }))
    }
}

/// The result of a cancel.
enum Cancelled {
    /// The payment is cancelled, by this action or before.
    Done(Box<Head>),
    /// The payment changed since it was shown, and has this status.
    Other(Status),
    /// The payment has no head: its create did not complete.
    NoHead,
}

impl Cancelled {
    fn from_head(head: Head) -> Self {
        match head.state.status() {
            Status::Cancelled => Self::Done(Box::new(head)),
            status => Self::Other(status),
        }
    }
}
