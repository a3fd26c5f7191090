//! Payments that wait: those that nothing sends again, for a result, and for their claim.

mod late;
mod sent;

use std::collections::HashMap;

use chrono::TimeDelta;
use maud::{Markup, html};
use payments_http::{Problem, Request};
use payments_model::redrive::Requests;
use payments_model::{AccountId, BusinessDate, Head, Money, PaymentId, Status, UtcSecond};
use payments_store::{DueRow, Job};
use serde_json::Value;

use crate::function::Console;
use crate::guides::{PAYMENTS_OVERDUE, PAYMENTS_STUCK_PENDING, REQUESTS_WAITING, RESULTS_WAITING};
use crate::html::{account_link, amount, head_link, heading, live_top, payment_link, status};
use crate::panel::{ACTIONS, cards, empty, head, opens, panel};
use crate::runs::{Runs, last, number};
use crate::times::{Times, span};
use crate::views::switch::beyond_limit;
pub(crate) use crate::views::waiting::late::{Late, late_table};
use crate::views::waiting::sent::{Sent, by_request};

/// The most shards that are read at once.
pub(crate) const SHARDS_AT_ONCE: usize = 32;

/// The most payments of each kind that are shown.
const SHOWN: u16 = 20;

/// The delay from which a claim is late: `docs/alarms.md`, PaymentsOverdue.
pub(crate) const LATE: TimeDelta = TimeDelta::minutes(30);

/// The seconds from one scheduled sweep to the next.
const SWEEP_EVERY: i64 = 300;

/// A pending payment: its entry in the index, and its head, if the hot table has it.
struct Pending<'r> {
    row: &'r DueRow,
    head: Option<Head>,
}

impl Console {
    /// The view of late payments. It reads each shard of the `due` index twice, the switch, the held dates, the last runs, and the heads of the pending payments that
    /// it shows.
    pub(crate) async fn waiting(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        request.query(&[])?;
        let (scheduled, pending) =
            (self.late(Status::Scheduled, SHOWN).await?, self.late(Status::Pending, SHOWN).await?);
        let (runs, times) = (self.last_runs().await?, self.times());
        let keys: Vec<_> = pending.rows.iter().map(|row| row.head.clone()).collect();
        let read = if keys.is_empty() { Vec::new() } else { self.store.hot_heads(&keys).await? };
        let mut heads: HashMap<PaymentId, Head> =
            read.into_iter().filter_map(|(key, head)| Some((key.slot.payment_id, head.ok()?))).collect();
        let rows = pending.rows.iter().map(|row| Pending { row, head: heads.remove(&row.due.payment_id) });
        let most = self.config.max_attempts;
        let (stuck, waiting): (Vec<_>, Vec<_>) =
            rows.partition(|row| row.sent().is_some_and(|sent| sent.is_stuck(times.now, most)));
        let shown = |id: &PaymentId| pending.rows.iter().any(|row| row.due.payment_id == *id);
        let others: Vec<_> = told(&runs).into_iter().filter(|told| !shown(&told.id)).collect();
        let counted =
            runs.job(Job::Redrive).and_then(|run| run.outcome.as_ref()).map_or(0, |outcome| number(outcome, "stuck"));
        let counted = usize::try_from(counted).unwrap_or(usize::MAX);
        Ok(html! {
            div class="stack" data-live data-hx-get="/console/views/waiting" data-hx-trigger="every 15s" data-hx-target="#main" data-hx-swap="innerMorph" {
                (live_top(&heading("Waiting"), times))
                (self.paused_notice())
                (pending.notices())
                @if !stuck.is_empty() || !others.is_empty() { (self.stuck(&stuck, &others, counted, times)) }
                @if !scheduled.rows.is_empty() { (unclaimed(&scheduled, times)) }
                div class="cols" {
                    (longest(&waiting, (pending.more, !stuck.is_empty()), (&runs, most), times))
                    div class="stack" {
                        (by_request(&runs, most, times))
                        @if scheduled.rows.is_empty() { (all_claimed(&scheduled, &runs, times)) }
                    }
                }
            }
        })
    }

