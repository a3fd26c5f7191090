//! Undos: one person starts a plan of a wrong feed's payments, and two persons agree on the run of a plan.

use maud::{Markup, html};
use payments_http::{Form, Problem, ProblemKind, invalid_field};
use payments_model::{ActionName, PlanHash, UndoId, undo};
use payments_store::UndoPlan;
use serde_json::{Value, json};

use crate::actions::preview::{Buttons, Preview, counted};
use crate::function::Console;
use crate::guides::INCIDENT;
use crate::html::{copied, fact, link};
use crate::operations::Startable;
use crate::panel::panel;
use crate::told::PLAN_UNDO;
use crate::views::switch::plans::{inexact, totals};

/// The fields of a selection, and their most bytes: about 200 ids, which the audit trail keeps.
const SELECTED: [(&str, usize); 7] =
    [("ids", 8_000), ("file", 60), ("account", 60), ("client", 40), ("due", 10), ("from", 20), ("to", 20)];

/// The most bytes of an id, of a plan's number and of a hash.
const MAX_TEXT_BYTES: usize = 64;

/// The id of a plan that has none yet.
const NO_ID: &str = "0000000000000000";

const UNPLANNED: &str = "This cannot be planned";
const NOT_RUN: &str = "This cannot be run";

/// The plan that a preview showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    sha256: String,
    /// Whether it may lack payments.
    is_inexact: bool,
}

/// A step of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Undoing {
    /// Plan what these fields select. The preview gives it an id.
    Plan { fields: Vec<(&'static str, String)>, id: Option<UndoId> },
    /// Run a plan.
    Run { id: UndoId, plan: u32, shown: Option<Shown> },
}

impl Shown {
    fn from_plan(plan: &UndoPlan) -> Self {
        Self { sha256: plan.sha256.clone(), is_inexact: !plan.inexact.is_empty() }
    }
}

impl Undoing {
    /// Reads the fields of the action with this name; `None` if it is another one.
    pub(super) fn read(name: &str, form: &mut Form) -> Option<Result<Self, Problem>> {
        Some(match name {
            PLAN_UNDO => Self::read_plan(form),
            undo::ACTION => form.get("undo", MAX_TEXT_BYTES).and_then(|id| {
                let (plan, sha256) = (form.get("plan", MAX_TEXT_BYTES)?, form.take("sha256", MAX_TEXT_BYTES)?);
                let is_inexact = form.take("acceptInexact", MAX_TEXT_BYTES)? == "true";
                let shown = (!sha256.is_empty()).then_some(Shown { sha256, is_inexact });
                Ok(Self::Run { id, plan, shown })
            }),
            _ => return None,
        })
    }

    fn read_plan(form: &mut Form) -> Result<Self, Problem> {
        let mut fields = Vec::new();
        for (name, most) in SELECTED {
            let text = form.take(name, most)?.split_whitespace().collect::<Vec<_>>().join(" ");
            fields.extend((!text.is_empty()).then_some((name, text)));
        }
        let id = form.take("undo", MAX_TEXT_BYTES)?;
        let id = (!id.is_empty()).then(|| id.parse()).transpose().map_err(|error| invalid_field("undo", &error))?;
        let planned = Self::Plan { fields, id };
        planned.input(None).map(|_| planned)
    }

    pub(super) fn name(&self) -> &'static str {
        if let Self::Plan { .. } = self { PLAN_UNDO } else { undo::ACTION }
    }

    pub(super) fn title(&self) -> String {
        match self {
            Self::Plan { .. } => "Plan an undo".to_owned(),
            Self::Run { id, plan, .. } => format!("Cancel the payments of plan {plan} of the undo {id}"),
        }
    }

    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Plan { fields, id } => {
                fields.iter().cloned().chain(id.as_ref().map(|id| ("undo", id.to_string()))).collect()
            }
            // The function judges the consent to these fields.
            Self::Run { id, plan, shown: Some(Shown { sha256, is_inexact }) } => {
                undo::fields(id, (*plan, sha256), *is_inexact)
            }
            Self::Run { id, plan, shown: None } => vec![("undo", id.to_string()), ("plan", plan.to_string())],
        }
    }

    /// Whether a preview has shown the plan, or has given the new one an id.
    pub(super) fn is_previewed(&self) -> bool {
        !matches!(self, Self::Plan { id: None, .. } | Self::Run { shown: None, .. })
    }

    /// Whether a second person has to agree.
    pub(super) fn needs_second(&self) -> bool {
        matches!(self, Self::Run { .. })
    }

    /// The function's input. A plan's is checked as the function checks it.
    fn input(&self, approved: Option<ActionName>) -> Result<Value, Problem> {
        let (fields, id) = match self {
            Self::Plan { fields, id } => (fields, id.as_ref().map_or(NO_ID, UndoId::as_str)),
            Self::Run { id, plan, shown } => {
                return Ok(json!({
                    "action": "run", "id": id.as_str(), "plan": plan,
                    "sha256": shown.as_ref().map(|shown| &shown.sha256),
                    "acceptInexact": shown.as_ref().is_some_and(|shown| shown.is_inexact),
                    "approval": approved.map(|name| name.to_string()),
                }));
            }
        };
        let input = json!({ "action": "plan", "id": id, "select": selected(fields)? });
        let request = serde_json::from_value::<undo::Request>(input.clone());
        let request = request.map_err(|error| invalid(UNPLANNED, &error))?;
        request.checked().map(|_| input).map_err(|error| invalid(UNPLANNED, &error))
    }
}

