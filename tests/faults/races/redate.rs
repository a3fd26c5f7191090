//! Races of redates, on a Saturday that was just closed: against a sweep, a cancel, an amendment and another redate.

use std::cell::RefCell;

use anyhow::Result;
use payments_lab::facts::intent::Intent;

use super::{Race, Races, Task};

impl Race {
    /// Whether it is one of redates.
    pub(super) fn is_of_saturday(self) -> bool {
        matches!(
            self,
            Self::RedateAgainstSweep | Self::RedateAgainstCancel | Self::RedateAgainstAmend | Self::TwoRedates
        )
    }
}

impl Races {
    /// Creates payments of a Saturday, and passes to its noon, when they are due.
    pub(super) async fn prepare_saturday(&self, race: Race) -> Result<Vec<Intent>> {
        let fixture = &self.fixture;
        let mut intents = fixture.of_saturday(2).await?;
        if race == Race::RedateAgainstAmend {
            let place = fixture.want_amended(&mut intents[0], 1, 0)?;
            let name = intents[0].amendments[place].name(intents[0].id()?).unwrap_or_default();
            fixture.want_redated(&mut intents[0], (2, &name))?;
        }
        for intent in &mut intents {
            fixture.want_redated(intent, (1, ""))?;
        }
        fixture.pass_to_saturday()?;
        Ok(intents)
    }

    /// The tasks of a race of redates.
    pub(super) fn redates<'r>(&'r self, race: Race, intents: &'r RefCell<Vec<Intent>>) -> Vec<Task<'r>> {
        match race {
            Race::RedateAgainstSweep => vec![self.sweep(0), self.redate(1, intents), self.dispatch(2)],
            Race::RedateAgainstCancel => vec![self.redate(0, intents), self.cancel(1, intents)],
            Race::RedateAgainstAmend => {
                vec![self.redate(0, intents), self.amend(1, intents, 0), self.redate(2, intents)]
            }
            _ => vec![self.redate(0, intents), self.redate(1, intents), self.sweep(2), self.dispatch(3)],
        }
    }

    /// Moves payments of closed dates, and notes which are moved then.
    fn redate<'r>(&'r self, task: usize, intents: &'r RefCell<Vec<Intent>>) -> Task<'r> {
        Box::pin(async move {
            let mut noted = intents.borrow().clone();
            self.fixture.redate(&self.redating[task], &noted).await?;
            self.fixture.note_redates(&mut noted).await?;
            for (intent, noted) in intents.borrow_mut().iter_mut().zip(noted) {
                for (amendment, noted) in intent.amendments.iter_mut().zip(noted.amendments) {
                    amendment.accepted |= noted.accepted;
                }
            }
            Ok(())
        })
    }

    /// Settles the payments that were claimed on the Saturday, and passes to the week after, when the others are due.
    pub(super) async fn finish_saturday(&self) -> Result<()> {
        self.fixture.settle_pending().await?;
        self.fixture.pass_over_the_weekend()
    }
}

no_schedule_breaks! {
    a_redate_against_a_sweep: RedateAgainstSweep,
    a_redate_against_a_cancel: RedateAgainstCancel,
    a_redate_against_an_amendment: RedateAgainstAmend,
    two_redates: TwoRedates,
}