    /// The payments that nothing sends again.
    fn stuck(&self, stuck: &[Pending<'_>], others: &[Told], counted: usize, times: Times) -> Markup {
        let columns = [
            ("Amount", "num"),
            ("Due", ""),
            ("To, reference, from", ""),
            ("Requests", ""),
            ("Payment", ""),
            ("Action", ACTIONS),
        ];
        let note = html! { "No result after the last request. The bank sends nothing more by itself. See " (PAYMENTS_STUCK_PENDING) };
        let shown = stuck.len() + others.len();
        let of = if counted > shown { format!("{shown} of {counted}") } else { shown.to_string() };
        let rows = html! { @for pending in stuck { (pending.stuck(self.config.max_attempts, times)) } @for told in others { (told.row(times)) } };
        html! {
            section class="panel now" id="stuck" {
                (head(&html! { "Stuck " span class="quiet" { (of) } }, &note))
                (cards("Payments that are stuck", &columns, &rows))
            }
        }
    }
}

/// A stuck payment of the last redrive that is not among those that have been due for the longest time.
struct Told {
    id: PaymentId,
    account: AccountId,
    money: Money,
    due: BusinessDate,
}

/// The stuck payments that the last redrive names.
fn told(runs: &Runs) -> Vec<Told> {
    let named = runs.job(Job::Redrive).and_then(|run| run.outcome.as_ref()?["stuckPayments"].as_array());
    let parse = |told: &Value| {
        let text = |field: &str| told[field].as_str().unwrap_or_default();
        let amount = told["amountMinor"].as_i64()?.try_into().ok()?;
        let money = Money { amount, currency: text("currency").parse().ok()? };
        let (id, account) = (text("paymentId").parse().ok()?, text("accountId").parse().ok()?);
        Some(Told { id, account, money, due: text("dueDate").parse().ok()? })
    };
    named.into_iter().flatten().filter_map(parse).collect()
}

impl Told {
    fn row(&self, times: Times) -> Markup {
        let id = self.id.to_string();
        html! { tr {
            td class="amt" { (amount(self.money)) }
            td class="due end" { (times.date(self.due)) }
            td class="all" { small { "from " (account_link(&self.account)) } }
            td class="st" { "stuck at the last redrive" }
            td class="end" { (payment_link(self.id)) }
            td class="act" { span class="row" { (opens("send-again", "Send again…", "", &[("payment", &id)])) } }
        } }
    }
}

impl Pending<'_> {
    fn sent(&self) -> Option<Sent> {
        self.head.as_ref().and_then(Sent::from_head)
    }

    /// The due time with its age, and how late the payment was claimed.
    fn due(&self, times: Times) -> Markup {
        let at = self.row.due.due_at;
        let late = self.head.as_ref().and_then(|head| Some((claimed_late(head)?, head.created_at() > head.due_at)));
        html! { td class="due end" {
            (times.at(at))
            small {
                (times.age(at))
                @if let Some((late, is_created_late)) = late {
                    ", claimed " (span(late.num_seconds())) @if is_created_late { " after its creation" } @else { " late" }
                }
            }
        } }
    }

    fn parties(&self) -> Markup {
        parties(self.row)
    }

    fn stuck(&self, most: u32, times: Times) -> Markup {
        let id = self.row.due.payment_id.to_string();
        html! { tr {
            td class="amt" { (amount(self.row.money)) }
            (self.due(times))
            (self.parties())
            td class="st" { @if let Some(sent) = self.sent() { (sent.used_up(most)) small { "last " (times.at(sent.last_at)) } } }
            td class="end" { (head_link(&self.row.head)) }
            td class="act" { span class="row" { (opens("send-again", "Send again…", "", &[("payment", &id)])) } }
        } }
    }

