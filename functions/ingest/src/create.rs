//! Creating a payment: details first, then the head built from the stored details.
//!
//! Each write changes nothing when it is repeated, and a crash between the two leaves details
//! without a head: nothing visible, and the retry completes it.

use chrono::TimeDelta;
use payments_http::{Problem, ProblemKind};
use payments_model::{Actor, BusinessDate, Details, Head, Instruction};
use payments_store::{HeadKey, HeadSort, PutDetails, PutHead, details_excess};

use crate::Ingest;
use crate::order::Order;

/// How long after its business day a payment whose details were accepted in time may still get
/// its missing head. The archive waits an hour, so a head put within this never comes back from
/// the dead.
const COMPLETION_GRACE: TimeDelta = TimeDelta::minutes(30);

/// A payment that is there now.
#[derive(Debug)]
pub(crate) struct Created {
    /// As it stands.
    pub(crate) head: Head,
    /// Whether an earlier try had accepted it.
    pub(crate) replayed: bool,
}

impl Ingest {
    /// Puts one payment in, or finds that it is.
    pub(crate) async fn create(&self, order: &Order, by: &Actor) -> Result<Created, Problem> {
        let (zone, now) = (self.config.zone, self.clock.now());
        let instruction = order.instruction.clone();
        let details = Details::accept(order.payment_id, instruction, zone, self.config.write_shards, now, by.clone());
        if let Err(refusal) = self.judge(&details, zone.date_of(now)) {
            // Size and date are judged once, when the payment is accepted: a retry of an accepted
            // one is a replay, whatever the date is by now and whoever asks.
            return match self.store.details(order.payment_id).await? {
                Some(stored) => self.replay(stored, &order.instruction).await,
                None => Err(refusal),
            };
        }
        match self.store.put_details(&details).await? {
            PutDetails::Created => self.complete(&details, false).await,
            PutDetails::Existing(stored) => self.replay(*stored, &order.instruction).await,
        }
    }

    /// Whether a new payment is acceptable.
    fn judge(&self, details: &Details, today: BusinessDate) -> Result<(), Problem> {
        if let Some(excess) = details_excess(details)? {
            let detail =
                format!("The payment with its data is {excess} bytes larger than a payment may be; shorten the data.");
            return Err(Problem::new(ProblemKind::PaymentTooLarge, detail).at("data").excess(excess));
        }
        judge_date(details.due_date, today, self.config.horizon_days)
    }

    /// Answers a key that was used before.
    async fn replay(&self, stored: Details, asked: &Instruction) -> Result<Created, Problem> {
        let differences = stored.instruction.differences(asked);
        if !differences.is_empty() {
            let fields = differences.join(", ");
            let detail = format!(
                "The idempotency key belongs to a payment with another {fields}; use a new key for a new payment."
            );
            return Err(Problem::new(ProblemKind::IdempotencyKeyReused, detail).at_all(differences));
        }
        match self.store.head(&key_of(&stored)).await? {
            Some(head) => Ok(Created { head, replayed: true }),
            None => self.complete(&stored, true).await,
        }
    }

    /// Puts the head of accepted details, unless its time is over.
    async fn complete(&self, details: &Details, replayed: bool) -> Result<Created, Problem> {
        let head = Head::scheduled(details);
        let closes = self.config.zone.end_of(details.due_date).saturating_add(COMPLETION_GRACE);
        if self.clock.now() >= closes {
            return Err(passed(details.due_date));
        }
        match self.store.put_head(&head).await? {
            PutHead::Created => Ok(Created { head, replayed }),
            PutHead::Existing(head) => Ok(Created { head: *head, replayed }),
        }
    }
}

/// Where the head of these details is.
pub(crate) fn key_of(details: &Details) -> HeadKey {
    let sort = HeadSort { due_at: details.due_at, payment_id: details.payment_id };
    HeadKey { account: details.instruction.account.clone(), sort }
}

/// Whether a new payment may have this date: today or later, and within the horizon.
fn judge_date(due_date: BusinessDate, today: BusinessDate, horizon_days: u32) -> Result<(), Problem> {
    if due_date < today {
        return Err(passed(due_date));
    }
    if due_date.days_since(today) > horizon_days.into() {
        let detail = format!("Payments are taken {horizon_days} days ahead, until {}.", today.plus_days(horizon_days));
        return Err(Problem::new(ProblemKind::DateBeyondHorizon, detail).at("scheduledFor"));
    }
    Ok(())
}

fn passed(due_date: BusinessDate) -> Problem {
    let detail = format!("The business date {due_date} has passed; choose today or later.");
    Problem::new(ProblemKind::DatePassed, detail).at("scheduledFor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn today_is_allowed_and_yesterday_is_not() {
        let date = |text: &str| text.parse::<BusinessDate>().unwrap();
        let today = date("2026-11-20");
        for (due, want) in [
            ("2026-11-19", Err(ProblemKind::DatePassed)),
            ("2026-11-20", Ok(())),
            ("2027-11-20", Ok(())),
            ("2027-11-21", Err(ProblemKind::DateBeyondHorizon)),
        ] {
            assert_eq!(judge_date(date(due), today, 365).map_err(|problem| problem.kind()), want, "{due}");
        }
    }
}
