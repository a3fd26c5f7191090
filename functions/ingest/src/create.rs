//! Creating a payment: first its details, then a head built from the stored details.
//!
//! Both writes are idempotent. A crash between them leaves details without a head: no reader sees such a payment,
//! and a retry completes it.

use chrono::TimeDelta;
use payments_http::{Problem, ProblemKind};
use payments_model::{Actor, BusinessDate, Details, Head};
use payments_store::{PutDetails, PutHead, details_excess};

use crate::Ingest;
use crate::order::{Order, faults_of_new};

/// How long after its business day a payment with details may still get a missing head. The archive waits an
/// hour, so a head written within this time was not archived before.
const COMPLETION_GRACE: TimeDelta = TimeDelta::minutes(30);

/// A created payment.
#[derive(Debug)]
pub(crate) struct Created {
    /// Its current head.
    pub(crate) head: Head,
    /// Whether an earlier request accepted it.
    pub(crate) replayed: bool,
}

impl Ingest {
    /// Creates one payment; a repeated create returns the first payment.
    pub(crate) async fn create(&self, order: &Order, by: &Actor) -> Result<Created, Problem> {
        let (zone, now) = (self.config.zone, self.clock.now());
        let instruction = order.instruction.clone();
        let details = Details::accept(order.payment_id, instruction, zone, self.config.write_shards, now, by.clone());
        let mut faults = faults_of_new(Some(order.instruction.money.amount), Some(order.instruction.money.currency));
        faults.extend(check_date(details.due_date, zone.date_of(now), self.config.horizon_days).err());
        let excess = if faults.is_empty() {
            match self.store.put_details(&details, self.config.codec).await? {
                PutDetails::Created => return self.complete(&details, order, false).await,
                PutDetails::Existing(stored) => return self.replay(*stored, order).await,
                PutDetails::TooLarge(excess) => Some(excess),
            }
        } else {
            details_excess(&details)?
        };
        faults.extend(excess.map(too_large));
        // Amount, currency, size and date are checked only at creation. A retry of a created payment succeeds on any later
        // date, for any caller.
        match self.store.details(order.payment_id).await? {
            Some(stored) => self.replay(stored, order).await,
            None => Err(Problem::of_body(&order.pointer, faults)),
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
        match self.store.head(&stored.key()).await? {
            Some(head) => Ok(Created { head, replayed: true }),
            None => self.complete(&stored, order, true).await,
        }
    }

    /// Writes the head of stored details, or returns `date-passed` if the due date ended more than 30 minutes ago.
    async fn complete(&self, details: &Details, order: &Order, replayed: bool) -> Result<Created, Problem> {
        let head = Head::scheduled(details);
        let closes = self.config.zone.end_of(details.due_date).saturating_add(COMPLETION_GRACE);
        if self.clock.now() >= closes {
            return Err(Problem::of_body(&order.pointer, vec![passed(details.due_date)]));
        }
        match self.store.put_head(&head).await? {
            PutHead::Created => Ok(Created { head, replayed }),
            PutHead::Existing(head) => Ok(Created { head: *head, replayed }),
        }
    }
}

/// Checks a new payment's date: today or later, and within the horizon.
fn check_date(due_date: BusinessDate, today: BusinessDate, horizon_days: u32) -> Result<(), Problem> {
    if due_date < today {
        return Err(passed(due_date));
    }
    if due_date.days_since(today) > horizon_days.into() {
        let detail = format!(
            "The business date {due_date} is more than {horizon_days} days ahead; choose {} or earlier.",
            today.plus_days(horizon_days)
        );
        return Err(Problem::new(ProblemKind::DateBeyondHorizon, detail).at("scheduledFor"));
    }
    Ok(())
}

fn too_large(excess: usize) -> Problem {
    let detail = format!("The payment with its data is {excess} bytes larger than a payment may be; shorten the data.");
    Problem::new(ProblemKind::PaymentTooLarge, detail).at("data").excess(excess)
}

fn passed(due_date: BusinessDate) -> Problem {
    let detail = format!("The business date {due_date} has passed; choose today or later.");
    Problem::new(ProblemKind::DatePassed, detail).at("scheduledFor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_from_today_to_the_horizon_are_allowed() {
        let date = |text: &str| text.parse::<BusinessDate>().unwrap();
        let today = date("2026-11-20");
        for (due, want) in [
            ("2026-11-19", Err(ProblemKind::DatePassed)),
            ("2026-11-20", Ok(())),
            ("2027-11-20", Ok(())),
            ("2027-11-21", Err(ProblemKind::DateBeyondHorizon)),
        ] {
            assert_eq!(check_date(date(due), today, 365).map_err(|problem| problem.kind()), want, "{due}");
        }
    }
}
