//! The due time of a payment: as asked, or moved by its rule, its calendar and its cut-off.

use crate::business_days::date_move::{CalendarVersion, DateMove};
use crate::business_days::rule::{DateRule, MoveReason};
use crate::business_days::settings::{BusinessDays, Rail};
use crate::calendar::instant::{BusinessDate, UtcSecond};
use crate::calendar::scheduled_for::ScheduledFor;
use crate::calendar::zone::BusinessZone;
use crate::currency::Currency;

/// The due time of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The instant.
    pub at: UtcSecond,
    /// The business date.
    pub date: BusinessDate,
    /// The reason why it differs from the client's request.
    pub moved: Option<DateMove>,
}

/// The reason why a payment's date is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateRefusal {
    /// The date is closed or its cut-off has passed, and the rule is [`DateRule::Refuse`].
    Closed {
        /// The date.
        date: BusinessDate,
        /// The reason.
        reason: MoveReason,
        /// The next open date.
        next: BusinessDate,
    },
    /// The calendar does not cover the date, or no open date after it.
    Uncovered {
        /// The date.
        date: BusinessDate,
        /// The calendar's id.
        calendar: &'static str,
        /// The last date that it covers.
        last: BusinessDate,
    },
}

/// The reason why a payment of a closed date stays due on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// Its rule is [`DateRule::None`].
    None,
    /// Its rule is [`DateRule::Refuse`]: it would be rejected today, but it was accepted.
    Refuse,
    /// The calendar covers no open date after it.
    Uncovered,
}

impl Due {
    /// The due time of a payment that nothing moves.
    #[must_use]
    pub fn as_asked(scheduled_for: ScheduledFor, zone: BusinessZone) -> Self {
        let (at, date) = scheduled_for.due(zone);
        Self { at, date, moved: None }
    }
}

impl BusinessDays {
    /// Returns the due time of a new payment that is asked for today or later, by the rule of its
    /// request or else the bank's.
    ///
    /// # Errors
    /// [`DateRefusal`], unless the rule is [`DateRule::None`] or the currency has no calendar.
    pub fn due(
        &self,
        scheduled_for: ScheduledFor,
        currency: Currency,
        rule: Option<DateRule>,
        now: UtcSecond,
    ) -> Result<Due, DateRefusal> {
        let asked = Due::as_asked(scheduled_for, self.zone());
        let rule = rule.unwrap_or(self.rule());
        match self.rail(currency) {
            Some(rail) if rule != DateRule::None => self.adjusted(asked, rail, rule, now),
            _ => Ok(asked),
        }
    }

    /// Returns the due time of a scheduled payment by the calendar as it is now, if the date on which it is `due` is
    /// closed. `None` if that date is open or its currency has no calendar. If the date that the client asked for has
    /// passed, the date on which the payment is due counts instead. If that has passed, too, because nothing was swept,
    /// the payment is due today if today is open and takes payments, like a new one for today.
    ///
    /// # Errors
    /// [`Stays`] if it stays due on the closed date.
    pub fn due_again(
        &self,
        due: Due,
        (scheduled_for, currency, rule): (ScheduledFor, Currency, Option<DateRule>),
        now: UtcSecond,
    ) -> Result<Option<Due>, Stays> {
        let is_closed = |rail: &Rail| rail.calendar.is_closed(due.date);
        if !self.rail(currency).is_some_and(is_closed) {
            return Ok(None);
        }
        match rule.unwrap_or(self.rule()) {
            DateRule::None => return Err(Stays::None),
            DateRule::Refuse => return Err(Stays::Refuse),
            DateRule::Following | DateRule::Preceding => {}
        }
        let has_passed = Due::as_asked(scheduled_for, self.zone()).date < self.date_of(now);
        let asked = if has_passed { ScheduledFor::Date(due.date) } else { scheduled_for };
        let again = self.due(asked, currency, rule, now).map_err(|_| Stays::Uncovered)?;
        // The reason of the first move stays, and this move's calendar decides the due time.
        let reason = due.moved.filter(|_| has_passed).map(|moved| moved.reason);
        let moved = again.moved.map(|moved| DateMove { reason: reason.unwrap_or(moved.reason), ..moved });
        Ok(Some(Due { moved, ..again }))
    }

