//! Races of amendments: against the sweep, a cancel, another amendment, and the retry of the create.

use std::cell::RefCell;

use anyhow::Result;
use payments_lab::facts::intent::Intent;

use super::{Race, Races, Task};
use crate::kit::fixture::amendment_of;

impl Races {
    /// Notes what clients want of a payment that is due. It stays due, so that the sweep can claim it before and after.
    pub(super) fn want_amendments(&self, race: Race, intent: &mut Intent) -> Result<()> {
        let wanted: &[i64] = match race {
            Race::AmendAgainstSweep => &[-30],
            Race::AmendAgainstCancel => &[0],
            Race::TwoAmendments => &[-30, -10],
            _ => &[],
        };
        for later in wanted {
            self.fixture.want_amended(intent, 1, *later)?;
        }
        Ok(())
    }

    /// The tasks of a race of amendments.
    pub(super) fn amendments<'r>(&'r self, race: Race, intents: &'r RefCell<Vec<Intent>>) -> Vec<Task<'r>> {
        match race {
            Race::AmendAgainstSweep => vec![self.sweep(0), self.amend(1, intents, 0), self.dispatch(2)],
            Race::AmendAgainstCancel => {
                vec![self.amend(0, intents, 0), self.cancel(1, intents), self.amend(2, intents, 0)]
            }
            Race::TwoAmendments => {
                vec![self.amend(0, intents, 0), self.amend(1, intents, 1), self.sweep(2), self.dispatch(3)]
            }
            _ => vec![self.create(0, intents), self.create(1, intents), self.amend(2, intents, 0)],
        }
    }

    /// Amends the first payment, whose id a client can derive before it is told.
    pub(super) fn amend<'r>(&'r self, task: usize, intents: &'r RefCell<Vec<Intent>>, place: usize) -> Task<'r> {
        let ask = amendment_of(&intents.borrow()[0], place);
        Box::pin(async move {
            let reply = self.fixture.world.send_to(&self.sandboxes[task], ask?).await?;
            anyhow::ensure!(matches!(reply.status, 200 | 404 | 409 | 412 | 503), "{reply}");
            intents.borrow_mut()[0].amendments[place].accepted |= reply.status == 200;
            Ok(())
        })
    }
}

no_schedule_breaks! {
    an_amendment_against_a_sweep: AmendAgainstSweep,
    an_amendment_against_a_cancel: AmendAgainstCancel,
    two_amendments_of_one_version: TwoAmendments,
    a_retried_create_against_an_amendment: RetryAgainstAmend,
}
