//! A run: date by date, some shards at a time.

use futures::StreamExt as _;
use payments_boot::Deadline;
use payments_model::BusinessDate;
use payments_model::redate::{Action, Plan};
use payments_store::StoreError;

use crate::function::Redate;
use crate::judge::Run;
use crate::outcome::{Notices, RedateMetrics, RedateOutcome};
use crate::shard::ShardDate;

/// The most shards at once: 8 with a page of 1,000 entries of 0.3 KB, and 25 details of 8 KB that are held three times, take 7 MB.
/// More would also write more a second than the feed leaves of a new table's 4,000 units.
const SHARDS_AT_ONCE: usize = 8;

impl Redate {
    /// The outcome of a move that did not begin: nobody could count its payments.
    pub(crate) fn not_begun(&self, plan: &Plan) -> RedateOutcome {
        tracing::warn!("the payments could not be counted, and none is moved; repeat the call");
        let next = plan.dates.first().map(ToString::to_string);
        let outcome = RedateOutcome { next, ..RedateOutcome::default() };
        self.metrics.emit(self.clock.instant(), &RedateMetrics::from_outcome(&outcome, plan.action));
        outcome
    }

    /// Looks at the payments of a plan's dates, and moves them.
    pub(crate) async fn run(&self, plan: &Plan, deadline: &Deadline) -> (RedateOutcome, Option<StoreError>) {
        let (left, unreadable) = (Notices::default(), Notices::default());
        let run = Run { redate: self, plan, deadline, left, unreadable };
        let (mut total, mut broken) = (RedateOutcome { is_complete: true, ..RedateOutcome::default() }, None);
        if plan.action == Action::Move {
            tracing::warn!(consent = ?plan.consent, "payments of closed dates are moved");
            total.ticket = plan.consent.ticket().map(ToString::to_string);
        }
        for date in &plan.dates {
            let (outcome, error) = run.date(*date).await;
            if !outcome.is_complete && total.next.is_none() {
                total.next = Some(date.to_string());
            }
            total.add(outcome);
            broken = broken.or(error);
        }
        if let Some(next) = &total.next {
            tracing::warn!(next, "the run ended before all payments were looked at or moved; continue at `next`");
        }
        // Also emitted when a shard failed. A stack without calendars has no such metric.
        if !self.config.business_days.is_always_open() {
            self.metrics.emit(self.clock.instant(), &RedateMetrics::from_outcome(&total, plan.action));
        }
        (total, broken)
    }
}

impl Run<'_> {
    /// Looks at all shards of a date.
    async fn date(&self, date: BusinessDate) -> (RedateOutcome, Option<StoreError>) {
        let (mut total, mut broken) = (RedateOutcome { is_complete: true, ..RedateOutcome::default() }, None);
        let shards = futures::stream::iter(self.redate.config.read_shards.all());
        let ends = shards.map(|shard| ShardDate::new(self, date, shard).run());
        let ends: Vec<_> = ends.buffered(SHARDS_AT_ONCE).collect().await;
        for (outcome, error) in ends {
            total.add(outcome);
            broken = broken.or(error);
        }
        (total, broken)
    }
}