    fn adjusted(&self, asked: Due, rail: &Rail, rule: DateRule, now: UtcSecond) -> Result<Due, DateRefusal> {
        let calendar = rail.calendar;
        let uncovered =
            || DateRefusal::Uncovered { date: asked.date, calendar: calendar.id(), last: *calendar.covers().end() };
        if !calendar.covers().contains(&asked.date) {
            return Err(uncovered());
        }
        let (closed, today) = (calendar.closed_for(asked.date), self.zone().date_of(now));
        let moved = |reason| Some(DateMove { reason, calendar: Some(CalendarVersion::current(calendar)) });
        let chosen = match (closed, rule) {
            (None, _) => Some(asked.clone()),
            // A payment that moves to today is due now: the first instant of the day has passed.
            (Some(reason), DateRule::Preceding) => {
                calendar.open_until(asked.date).filter(|date| *date >= today).map(|date| {
                    let at = self.zone().start_of(date).max(now);
                    Due { at, date, moved: moved(reason) }
                })
            }
            _ => None,
        };
        if let Some(due) = chosen.filter(|due| self.is_in_time(rail, due.date, due.at.max(now))) {
            return Ok(due);
        }
        // Between the chosen date and the asked one, all dates are closed.
        let next = self.open_after(rail, asked.date, now).ok_or_else(uncovered)?;
        let reason = closed.unwrap_or(MoveReason::CutOff);
        if rule == DateRule::Refuse {
            return Err(DateRefusal::Closed { date: asked.date, reason, next });
        }
        Ok(Due { at: self.zone().start_of(next), date: next, moved: moved(reason) })
    }

    /// The first open date after `date` that has not passed, and whose last call has not passed, if
    /// the calendar covers one.
    fn open_after(&self, rail: &Rail, date: BusinessDate, now: UtcSecond) -> Option<BusinessDate> {
        let next = rail.calendar.open_from(date.plus_days(1).max(self.zone().date_of(now)))?;
        if self.is_in_time(rail, next, now) { Some(next) } else { rail.calendar.open_from(next.plus_days(1)) }
    }

    /// Whether a payment that is due on a date would still be accepted for it: the date is open, and its last call has
    /// not passed. The answer is also yes if the rule is [`DateRule::None`], or the currency has no calendar.
    #[must_use]
    pub fn takes(
        &self,
        (at, date): (UtcSecond, BusinessDate),
        (currency, rule): (Currency, Option<DateRule>),
        now: UtcSecond,
    ) -> bool {
        let is_open = |rail: &Rail| rail.calendar.covers().contains(&date) && !rail.calendar.is_closed(date);
        let rail = self.rail(currency).filter(|_| rule.unwrap_or(self.rule()) != DateRule::None);
        rail.is_none_or(|rail| is_open(rail) && self.is_in_time(rail, date, at.max(now)))
    }

    /// Whether a payment that is sent at `at` makes the cut-off of a date.
    fn is_in_time(&self, rail: &Rail, date: BusinessDate, at: UtcSecond) -> bool {
        self.last_call(rail, date).is_none_or(|last| at <= last)
    }

    /// The last instant at which a payment of an open date can be created or due: its cut-off, without the lead time.
    #[must_use]
    pub fn last_call(&self, rail: &Rail, date: BusinessDate) -> Option<UtcSecond> {
        Some(rail.calendar.instant(date, rail.cut_off?).saturating_add(-self.lead()))
    }

    /// The next last call, if the calendar has a cut-off and covers the date.
    #[must_use]
    pub fn next_last_call(&self, rail: &Rail, now: UtcSecond) -> Option<UtcSecond> {
        let mut date = rail.calendar.open_from(self.zone().date_of(now))?;
        loop {
            let last = self.last_call(rail, date)?;
            if last >= now {
                return Some(last);
            }
            date = rail.calendar.open_from(date.plus_days(1))?;
        }
    }
}
