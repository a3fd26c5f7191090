//! Cancelling a scheduled payment.

use payments_http::{PaymentView, Problem, ProblemKind};
use payments_model::{AccountId, Actor, Decision, Event, Head, PaymentId, Status};
use payments_store::{DueSort, Moved};

use crate::Ingest;

impl Ingest {
    /// Cancels a payment of `account`; a repeated cancel returns the cancelled payment.
    pub(crate) async fn cancel(
        &self,
        account: &AccountId,
        payment_id: PaymentId,
        by: Actor,
    ) -> Result<PaymentView, Problem> {
        let details = self.store.details(payment_id).await?;
        let details =
            details.filter(|details| details.instruction.account == *account).ok_or_else(Problem::no_such_payment)?;
        // Nothing changes a head before its first transition. So the details give the expected status, version and due
        // key, without a read.
        let now = self.clock.now();
        let (scheduled, key) = (Head::scheduled(&details), details.key());
        let step = scheduled.transition(&Event::Cancel, now, by.clone()).map_err(Problem::internal)?;
        let found = match self.store.transition(&key, DueSort::of(&scheduled), &step).await? {
            Moved::Done(head) => return Ok(PaymentView::of(&head).with_dates(&details)),
            Moved::Elsewhere(Some(head)) => *head,
            Moved::Elsewhere(None) => self.store.archived_head(&key).await?.ok_or_else(Problem::no_such_payment)?,
        };
        match found.transition(&Event::Cancel, now, by) {
            Err(Decision::Already) => Ok(PaymentView::of(&found).with_dates(&details)),
            Err(Decision::TooLate) => Err(too_late(found.state.status())),
            _ => Err(Problem::internal(format!(
                "payment {payment_id} is {}, but its version or due key does not match its details; \
                 correct its head by hand",
                found.state.status()
            ))),
        }
    }
}

fn too_late(status: Status) -> Problem {
    let detail = format!("The payment is {status}; only a SCHEDULED payment can be cancelled.");
    Problem::new(ProblemKind::NotCancellable, detail)
}
