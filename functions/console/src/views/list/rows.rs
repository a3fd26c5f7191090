//! The rows of a list, one line each: a table, or cards on a phone.

use maud::{Markup, html};
use payments_model::Status;
use payments_store::DueRow;

use crate::html::{account_link, amount, head_link, major};
use crate::reasons::reason;
use crate::times::Times;

/// The payments of a list. Scheduled ones can be selected, as the bar below them says, and cancelled.
pub(super) fn table(
    status: Status,
    rows: &[DueRow],
    times: Times,
    is_selected: bool,
    bar: &Markup,
    caption: &str,
) -> Markup {
    let table = html! {
        table class="cards" role="table" {
            caption class="skip" { (caption) }
            thead { tr role="row" {
                @if status == Status::Scheduled {
                    th role="columnheader" scope="col" class="tick" { input type="checkbox" aria-label="Select all on this page"; }
                }
                th role="columnheader" scope="col" class="num" { "Amount" }
                th role="columnheader" scope="col" { "Due" }
                th role="columnheader" scope="col" { "To, reference" }
                @if let Some(own) = own_column(status) { th role="columnheader" scope="col" { (own) } }
                th role="columnheader" scope="col" { "From" }
                th role="columnheader" scope="col" class="act" { "Payment" }
            } }
            tbody role="rowgroup" { @for row in rows { (row_of(status, row, times, is_selected)) } }
        }
    };
    if status != Status::Scheduled {
        return table;
    }
    html! {
        form data-action="cancel" {
            input type="hidden" name="step" value="preview";
            (table)
            (bar)
        }
    }
}

/// The column that only payments in this status have.
fn own_column(status: Status) -> Option<&'static str> {
    match status {
        Status::Failed => Some("Reason"),
        Status::Processed => Some("Settled"),
        Status::Scheduled | Status::Pending | Status::Cancelled => None,
    }
}

fn row_of(status: Status, row: &DueRow, times: Times, is_selected: bool) -> Markup {
    let (minor, currency) = (row.money.amount.get(), row.money.currency);
    html! { tr role="row" {
        @if status == Status::Scheduled {
            td role="cell" class="tick" {
                input type="checkbox" name="payments" value=(row.due.payment_id) checked[is_selected]
                    data-minor=(minor) data-decimals=(currency.decimals()) data-currency=(currency)
                    aria-label={ "Select " (major(minor.into(), currency.decimals())) " " (currency) " to " (row.payee) };
            }
        }
        td role="cell" class="amt" { (amount(row.money)) }
        td role="cell" class="due end" { (times.at(row.due.due_at)) }
        td role="cell" class="all" {
            (account_link(&row.payee)) @if let Some(reference) = &row.reference { " " span class="quiet" { (reference) } }
        }
        @match status {
            Status::Failed => td role="cell" class="all" { span { (reason_of(row)) } },
            Status::Processed => td role="cell" class="all" data-l="Settled" { @if let Some(at) = row.settled_at { (times.brief(at)) } },
            Status::Scheduled | Status::Pending | Status::Cancelled => {}
        }
        td role="cell" data-l="From" { (account_link(&row.head.account)) }
        td role="cell" class="act" { (head_link(&row.head)) }
    } }
}

/// The reason of a failure in words, with its code.
fn reason_of(row: &DueRow) -> Markup {
    html! {
        @match &row.failure_code {
            Some(code) => { (reason(code.as_str())) " " span class="quiet" { (code) } }
            None => span class="quiet" { "no code" },
        }
    }
}
