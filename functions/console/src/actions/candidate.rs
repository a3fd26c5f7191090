//! The payments of a cancel, and its preview: the sums, each payment that will be cancelled, and those that stay.

use std::collections::BTreeMap;

use maud::{Markup, html};
use payments_model::{Currency, Details, Head, PaymentId, Status, UtcSecond};

use crate::actions::preview::counted;
use crate::actions::reason;
use crate::html::{account_link, amount, money, payment_link, status};
use crate::panel::{cards, panel};
use crate::times::Times;

/// A payment that may be cancelled.
pub(super) struct Candidate {
    pub(super) id: PaymentId,
    /// Its first details and its head, as far as they exist; `None` if they cannot be read.
    pub(super) found: Option<Option<(Details, Option<Head>)>>,
}

/// The payments of one currency.
struct Sum {
    minor: i128,
    payments: usize,
    first: UtcSecond,
    last: UtcSecond,
}

impl Candidate {
    pub(super) fn head(&self) -> Option<&Head> {
        self.found.as_ref()?.as_ref().and_then(|(_, head)| head.as_ref())
    }

    pub(super) fn can_be_cancelled(&self) -> bool {
        self.head().is_some_and(|head| head.state.status() == Status::Scheduled)
    }
}

/// The preview of these payments.
pub(super) fn shown(candidates: &[Candidate], times: Times) -> Markup {
    let (can, stay): (Vec<_>, Vec<_>) = candidates.iter().partition(|candidate| candidate.can_be_cancelled());
    let heads: Vec<&Head> = can.iter().filter_map(|candidate| candidate.head()).collect();
    let account = heads.first().map(|head| &head.account);
    let account = account.filter(|account| heads.iter().all(|head| head.account == **account));
    html! {
        @if !heads.is_empty() {
            p { "A cancelled payment is never paid, and " b { "nothing takes it back" } ". To pay it after all, its client must create it anew with a new key." }
            @if let Some(account) = account { p { "All are paid by " (account_link(account)) "." } }
            section class="panel" { (sums(&heads, times)) }
            (reason::asked(false))
            (panel(
                &html! { "All " (heads.len()) },
                &html! { "as read at " (times.clock(times.now)) @if !stay.is_empty() { ". " (counted(stay.len(), "other")) (if stay.len() == 1 { " stays" } else { " stay" }) } },
                &rows(&heads, account.is_none(), times),
            ))
        }
        @if !stay.is_empty() {
            (panel(&html! { "Stay as they are " span class="quiet" { (stay.len()) } }, &html! {}, &left(&stay)))
        }
    }
}

fn sums(heads: &[&Head], times: Times) -> Markup {
    let mut sums: BTreeMap<Currency, Sum> = BTreeMap::new();
    for head in heads {
        let at = head.due_at;
        let none = Sum { minor: 0, payments: 0, first: at, last: at };
        let sum = sums.entry(head.money.currency).or_insert(none);
        sum.minor += i128::from(head.money.amount.get());
        sum.payments += 1;
        (sum.first, sum.last) = (sum.first.min(at), sum.last.max(at));
    }
    let columns = [("Sum", "num"), ("Payments", ""), ("Due", "")];
    cards(
        "Sums",
        &columns,
        &html! { @for (currency, sum) in &sums { tr {
            td class="amt" { (money(sum.minor, *currency)) }
            td class="end" { (counted(sum.payments, "payment")) }
            td class="all" { (times.at(sum.first)) @if sum.first != sum.last { " to " (times.at(sum.last)) } }
        } } },
    )
}

fn rows(heads: &[&Head], are_of_accounts: bool, times: Times) -> Markup {
    let columns = [("Amount", "num"), ("Due", ""), ("To, reference", ""), ("Payment", "act")];
    cards(
        "All payments that will be cancelled",
        &columns,
        &html! { @for head in heads { tr {
            td class="amt" { (amount(head.money)) }
            td class="due end" { (times.at(head.due_at)) }
            td class="all" {
                (head.payee) @if let Some(reference) = &head.reference { " " span class="quiet" { (reference) } }
                @if are_of_accounts { small { "from " (head.account) } }
            }
            td class="none act" { (payment_link(head.payment_id)) }
        } } },
    )
}

/// The payments that stay, each with the reason.
fn left(stay: &[&Candidate]) -> Markup {
    let columns = [("Amount", "num"), ("Why", ""), ("Payment", "act")];
    cards(
        "Payments that stay as they are",
        &columns,
        &html! { @for candidate in stay { tr {
            @match candidate.head() {
                Some(head) => {
                    td class="amt" { (amount(head.money)) }
                    td class="end" { (status(head.state.status())) }
                }
                None => {
                    td class="quiet" { "unknown" }
                    td class="end" { @match &candidate.found {
                        Some(Some(_)) => "its create did not complete",
                        Some(None) => "no payment has this id",
                        None => "it cannot be read; the function’s log says why",
                    } }
                }
            }
            td class="act all" { (payment_link(candidate.id)) }
        } } },
    )
}
