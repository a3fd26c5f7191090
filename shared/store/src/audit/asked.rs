//! Four eyes: the one place that judges whether two persons agreed on the plan of an action.

use chrono::TimeDelta;
use payments_model::{ActionName, PlanHash, UtcSecond};

use crate::audit::approval::Approval;
use crate::audit::trail::{AuditEntry, AuditIntent, AuditOutcome, First};
use crate::error::StoreError;
use crate::store::Store;

/// Time for which an action waits for its second person, and after which a run of it no longer begins.
pub const WAITS: TimeDelta = TimeDelta::hours(4);

/// An action that needs a second person, with all that is known of it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The intent.
    pub intent: AuditIntent,
    /// The first person.
    pub first: First,
    /// The decision of the second one.
    pub decision: Option<Approval>,
    /// The outcome.
    pub outcome: Option<AuditOutcome>,
}

/// The state of an action that needs a second person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
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

/// The reason why two persons did not agree on a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotApproved {
    /// The trail has no such action, or one that needs one person.
    #[error("no action of this name asked for a second person; ask for it in the console")]
    NotAsked,
    /// Nobody decided.
    #[error("no second person decided about it; let one approve it in the console's Audit")]
    Undecided,
    /// The second person refused it.
    #[error("the second person refused it; ask anew in the console, if it is right")]
    Refused,
    /// The plan differs from the one on which the persons decided.
    #[error("this is not the plan on which two persons decided; look at the plan again, and ask anew")]
    OtherPlan,
    /// The time is over.
    #[error("the four hours for a second person are over; ask anew in the console")]
    Late,
    /// The two names cannot be compared.
    #[error(
        "the claim PersonClaim, or the issuer of the tokens, changed since the first person asked; ask anew in the console"
    )]
    OtherNames,
    /// One person asked and approved.
    #[error("the person who asked for an action cannot decide about it; another person has to decide")]
    OnePerson,
}

impl Asked {
    /// `None` if the action needs one person.
    pub fn new(entry: AuditEntry, decision: Option<Approval>) -> Option<Self> {
        let AuditEntry { intent, outcome } = entry;
        let first = intent.first.clone()?;
        Some(Self { intent, first, decision, outcome })
    }

    /// The end of its time.
    fn until(&self) -> UtcSecond {
        self.intent.at.saturating_add(WAITS)
    }

    /// Its state at this time.
    pub fn standing(&self, now: UtcSecond) -> Standing {
        match &self.decision {
            _ if self.outcome.is_some() => Standing::Ended,
            Some(decision) if decision.is_approved => Standing::Approved,
            Some(_) => Standing::Refused,
            None if now > self.until() => Standing::Lapsed,
            None => Standing::Waits(self.until()),
        }
    }

    /// Checks that a decision is on the plan that waits, in time, and of another person.
    pub fn judge(&self, decision: &Approval, now: UtcSecond) -> Result<(), NotApproved> {
        let plan = PlanHash::from_facts(&self.intent.action, &self.intent.arguments);
        if plan != self.first.hash || plan != decision.hash {
            return Err(NotApproved::OtherPlan);
        }
        if decision.at > self.until() || now > self.until() {
            return Err(NotApproved::Late);
        }
        if decision.named_by != self.first.named_by {
            return Err(NotApproved::OtherNames);
        }
        if decision.person == self.first.person { Err(NotApproved::OnePerson) } else { Ok(()) }
    }

    /// Checks that two persons agreed on this plan, and that a run of it may begin now.
    pub fn agreed(&self, plan: &PlanHash, now: UtcSecond) -> Result<(), NotApproved> {
        let decision = self.decision.as_ref().ok_or(NotApproved::Undecided)?;
        if !decision.is_approved {
            return Err(NotApproved::Refused);
        }
        if *plan != self.first.hash {
            return Err(NotApproved::OtherPlan);
        }
        self.judge(decision, now)
    }
}

impl Store {
    /// Returns an action that needs a second person, with its decision and without its outcome: two items, strongly consistent.
    pub async fn agreement(&self, name: ActionName) -> Result<Option<Asked>, StoreError> {
        let Some(intent) = self.audit_intent(name).await? else { return Ok(None) };
        Ok(Asked::new(AuditEntry { intent, outcome: None }, self.approval(name).await?))
    }
}

