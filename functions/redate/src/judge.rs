//! Judges one payment: whether it moves, and to which due time, or why it stays.

use payments_boot::Deadline;
use payments_model::redate::Plan;
use payments_model::{Details, Due, Head, State, Stays, UtcSecond};
use payments_store::{DueRow, StoredDetails};

use crate::function::Redate;
use crate::outcome::Notices;

/// The state that all shards of a run share.
pub(crate) struct Run<'a> {
    pub(crate) redate: &'a Redate,
    pub(crate) plan: &'a Plan,
    pub(crate) deadline: &'a Deadline,
    /// Payments that stay due on a closed date. They must not use up the lines of the others.
    pub(crate) left: Notices,
    /// Payments that cannot be read.
    pub(crate) unreadable: Notices,
}

/// A payment to be moved.
#[derive(Debug)]
pub(crate) struct Move {
    /// Its head as it was read.
    pub(crate) head: Head,
    /// Its details in force as they are stored.
    pub(crate) in_force: StoredDetails,
    /// Its details with the new due time.
    pub(crate) redated: Details,
}

/// The judgement of a payment.
#[derive(Debug)]
pub(crate) enum Judged {
    /// The payment can be moved.
    Moves(Box<Move>),
    /// The payment stays on its date.
    Stays(Stays),
    /// The payment is no longer scheduled on that date, or not in a currency of this run.
    Changed,
    /// The payment cannot be moved until it is repaired, for this reason.
    Unreadable(String),
}

/// Whether an entry of the index has a currency whose calendar is closed on its date, and belongs to this plan.
pub(crate) fn has(redate: &Redate, plan: &Plan, row: &DueRow) -> bool {
    let rail = redate.config.business_days.rail(row.money.currency);
    rail.is_some_and(|rail| {
        plan.calendars.contains_key(rail.calendar.id()) && rail.calendar.is_closed(row.due.due_date)
    })
}

impl Run<'_> {
    /// Whether a head is at the place that the index showed, with the same currency, which decides the calendar.
    pub(crate) fn is_there(head: &Head, row: &DueRow) -> bool {
        head.state == State::Scheduled
            && (head.due_at, head.due_date, head.money.currency)
                == (row.due.due_at, row.due.due_date, row.money.currency)
    }

    /// Judges a payment by its head and its details in force.
    pub(crate) fn judge(&self, head: Head, in_force: StoredDetails, now: UtcSecond) -> Judged {
        let details = in_force.known();
        // A move would make the head agree with its details, and would hide which of them was right.
        let differences = head.differences(details);
        if !differences.is_empty() {
            return Judged::Unreadable(format!("its head and its details differ in {}", differences.join(", ")));
        }
        let order = &details.instruction;
        let due = Due { at: head.due_at, date: head.due_date, moved: details.moved.clone() };
        let asked = (order.scheduled_for, order.money.currency, order.date_rule);
        match self.redate.config.business_days.due_again(due, asked, now) {
            Ok(Some(due)) => {
                let redated = details.redated(&head, due, now);
                Judged::Moves(Box::new(Move { head, in_force, redated }))
            }
            Ok(None) => Judged::Changed,
            Err(stays) => Judged::Stays(stays),
        }
    }
}

impl Move {
    /// Whether details that an earlier run wrote under the same id have the same content. Their
    /// time and the reason of the move may differ: the first run decided them.
    pub(crate) fn is_said_by(&self, known: &Details) -> bool {
        let same = |details: &Details| (details.amendment, details.due_at, details.due_date, details.slot_at);
        same(known) == same(&self.redated)
            && known.created_by == self.redated.created_by
            && known.instruction == self.redated.instruction
    }
}
