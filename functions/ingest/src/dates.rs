//! Checks a payment's date, and computes when the payment is due.

use payments_http::{Problem, ProblemKind};
use payments_model::{
    BusinessDate, BusinessDays, DateRefusal, DateRule, Details, Due, Instruction, MoveReason, UtcSecond,
};

use crate::function::Ingest;
use crate::order::Order;

impl Ingest {
    /// Checks that stored details may still get a head, or come into force: their business day has not
    /// ended, or ended less than 30 minutes ago.
    pub(crate) fn check_completable(&self, details: &Details, order: &Order) -> Result<(), Problem> {
        if self.clock.now() < self.config.business_days.zone().completable_until(details.due_date) {
            return Ok(());
        }
        Err(Problem::for_body(&order.pointer, vec![passed(details.due_date)]))
    }

    /// Returns when a new payment is due. The requested date is checked first against the horizon, and
    /// then against the currency's calendar.
    pub(crate) fn due(&self, instruction: &Instruction, now: UtcSecond) -> Result<Due, Problem> {
        let (days, rule) = (&self.config.business_days, instruction.date_rule);
        let asked = Due::as_asked(instruction.scheduled_for, days.zone());
        check_date(asked.date, days.date_of(now), self.config.horizon_days)?;
        days.due(instruction.scheduled_for, instruction.money.currency, rule, now).map_err(refused)
    }
}

/// Checks that a payment names a date rule only if the bank has calendars.
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
