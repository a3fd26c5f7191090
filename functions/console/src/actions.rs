//! Actions of operators: each is previewed, confirmed once, and kept in the audit trail.
//!
//! The intent is written before the action, and the outcome after it. A repeated confirmation does
//! nothing: it shows the outcome from the trail. Without an outcome, the action may have happened.
//! If repeating the action changes nothing, it is then repeated, so that it completes.

mod cancel;
mod candidate;
pub(crate) mod decision;
mod dialog;
mod endpoint;
mod finding;
mod letters;
mod limited;
mod preview;
mod previewing;
mod reason;
mod release_day;
mod rights;
mod run;
pub(crate) mod second;
mod send_again;
mod standstill;
pub(crate) mod switch;
mod undoing;

use std::str::FromStr;

use chrono::TimeDelta;
use maud::Markup;
use payments_http::{Answer, Form, Problem, ProblemKind, Request};
use payments_model::second::arguments;
use payments_model::{ActionId, ActionName, Actor, UtcSecond};
use payments_store::{Approval, AuditEntry, AuditIntent, AuditOutcome};

use crate::actions::cancel::{Cancel, Chosen};
use crate::actions::dialog::{Named, ended};
use crate::actions::endpoint::{Deed, Target};
use crate::actions::finding::CloseFinding;
use crate::actions::letters::Letters;
use crate::actions::preview::counted;
use crate::actions::release_day::ReleaseDay;
use crate::actions::run::Run;
use crate::actions::send_again::SendAgain;
use crate::actions::switch::TurnSwitch;
use crate::actions::undoing::Undoing;
use crate::asked::CONFIRMED_WITHIN;
use crate::function::{Console, no_such_page};
use crate::told::{CANCEL, REFUSED, UNKNOWN};

/// The longest body, in bytes: four times a hundred ids of payments, each on a line.
const MAX_BODY_BYTES: usize = 16 * 1024;

/// Time for which a confirmed action may be under way: as long as a request lasts.
const UNDER_WAY: TimeDelta = TimeDelta::seconds(30);

/// Largest difference between the clocks of two sandboxes.
pub(crate) const CLOCKS_DIFFER: TimeDelta = TimeDelta::seconds(5);

/// The longest time of a preview and the longest id of an action, in bytes.
const MAX_AT_BYTES: usize = 20;
const MAX_ID_BYTES: usize = 36;

/// The name of the action that moves dead letters back.
const MOVE_LETTERS: &str = "move-dead-letters";

/// The step that a request asks for.
enum Step {
    /// Show the effect of the action.
    Preview,
    /// Perform the action.
    Do,
}

/// An operator's action.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    /// Cancel payments.
    Cancel(Cancel),
    /// Send the request of a payment again.
    SendAgain(SendAgain),
    /// Close a finding.
    CloseFinding(CloseFinding),
    /// Test or enable a webhook endpoint, replay events to it, or skip one.
    Endpoint(Target, Deed),
    /// Move dead letters back.
    MoveLetters(Letters),
    /// Start a function.
    Start(Run),
    /// Stop or resume claims and sends; hold or release due dates.
    Switch(TurnSwitch),
    /// Release a due date beyond its limit.
    ReleaseDay(ReleaseDay),
    /// Plan an undo, or run its plan.
    Undo(Undoing),
}

impl FromStr for Step {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "preview" => Ok(Self::Preview),
            "do" => Ok(Self::Do),
            _ => Err("it has to be preview or do"),
        }
    }
}