    fn waiting(&self, (runs, most): (&Runs, u32), times: Times) -> Markup {
        html! { tr {
            td class="amt" { (amount(self.row.money)) }
            (self.due(times))
            (self.parties())
            td class="all" {
                @match (&self.head, self.sent()) {
                    (_, Some(sent)) => (sent.in_words(runs, most, times)),
                    // Settled since the index was read, or archived, or damaged.
                    (Some(head), None) => (status(head.state.status())),
                    (None, None) => { span class="quiet" { "its head cannot be read" } },
                }
            }
            td class="act all" { (head_link(&self.row.head)) }
        } }
    }
}

/// The payee, the reference and the account that pays, each on a line of its own, so that a long one breaks alone.
pub(crate) fn parties(row: &DueRow) -> Markup {
    html! {
        td class="all" {
            (account_link(&row.payee))
            @if let Some(reference) = &row.reference { small class="ref" { (reference) } }
            small { "from " (account_link(&row.head.account)) }
        }
    }
}

/// The time by which a pending payment was claimed late, if it was.
fn claimed_late(head: &Head) -> Option<TimeDelta> {
    let since = Requests::from_head(head)?.since;
    let late = since.as_chrono() - head.due_at.max(head.created_at()).as_chrono();
    (late >= LATE).then_some(late)
}

/// The payments that wait for a result, without the stuck ones.
fn longest(
    waiting: &[Pending<'_>],
    (are_more, are_stuck): (bool, bool),
    (runs, most): (&Runs, u32),
    times: Times,
) -> Markup {
    let columns = [("Amount", "num"), ("Due", ""), ("To, reference, from", ""), ("Requests", ""), ("Payment", "act")];
    let note = html! {
        @if are_more { "The first " (waiting.len()) ", without stuck ones. " }
        @if !waiting.is_empty() { "See " (REQUESTS_WAITING) " and " (RESULTS_WAITING) }
    };
    panel(
        &html! { "Waiting longest" },
        &note,
        &html! {
            @if waiting.is_empty() { (empty(&html! { b { @if are_stuck { "No other payment waits for a result." } @else { "Every request has its result." } } })) }
            @else { (cards("Payments that wait for a result", &columns, &html! { @for row in waiting { (row.waiting((runs, most), times)) } })) }
        },
    )
}

/// The payments that are due and not claimed.
fn unclaimed(scheduled: &Late, times: Times) -> Markup {
    let more = if scheduled.more { "the first " } else { "" };
    let note = html! { "If one is more than a few minutes late and not held, the sweep is slow, paused, stopped or failing. See " (PAYMENTS_OVERDUE) };
    panel(
        &html! { "Due, not claimed yet " span class="quiet" { (more) (scheduled.rows.len()) } },
        &note,
        &html! { @for date in scheduled.limited() { (beyond_limit(date, times)) } (late_table(scheduled, times)) },
    )
}

/// Nothing is due, and the last sweep says so.
fn all_claimed(scheduled: &Late, runs: &Runs, times: Times) -> Markup {
    panel(
        &html! { "Due, not claimed yet " span class="quiet" { "0" } },
        &html! {},
        &html! {
            (scheduled.notices())
            (empty(&html! { b { "Nothing is due and unclaimed." } " " (last(runs, Job::Sweep, times)) " Next " (times.brief(next_sweep(times.now))) "." }))
        },
    )
}

/// The next scheduled sweep: each full five minutes.
fn next_sweep(now: UtcSecond) -> UtcSecond {
    let past = now.as_chrono().timestamp().rem_euclid(SWEEP_EVERY);
    now.saturating_add(chrono::TimeDelta::seconds(SWEEP_EVERY - past))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_sweep_is_at_a_full_five_minutes() {
        for (now, want) in [
            ("2026-11-26T03:05:00Z", "2026-11-26T03:10:00Z"),
            ("2026-11-26T03:09:59Z", "2026-11-26T03:10:00Z"),
            ("2026-11-26T23:57:00Z", "2026-11-27T00:00:00Z"),
        ] {
            assert_eq!(next_sweep(now.parse().unwrap()).to_string(), want);
        }
    }
}