/// The selection of these fields.
fn selected(fields: &[(&'static str, String)]) -> Result<Value, Problem> {
    let of = |name: &str| fields.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str());
    let (from, to) = (of("from"), of("to"));
    match [of("ids"), of("account"), of("client"), of("due"), of("file")] {
        [Some(ids), None, None, None, None] => Ok(json!({ "ids": ids.split(' ').collect::<Vec<_>>() })),
        [None, Some(id), None, None, None] => Ok(json!({ "account": { "id": id, "from": from, "to": to } })),
        [None, None, Some(name), None, None] => Ok(json!({ "client": { "name": name, "from": from, "to": to } })),
        [None, None, None, Some(date), None] => Ok(json!({ "dueDate": date })),
        [None, None, None, None, Some(name)] => Ok(json!({ "file": name })),
        _ => Err(invalid(UNPLANNED, &"choose ids, a file of ids, an account, a client or a due date")),
    }
}

fn invalid(what: &str, error: &dyn std::fmt::Display) -> Problem {
    Problem::new(ProblemKind::InvalidShape, format!("{what}: {error}."))
}

impl Console {
    /// Shows the effect of a step: for a run, one read of the undo. Also returns the step as it was shown.
    pub(super) async fn preview_undo(&self, undoing: &Undoing) -> Result<(Preview, Undoing), Problem> {
        match undoing {
            Undoing::Plan { fields, id } => {
                let facts = PlanHash::from_fields(&self.clock.now().to_string(), fields);
                // Another plan of the same undo has its id.
                let new = || facts.as_str().get(..16).and_then(|digits| digits.parse().ok());
                let id = id.clone().or_else(new);
                let shown = html! {
                    p {
                        "It holds the due dates of these payments against claims, and writes the payments to a file, as they are now. Nothing is cancelled yet. "
                        a href=(link("undos", &[])) { "Undos" } " shows the plan, and two persons then agree on it. The hold stays until " i { "Release…" } "."
                    }
                    @if fields.iter().any(|(name, _)| *name == "client") {
                        p class="notice" { "The event log is asked. It has what was created 15 minutes ago, and no create that was cut off: refuse the client first, and plan once more when it may send again. See " (INCIDENT) "." }
                    }
                };
                let buttons = Buttons { act: "Hold and plan".to_owned(), keep: "Do not plan", is_final: false };
                Ok((Preview { shown, buttons: Some(buttons) }, Undoing::Plan { fields: fields.clone(), id }))
            }
            Undoing::Run { id, plan, .. } => {
                let planned = self.planned(id, *plan).await?;
                let seen = Shown::from_plan(&planned);
                let shown = self.shown_plan(id, &planned);
                let act =
                    format!("Cancel {}", counted(usize::try_from(planned.payments).unwrap_or(usize::MAX), "payment"));
                let has_run = planned.run.is_some() || planned.payments == 0;
                let buttons = (!has_run).then_some(Buttons { act, keep: "Keep them", is_final: true });
                Ok((Preview { shown, buttons }, Undoing::Run { id: id.clone(), plan: *plan, shown: Some(seen) }))
            }
        }
    }

    /// A plan of an undo.
    async fn planned(&self, id: &UndoId, number: u32) -> Result<UndoPlan, Problem> {
        let plans = self.store.undo(id).await?.map(|undo| undo.plans).unwrap_or_default();
        let planned = plans.into_iter().find(|plan| plan.number == number);
        planned.ok_or_else(|| invalid(NOT_RUN, &"the undo has no such plan; look at Undos again"))
    }

    fn shown_plan(&self, id: &UndoId, plan: &UndoPlan) -> Markup {
        html! {
            @if plan.run.is_some() { p class="notice" { "This plan runs, or has run. " a href=(link("undos", &[])) { "Undos" } " shows its results." } }
            (inexact(plan))
            (panel(&html! { "Plan " (plan.number) }, &html! { "held since " (self.times().at(plan.held_at)) }, &html! {
                dl class="facts" {
                    (totals(plan))
                    (fact("SHA-256", &copied(&plan.sha256)))
                    (fact("File", &copied(payments_files::plan_path(id, plan.number).as_ref())))
                }
            }))
            p {
                "Payments that are still SCHEDULED with the payee and the amount of the plan are cancelled. What was claimed is not taken back: "
                code { "claimed.csv" } " lists it for the transaction service’s operators. " b { "A cancelled key stays cancelled: the corrected load needs new keys." }
            }
        }
    }

    /// Starts the function. A run needs the plan that its preview showed.
    pub(super) async fn undo(&self, undoing: &Undoing, approved: Option<ActionName>) -> Result<String, Problem> {
        if let Undoing::Run { id, plan, shown } = undoing
            && *shown != Some(Shown::from_plan(&self.planned(id, *plan).await?))
        {
            return Err(invalid(NOT_RUN, &"the plan is another one; preview it again"));
        }
        let input = undoing.input(approved)?;
        self.operations.start(Startable::Undo, &input.to_string()).await?;
        Ok(match undoing {
            Undoing::Plan { id, .. } => {
                let id = id.as_ref().map_or_else(String::new, ToString::to_string);
                format!("the undo {id} is planned within minutes, or once another undo leaves time; Undos shows it")
            }
            Undoing::Run { .. } => {
                format!(
                    "{}: it begins within minutes, or once another undo leaves time; Undos shows its results",
                    undoing.title()
                )
            }
        })
    }
}
