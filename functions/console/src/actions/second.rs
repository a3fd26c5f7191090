//! Four eyes: an action that needs a second person waits for four hours, until another person approves its plan.
//!
//! The first person's confirmation puts the intent with the plan's hash. The second person sees the
//! plan, and puts a decision, which nobody changes. The executor then reads both again. A crash
//! between the decision and the outcome leaves an action that may have happened, as with one person.

use maud::Markup;
use payments_http::{Answer, Form, Problem, ProblemKind, Request};
use payments_model::second::{ALONE, NamedBy};
use payments_model::{ActionName, Person, PlanHash};
use payments_store::{Approval, Asked, AuditIntent, AuditOutcome, First, NotApproved, Standing};

use crate::actions::dialog::ended;
use crate::actions::preview::Preview;
use crate::actions::{Action, MAX_AT_BYTES, MAX_BODY_BYTES, MAX_ID_BYTES, decision};
use crate::function::{Console, no_such_page};
use crate::told::REFUSED;

/// The digits of a plan's hash.
const HASH_BYTES: usize = 64;

/// The longest issuer, in bytes.
const MAX_ISSUER_BYTES: usize = 500;

/// The requests of a second person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Look,
    Approve,
    Refuse,
}

impl Action {
    /// The action of an intent, as its arguments name it.
    fn from_intent(intent: &AuditIntent) -> Result<Self, Problem> {
        let fields = intent.arguments.lines().filter_map(|line| line.split_once(": "));
        let mut form = Form::from_fields(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
        let action = Self::read(&intent.action, &mut form)?;
        form.end().map(|()| action)
    }
}

impl Console {
    /// Whether a second person has to approve the action. Where nobody signs in, one person resumes what one person stopped.
    fn needs_second(&self, action: &Action) -> bool {
        match action {
            Action::MoveLetters(letters) => letters.shown.is_some_and(|shown| shown > ALONE),
            Action::Start(run) => run.needs_second(),
            Action::Undo(undoing) => undoing.needs_second(),
            Action::Switch(turn) => turn.frees() && self.config.sign_in.is_some(),
            Action::ReleaseDay(_) => self.config.sign_in.is_some(),
            Action::Cancel(_) | Action::SendAgain(_) | Action::CloseFinding(_) | Action::Endpoint(..) => false,
        }
    }

    /// The first person of an action that needs two, with its plan; `None` if it needs one.
    pub(super) fn first(&self, request: &Request<'_>, action: &Action) -> Result<Option<First>, Problem> {
        if !self.needs_second(action) {
            return Ok(None);
        }
        let hash = PlanHash::from_facts(action.name(), &action.arguments());
        let (person, named_by) = self.person(request)?;
        Ok(Some(First { person, named_by, hash }))
    }

    /// The preview of an action with the notice of the second person, if it needs one.
    pub(super) fn noticed(&self, request: &Request<'_>, action: &Action, preview: Preview) -> Result<Preview, Problem> {
        match preview.buttons {
            Some(buttons) if self.needs_second(action) => {
                self.person(request)?;
                Ok(decision::noticed(&preview.shown, &buttons))
            }
            buttons => Ok(Preview { buttons, ..preview }),
        }
    }

    /// The person of a token.
    fn person(&self, request: &Request<'_>) -> Result<(Person, NamedBy), Problem> {
        let refused = |detail: String| Problem::new(ProblemKind::Forbidden, detail);
        let acts = self.config.sign_in.as_ref().is_some_and(|sign_in| sign_in.operate_client_id.is_some());
        let Some(claim) = self.config.person_claim.as_ref().filter(|_| acts) else {
            let detail = "This needs two persons, and this console knows none: deploy with PersonClaim and \
                          ConsoleOperateClientId (cargo local: --require-tokens), or do it without the console, as Four eyes in docs/operations.md says.";
            return Err(refused(detail.to_owned()));
        };
        let named = request.claim(claim.as_str()).unwrap_or_default().parse::<Person>();
        let person = named.map_err(|error| {
            refused(format!("This needs two persons, and the token's claim {claim} names none: {error}."))
        })?;
        let issuer = request.claim("iss").filter(|issuer| (1..=MAX_ISSUER_BYTES).contains(&issuer.len()));
        let issuer =
            issuer.ok_or_else(|| refused("This needs two persons, and the token names no issuer.".to_owned()))?;
        Ok((person, NamedBy { claim: claim.clone(), issuer: issuer.to_owned() }))
    }

