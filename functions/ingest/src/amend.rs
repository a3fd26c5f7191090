//! Amends a scheduled payment: first writes the new details, then makes the payment's head name them.
//!
//! Both writes can be repeated safely. A crash between them leaves details that no head names: such
//! details were never in force, and a retry completes the amendment. The head's key never changes,
//! so a claim, a cancel or a settlement still finds the head.

use payments_boot::Deadline;
use payments_http::{PaymentView, Problem, ProblemKind};
use payments_model::{Actor, Amended, AmendmentId, Details, Due, Head, Instruction, MAX_AMENDMENTS, State, UtcSecond};
use payments_store::{Moved, PutDetails, details_excess};

use crate::create::{Created, too_large};
use crate::dates::check_rule;
use crate::function::Ingest;
use crate::order::{Order, Wish, fault_of_new};

/// The most tries of an amendment. The second try is for a head that another change has changed
/// since the first try read it.
const MAX_TRIES: usize = 2;

impl Ingest {
    /// Amends a payment; a repeated amendment returns the payment as it is now.
    pub(crate) async fn amend(&self, wish: &Wish<'_>, by: &Actor) -> Result<Created, Problem> {
        let wanted = &wish.order.instruction;
        let first_details = self.store.details(wish.payment_id).await?;
        let first_details = first_details.filter(|details| details.instruction.account == wanted.account);
        let first_details = first_details.ok_or_else(Problem::no_such_payment)?;
        let id = AmendmentId::derive(wish.payment_id, wish.key);
        let deadline = Deadline::for_http(&self.clock);
        for _ in 0..MAX_TRIES {
            let head = self.store.head(&first_details.key()).await?.ok_or_else(Problem::no_such_payment)?;
            let chain = self.store.details_chain(&head, || !deadline.has_come()).await?;
            let chain = chain.filter(|_| !deadline.has_come()).ok_or_else(Problem::repeat)?;
            // The chain begins with the details in force. Without amendments, the chain is empty.
            let in_force = chain.first().unwrap_or(&first_details);
            if let Some(before) = chain.iter().find(|details| is_of_amendment(details, id)) {
                check_same_content(before, wanted)?;
                return Ok(Created { payment: PaymentView::new(&head).with_dates(in_force), replayed: true });
            }
            self.check_amendable(&head, &chain, wish.version)?;
            let details = self.put_amendment(&head, in_force, id, (wish.order, by)).await?;
            let changed = in_force.instruction.differences(&details.instruction);
            let changed = changed.into_iter().map(str::to_owned).collect();
            let Some(amendment) = details.amendment else { return Err(Problem::internal("these are first details")) };
            let amended = Amended { at: self.clock.now(), by: by.clone(), changed };
            let amended = head.amended(amendment.name, &details, amended);
            // If the head has changed, another change was first, or DynamoDB's answer to this change was
            // lost. The next try reads the head, and finds out which.
            if let Moved::Done(head) = self.store.amend(&head, &amended).await? {
                return Ok(Created { payment: PaymentView::new(&head).with_dates(&details), replayed: false });
            }
        }
        Err(Problem::repeat())
    }

    /// Checks that the payment can be amended, and has the version that the client has seen.
    fn check_amendable(&self, head: &Head, chain: &[Details], version: u32) -> Result<(), Problem> {
        if head.state != State::Scheduled {
            let detail = format!("The payment is {}; only a SCHEDULED payment can be amended.", head.state.status());
            return Err(Problem::new(ProblemKind::NotAmendable, detail).current_version(head.version));
        }
        if head.version != version {
            let detail = format!(
                "The payment has version {}, and If-Match names {version}; read it again, and decide anew.",
                head.version
            );
            return Err(Problem::new(ProblemKind::VersionChanged, detail).current_version(head.version));
        }
        // The bank's own amendments are few, and do not count towards the client's limit.
        let of_clients = chain.iter().filter(|details| !details.created_by.is_redate()).count();
        if u32::try_from(of_clients).unwrap_or(u32::MAX) >= MAX_AMENDMENTS {
            let detail = format!("The payment was amended {MAX_AMENDMENTS} times; cancel it and create another.");
            return Err(Problem::new(ProblemKind::TooManyAmendments, detail));
        }
        Ok(())
    }

