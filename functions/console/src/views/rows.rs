//! Rows of payments across statuses: amount first, then the date, the payee with the reference, the status and the id.

use maud::{Markup, html};
use payments_model::{AccountId, Head, HeadKey, Money, Reference, Status, UtcSecond};
use payments_store::DueRow;

use crate::html::{account_link, amount, head_link, status};
use crate::reasons::reason;
use crate::times::Times;

/// A payment of a list.
pub(crate) struct Row {
    pub(crate) key: HeadKey,
    pub(crate) money: Money,
    pub(crate) due_at: UtcSecond,
    pub(crate) payee: AccountId,
    pub(crate) reference: Option<Reference>,
    pub(crate) status: Status,
    /// A line below the status; empty if the status says all.
    pub(crate) note: String,
}

impl Row {
    /// The row of a head, with a line below its status.
    pub(crate) fn from_head(head: &Head, note: String) -> Self {
        Self {
            key: head.key(),
            money: head.money,
            due_at: head.due_at,
            payee: head.payee.clone(),
            reference: head.reference.clone(),
            status: head.state.status(),
            note,
        }
    }

    /// The row of an entry of an index.
    pub(crate) fn from_due(row: DueRow) -> Self {
        let note = row.failure_code.as_ref().map(|code| reason(code.as_str()).to_owned()).unwrap_or_default();
        let DueRow { head: key, money, payee, reference, due, .. } = row;
        Self { key, money, due_at: due.due_at, payee, reference, status: due.status, note }
    }

    /// The cells of the row. The account that pays is a line of its own, unless the list is of one account.
    pub(crate) fn cells(&self, times: Times, with_account: bool) -> Markup {
        html! {
            td role="cell" class="amt" { (amount(self.money)) }
            td role="cell" class="due end" { (times.at(self.due_at)) }
            td role="cell" class="all" {
                (account_link(&self.payee))
                @if let Some(reference) = &self.reference { " " span class="quiet" { (reference) } }
                @if with_account { small { "from " (account_link(&self.key.account)) } }
            }
            td role="cell" class="st" { (status(self.status)) @if !self.note.is_empty() { small { (self.note) } } }
            td role="cell" class="act" { (head_link(&self.key)) }
        }
    }
}

/// A table of payments of several accounts.
pub(crate) fn table(rows: &[Row], times: Times, caption: &str) -> Markup {
    html! {
        table class="cards" role="table" {
            caption class="skip" { (caption) }
            thead role="rowgroup" { tr role="row" {
                th role="columnheader" scope="col" class="num" { "Amount" } th role="columnheader" scope="col" { "Due" }
                th role="columnheader" scope="col" { "To, from" } th role="columnheader" scope="col" { "Status" }
                th role="columnheader" scope="col" class="act" { "Payment" }
            } }
            tbody role="rowgroup" { @for row in rows { tr role="row" { (row.cells(times, true)) } } }
        }
    }
}
