//! The most payments of a move: it counts the index entries of its dates before it moves any.
//!
//! One person moves up to a hundred payments, and two as many as both saw. A ticket has no limit. Entries whose
//! payments stay by their rule count, too, so a move is refused rather than begun.

use futures::StreamExt as _;
use lambda_runtime::Error;
use payments_boot::Deadline;
use payments_model::redate::{Action, Plan, RequestError};
use payments_model::{BusinessDate, Shard, Status};
use payments_store::{DueRange, DueUntil, StoreError};
use payments_work::{Halt, require_consent, retried};

use crate::function::Redate;
use crate::judge::has;

/// The index entries of one page, 300 KB.
const PAGE: u16 = 1_000;

/// The most shards at once, as in the move.
const SHARDS_AT_ONCE: usize = 8;

impl Redate {
    /// Checks the consent to a plan, and that it moves no more payments than that covers. Returns whether that is known: there may be no time, or
    /// DynamoDB may not answer.
    pub(crate) async fn has_consent(&self, plan: &Plan, deadline: &Deadline) -> Result<bool, Error> {
        if plan.action != Action::Move {
            return Ok(true);
        }
        require_consent(&plan.consent, (self.clock.now(), deadline), async |name| self.store.agreement(name).await)
            .await?;
        let Some(most) = plan.most() else { return Ok(true) };
        let mut found = 0;
        for date in &plan.dates {
            let shards = futures::stream::iter(self.config.read_shards.all());
            let counts = shards.map(|shard| self.scheduled(plan, (*date, shard), most, deadline));
            let mut counts = counts.buffer_unordered(SHARDS_AT_ONCE);
            while let Some(counted) = counts.next().await {
                found += match counted {
                    Ok(counted) => counted,
                    Err(Halt::OutOfTime | Halt::GivenUp(_)) => return Ok(false),
                    Err(Halt::Broken(error)) => return Err(error.into()),
                };
                if found > most {
                    return Err(RequestError::Alone(most).into());
                }
            }
        }
        Ok(true)
    }

    /// The scheduled payments of a date and a shard in the plan's currencies. It stops above `most`.
    async fn scheduled(
        &self,
        plan: &Plan,
        (date, shard): (BusinessDate, Shard),
        most: u64,
        deadline: &Deadline,
    ) -> Result<u64, Halt<StoreError>> {
        let mut range = DueRange { shard, status: Status::Scheduled, until: DueUntil::Date(date), after: None };
        let mut found = 0;
        loop {
            let page = retried(deadline, async || self.store.due_page(&range, PAGE).await).await?;
            let rows = page.rows.iter().flatten();
            found += u64::try_from(rows.filter(|row| has(self, plan, row)).count()).unwrap_or(u64::MAX);
            match page.next {
                Some(next) if found <= most => range.after = Some(next),
                _ => return Ok(found),
            }
        }
    }
}
