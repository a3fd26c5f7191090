//! Creates a payment: first its details, then a head built from the stored details.
//!
//! Both writes can be repeated safely. A crash between them leaves details without a head: no reader sees such a
//! payment, and a retry completes it.
//!
//! If the details exist and the head is missing, `ingest` also looks for details of amendments. If the payment has any,
//! its head is lost, and `ingest` writes no head: a head from the first details would undo the amendments.

use futures::future::try_join;
use http::HeaderName;
use payments_http::{Answer, PaymentView, Problem, ProblemKind};
use payments_model::{Actor, Details, Due, Head, Money};
use payments_store::{PutDetails, PutHead, StoreError, details_excess};

use crate::dates::check_rule;
use crate::function::Ingest;
use crate::order::{Order, fault_of_new};

/// A created or amended payment.
#[derive(Debug)]
pub(crate) struct Created {
    /// The payment as it is now.
    pub(crate) payment: PaymentView,
    /// Whether an earlier request accepted it.
    pub(crate) replayed: bool,
}

impl Created {
    /// The answer to a client.
    pub(crate) fn answer(&self, status: u16) -> Result<Answer, Problem> {
        const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
        let answer = Answer::payment(status, &self.payment)?;
        Ok(if self.replayed { answer.header(REPLAYED, "true") } else { answer })
    }
}

impl Ingest {
    /// Creates one payment; a repeated create returns the first payment.
    pub(crate) async fn create(&self, order: &Order, by: &Actor) -> Result<Created, Problem> {
        let now = self.clock.now();
        let instruction = order.instruction.clone();
        let mut faults: Vec<Problem> = fault_of_new(instruction.money.currency).into_iter().collect();
        faults.extend(self.over_limit(instruction.money));
        faults.extend(check_rule(instruction.date_rule, &self.config.business_days).err());
        let as_asked = Due::as_asked(instruction.scheduled_for, self.config.business_days.zone());
        let due = self.due(&instruction, now).unwrap_or_else(|fault| {
            faults.push(fault);
            as_asked
        });
        let shards = self.config.write_shards;
        let details = Details::accept_due(order.payment_id, instruction, due, shards, now, by.clone());
        let excess = if faults.is_empty() {
            match self.store.put_details(&details).await? {
                PutDetails::Created => return self.complete(&details, order, false).await,
                PutDetails::Existing(stored) => return self.replay(*stored, order).await,
                PutDetails::TooLarge(excess) => Some(excess),
            }
        } else {
            details_excess(&details)
        };
        faults.extend(excess.map(too_large));
        // A new payment with faults is rejected. A retry of a created payment succeeds even if its currency, size or
        // date would be rejected today.
        match self.store.details(order.payment_id).await? {
            Some(stored) => self.replay(stored, order).await,
            None => Err(Problem::for_body(&order.pointer, faults)),
        }
    }

    /// Answers a request whose key was used before.
    async fn replay(&self, stored: Details, order: &Order) -> Result<Created, Problem> {
        let differences = stored.instruction.differences(&order.instruction);
        if !differences.is_empty() {
            let fields = differences.join(", ");
            let detail = format!(
                "The idempotency key belongs to a payment that differs in {fields}; use a new key for a new payment."
            );
            return Err(Problem::new(ProblemKind::IdempotencyKeyReused, detail).at_all(differences));
        }
        // Both reads run at once, so the answer takes no longer than with one read. The result of the
        // second read matters only if the payment has no head.
        let key = stored.key();
        let (head, was_amended) = try_join(self.store.head(&key), self.store.has_amendments(stored.payment_id)).await?;
        match head {
            Some(head) => Ok(Created { payment: self.view(&head, stored).await?, replayed: true }),
            None if was_amended => Err(self.missing(&stored).await?),
            None => self.complete(&stored, order, true).await,
        }
    }

    /// The fault of an amount above the bank's limit of one payment.
    pub(crate) fn over_limit(&self, money: Money) -> Option<Problem> {
        let limit = self.config.max_payment.exceeded_by(money)?;
        let detail = format!(
            "The amount is above the bank's limit of {} {} in minor units for one payment; send less.",
            limit.get(),
            money.currency
        );
        Some(Problem::new(ProblemKind::OverLimit, detail).at("amountMinor"))
    }

    /// The answer to a create whose payment was amended and has no head. The payment's first details
    /// no longer have the content that the client wants, so no head is built from these details.
    async fn missing(&self, first: &Details) -> Result<Problem, Problem> {
        // Only payments with a head are amended. So the head was written after the first read, or the head is lost.
        Ok(match self.store.head(&first.key()).await? {
            Some(_) => Problem::repeat(),
            None => Problem::internal(format!(
                "payment {} was amended, and its head is lost; see docs/restore.md, The lost head of an amended payment",
                first.payment_id
            )),
        })
    }

    /// The view of a payment, with the fields that only the details in force have. If a restore
    /// lost those details, the view has the head alone.
    pub(crate) async fn view(&self, head: &Head, first: Details) -> Result<PaymentView, Problem> {
        match self.store.details_in_force(head, first).await {
            Ok(details) => Ok(PaymentView::new(head).with_dates(&details)),
            Err(StoreError::Unreadable { .. }) => Ok(PaymentView::new(head)),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the head of stored details, or returns `date-passed` if the due date ended more than 30 minutes ago.
    async fn complete(&self, details: &Details, order: &Order, replayed: bool) -> Result<Created, Problem> {
        // Only finished payments are sealed, and their heads stay. So the head is lost, and not unwritten: a client that hears that
        // the date has passed would send the payment again.
        if details.is_sealed() {
            return Err(Problem::internal(format!("payment {} is sealed, and its head is lost", details.payment_id)));
        }
        self.check_completable(details, order)?;
        let head = Head::scheduled(details);
        let head = match self.store.put_head(&head).await? {
            PutHead::Created => head,
            PutHead::Existing(head) => *head,
        };
        if head.amendment.is_some() {
            // The payment was created and amended meanwhile. A retry reads the amendment's details.
            return Err(Problem::repeat());
        }
        Ok(Created { payment: PaymentView::new(&head).with_dates(details), replayed })
    }
}

pub(crate) fn too_large(excess: usize) -> Problem {
    let detail = format!("The payment with its data is {excess} bytes larger than a payment may be; shorten the data.");
    Problem::new(ProblemKind::PaymentTooLarge, detail).at("data").excess(excess)
}