    /// Writes the amendment's details, or returns the details that an earlier try wrote.
    async fn put_amendment(
        &self,
        head: &Head,
        in_force: &Details,
        id: AmendmentId,
        (order, by): (&Order, &Actor),
    ) -> Result<Details, Problem> {
        let (now, wanted) = (self.clock.now(), &order.instruction);
        let (due, mut faults) = self.due_of_amendment(in_force, wanted, now);
        let details = in_force.amended(head, id, wanted.clone(), (now, by.clone()));
        let details = Details { due_at: due.at, due_date: due.date, moved: due.moved, ..details };
        let known = if faults.is_empty() {
            match self.store.put_details(&details).await? {
                PutDetails::Created => return Ok(details),
                PutDetails::Existing(known) => Some(*known),
                PutDetails::TooLarge(excess) => {
                    faults.push(too_large(excess));
                    None
                }
            }
        } else {
            faults.extend(details_excess(&details).map(too_large));
            None
        };
        let Some(known) = known else { return Err(Problem::for_body(&order.pointer, faults)) };
        check_same_content(&known, wanted)?;
        if known.amendment != details.amendment {
            let detail = "The idempotency key belongs to an amendment that a restore took back; use a new key.";
            return Err(Problem::new(ProblemKind::IdempotencyKeyReused, detail));
        }
        // The details of an earlier try were never in force, so their date is checked again.
        if known.due_at != in_force.due_at {
            self.check_completable(&known, order)?;
        }
        if decides_date(&in_force.instruction.differences(wanted)) {
            self.check_date_accepted(&known, now)?;
        }
        Ok(known)
    }

    /// Checks that the date of an earlier try's details can still be accepted: a calendar may have
    /// closed the date since, or the date's cut-off may have passed. Stored details never change, so
    /// after a failure the client needs a new idempotency key.
    fn check_date_accepted(&self, known: &Details, now: UtcSecond) -> Result<(), Problem> {
        let (days, order) = (&self.config.business_days, &known.instruction);
        if days.takes((known.due_at, known.due_date), (order.money.currency, order.date_rule), now) {
            return Ok(());
        }
        let detail = format!(
            "The idempotency key belongs to an amendment that never came into force, and its date {} takes no more payments; use a new key.",
            known.due_date
        );
        Err(Problem::new(ProblemKind::IdempotencyKeyReused, detail))
    }

    /// Returns when the amended payment is due, and the faults of its amount, currency, date rule and date.
    /// The amount, the currency and the date rule are judged only if they changed. The date is judged, and the
    /// due time computed again, only if one of the fields that decide the date changed.
    fn due_of_amendment(&self, in_force: &Details, wanted: &Instruction, now: UtcSecond) -> (Due, Vec<Problem>) {
        let old = &in_force.instruction;
        let changed = old.differences(wanted);
        let has = |field: &str| changed.contains(&field);
        let currency = Some(wanted.money.currency).filter(|_| has("currency"));
        let mut faults: Vec<Problem> = currency.and_then(fault_of_new).into_iter().collect();
        if has("amountMinor") || has("currency") {
            faults.extend(self.over_limit(wanted.money));
        }
        let as_it_is = Due { at: in_force.due_at, date: in_force.due_date, moved: in_force.moved.clone() };
        if has("dateRule") {
            faults.extend(check_rule(wanted.date_rule, &self.config.business_days).err());
        }
        if !decides_date(&changed) {
            return (as_it_is, faults);
        }
        let due = self.due(wanted, now).unwrap_or_else(|fault| {
            faults.push(fault);
            as_it_is
        });
        (due, faults)
    }
}

/// Whether one of the changed fields decides when a payment is due.
fn decides_date(changed: &[&str]) -> bool {
    ["scheduledFor", "dateRule", "currency"].iter().any(|field| changed.contains(field))
}

/// Whether details were written by the amendment with this id.
fn is_of_amendment(details: &Details, id: AmendmentId) -> bool {
    details.amendment.is_some_and(|amendment| amendment.name.id == id)
}

/// Checks that a repeated amendment has the same content as the first request.
fn check_same_content(before: &Details, wanted: &Instruction) -> Result<(), Problem> {
    let differences = before.instruction.differences(wanted);
    if differences.is_empty() {
        return Ok(());
    }
    let fields = differences.join(", ");
    let detail = format!(
        "The idempotency key belongs to an amendment of this payment that differs in {fields}; use a new key for a new amendment."
    );
    Err(Problem::new(ProblemKind::IdempotencyKeyReused, detail).at_all(differences))
}
