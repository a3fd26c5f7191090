//! The counts of payments that a resume or a release frees, and their comparison with what its preview showed.

use payments_http::{Problem, ProblemKind};
use payments_model::{BusinessDate, Status, Switch};

use crate::actions::switch::freed::{Freed, Now};
use crate::actions::switch::{DAYS_BACK, DAYS_COUNTED, Turn, TurnSwitch};
use crate::function::Console;

impl Console {
    /// The payments that a turn frees: one read of the counters.
    pub(in super::super) async fn freed(&self, turn: Turn, known: &Switch) -> Result<Freed, Problem> {
        let today = self.today();
        match turn {
            Turn::Release(from, to, _) => Ok(Freed { claims: self.scheduled(from, to).await?.0, pending: 0 }),
            Turn::Stop | Turn::Hold(..) => Ok(Freed { claims: 0, pending: 0 }),
            Turn::Resume(_) => {
                let counters = self.store.counters(today.minus_days(DAYS_BACK), today).await?;
                let count = |status, held: bool| -> i64 {
                    let dates = counters.iter().filter(|(date, _)| !held || !known.is_held(**date));
                    dates.map(|(_, counters)| counters.counts.count(status).max(0)).sum()
                };
                let [claims, pending] = [count(Status::Scheduled, true), count(Status::Pending, false)]
                    .map(|count| u64::try_from(count).unwrap_or_default());
                Ok(Freed { claims, pending })
            }
        }
    }

    /// The scheduled payments of some dates, and the first and last date that were counted.
    pub(in super::super) async fn scheduled(
        &self,
        from: BusinessDate,
        to: BusinessDate,
    ) -> Result<(u64, (BusinessDate, BusinessDate)), Problem> {
        let first = from.max(self.today().minus_days(DAYS_BACK)).min(to);
        let last = to.min(first.plus_days(DAYS_COUNTED));
        let counters = self.store.counters(first, last).await?;
        let scheduled: i64 = counters.values().map(|date| date.counts.count(Status::Scheduled).max(0)).sum();
        Ok((u64::try_from(scheduled).unwrap_or_default(), (first, last)))
    }

    /// Checks that a turn frees no more than its preview showed.
    pub(in super::super) async fn require_no_more(&self, turn: Turn, known: &Switch) -> Result<(), Problem> {
        let Some(shown) = turn.seen().map(|seen| seen.freed) else { return Ok(()) };
        let now = self.freed(turn, known).await?;
        if !now.is_beyond(shown) {
            return Ok(());
        }
        let detail = format!(
            "More payments would be claimed or sent than its preview showed: {}, and not {}. Preview it again, and ask anew.",
            now.named(),
            shown.named()
        );
        Err(Problem::new(ProblemKind::InvalidShape, detail))
    }

    /// The numbers of a turn as they are now, beside those that the first person saw.
    pub(in super::super) async fn numbers_now(&self, turn: &TurnSwitch) -> Result<Option<Now>, Problem> {
        let turn = turn.turn();
        let (Some(seen), Some(known)) = (turn.seen(), self.known_switch().await?) else { return Ok(None) };
        let now = self.freed(turn, &known).await?;
        Ok(Some(Now { named: now.named(), is_beyond: now.is_beyond(seen.freed) }))
    }
}
