//! Cancelling payments: up to a hundred, each as its client would.

mod shown;

use futures::stream::{StreamExt as _, iter};
use payments_boot::Deadline;
use payments_http::{Form, Problem, invalid_field};
use payments_model::{Actor, Details, Head, PaymentId, Status, UtcSecond};
use payments_store::{Cancelled, StoreError};

use crate::actions::preview::{Buttons, Preview, counted};
use crate::function::Console;

/// The most payments of one action.
const MAX_PAYMENTS: usize = 100;

/// The longest field of ids, in bytes: two ids for each payment.
const MAX_FIELD_BYTES: usize = 8_000;

/// The most payments that are read or cancelled at once.
const AT_ONCE: usize = 16;

/// A payment that may be cancelled.
struct Candidate {
    id: PaymentId,
    /// Its first details and its head, as far as they exist; `None` if they cannot be read.
    found: Option<Option<(Details, Option<Head>)>>,
}

/// Reads the ids, one a line. A repeated id counts once.
pub(super) fn read(form: &mut Form) -> Result<Vec<PaymentId>, Problem> {
    const FIELD: &str = "payments";
    let text = form.take(FIELD, MAX_FIELD_BYTES)?;
    let mut payments = Vec::new();
    for (place, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let why = |error| invalid_field(FIELD, &format!("line {}: {error}", place + 1));
        let id: PaymentId = line.trim().parse().map_err(why)?;
        if !payments.contains(&id) {
            payments.push(id);
        }
    }
    if payments.is_empty() || payments.len() > MAX_PAYMENTS {
        let why = format!("it has to be 1 to {MAX_PAYMENTS} ids of payments, each on a line");
        return Err(invalid_field(FIELD, &why));
    }
    Ok(payments)
}

/// The ids as [`read`] reads them.
pub(super) fn lines(payments: &[PaymentId]) -> String {
    payments.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Console {
    /// Shows each payment, and whether it can be cancelled: two reads for each, and one more for
    /// each that only the long-term table has. Also returns the payments that can be cancelled.
    pub(super) async fn preview_cancel(&self, payments: &[PaymentId]) -> Result<(Preview, Vec<PaymentId>), Problem> {
        let deadline = self.deadline();
        let deadline = &deadline;
        let read = iter(payments.iter().copied().map(|id| async move {
            if deadline.has_come() {
                return Err(Problem::repeat());
            }
            Ok(self.candidate(id).await?)
        }));
        let candidates: Vec<Result<Candidate, Problem>> = read.buffered(AT_ONCE).collect().await;
        let candidates = candidates.into_iter().collect::<Result<Vec<_>, _>>()?;
        let can: Vec<_> =
            candidates.iter().filter(|candidate| candidate.can_be_cancelled()).map(|can| can.id).collect();
        let shown = shown::shown(&candidates, self.times());
        let act = format!("Cancel {}", counted(can.len(), "payment"));
        let keep = if can.len() == 1 { "Keep it" } else { "Keep them" };
        let buttons = (!can.is_empty()).then_some(Buttons { act, keep, is_final: true });
        Ok((Preview { shown, buttons }, can))
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

    /// Cancels the payments that are still scheduled: one read and one write for each.
    ///
    /// # Errors
    /// The first problem that leaves open whether a payment was cancelled. The others are tried all
    /// the same.
    pub(super) async fn cancel_all(
        &self,
        payments: &[PaymentId],
        by: &Actor,
        since: UtcSecond,
    ) -> Result<Vec<String>, Problem> {
        let deadline = self.deadline();
        let each = iter(payments.iter().copied().map(|id| self.cancel_one(id, (by, since), &deadline)));
        // The whole stream is collected, so that no write is in flight when the request is answered.
        let lines: Vec<Result<String, Problem>> = each.buffered(AT_ONCE).collect().await;
        lines.into_iter().collect()
    }

    async fn cancel_one(
        &self,
        id: PaymentId,
        (by, since): (&Actor, UtcSecond),
        deadline: &Deadline,
    ) -> Result<String, Problem> {
        if deadline.has_come() {
            return Err(Problem::repeat());
        }
        let cancel = async {
            let Some(first) = self.store.details(id).await? else { return Ok(None) };
            self.store.cancel_payment(&first, self.clock.now(), by).await.map(Some)
        };
        Ok(match cancel.await {
            Ok(None) => format!("{id}: there is no such payment"),
            Ok(Some(Cancelled::Done(head))) => {
                let (at, who) = head.last_change();
                let already = if at >= since && who == by { "" } else { " already" };
                format!("{id}: {}{already}", Status::Cancelled)
            }
            Ok(Some(Cancelled::TooLate(status))) => format!("{id}: not cancelled, it is {status}"),
            Ok(Some(Cancelled::NoHead)) => format!("{id}: not cancelled, its create did not complete"),
            Ok(Some(Cancelled::Stuck(why))) => {
                tracing::error!(payment = %id, why, "a payment cannot be cancelled");
                format!("{id}: not cancelled; the function's log says why")
            }
            // This payment is not written to, and the outcomes of the others are shown.
            Err(error @ StoreError::Unreadable { .. }) => {
                tracing::error!(payment = %id, %error, "a payment cannot be cancelled");
                format!("{id}: not cancelled, it cannot be read; the function's log says why")
            }
            Err(error) => return Err(error.into()),
        })
    }
}

impl Candidate {
    fn head(&self) -> Option<&Head> {
        self.found.as_ref()?.as_ref().and_then(|(_, head)| head.as_ref())
    }

    fn can_be_cancelled(&self) -> bool {
        self.head().is_some_and(|head| head.state.status() == Status::Scheduled)
    }
}
