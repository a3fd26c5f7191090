//! Cancelling a scheduled payment.

use payments_http::{PaymentView, Problem, ProblemKind};
use payments_model::{AccountId, Actor, Decision, Event, Head, PaymentId, Status};
use payments_store::{DueSort, Moved};

use crate::Ingest;

/// The most tries of a cancel: one as the details say, one as the head says, and one if somebody else was first meanwhile.
const MAX_TRIES: usize = 3;

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
        // Most heads are as they were created before their first transition. So the details give the expected status,
        // version and due key, without a read.
        let (key, now) = (details.key(), self.clock.now());
        let (mut known, mut tries) = (Head::scheduled(&details), 0);
        loop {
            let step = match known.transition(&Event::Cancel, now, by.clone()) {
                Ok(step) => step,
                Err(Decision::Already) => return self.view(&known, details).await,
                Err(Decision::TooLate) => return Err(too_late(known.state.status())),
                Err(decision) => return Err(Problem::internal(decision)),
            };
            if tries == MAX_TRIES {
                return Err(Problem::internal(format!(
                    "payment {payment_id} is {}, but its head changes all the time, or is in the long-term table alone; \
                     correct its head by hand",
                    known.state.status()
                )));
            }
            tries += 1;
            known = match self.store.transition(&key, DueSort::of(&known), &step).await? {
                Moved::Done(head) => return self.view(&head, details).await,
                Moved::Elsewhere(Some(head)) => *head,
                Moved::Elsewhere(None) => self.store.archived_head(&key).await?.ok_or_else(Problem::no_such_payment)?,
            };
        }
    }
}

fn too_late(status: Status) -> Problem {
    let detail = format!("The payment is {status}; only a SCHEDULED payment can be cancelled.");
    Problem::new(ProblemKind::NotCancellable, detail)
}
