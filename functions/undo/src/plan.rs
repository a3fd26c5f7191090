//! Plans: holds the due dates of the selected payments, writes the payments to a file, and notes the plan.

use std::collections::BTreeMap;

use object_store::{Error, ObjectStoreExt as _, PutMode, PutPayload};
use payments_boot::Deadline;
use payments_files::{hexadecimal, plan_path};
use payments_model::undo::Selector;
use payments_model::{UndoId, UtcSecond};
use payments_store::UndoPlan;
use payments_work::retried;
use sha2::{Digest as _, Sha256};

use crate::error::UndoError;
use crate::function::Undo;
use crate::logged::Logged;
use crate::outcome::{PlanOutcome, totals};

/// The most numbers that are tried, and the most tries of a change: others may write plans of the same undo.
pub(crate) const MAX_TRIES: u32 = 5;

/// The longest selection that a plan keeps, in bytes: as long as the console's form takes.
const MAX_SELECTION: usize = 8_000;

/// The most plans of an undo. Each takes some KB of its item, if its payments are in many currencies.
pub(crate) const MAX_PLANS: usize = 32;

impl Undo {
    /// Plans the payments as they are. A repeated request makes another plan.
    pub(crate) async fn plan(
        &self,
        id: &UndoId,
        select: &Selector,
        deadline: &Deadline,
    ) -> Result<PlanOutcome, UndoError> {
        let kept: BTreeMap<_, _> = select.fields().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let is_short = kept.values().map(String::len).sum::<usize>() <= MAX_SELECTION;
        let kept = if is_short { kept } else { BTreeMap::new() };
        let select = self.with_ids(select).await?;
        let select = select.as_ref();
        let logged = match select {
            Selector::Client(client) => self.logged(client, deadline).await?,
            Selector::Ids(_) | Selector::File(_) | Selector::Account { .. } | Selector::DueDate(_) => Logged::default(),
        };
        let dates = self.dates(select, &logged, deadline).await?;
        let held_at = self.hold(id, &dates, deadline).await?;
        let known = retried(deadline, async || self.store.undo(id).await).await?;
        let known = known.map(|undo| undo.plans).unwrap_or_default();
        if known.len() >= MAX_PLANS {
            return Err(UndoError::TooManyPlans(id.to_string(), MAX_PLANS));
        }
        let first = known.last().map_or(0, |plan| plan.number) + 1;
        for number in first..first + MAX_TRIES {
            let selected = self.select((id, number), (select, &logged), deadline).await?;
            let inexact = selected.doubts(&logged.inexact);
            let (file, path) = (selected.file.finish()?, plan_path(id, number));
            let sha256 = hexadecimal(Sha256::digest(&file).as_slice());
            let payload = PutPayload::from(file);
            match self.files.put_opts(&path, payload, PutMode::Create.into()).await {
                Ok(_) => {}
                // A try whose reply was lost, or which ended before the plan was noted.
                Err(Error::AlreadyExists { .. }) => continue,
                Err(error) => return Err(error.into()),
            }
            let plan = UndoPlan {
                number,
                select: kept.clone(),
                sha256,
                inexact: inexact.clone(),
                payments: selected.payments,
                totals: selected.totals,
                held_at,
                run: None,
            };
            self.note(id, &plan, deadline).await?;
            return Ok(PlanOutcome {
                id: id.to_string(),
                plan: number,
                file: path.to_string(),
                sha256: plan.sha256,
                payments: plan.payments,
                totals: totals(&plan.totals),
                unknown: selected.unknown,
                unreadable: selected.unreadable,
                inexact,
                is_complete: selected.is_complete,
            });
        }
        Err(UndoError::Overtaken)
    }

    /// Adds a plan to its undo.
    async fn note(&self, id: &UndoId, plan: &UndoPlan, deadline: &Deadline) -> Result<(), UndoError> {
        for _ in 0..MAX_TRIES {
            let mut undo = self.known(id, deadline).await?;
            undo.plans.retain(|known| known.number != plan.number);
            // Only the last plan's selection is offered again, and the item is written at each step of a run.
            undo.plans.iter_mut().for_each(|known| known.select.clear());
            undo.plans.push(plan.clone());
            undo.plans.sort_by_key(|plan| plan.number);
            undo.revision += 1;
            if retried(deadline, async || self.store.change_undo(&undo).await).await? {
                return Ok(());
            }
        }
        Err(UndoError::Overtaken)
    }

    /// Returns an undo, or one without plans.
    pub(crate) async fn known(&self, id: &UndoId, deadline: &Deadline) -> Result<payments_store::Undo, UndoError> {
        let known = retried(deadline, async || self.store.undo(id).await).await?;
        Ok(known.unwrap_or_else(|| payments_store::Undo { id: id.clone(), revision: 0, plans: Vec::new() }))
    }

    /// Returns the file of a plan, which has this hash.
    pub(crate) async fn plan_file(&self, id: &UndoId, number: u32, sha256: &str) -> Result<Vec<u8>, UndoError> {
        let file = match self.files.get(&plan_path(id, number)).await {
            Ok(file) => file.bytes().await?,
            Err(Error::NotFound { .. }) => return Err(UndoError::NoPlan(number, id.to_string())),
            Err(error) => return Err(error.into()),
        };
        if hexadecimal(Sha256::digest(&file).as_slice()) != sha256 {
            return Err(UndoError::OtherPlan(number, id.to_string()));
        }
        Ok(file.into())
    }

    /// The current second.
    pub(crate) fn now(&self) -> UtcSecond {
        self.clock.now()
    }
}