#[cfg(test)]
mod tests {
    use payments_model::ActionId;
    use payments_model::second::NamedBy;

    use super::*;

    const ASKED_AT: &str = "2026-11-20T14:02:00Z";

    fn named_by(claim: &str) -> NamedBy {
        NamedBy { claim: claim.parse().unwrap(), issuer: "https://login.example.com".to_owned() }
    }

    fn asked(person: &str) -> Asked {
        let at: UtcSecond = ASKED_AT.parse().unwrap();
        let (action, arguments) =
            ("move-dead-letters".to_owned(), "queue: result-dead-letters\nmessages: 101".to_owned());
        let hash = PlanHash::from_facts(&action, &arguments);
        let first = First { person: person.parse().unwrap(), named_by: named_by("sub"), hash };
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
        Approval { name, at, is_approved: true, person, named_by: named_by("sub"), by, hash, request }
    }

    #[test]
    fn two_persons_agree_on_one_plan_in_time() {
        let mut asked = asked("ana");
        let plan = asked.first.hash.clone();
        for (person, at, now, judged) in [
            ("ben", ASKED_AT, "2026-11-20T18:02:00Z", Ok(())),
            ("ana", ASKED_AT, ASKED_AT, Err(NotApproved::OnePerson)),
            // Exact: another spelling is another person, so the claim has to have one.
            ("Ana", ASKED_AT, ASKED_AT, Ok(())),
            ("ben", "2026-11-20T18:02:01Z", "2026-11-20T18:02:00Z", Err(NotApproved::Late)),
            ("ben", "2026-11-20T18:02:00Z", "2026-11-20T18:02:01Z", Err(NotApproved::Late)),
        ] {
            let (decision, now) = (approval(&asked, person, at), now.parse().unwrap());
            assert_eq!(asked.judge(&decision, now), judged, "{person} at {at}, executed at {now}");
            asked.decision = Some(decision);
            assert_eq!(asked.agreed(&plan, now), judged, "{person} at {at}, begun at {now}");
        }
    }

    #[test]
    fn a_decision_is_on_the_plan_that_waits() {
        let now = ASKED_AT.parse().unwrap();
        let (plan, differs) = (asked("ana"), Err(NotApproved::OtherPlan));
        let mut other = approval(&plan, "ben", ASKED_AT);
        other.hash = PlanHash::from_facts("move-dead-letters", "queue: result-dead-letters\nmessages: 102");
        assert_eq!(plan.judge(&other, now), differs);
        // The intent was changed after the first person had asked.
        let mut forged = plan.clone();
        forged.intent.arguments = forged.intent.arguments.replace("101", "102");
        assert_eq!(forged.judge(&approval(&plan, "ben", ASKED_AT), now), differs);
        assert_eq!(forged.judge(&other, now), differs);
    }

    /// A change of the claim, or of the provider, between the two does not make one person two.
    #[test]
    fn both_persons_are_named_by_one_claim_of_one_issuer() {
        let (asked, now) = (asked("ana"), ASKED_AT.parse().unwrap());
        let mut other = approval(&asked, "00u1ana", ASKED_AT);
        other.named_by = named_by("uid");
        assert_eq!(asked.judge(&other, now), Err(NotApproved::OtherNames));
        other.named_by = NamedBy { issuer: "https://sso.example.com".to_owned(), ..named_by("sub") };
        assert_eq!(asked.judge(&other, now), Err(NotApproved::OtherNames));
    }

    #[test]
    fn a_run_begins_with_the_plan_that_was_approved() {
        let now = ASKED_AT.parse().unwrap();
        let mut asked = asked("ana");
        let plan = asked.first.hash.clone();
        assert_eq!(asked.agreed(&plan, now), Err(NotApproved::Undecided));
        asked.decision = Some(approval(&asked, "ben", ASKED_AT));
        let other = PlanHash::from_facts("move-dead-letters", "queue: result-dead-letters\nmessages: 102");
        assert_eq!(asked.agreed(&other, now), Err(NotApproved::OtherPlan));
        asked.decision.iter_mut().for_each(|decision| decision.is_approved = false);
        assert_eq!(asked.agreed(&plan, now), Err(NotApproved::Refused));
    }
}
