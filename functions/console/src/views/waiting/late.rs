//! The payments of a status that have been due for the longest time, across all shards.

use std::collections::BTreeMap;

use futures::stream::{StreamExt as _, TryStreamExt as _, iter};
use maud::{Markup, html};
use payments_model::{BusinessDate, Status, Switch};
use payments_store::{DueRange, DueRow, DueUntil, StoreError};

use crate::function::Console;
use crate::guides::PAYMENTS_UNREADABLE;
use crate::html::{amount, grouped, head_link};
use crate::panel::{cards, empty};
use crate::times::{Times, span};
use crate::views::waiting::{LATE, SHARDS_AT_ONCE, parties};

/// The payments of a status that have been due for the longest time.
#[derive(Debug)]
pub(crate) struct Late {
    /// The earliest due first.
    pub(super) rows: Vec<DueRow>,
    /// The number of entries that cannot be read.
    unreadable: usize,
    /// Whether there are more.
    pub(super) more: bool,
    /// The number of shards that were not read for lack of time.
    unread: usize,
    /// The switch, whose holds keep scheduled payments from their claim.
    switch: Option<Switch>,
    /// The due dates that their limit holds, and whether their items can be read.
    limited: BTreeMap<BusinessDate, bool>,
}

impl Console {
    /// The payments of a status that have been due for the longest time: one read for each shard, and for scheduled ones the switch and
    /// the dates that their limit holds.
    pub(crate) async fn late(&self, status: Status, most: u16) -> Result<Late, StoreError> {
        let now = self.clock.now();
        let until = DueUntil::Instant(self.config.business_days.date_of(now), now);
        let deadline = self.deadline();
        let deadline = &deadline;
        let pages = iter(self.config.read_shards.all())
            .map(|shard| async move {
                if deadline.has_come() {
                    return Ok(None);
                }
                let range = DueRange { shard, status, until, after: None };
                self.store.due_page(&range, most).await.map(Some)
            })
            .buffered(SHARDS_AT_ONCE);
        let pages: Vec<_> = pages.try_collect().await?;
        let unread = pages.iter().filter(|page| page.is_none()).count();
        let switch = if status == Status::Scheduled { self.known_switch().await? } else { None };
        let mut late = Late { rows: Vec::new(), unreadable: 0, more: false, unread, switch, limited: BTreeMap::new() };
        for page in pages.into_iter().flatten() {
            late.more |= page.next.is_some();
            for row in page.rows {
                match row {
                    Ok(row) => late.rows.push(row),
                    Err(error) => {
                        tracing::error!(%error, "a payment cannot be read and is left out of the console's view");
                        late.unreadable += 1;
                    }
                }
            }
        }
        late.rows.sort_unstable_by_key(|row| (row.due.due_at, row.due.payment_id));
        late.more |= late.rows.len() > most.into();
        late.rows.truncate(most.into());
        let dates = || late.rows.iter().map(|row| row.due.due_date);
        if status == Status::Scheduled
            && let Some((first, last)) = dates().min().zip(dates().max())
        {
            let held = self.store.days_held(first, last).await?;
            late.limited = held.into_iter().map(|(date, known)| (date, known.is_ok())).collect();
        }
        Ok(late)
    }
}

impl Late {
    /// The due dates of the rows that their limit holds, as far as their items can be read.
    pub(super) fn limited(&self) -> impl Iterator<Item = BusinessDate> {
        let has_row = |date: &BusinessDate| self.rows.iter().any(|row| row.due.due_date == *date);
        self.limited.iter().filter(|(_, is_known)| **is_known).map(|(date, _)| *date).filter(has_row)
    }

    /// The payments and shards that could not be read.
    pub(super) fn notices(&self) -> Markup {
        html! {
            @if self.unreadable > 0 {
                p class="notice" { (self.unreadable) " payments cannot be read. The function’s log names them. See " (PAYMENTS_UNREADABLE) "." }
            }
            @if self.unread > 0 {
                p class="notice" { (self.unread) " shards were not read, because DynamoDB is slow. They may have more." }
            }
        }
    }

    /// The time since a payment was due. One that waits for a result was sent, perhaps in time; one that is not claimed is held, or late
    /// after half an hour.
    fn age(&self, row: &DueRow, times: Times) -> String {
        let since = times.now.as_chrono() - row.due.due_at.as_chrono();
        let is_late = row.due.status == Status::Scheduled && since >= LATE;
        let date = row.due.due_date;
        if self.limited.contains_key(&date) || self.switch.as_ref().is_some_and(|switch| switch.is_held(date)) {
            format!("{}, held", times.age(row.due.due_at))
        } else if is_late {
            format!("{} late", span(since.num_seconds()))
        } else {
            times.age(row.due.due_at)
        }
    }
}

/// A table of late payments.
pub(crate) fn late_table(late: &Late, times: Times) -> Markup {
    let columns = [("Amount", "num"), ("Due", ""), ("To, reference, from", ""), ("Payment", "act")];
    let rows = html! { @for row in &late.rows { tr {
        td class="amt" { (amount(row.money)) }
        td class="due end" {
            (times.at(row.due.due_at))
            small { (late.age(row, times)) }
        }
        (parties(row))
        td class="act all" { (head_link(&row.head)) }
    } } };
    html! {
        (late.notices())
        @if late.rows.is_empty() { (empty(&html! { b { "No payment." } })) }
        @else {
            (cards("Payments that are late", &columns, &rows))
            @if late.more { p class="empty quiet" { "More follow: these are the first " (grouped(i128::try_from(late.rows.len()).unwrap_or(0))) "." } }
        }
    }
}
