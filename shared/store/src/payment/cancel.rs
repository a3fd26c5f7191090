//! Cancels a scheduled payment: one conditional write, or up to three if its head differs from its first details.

use payments_model::{Actor, Details, Event, Head, Refusal, Status, UtcSecond};

use crate::error::StoreError;
use crate::key::due::DueSort;
use crate::payment::transition::Moved;
use crate::store::Store;

/// The most tries of a cancel: one by the first details, one by the head, and one for a head that
/// another change has changed since.
const MAX_TRIES: usize = 3;

/// The result of a cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// The payment is cancelled, by this call or before. The value is its head.
    Done(Box<Head>),
    /// The payment has this status, and can no longer be cancelled.
    TooLate(Status),
    /// The payment has no head: its create did not complete.
    NoHead,
    /// The payment was not cancelled, for this reason. An operator has to look at it.
    Stuck(String),
}

impl Store {
    /// Cancels the payment of these first details, if the payment is scheduled: 1 write unit for its head, and 2 for its `due`
    /// key. Nothing is read if the head is as it was created.
    pub async fn cancel_payment(&self, details: &Details, now: UtcSecond, by: &Actor) -> Result<Cancelled, StoreError> {
        // Most heads are as they were created before their first transition. So the details give the expected status,
        // version and due key, without a read.
        let key = details.key();
        let (mut known, mut tries) = (Head::scheduled(details), 0);
        loop {
            let step = match known.transition(&Event::Cancel, now, by.clone()) {
                Ok(step) => step,
                Err(Refusal::Already) => return Ok(Cancelled::Done(Box::new(known))),
                Err(Refusal::TooLate) => return Ok(Cancelled::TooLate(known.state.status())),
                Err(refusal) => return Ok(Cancelled::Stuck(refusal.to_string())),
            };
            if tries == MAX_TRIES {
                return Ok(Cancelled::Stuck(format!(
                    "payment {} is {}, but its head changes all the time, or is in the long-term table alone; \
                     correct its head by hand",
                    details.payment_id,
                    known.state.status()
                )));
            }
            tries += 1;
            known = match self.transition(&key, DueSort::from_head(&known), &step).await? {
                Moved::Done(head) => return Ok(Cancelled::Done(head)),
                Moved::Elsewhere(Some(head)) => *head,
                Moved::Elsewhere(None) => match self.archived_head(&key).await? {
                    Some(head) => head,
                    None => return Ok(Cancelled::NoHead),
                },
            };
        }
    }
}
