//! Actions that need a second person, with their decisions: what waits, and whether a decision counts.

use chrono::TimeDelta;
use payments_http::{Problem, ProblemKind};
use payments_model::{PlanHash, UtcSecond};
use payments_store::{ActionName, Approval, AuditEntry, AuditIntent, AuditMonth, AuditOutcome, First, StoreError};

use crate::function::Console;

/// Time for which an action waits for its second person.
pub(crate) const WAITS: TimeDelta = TimeDelta::hours(4);

/// Lifetime of a preview. A later confirmation could act on a state that has changed, and the trail
/// would have the action at a wrong place.
pub(crate) const CONFIRMED_WITHIN: TimeDelta = TimeDelta::minutes(15);

/// The most actions that wait and are shown.
const MOST_WAITING: usize = 10;

/// An action that needs a second person, with all that is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) intent: AuditIntent,
    pub(crate) first: First,
    pub(crate) decision: Option<Approval>,
    pub(crate) outcome: Option<AuditOutcome>,
}

/// The state of an action that needs a second person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No second person decided yet, and one may until then.
    Waits(UtcSecond),
    /// Nobody decided in time.
    Lapsed,
    /// Approved, without an outcome: the action may have happened.
    Approved,
    /// Refused.
    Refused,
    /// Ended, with an outcome.
    Ended,
}

/// The actions that wait for a second person.
pub(crate) struct Waiting {
    /// The newest first, at most ten.
    pub(crate) asked: Vec<Asked>,
    /// Whether there may be others.
    pub(crate) more: bool,
}

impl Asked {
    /// `None` if the action needs one person.
    pub(crate) fn new(entry: AuditEntry, decision: Option<Approval>) -> Option<Self> {
        let AuditEntry { intent, outcome } = entry;
        let first = intent.first.clone()?;
        Some(Self { intent, first, decision, outcome })
    }

    /// The end of its time.
    fn until(&self) -> UtcSecond {
        self.intent.at.saturating_add(WAITS)
    }

    pub(crate) fn standing(&self, now: UtcSecond) -> Standing {
        match &self.decision {
            _ if self.outcome.is_some() => Standing::Ended,
            Some(decision) if decision.is_approved => Standing::Approved,
            Some(_) => Standing::Refused,
            None if now > self.until() => Standing::Lapsed,
            None => Standing::Waits(self.until()),
        }
    }

    /// Checks that a decision is on this plan, in time, and of another person.
    pub(crate) fn judge(&self, decision: &Approval, now: UtcSecond) -> Result<(), Problem> {
        let refused = |detail: &str| Err(Problem::new(ProblemKind::Forbidden, detail));
        let plan = PlanHash::from_facts(&self.intent.action, &self.intent.arguments);
        if plan != self.first.hash || plan != decision.hash {
            return refused("The hash is not that of the plan that waits; look at the plan again.");
        }
        if decision.at > self.until() || now > self.until() {
            return refused("The four hours for a second person are over; preview the action again.");
        }
        if decision.person == self.first.person {
            return refused("You asked for this action, so another person has to decide about it.");
        }
        Ok(())
    }
}

impl Console {
    /// An action that needs a second person, with its decision: two reads, strongly consistent.
    pub(crate) async fn asked(&self, name: ActionName) -> Result<Option<Asked>, Problem> {
        let Some(entry) = self.store.audit_entry(name).await? else { return Ok(None) };
        Ok(Asked::new(entry, self.store.approval(name).await?))
    }

    /// The actions that wait for a second person: one read, at a month's end two, and one for each that waits.
    pub(crate) async fn waiting_for_second(&self) -> Result<Waiting, StoreError> {
        let now = self.clock.now();
        // An action is confirmed within minutes of its preview, after which it is named.
        let from = now.saturating_add(-WAITS).saturating_add(-CONFIRMED_WITHIN);
        let (first, last) = (AuditMonth::from_second(from), AuditMonth::from_second(now));
        let mut waiting = Waiting { asked: Vec::new(), more: false };
        for month in [(first != last).then_some(first), Some(last)].into_iter().flatten() {
            let (entries, is_all) = self.store.audit_since(&month, from).await?;
            waiting.more |= !is_all;
            for entry in entries {
                let Ok(Some(mut asked)) = entry.map(|entry| Asked::new(entry, None)) else { continue };
                if !matches!(asked.standing(now), Standing::Waits(_)) {
                    continue;
                }
                if waiting.asked.len() == MOST_WAITING {
                    waiting.more = true;
                    break;
                }
                asked.decision = self.store.approval(asked.intent.name).await?;
                if asked.decision.is_none() {
                    waiting.asked.push(asked);
                }
            }
        }
        Ok(waiting)
    }
}

#[cfg(test)]
mod tests {
    use payments_model::ActionId;

    use super::*;

    const ASKED_AT: &str = "2026-11-20T14:02:00Z";

    fn asked(person: &str) -> Asked {
        let at: UtcSecond = ASKED_AT.parse().unwrap();
        let (action, arguments) =
            ("move-dead-letters".to_owned(), "queue: result-dead-letters\nmessages: 101".to_owned());
        let first = First { person: person.parse().unwrap(), hash: PlanHash::from_facts(&action, &arguments) };
        let name = ActionName { previewed_at: at, id: ActionId::derive("request", at, "move") };
        let (by, request) = ("o:ana".to_owned(), "first".to_owned());
        let intent =
            AuditIntent { name, at, by, subject: None, request, action, arguments, first: Some(first.clone()) };
        Asked { intent, first, decision: None, outcome: None }
    }

    fn approval(asked: &Asked, person: &str, at: &str) -> Approval {
        let (name, hash) = (asked.intent.name, asked.first.hash.clone());
        let (by, request) = ("o:ben".to_owned(), "second".to_owned());
        let (person, at) = (person.parse().unwrap(), at.parse().unwrap());
        Approval { name, at, is_approved: true, person, by, hash, request }
    }

    #[test]
    fn two_persons_agree_on_one_plan_in_time() {
        let asked = asked("ana");
        for (person, at, now, is_allowed) in [
            ("ben", ASKED_AT, "2026-11-20T18:02:00Z", true),
            ("ana", ASKED_AT, ASKED_AT, false),
            // Exact: another spelling is another person, so the claim has to have one.
            ("Ana", ASKED_AT, ASKED_AT, true),
            ("ben", "2026-11-20T18:02:01Z", "2026-11-20T18:02:00Z", false),
            ("ben", "2026-11-20T18:02:00Z", "2026-11-20T18:02:01Z", false),
        ] {
            let judged = asked.judge(&approval(&asked, person, at), now.parse().unwrap());
            assert_eq!(judged.is_ok(), is_allowed, "{person} at {at}, executed at {now}");
        }
    }

    #[test]
    fn a_decision_is_on_the_plan_that_waits() {
        let now = ASKED_AT.parse().unwrap();
        let plan = asked("ana");
        let mut other = approval(&plan, "ben", ASKED_AT);
        other.hash = PlanHash::from_facts("move-dead-letters", "queue: result-dead-letters\nmessages: 102");
        assert!(plan.judge(&other, now).is_err());
        // The intent was changed after the first person had asked.
        let mut forged = plan.clone();
        forged.intent.arguments = forged.intent.arguments.replace("101", "102");
        assert!(forged.judge(&approval(&plan, "ben", ASKED_AT), now).is_err());
        assert!(forged.judge(&other, now).is_err());
    }
}
