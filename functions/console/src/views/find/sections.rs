//! The sections of a search: a panel for each meaning of the text, with what was found or the fields that are missing.

use maud::{Markup, html};
use payments_model::{AccountId, BusinessDate, Head, TypedAmount};

use crate::guides::{PAYMENTS_UNREADABLE, SHARED_TRANSACTION_IDS};
use crate::html::{amount, grouped, link};
use crate::times::Times;
use crate::views::find::dates::OnDate;
use crate::views::find::{Found, Known};
use crate::views::rows::table;

impl Found {
    /// All sections, those in which something was found first.
    pub(super) fn sections(&self, times: Times) -> Vec<Markup> {
        let meant = &self.meant;
        let mut sections = Vec::new();
        if !self.payments.is_empty() {
            sections.push(self.payments(times));
        }
        if let (Some(account), Some(known)) = (&meant.account, &self.known) {
            sections.push(account_section(account, known, meant.within.as_deref().unwrap_or_default(), times));
        }
        if let Some(typed) = meant.amount {
            sections.push(amount_section(&meant.text, typed, (self.date, self.of_amount.as_ref()), times));
        }
        if meant.digits.is_some() {
            sections.push(self.digits(times));
        }
        if let Some(date) = meant.date.filter(|_| meant.text.is_empty()) {
            sections.push(panel(
                &html! { "Date " span class="quiet" { (times.date(date)) } },
                &html! { p class="pad" { a href=(link("day", &[("date", &date.to_string())])) { "All payments due " (times.date(date)) } } },
            ));
        }
        if self.payments.is_empty() || !self.is_of_id {
            sections.extend(self.within_an_account());
        }
        sections
    }

    fn payments(&self, times: Times) -> Markup {
        let is_shared = self.payments.len() > 1;
        html! {
            section class="panel" {
                div class="head" { h2 { @if is_shared { "Payments " } @else { "Payment " } span class="id any" { (self.meant.text) } } }
                @if is_shared && self.is_shared {
                    p class="pad warn" { span { "The transaction service gave this id to more than one payment. See " (SHARED_TRANSACTION_IDS) "." } }
                }
                (table(&self.payments, times, "Payments with this id"))
            }
        }
    }

    fn digits(&self, times: Times) -> Markup {
        let Some(digits) = &self.meant.digits else { return html! {} };
        let what = html! { "Payment id that begins with " span class="id" { (digits.text) } };
        let missing = "Add its date, because the beginning of an id is found only within one";
        html! {
            section class="panel" {
                (date_head(&what, &digits.text, self.date, self.of_digits.is_some(), times))
                @match &self.of_digits {
                    Some(found) => (on_date(found, "that begin so", times)),
                    None => (date_form(&digits.text, self.date, missing, "Find on the date")),
                }
            }
        }
    }

    /// The questions that have an answer only within an account.
    fn within_an_account(&self) -> Vec<Markup> {
        let meant = &self.meant;
        let mut sections = Vec::new();
        if let Some(reference) = &meant.reference {
            let fields = [("reference", reference.as_str())];
            sections.push(asked(
                "Reference",
                reference.as_str(),
                ("account", "id"),
                &fields,
                "references are",
                "Find the reference",
            ));
        }
        if let Some(payee) = meant.account.as_ref().filter(|_| meant.within.is_none()) {
            let fields = [("payee", payee.as_str())];
            sections.push(asked(
                "Payee",
                payee.as_str(),
                ("account", "id"),
                &fields,
                "payments to a payee are",
                "Find the payee",
            ));
        }
        if meant.key.is_some() {
            let fields = [("key", meant.text.as_str())];
            sections.push(asked(
                "Idempotency key",
                &meant.text,
                ("find", "account"),
                &fields,
                "keys are",
                "Find the key",
            ));
        }
        sections
    }
}

fn panel(heading: &Markup, content: &Markup) -> Markup {
    html! { section class="panel" { div class="head" { h2 { (heading) } } (content) } }
}

/// A section that lacks the account: a form that opens a view with it.
fn asked(
    what: &str,
    text: &str,
    (view, field): (&str, &str),
    fields: &[(&str, &str)],
    because: &str,
    button: &str,
) -> Markup {
    panel(
        &html! { (what) " " span class="id any" { (text) } },
        &html! {
            form class="pad" data-view=(view) autocomplete="off" {
                @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
                @if view == "account" { input type="hidden" name="show" value="all"; }
                div class="fields" {
                    label class="all" { "Add the account that pays, because " (because) " found only within one"
                        input name=(field) size="34" maxlength="48" required placeholder="acc-1042"; }
                    button class="primary" { (button) }
                }
            }
        },
    )
}