    /// The dialog of the first person after the confirmation.
    pub(super) async fn asked_dialog(&self, action: &Action, name: ActionName) -> Result<Markup, Problem> {
        let asked = self.asked(name).await?.ok_or_else(no_such_action)?;
        let times = self.times();
        Ok(match &asked.outcome {
            Some(_) => ended(&action.named(), (name, asked.intent.at), asked.outcome.as_ref(), false),
            None => decision::stands(&action.named(), &asked, times),
        })
    }

    /// Answers a second person, who looks at an action, approves it or refuses it.
    pub(crate) async fn decide(&self, request: &Request<'_>) -> Result<Answer, Problem> {
        self.require_rights(request)?;
        let (person, named_by) = self.person(request)?;
        request.query(&[])?;
        let wish = Wish::read(request.console_name()).ok_or_else(no_such_page)?;
        let mut form = request.form(MAX_BODY_BYTES)?;
        let name = ActionName { previewed_at: form.get("at", MAX_AT_BYTES)?, id: form.get("id", MAX_ID_BYTES)? };
        let hash = if wish == Wish::Look { None } else { Some(form.get("hash", HASH_BYTES)?) };
        form.end()?;
        let asked = self.asked(name).await?.ok_or_else(no_such_action)?;
        let action = Action::from_intent(&asked.intent)?;
        let shown = match hash {
            None => {
                let waits = matches!(asked.standing(self.clock.now()), Standing::Waits(_));
                let now = match &action {
                    Action::Switch(turn) if waits => self.numbers_now(turn).await?,
                    Action::ReleaseDay(release) if waits => self.need_now(release).await?,
                    _ => None,
                };
                decision::looked(&action.named(), &asked, (&person, now.as_ref()), self.times())
            }
            Some(hash) => {
                let (now, by) = (self.clock.now(), request.operator().to_string());
                let (is_approved, request) = (wish == Wish::Approve, request.gateway_id().to_owned());
                let decision = Approval { name, at: now, is_approved, person, named_by, by, hash, request };
                self.decided(&asked, &action, decision).await?
            }
        };
        Ok(Answer::html(200, shown.into_string()))
    }

    /// Puts a decision, and then does what it says. Of several decisions the first one stays.
    async fn decided(&self, asked: &Asked, action: &Action, decision: Approval) -> Result<Markup, Problem> {
        let name = decision.name;
        let standing = asked.standing(decision.at);
        if matches!(standing, Standing::Ended | Standing::Lapsed) {
            return self.asked_dialog(action, name).await;
        }
        asked.judge(&decision, decision.at).map_err(not_approved)?;
        let known = self.store.put_approval(&decision).await?.unwrap_or_else(|| decision.clone());
        let is_same = (&known.person, known.is_approved) == (&decision.person, decision.is_approved);
        // The SDK repeats a call whose reply was lost, and finds its own decision.
        let is_own = !decision.request.is_empty() && known.request == decision.request;
        if !is_same || !(is_own || !known.is_approved || action.can_be_repeated()) {
            return self.asked_dialog(action, name).await;
        }
        self.execute(action, name).await
    }

    /// Ends an action that was decided: reads the intent and the decision again, and performs what two persons agreed on.
    async fn execute(&self, action: &Action, name: ActionName) -> Result<Markup, Problem> {
        let asked = self.asked(name).await?.ok_or_else(no_such_action)?;
        let Some(decision) = asked.decision.as_ref().filter(|_| asked.outcome.is_none()) else {
            return self.asked_dialog(action, name).await;
        };
        asked.judge(decision, self.clock.now()).map_err(not_approved)?;
        let since = asked.intent.at;
        if decision.is_approved {
            let by = asked.intent.by.parse().map_err(Problem::internal)?;
            return self.finish(action, (name, since), &by, Some(decision)).await;
        }
        let result = format!("{REFUSED}the second person refused it");
        let outcome = AuditOutcome { at: self.clock.now(), result, second: Some(decision.by.clone()) };
        let outcome = self.store.put_audit_outcome(name, &outcome).await?.unwrap_or(outcome);
        Ok(ended(&action.named(), (name, since), Some(&outcome), false))
    }
}

impl Wish {
    fn read(name: &str) -> Option<Self> {
        match name {
            "look" => Some(Self::Look),
            "approve" => Some(Self::Approve),
            "refuse" => Some(Self::Refuse),
            _ => None,
        }
    }
}

fn not_approved(why: NotApproved) -> Problem {
    Problem::new(ProblemKind::Forbidden, format!("This is not done: {why}."))
}

fn no_such_action() -> Problem {
    Problem::new(ProblemKind::NoSuchRoute, "No action of this name waits for a second person; look at Audit again.")
}