impl Action {
    /// Reads the action with this name.
    fn read(name: &str, form: &mut Form) -> Result<Self, Problem> {
        match name {
            CANCEL => Ok(Self::Cancel(Cancel::read(form)?)),
            send_again::NAME => Ok(Self::SendAgain(SendAgain::read(form)?)),
            finding::NAME => Ok(Self::CloseFinding(CloseFinding::read(form)?)),
            MOVE_LETTERS => Ok(Self::MoveLetters(Letters::read(form)?)),
            release_day::NAME => Ok(Self::ReleaseDay(ReleaseDay::read(form)?)),
            _ => {
                if let Some(run) = Run::read(name, form) {
                    return run.map(Self::Start);
                }
                if let Some(turn) = TurnSwitch::read(name, form) {
                    return turn.map(Self::Switch);
                }
                if let Some(undoing) = Undoing::read(name, form) {
                    return undoing.map(Self::Undo);
                }
                let (target, deed) = Deed::read(name, form).ok_or_else(no_such_page)??;
                Ok(Self::Endpoint(target, deed))
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Cancel(_) => CANCEL,
            Self::SendAgain(_) => send_again::NAME,
            Self::CloseFinding(_) => finding::NAME,
            Self::Endpoint(_, deed) => deed.name(),
            Self::MoveLetters(_) => MOVE_LETTERS,
            Self::Start(run) => run.name(),
            Self::Switch(turn) => turn.name(),
            Self::ReleaseDay(_) => release_day::NAME,
            Self::Undo(undoing) => undoing.name(),
        }
    }

    /// The heading of its preview and its outcome.
    fn title(&self) -> String {
        match self {
            Self::Cancel(cancel) => format!("Cancel {}", counted(cancel.payments.len(), "payment")),
            Self::SendAgain(again) => again.title(),
            Self::CloseFinding(close) => close.title(),
            Self::Endpoint(target, deed) => deed.title(target),
            Self::MoveLetters(letters) => letters.title(),
            Self::Start(run) => run.title(),
            Self::Switch(turn) => turn.title(),
            Self::ReleaseDay(release) => release.title(),
            Self::Undo(undoing) => undoing.title(),
        }
    }

    /// The fields from which [`Self::read`] reads the same action again. The trail keeps them.
    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Cancel(cancel) => cancel.fields(),
            Self::SendAgain(again) => again.fields(),
            Self::CloseFinding(close) => close.fields(),
            Self::Endpoint(target, deed) => deed.fields(target),
            Self::MoveLetters(letters) => letters.fields(),
            Self::Start(run) => run.fields(),
            Self::Switch(turn) => turn.fields(),
            Self::ReleaseDay(release) => release.fields(),
            Self::Undo(undoing) => undoing.fields(),
        }
    }

    /// Whether repeating the action changes nothing.
    fn can_be_repeated(&self) -> bool {
        match self {
            Self::Cancel(_) | Self::SendAgain(_) | Self::CloseFinding(_) | Self::Switch(_) | Self::ReleaseDay(_) => {
                true
            }
            Self::Endpoint(_, deed) => deed.can_be_repeated(),
            // A repeated move would also move messages that arrived since, and nobody asked for a second run.
            Self::MoveLetters(_) | Self::Start(_) | Self::Undo(_) => false,
        }
    }

    /// The view in which an operator sees whether the action happened.
    fn place_to_look(&self) -> &'static str {
        match self {
            Self::Cancel(_) => "Look at the payments",
            Self::SendAgain(_) | Self::CloseFinding(_) => "Look at the payment",
            Self::Endpoint(..) => "Look at the endpoint",
            Self::MoveLetters(_) => "Look at Queues",
            Self::Start(_) => "Look at the function's log",
            Self::Switch(_) => "Look at Bank",
            Self::ReleaseDay(_) => "Look at the day",
            Self::Undo(_) => "Look at Undos",
        }
    }

    /// The action, as its dialogs name it.
    fn named(&self) -> Named {
        let job = if let Self::Start(run) = self { Some(run.job()) } else { None };
        Named { name: self.name(), title: self.title(), place_to_look: self.place_to_look(), job }
    }

    /// A confirmation names what its preview showed.
    fn require_previewed(&self) -> Result<(), Problem> {
        let is_previewed = match self {
            Self::Cancel(cancel) => cancel.payments.iter().all(Chosen::is_previewed),
            Self::SendAgain(again) => again.is_previewed(),
            Self::CloseFinding(close) => close.has_reason(),
            Self::Endpoint(target, deed) => deed.is_previewed(target),
            Self::MoveLetters(letters) => letters.shown.is_some(),
            Self::Start(run) => run.is_previewed(),
            Self::Switch(turn) => turn.is_previewed(),
            Self::ReleaseDay(release) => release.is_previewed(),
            Self::Undo(undoing) => undoing.is_previewed(),
        };
        let detail = "The confirmation does not name what its preview showed; preview the action again.";
        if is_previewed { Ok(()) } else { Err(Problem::new(ProblemKind::InvalidShape, detail)) }
    }

    /// The fields as the trail keeps them.
    fn arguments(&self) -> String {
        arguments(&self.fields())
    }
}

impl Console {
    /// Answers a request for an action.
    pub(crate) async fn act(&self, request: &Request<'_>) -> Result<Answer, Problem> {
        self.require_rights(request)?;
        request.query(&[])?;
        let mut form = request.form(MAX_BODY_BYTES)?;
        let step = form.get("step", MAX_ID_BYTES)?;
        let action = Action::read(request.console_name(), &mut form)?;
        let shown = match step {
            Step::Preview => {
                form.end()?;
                self.previewed(request, &action).await?
            }
            Step::Do => {
                let name =
                    ActionName { previewed_at: form.get("at", MAX_AT_BYTES)?, id: form.get("id", MAX_ID_BYTES)? };
                form.end()?;
                action.require_previewed()?;
                self.confirmed(request, name, &action).await?
            }
        };
        Ok(Answer::html(200, shown.into_string()))
    }

    async fn previewed(&self, request: &Request<'_>, asked: &Action) -> Result<Markup, Problem> {
        if let Action::Endpoint(target, Deed::Ask) = asked {
            return Ok(endpoint::asked(target));
        }
        let (preview, action) = self.preview(asked).await?;
        let preview = self.noticed(request, &action, preview)?;
        let at = self.clock.now();
        let what = format!("{}\n{}", action.name(), action.arguments());
        let id = ActionId::derive(request.gateway_id(), at, &what);
        let shown = if preview.buttons.is_some() { &action } else { asked };
        Ok(dialog::previewed(preview, &shown.named(), &action.fields(), ActionName { previewed_at: at, id }))
    }