/// An account that has payments: its next or last one, and a form that looks for one of them.
fn account_section(account: &AccountId, known: &Known, within: &str, times: Times) -> Markup {
    let target = link("account", &[("id", account.as_str())]);
    let typed = within.parse::<TypedAmount>().ok();
    let reference = if typed.is_none() { within } else { "" };
    let payment = |what: &str, head: &Head| {
        html! { (what) ": " b { (amount(head.money)) } " on " b { (times.at(head.due_at)) } }
    };
    panel(
        &html! { "Account " span class="id any" { (account) } },
        &html! {
            table class="cards" role="table" { tbody role="rowgroup" { tr role="row" {
                td role="cell" class="all" { a class="b" href=(target) { (account) } }
                td role="cell" class="all" { @match known {
                    Known::Next(head) => (payment("First from today", head)),
                    Known::Last(head) => (payment("Its last payment", head)),
                    Known::Unreadable => "A payment of it cannot be read",
                } }
                td role="cell" class="act" { span class="row" { a class="button primary" href=(target) { "Open the account" } } }
            } } }
            form class="pad" data-view="account" autocomplete="off" {
                input type="hidden" name="id" value=(account);
                input type="hidden" name="show" value="all";
                div class="fields" {
                    label { "Amount" input name="amount" inputmode="decimal" size="12" maxlength="40" placeholder="1250.00" value=(typed.map(|typed| typed.to_string()).unwrap_or_default()); }
                    label { "Payee" input name="payee" size="14" maxlength="48"; }
                    label { "Reference" input name="reference" size="20" maxlength="35" placeholder="exact" value=(reference); }
                    button { "Find in the account" }
                }
            }
        },
    )
}

fn amount_section(
    text: &str,
    typed: TypedAmount,
    (date, found): (BusinessDate, Option<&OnDate>),
    times: Times,
) -> Markup {
    let what = html! { "Amount " span class="n" { (text) } };
    let missing = "Add a date, because amounts are found only within one";
    html! {
        section class="panel" {
            (date_head(&what, text, date, found.is_some(), times))
            @match found {
                Some(found) => (on_date(found, "of this amount", times)),
                None => (date_form(text, date, missing, "Find on the date")),
            }
            form class="pad" data-view="account" autocomplete="off" {
                input type="hidden" name="amount" value=(typed);
                input type="hidden" name="show" value="all";
                div class="fields" {
                    label class="all" { @if found.is_some() { "Or the account that pays" } @else { "Or add the account that pays" }
                        input name="id" size="34" maxlength="48" required placeholder="acc-1042"; }
                    button { "Find in the account" }
                }
            }
        }
    }
}

/// The head of a section that looks on a date. After a look it has the form for another date.
fn date_head(what: &Markup, text: &str, date: BusinessDate, has_looked: bool, times: Times) -> Markup {
    html! {
        div class="head" {
            h2 { (what) @if has_looked { " " span class="quiet" { "due " (times.date(date)) } } }
            @if has_looked {
                form class="row" data-view="find" {
                    input type="hidden" name="text" value=(text);
                    input type="date" name="date" required aria-label="Another date" value=(date);
                    button { "Look on another date" }
                }
            }
        }
    }
}

fn date_form(text: &str, date: BusinessDate, missing: &str, button: &str) -> Markup {
    html! {
        form class="pad" data-view="find" {
            input type="hidden" name="text" value=(text);
            div class="fields" {
                label class="all" { (missing) input type="date" name="date" required value=(date); }
                button { (button) }
            }
        }
    }
}

/// The payments of a date that were found, and how much of the date was looked at.
fn on_date(found: &OnDate, which: &str, times: Times) -> Markup {
    let looked_at = grouped(i128::try_from(found.looked_at).unwrap_or(i128::MAX));
    html! {
        @if !found.rows.is_empty() { (table(&found.rows, times, "Payments of the date, earliest due first")) }
        @if found.is_partial {
            p class="empty warn" { "Not all payments of the date were looked at, only " (looked_at) ": there may be others " (which) "." }
        } @else if found.rows.is_empty() {
            p class="empty" { b { "Nothing found." } " All payments of the date " (which) " would be here." }
        }
        @if found.more { p class="empty" { "More match than are shown. Add the account." } }
        @if found.unreadable > 0 {
            p class="empty warn" { (found.unreadable) " payments cannot be read. The function's log names them. See " (PAYMENTS_UNREADABLE) "." }
        }
    }
}
