//! Undos: one person lets `undo` hold and plan the payments of a wrong feed, and two persons agree on a plan that it then runs.

use maud::{Markup, html};
use payments_http::{Form, Problem, ProblemKind, invalid_field};
use payments_model::{ActionName, PlanHash, UndoId, undo};
use payments_store::{Undo, UndoPlan};
use serde_json::{Value, json};

use crate::actions::preview::{Buttons, Preview, counted};
use crate::function::Console;
use crate::guides::INCIDENT;
use crate::html::{copied, fact, link};
use crate::operations::Startable;
use crate::panel::panel;
use crate::views::undos::{inexact, totals};

/// The name of the action that plans.
pub(crate) const PLAN: &str = "plan-undo";

/// The fields of a selection, and their most bytes: about 200 ids, which the audit trail keeps.
const SELECTED: [(&str, usize); 6] =
    [("ids", 8_000), ("account", 60), ("client", 40), ("due", 10), ("from", 20), ("to", 20)];

/// The most bytes of an id, of a plan's number and of a hash.
const MAX_TEXT_BYTES: usize = 64;

/// The id of a plan that has none yet.
const NO_ID: &str = "0000000000000000";

const UNPLANNED: &str = "This cannot be planned";
const NOT_RUN: &str = "This cannot be run";

/// A step of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Undoing {
    /// Plan what these fields select. The preview gives it an id.
    Plan { fields: Vec<(&'static str, String)>, id: Option<UndoId> },
    /// Run the plan whose file has the hash that a preview showed.
    Run { id: UndoId, plan: u32, sha256: Option<String> },
}

impl Undoing {
    /// Reads the fields of the action with this name; `None` if it is another one.
    pub(super) fn read(name: &str, form: &mut Form) -> Option<Result<Self, Problem>> {
        Some(match name {
            PLAN => Self::read_plan(form),
            undo::ACTION => form.get("id", MAX_TEXT_BYTES).and_then(|id| {
                let (plan, sha256) = (form.get("plan", MAX_TEXT_BYTES)?, form.take("sha256", MAX_TEXT_BYTES)?);
                Ok(Self::Run { id, plan, sha256: (!sha256.is_empty()).then_some(sha256) })
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
        let id = form.take("id", MAX_TEXT_BYTES)?;
        let id = (!id.is_empty()).then(|| id.parse()).transpose().map_err(|error| invalid_field("id", &error))?;
        let planned = Self::Plan { fields, id };
        planned.input(None, false).map(|_| planned)
    }

    pub(super) fn name(&self) -> &'static str {
        if let Self::Plan { .. } = self { PLAN } else { undo::ACTION }
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
                fields.iter().cloned().chain(id.as_ref().map(|id| ("id", id.to_string()))).collect()
            }
            // The function judges the consent to these fields.
            Self::Run { id, plan, sha256 } => {
                let mut fields = undo::fields(id, *plan, sha256.as_deref().unwrap_or_default());
                fields.retain(|(name, _)| *name != "sha256" || sha256.is_some());
                fields
            }
        }
    }

    /// Whether a preview has shown the plan, or has given the new one an id.
    pub(super) fn is_previewed(&self) -> bool {
        !matches!(self, Self::Plan { id: None, .. } | Self::Run { sha256: None, .. })
    }

    /// Whether a second person has to agree.
    pub(super) fn needs_second(&self) -> bool {
        matches!(self, Self::Run { .. })
    }

    /// The function's input. A plan's is checked as the function checks it.
    fn input(&self, approved: Option<ActionName>, accepts_inexact: bool) -> Result<Value, Problem> {
        let (fields, id) = match self {
            Self::Plan { fields, id } => (fields, id.as_ref().map_or(NO_ID, UndoId::as_str)),
            Self::Run { id, plan, sha256 } => {
                return Ok(json!({
                    "action": "run", "id": id.as_str(), "plan": plan, "sha256": sha256,
                    "approval": approved.map(|name| name.to_string()), "acceptInexact": accepts_inexact,
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
    match [of("ids"), of("account"), of("client"), of("due")] {
        [Some(ids), None, None, None] => Ok(json!({ "ids": ids.split(' ').collect::<Vec<_>>() })),
        [None, Some(id), None, None] => Ok(json!({ "account": { "id": id, "from": from, "to": to } })),
        [None, None, Some(name), None] => Ok(json!({ "client": { "name": name, "from": from, "to": to } })),
        [None, None, None, Some(date)] => Ok(json!({ "dueDate": date })),
        _ => Err(invalid(UNPLANNED, &"choose ids, an account, a client or a due date")),
    }
}

fn invalid(what: &str, error: &dyn std::fmt::Display) -> Problem {
    Problem::new(ProblemKind::InvalidShape, format!("{what}: {error}."))
}

impl Console {
    /// Shows the effect of a step: for a run, one read of the undo. Also returns the step as it was shown.
    pub(super) async fn preview_undo(&self, undoing: &Undoing) -> Result<(Preview, Undoing), Problem> {
        match undoing {
            Undoing::Plan { fields, .. } => {
                let facts = PlanHash::from_fields(&self.clock.now().to_string(), fields);
                let id = facts.as_str().get(..16).and_then(|digits| digits.parse().ok());
                let shown = html! {
                    p {
                        "It holds the due dates of these payments, so that the sweep claims none of them, and writes them to a file, as they are. It cancels nothing. "
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
                let (undo, place) = self.planned(id, *plan).await?;
                let planned = &undo.plans[place];
                let (id, plan, sha256) = (id.clone(), *plan, Some(planned.sha256.clone()));
                let shown = self.shown_plan(&undo.id, planned);
                let act =
                    format!("Cancel {}", counted(usize::try_from(planned.payments).unwrap_or(usize::MAX), "payment"));
                let has_run = planned.run.is_some() || planned.payments == 0;
                let buttons = (!has_run).then_some(Buttons { act, keep: "Keep them", is_final: true });
                Ok((Preview { shown, buttons }, Undoing::Run { id, plan, sha256 }))
            }
        }
    }

    /// An undo, and the place of one of its plans.
    async fn planned(&self, id: &UndoId, number: u32) -> Result<(Undo, usize), Problem> {
        let missing = || invalid(NOT_RUN, &"the undo has no such plan; look at Undos again");
        let undo = self.store.undo(id).await?.ok_or_else(missing)?;
        let place = undo.plans.iter().position(|plan| plan.number == number).ok_or_else(missing)?;
        Ok((undo, place))
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
        let mut accepts_inexact = false;
        if let Undoing::Run { id, plan, sha256 } = undoing {
            let (undo, place) = self.planned(id, *plan).await?;
            let planned = &undo.plans[place];
            if sha256.as_deref() != Some(&planned.sha256) {
                return Err(invalid(NOT_RUN, &"the plan is another one; preview it again"));
            }
            accepts_inexact = !planned.inexact.is_empty();
        }
        let input = undoing.input(approved, accepts_inexact)?;
        self.operations.start(Startable::Undo, &input.to_string()).await?;
        Ok(match undoing {
            Undoing::Plan { id, .. } => {
                let id = id.as_ref().map_or_else(String::new, ToString::to_string);
                format!("the undo {id} is planned within minutes; Undos shows it")
            }
            Undoing::Run { .. } => {
                format!("{}: it begins within five minutes; Undos shows its results", undoing.title())
            }
        })
    }
}
