//! Late payments: those that are due and not claimed yet, and pending ones without a settlement.

use futures::stream::{StreamExt as _, TryStreamExt as _, iter};
use maud::{Markup, html};
use payments_http::{Problem, Request};
use payments_model::{Status, UtcSecond};
use payments_store::{DueRange, DueRow, DueUntil, StoreError};

use crate::function::Console;
use crate::guides::{PAYMENTS_OVERDUE, PAYMENTS_STUCK_PENDING, PAYMENTS_UNREADABLE, REQUESTS_WAITING, RESULTS_WAITING};
use crate::html::{head_link, heading, instant, live_top, money};

/// The most shards that are read at once.
pub(crate) const SHARDS_AT_ONCE: usize = 32;

/// The most payments of each kind that are shown.
const SHOWN: u16 = 20;

/// The payments of a status that have been due for the longest time, across all shards.
#[derive(Debug)]
pub(crate) struct Late {
    /// The earliest due first.
    rows: Vec<DueRow>,
    /// The number of entries that cannot be read.
    unreadable: usize,
    /// Whether there are more.
    more: bool,
    /// The number of shards that were not read for lack of time.
    unread: usize,
    now: UtcSecond,
}

impl Console {
    /// The view of late payments. It reads each shard of the `due` index twice.
    pub(crate) async fn waiting(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        request.query(&[])?;
        let (scheduled, pending) =
            (self.late(Status::Scheduled, SHOWN).await?, self.late(Status::Pending, SHOWN).await?);
        Ok(html! {
            div data-live data-hx-get="/console/views/waiting" data-hx-trigger="every 15s" data-hx-target="#main" data-hx-swap="innerMorph" {
                (live_top(&heading("Waiting"), self.times()))
                (self.paused_notice())
                h2 { "Due and not claimed yet" }
                (late_table(&scheduled, &html! {
                    "The sweep claims these. More than a few minutes late means that it does not keep up, is paused, or fails. See " (PAYMENTS_OVERDUE) "."
                }))
                h2 { "Sent, and not settled yet" }
                (late_table(&pending, &html! {
                    "These were sent to the transaction service and wait for its result. Redrives send them again after 1, 3, 7, … hours. If many are hours late, see "
                    (REQUESTS_WAITING) ", " (RESULTS_WAITING) " and " (PAYMENTS_STUCK_PENDING) "."
                }))
            }
        })
    }

    /// The payments of a status that have been due for the longest time: one read for each shard.
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
        let mut late = Late { rows: Vec::new(), unreadable: 0, more: false, unread, now };
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
        Ok(late)
    }
}

/// A table of late payments.
pub(crate) fn late_table(late: &Late, caption: &Markup) -> Markup {
    html! {
        @if late.unreadable > 0 {
            p class="warn" { (late.unreadable) " payments cannot be read. The function's log names them. See " (PAYMENTS_UNREADABLE) "." }
        }
        @if late.unread > 0 {
            p class="warn" { (late.unread) " shards were not read, because DynamoDB is slow. They may have more." }
        }
        @if late.rows.is_empty() { p { "No payment." } } @else {
            div class="scroll" { table {
                caption { (caption) }
                thead { tr {
                    th scope="col" { "Due" } th scope="col" { "Late by" } th scope="col" { "Payment" }
                    th scope="col" { "Account" } th scope="col" class="number" { "Amount" }
                } }
                tbody { @for row in &late.rows { tr {
                    td { (instant(row.due.due_at)) }
                    td { (since(row.due.due_at, late.now)) }
                    td { (head_link(&row.head)) }
                    td class="text" { (row.head.account) }
                    td class="number" { (money(row.money.amount.get().into(), row.money.currency)) }
                } } }
            } }
            @if late.more { p class="quiet" { "There are more." } }
        }
    }
}

/// The age of an instant, in the largest unit that fits.
fn since(at: UtcSecond, now: UtcSecond) -> String {
    let seconds = (now.as_chrono() - at.as_chrono()).num_seconds().max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_late_is_said_in_one_unit() {
        let now: UtcSecond = "2026-11-25T12:00:00Z".parse().unwrap();
        for (at, want) in [
            ("2026-11-25T12:00:05Z", "0 s"),
            ("2026-11-25T11:58:01Z", "119 s"),
            ("2026-11-25T11:58:00Z", "2 min"),
            ("2026-11-25T10:00:01Z", "119 min"),
            ("2026-11-25T10:00:00Z", "2 h"),
            ("2026-11-23T12:00:01Z", "47 h"),
            ("2026-11-23T12:00:00Z", "2 days"),
        ] {
            assert_eq!(since(at.parse().unwrap(), now), want);
        }
    }
}
