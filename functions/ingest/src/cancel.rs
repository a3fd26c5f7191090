//! Cancelling a scheduled payment.

use payments_http::{PaymentView, Problem, ProblemKind};
use payments_model::{AccountId, Actor, PaymentId, Status};
use payments_store::Cancelled;

use crate::function::Ingest;

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
        match self.store.cancel_payment(&details, self.clock.now(), &by).await? {
            Cancelled::Done(head) => self.view(&head, details).await,
            Cancelled::TooLate(status) => Err(too_late(status)),
            Cancelled::NoHead => Err(Problem::no_such_payment()),
            Cancelled::Stuck(why) => Err(Problem::internal(why)),
        }
    }
}

fn too_late(status: Status) -> Problem {
    let detail = format!("The payment is {status}; only a SCHEDULED payment can be cancelled.");
    Problem::new(ProblemKind::NotCancellable, detail)
}
