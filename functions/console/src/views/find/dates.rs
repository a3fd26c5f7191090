//! Payments of a date that nothing but a look at each finds: by an amount, or by the first digits of an id.

use futures::stream::{StreamExt as _, TryStreamExt as _, iter};
use payments_boot::Deadline;
use payments_http::Problem;
use payments_model::{BusinessDate, Shard, Status, TypedAmount};
use payments_store::{DuePage, DueRange, DueRow, DueUntil, StoreError};

use crate::function::Console;
use crate::views::find::meaning::Digits;
use crate::views::rows::Row;
use crate::views::waiting::SHARDS_AT_ONCE;

/// The payments of each shard and status that are looked at. With 32 shards and five statuses they are 40,000, for about 1,700
/// read units.
const LOOKED_AT: u16 = 250;

/// The most payments that are shown.
const SHOWN: usize = 50;

/// The payments of a date that match.
#[derive(Default)]
pub(super) struct OnDate {
    /// The earliest due first.
    pub(super) rows: Vec<Row>,
    /// The number of payments that were looked at.
    pub(super) looked_at: usize,
    pub(super) unreadable: usize,
    /// Whether the date has payments that were not looked at.
    pub(super) is_partial: bool,
    /// Whether more match than are shown.
    pub(super) more: bool,
}

impl Console {
    /// Finds the payments of a date with an amount: one read of each shard and status, of which each looks at the first payments.
    pub(super) async fn of_amount(
        &self,
        date: BusinessDate,
        amount: TypedAmount,
        deadline: &Deadline,
    ) -> Result<OnDate, Problem> {
        self.on_date(date, DueUntil::Date(date), &|row| amount.is(row.money), deadline).await
    }

    /// Finds the payments of a date whose ids begin with these digits: one read of each shard and status. The payments of a
    /// date without a time are due at its first instant, where the index has them by their ids. If that finds nothing, the
    /// first payments with a time are looked at.
    pub(super) async fn of_digits(
        &self,
        date: BusinessDate,
        digits: &Digits,
        deadline: &Deadline,
    ) -> Result<OnDate, Problem> {
        let start = self.config.business_days.zone().start_of(date);
        let begins = |row: &DueRow| digits.begin(row.due.payment_id);
        let found = self.on_date(date, DueUntil::Ids(date, start, digits.first), &begins, deadline).await?;
        if !found.rows.is_empty() || found.is_partial {
            return Ok(found);
        }
        self.on_date(date, DueUntil::LaterOf(date, start), &begins, deadline).await
    }

    async fn on_date(
        &self,
        date: BusinessDate,
        until: DueUntil,
        matches: &(dyn Fn(&DueRow) -> bool + Sync),
        deadline: &Deadline,
    ) -> Result<OnDate, Problem> {
        let today = self.today();
        // Before its date, a payment is scheduled or cancelled.
        let statuses = if date > today { &[Status::Scheduled, Status::Cancelled][..] } else { &Status::ALL[..] };
        let shards = self.config.read_shards;
        let ranges: Vec<_> = statuses.iter().flat_map(|status| shards.all().map(|shard| (shard, *status))).collect();
        let pages = iter(ranges)
            .map(|(shard, status)| async move {
                if deadline.has_come() {
                    return Ok::<_, StoreError>(None);
                }
                self.first_of(shard, status, until, date < today).await.map(Some)
            })
            .buffered(SHARDS_AT_ONCE);
        let pages: Vec<_> = pages.try_collect().await?;
        let mut found = OnDate::default();
        let mut rows = Vec::new();
        for page in pages {
            let Some(page) = page else {
                found.is_partial = true;
                continue;
            };
            found.is_partial |= page.next.is_some();
            for row in page.rows {
                found.looked_at += 1;
                match row {
                    Ok(row) if matches(&row) => rows.push(row),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::error!(%error, "a payment cannot be read and is not found");
                        found.unreadable += 1;
                    }
                }
            }
        }
        rows.sort_unstable_by_key(|row| (row.due.due_at, row.due.payment_id));
        found.more = rows.len() > SHOWN;
        rows.truncate(SHOWN);
        found.rows = rows.into_iter().map(Row::from_due).collect();
        Ok(found)
    }

    /// Reads the first payments of a range; of past days, also those in the long-term table.
    async fn first_of(
        &self,
        shard: Shard,
        status: Status,
        until: DueUntil,
        with_history: bool,
    ) -> Result<DuePage, StoreError> {
        let range = DueRange { shard, status, until, after: None };
        if with_history {
            self.store.due_page_of_both(&range, LOOKED_AT).await
        } else {
            self.store.due_page(&range, LOOKED_AT).await
        }
    }
}
