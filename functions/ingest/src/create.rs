//! Creating a payment: first its details, then a head built from the stored details.
//!
//! Both writes are idempotent. A crash between them leaves details without a head: no reader sees such a payment,
//! and a retry completes it.

use chrono::TimeDelta;
use futures::future::try_join;
use http::HeaderName;
use payments_http::{Answer, PaymentView, Problem, ProblemKind};
use payments_model::{
    Actor, BusinessDate, BusinessDays, DateRefusal, DateRule, Details, Due, Head, Instruction, MoveReason, UtcSecond,
};
use payments_store::{PutDetails, PutHead, StoreError, details_excess};

use crate::Ingest;
use crate::order::{Order, fault_of_new};

/// How long after its business day a payment with details may still get a missing head. The archive waits an
/// hour, so a head written within this time was not archived before.
const COMPLETION_GRACE: TimeDelta = TimeDelta::minutes(30);

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
        // Currency, size and date are checked only at creation. A retry of a created payment succeeds on any later
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
        // At once: the answer may not take longer than without the second one, which decides only if there is no head.
        let key = stored.key();
        let (head, was_amended) = try_join(self.store.head(&key), self.store.has_amendments(stored.payment_id)).await?;
        match head {
            Some(head) => Ok(Created { payment: self.view(&head, stored).await?, replayed: true }),
            None if was_amended => Err(self.missing(&stored).await?),
            None => self.complete(&stored, order, true).await,
        }
    }

    /// The answer to a create whose payment was amended and has no head. Its first details no longer say what the client wants, so no
    /// head is built of them.
    async fn missing(&self, first: &Details) -> Result<Problem, Problem> {
        // Only what has a head is amended. So now it is there, or it is lost.
        Ok(match self.store.head(&first.key()).await? {
            Some(_) => Problem::repeat(),
            None => Problem::internal(format!(
                "payment {} was amended, and its head is lost; see docs/runbook.md, The lost head of an amended payment",
                first.payment_id
            )),
        })
    }

    /// The view of a payment, with what only the details in force say. If a restore lost those, the head alone is shown: what was done is
    /// done.
    pub(crate) async fn view(&self, head: &Head, first: Details) -> Result<PaymentView, Problem> {
        match self.store.details_in_force(head, first).await {
            Ok(details) => Ok(PaymentView::of(head).with_dates(&details)),
            Err(StoreError::Unreadable { .. }) => Ok(PaymentView::of(head)),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the head of stored details, or returns `date-passed` if the due date ended more than 30 minutes ago.
    async fn complete(&self, details: &Details, order: &Order, replayed: bool) -> Result<Created, Problem> {
        self.check_open(details, order)?;
        let head = Head::scheduled(details);
        let head = match self.store.put_head(&head).await? {
            PutHead::Created => head,
            PutHead::Existing(head) => *head,
        };
        if head.amendment.is_some() {
            // It was created and amended meanwhile. A retry reads the amendment's details.
            return Err(Problem::repeat());
        }
        Ok(Created { payment: PaymentView::of(&head).with_dates(details), replayed })
    }

    /// Checks that stored details can still be completed.
    pub(crate) fn check_open(&self, details: &Details, order: &Order) -> Result<(), Problem> {
        let closes = self.config.business_days.zone().end_of(details.due_date).saturating_add(COMPLETION_GRACE);
        if self.clock.now() < closes {
            return Ok(());
        }
        Err(Problem::of_body(&order.pointer, vec![passed(details.due_date)]))
    }

    /// Returns when a new payment is due. The date that was asked for is judged first, then its calendar.
    pub(crate) fn due(&self, instruction: &Instruction, now: UtcSecond) -> Result<Due, Problem> {
        let (days, rule) = (&self.config.business_days, instruction.date_rule);
        let asked = Due::as_asked(instruction.scheduled_for, days.zone());
        check_date(asked.date, days.date_of(now), self.config.horizon_days)?;
        days.due(instruction.scheduled_for, instruction.money.currency, rule, now).map_err(refused)
    }
}

/// Checks that a payment has a rule only if there are calendars.
pub(crate) fn check_rule(rule: Option<DateRule>, days: &BusinessDays) -> Result<(), Problem> {
    if rule.is_some() && days.is_always_open() {
        let detail = "The bank has no calendars, so every day is open; leave dateRule out.";
        return Err(Problem::new(ProblemKind::InvalidDateRule, detail).at("dateRule"));
    }
    Ok(())
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

pub(crate) fn too_large(excess: usize) -> Problem {
    let detail = format!("The payment with its data is {excess} bytes larger than a payment may be; shorten the data.");
    Problem::new(ProblemKind::PaymentTooLarge, detail).at("data").excess(excess)
}

fn refused(refusal: DateRefusal) -> Problem {
    let (kind, detail) = match refusal {
        DateRefusal::Closed { date, reason, next } => {
            let why = match reason {
                MoveReason::Weekend => "is on a weekend",
                MoveReason::Holiday => "is a holiday",
                MoveReason::CutOff => "is past its cut-off",
            };
            (
                ProblemKind::DateClosed,
                format!("The date {date} {why}; choose {next}, the next open date, or another dateRule."),
            )
        }
        DateRefusal::Uncovered { date, calendar, last } => {
            let detail = format!(
                "The calendar {calendar} ends on {last}, and has no open date left for {date}; choose an earlier date, or the dateRule \
                 none."
            );
            (ProblemKind::DateBeyondCalendar, detail)
        }
    };
    Problem::new(kind, detail).at("scheduledFor")
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