    /// Performs a confirmed action, unless it has been performed.
    async fn confirmed(&self, request: &Request<'_>, name: ActionName, action: &Action) -> Result<Markup, Problem> {
        let (now, by) = (self.clock.now(), request.operator());
        let intent = AuditIntent {
            name,
            at: now,
            by: by.to_string(),
            subject: request.person(),
            request: request.gateway_id().to_owned(),
            action: action.name().to_owned(),
            arguments: action.arguments(),
            first: self.first(request, action)?,
        };
        let is_late = name.previewed_at > now.saturating_add(CLOCKS_DIFFER)
            || name.previewed_at.saturating_add(CONFIRMED_WITHIN) < now;
        let mut since = now;
        let known = if is_late { self.entry(name).await? } else { self.store.put_audit_intent(&intent).await? };
        match known {
            None if is_late => return Err(expired()),
            None => {}
            Some(known) if !known.is_same_as(&intent) => return Err(another_action()),
            Some(known) if known.first.is_some() => return self.asked_dialog(action, name).await,
            Some(known) => {
                since = known.at;
                // The SDK repeats a call whose reply was lost, and finds its own intent.
                let is_own = !intent.request.is_empty() && known.request == intent.request;
                let entry = AuditEntry { outcome: self.outcome(name).await?, intent: known };
                let goes_on = !is_late && (is_own || action.can_be_repeated());
                if entry.outcome.is_some() || !goes_on {
                    let is_recent = since.saturating_add(UNDER_WAY) > now;
                    return Ok(ended(&action.named(), (name, since), entry.outcome.as_ref(), is_recent));
                }
            }
        }
        if intent.first.is_some() {
            return self.asked_dialog(action, name).await;
        }
        self.finish(action, (name, since), &by, None).await
    }

    /// Performs an action that was first confirmed at `since`, by one person or with a second one's approval, and puts its outcome.
    async fn finish(
        &self,
        action: &Action,
        (name, since): (ActionName, UtcSecond),
        by: &Actor,
        second: Option<&Approval>,
    ) -> Result<Markup, Problem> {
        let approved = second.map(|second| second.name);
        let result = match self.perform(action, by, since, approved).await {
            Ok(lines) => lines.join("\n"),
            Err(problem) if problem.status() < 500 => format!("{REFUSED}{}", problem.detail()),
            // The action may have happened, so the trail has no outcome.
            Err(problem) if action.can_be_repeated() => return Err(problem),
            Err(problem) => {
                let detail = format!("{UNKNOWN}. {} before you preview it again.", action.place_to_look());
                return Err(problem.saying(detail));
            }
        };
        let outcome = AuditOutcome { at: self.clock.now(), result, second: second.map(|second| second.by.clone()) };
        // If another confirmation was faster, the trail has its outcome.
        let outcome = self.store.put_audit_outcome(name, &outcome).await?.unwrap_or(outcome);
        Ok(ended(&action.named(), (name, since), Some(&outcome), false))
    }

    async fn entry(&self, name: ActionName) -> Result<Option<AuditIntent>, Problem> {
        Ok(self.store.audit_entry(name).await?.map(|entry| entry.intent))
    }

    async fn outcome(&self, name: ActionName) -> Result<Option<AuditOutcome>, Problem> {
        Ok(self.store.audit_entry(name).await?.and_then(|entry| entry.outcome))
    }

    /// Performs an action that was first confirmed at `since`, and returns its outcome. A problem
    /// of 500 and above means that it may have happened.
    async fn perform(
        &self,
        action: &Action,
        by: &Actor,
        since: UtcSecond,
        approved: Option<ActionName>,
    ) -> Result<Vec<String>, Problem> {
        match action {
            Action::Cancel(cancel) => self.cancel_all(&cancel.payments, by, since).await,
            Action::SendAgain(again) => Ok(vec![self.send_again(again, since).await?]),
            Action::CloseFinding(close) => Ok(vec![self.close_finding(close, by, since).await?]),
            Action::Endpoint(target, deed) => Ok(vec![self.do_to_endpoint(target, deed, by).await?]),
            Action::MoveLetters(letters) => Ok(vec![self.move_letters(letters).await?]),
            Action::Start(run) => Ok(vec![self.start(run, approved).await?]),
            Action::Switch(turn) => Ok(vec![self.turn_switch(turn, by, since).await?]),
            Action::ReleaseDay(release) => Ok(vec![self.release_day(release, by, since).await?]),
            Action::Undo(undoing) => Ok(vec![self.undo(undoing, approved).await?]),
        }
    }
}

fn expired() -> Problem {
    let minutes = CONFIRMED_WITHIN.num_minutes();
    let detail = format!("The preview is older than {minutes} minutes, or from the future; preview the action again.");
    Problem::new(ProblemKind::InvalidShape, detail).at("at")
}

fn another_action() -> Problem {
    let detail = "This id belongs to another action, or to another operator's; preview the action again.";
    Problem::new(ProblemKind::IdempotencyKeyReused, detail).at("id")
}
