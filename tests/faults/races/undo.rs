//! Races of an undo: against the sweep, an amendment, a cancel, and the create that comes again.

use std::cell::RefCell;

use anyhow::Result;
use payments_lab::facts::intent::Intent;

use super::{Race, Races, Task};
use crate::undo::Planned;

impl Race {
    /// Whether it is one of undos.
    pub(super) fn is_of_undo(self) -> bool {
        matches!(
            self,
            Self::UndoAgainstSweep | Self::UndoAgainstAmend | Self::UndoAgainstCancel | Self::UndoAgainstRetry
        )
    }
}

impl Races {
    /// Creates payments, and plans an undo of the first one. Its hold was released, so that the sweep goes on.
    pub(super) async fn prepare_undo(&self, race: Race) -> Result<Vec<Intent>> {
        let fixture = &self.fixture;
        let mut intents = if race == Race::UndoAgainstRetry {
            vec![fixture.cut_off(&fixture.new_name()).await?]
        } else {
            fixture.due(2).await?
        };
        if race == Race::UndoAgainstAmend {
            fixture.want_amended(&mut intents[0], 1, 0)?;
        }
        let (planned, _) = fixture.plan_undo(&fixture.new_undo(), &intents[..1]).await?;
        fixture.release().await?;
        fixture.time.pass(chrono::TimeDelta::seconds(11));
        *self.planned.borrow_mut() = Some(planned);
        Ok(intents)
    }

    /// The tasks of a race of an undo.
    pub(super) fn undos<'r>(&'r self, race: Race, intents: &'r RefCell<Vec<Intent>>) -> Vec<Task<'r>> {
        match race {
            Race::UndoAgainstSweep => vec![self.undo(0, intents), self.sweep(1), self.dispatch(2)],
            Race::UndoAgainstAmend => vec![self.undo(0, intents), self.amend(1, intents, 0)],
            Race::UndoAgainstCancel => vec![self.undo(0, intents), self.cancel(1, intents), self.undo(2, intents)],
            _ => vec![self.undo(0, intents), self.create(1, intents), self.create(2, intents), self.sweep(3)],
        }
    }

    /// Runs the plan, and notes whether it cancelled the first payment.
    fn undo<'r>(&'r self, task: usize, intents: &'r RefCell<Vec<Intent>>) -> Task<'r> {
        let planned: Option<Planned> = self.planned.borrow().clone();
        Box::pin(async move {
            let Some(planned) = planned else { return Ok(()) };
            let run = self.fixture.run_undo(&self.sandboxes[task], &planned).await?;
            let is_cancelled = ["cancelled", "already-cancelled"].iter().any(|end| run.ends.contains_key(*end));
            intents.borrow_mut()[0].cancelled |= is_cancelled;
            Ok(())
        })
    }
}

no_schedule_breaks! {
    an_undo_against_a_sweep: UndoAgainstSweep,
    an_undo_against_an_amendment: UndoAgainstAmend,
    an_undo_against_a_cancel: UndoAgainstCancel,
    an_undo_against_a_create_that_comes_again: UndoAgainstRetry,
}
