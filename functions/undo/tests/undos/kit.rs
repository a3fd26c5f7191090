//! `undo` alone over the machine, for its tests.

use anyhow::{Context as _, Result, bail};
use payments_machine::given::{Given, details};
use payments_model::{Actor, Amended, Details, Head, Status};
use payments_store::{Moved, PutDetails};
use serde_json::{Value, json};
use undo::{Config, PlanOutcome, RunOutcome, Undo, UndoOutcome};

pub(crate) const ID: &str = "0123456789abcdef";
pub(crate) const NOW: &str = "2026-11-20T09:00:00Z";
pub(crate) const TODAY: &str = "2026-11-20";

/// `undo` on a machine.
pub(crate) struct Alone {
    pub(crate) given: Given,
    pub(crate) undo: Undo,
}

impl Alone {
    pub(crate) async fn start() -> Result<Self> {
        let given = Given::at(NOW, |_| {}).await?;
        let files = std::sync::Arc::clone(&given.stack.reports);
        let new = |config, store, clock, metrics| Undo::new(config, store, files, clock, metrics);
        let undo = given.function("undo", Config::read, new)?;
        Ok(Self { given, undo })
    }

    pub(crate) async fn ask(&self, request: Value) -> Result<UndoOutcome> {
        self.undo.handle(self.given.scheduled_event(request)?).await.map_err(anyhow::Error::from_boxed)
    }

    pub(crate) async fn plan(&self, select: Value) -> Result<PlanOutcome> {
        match self.ask(json!({ "action": "plan", "id": ID, "select": select })).await? {
            UndoOutcome::Planned(plan) => Ok(plan),
            UndoOutcome::Ran { .. } => bail!("not a plan"),
        }
    }

    pub(crate) async fn run(&self, plan: &PlanOutcome, again: bool) -> Result<RunOutcome> {
        self.run_with(plan, json!({ "ticket": "INC-4711", "again": again })).await
    }

    /// Runs a plan, with more fields of the request.
    pub(crate) async fn run_with(&self, plan: &PlanOutcome, fields: Value) -> Result<RunOutcome> {
        let mut request = json!({ "action": "run", "id": ID, "plan": plan.plan, "sha256": plan.sha256 });
        request.as_object_mut().context("an object")?.extend(fields.as_object().cloned().unwrap_or_default());
        one(self.ask(request).await?)
    }

    pub(crate) async fn head(&self, details: &Details) -> Result<Head> {
        self.given.store.head(&details.key()).await?.context("no head")
    }

    pub(crate) async fn status(&self, details: &Details) -> Result<Status> {
        Ok(self.head(details).await?.state.status())
    }

    /// Gives a payment another amount, as an amendment without new details would.
    pub(crate) async fn amend(&self, payment: &Details) -> Result<()> {
        let head = self.head(payment).await?;
        let mut instruction = payment.instruction.clone();
        instruction.money.amount = "501".parse()?;
        let id = payments_model::AmendmentId::derive(payment.payment_id, &"other".parse()?);
        let now = self.given.stack.clock.now();
        let amended = payment.amended(&head, id, instruction, (now, Actor::client("test")));
        anyhow::ensure!(self.given.store.put_details(&amended).await? == PutDetails::Created);
        let name = amended.amendment.context("an amendment")?.name;
        let change = Amended { at: now, by: Actor::client("test"), changed: vec!["amountMinor".to_owned()] };
        let moved = self.given.store.amend(&head, &head.amended(name, &amended, change)).await?;
        anyhow::ensure!(matches!(moved, Moved::Done(_)));
        Ok(())
    }

    /// Creates details without a head, as a create that is cut off leaves them.
    pub(crate) async fn cut_off(&self, key: &str, date: &str) -> Result<Details> {
        let details = details(key, date, self.given.stack.clock.now())?;
        anyhow::ensure!(self.given.store.put_details(&details).await? == PutDetails::Created);
        Ok(details)
    }
}

pub(crate) fn one(outcome: UndoOutcome) -> Result<RunOutcome> {
    let UndoOutcome::Ran { mut runs } = outcome else { bail!("not a run") };
    runs.pop().context("no run")
}

pub(crate) fn ends(run: &RunOutcome) -> Value {
    json!(run.ends)
}

pub(crate) fn by_ids(payments: &[&Details]) -> Value {
    json!({ "ids": payments.iter().map(|details| details.payment_id.to_string()).collect::<Vec<_>>() })
}
