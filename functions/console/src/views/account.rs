//! The payments of an account, past and coming, with filters.

use std::fmt::Display;
use std::str::FromStr;

use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::request::date_order;
use payments_http::{Problem, Query, Request};
use payments_model::{AccountId, BusinessDate, Head, Place, Status, Statuses};
use payments_store::{AccountFilter, AccountPage, AccountQuery, ListOrder};

use crate::function::Console;
use crate::guides::PAYMENTS_UNREADABLE;
use crate::html::{link, major, top, word};
use crate::times::Times;
use crate::views::list::Selects;
use crate::views::place_in;
use crate::views::rows::Row;

/// The payments of one page.
const SHOWN: u16 = 50;

/// The parameters: the account, the tab, the fields of the filter, and the place after which a page begins.
const PARAMETERS: &[&str] = &["id", "show", "from", "to", "status", "amount", "payee", "reference", "cursor", "select"];

/// A tab: the times of the payments that are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Coming,
    Past,
    All,
}

/// The list that is asked for.
struct List {
    account: AccountId,
    tab: Tab,
    from: Option<BusinessDate>,
    to: Option<BusinessDate>,
    filter: AccountFilter,
    after: Option<Place>,
    selects: Selects,
}

/// A page of the list.
struct Page {
    heads: Vec<Head>,
    rows: Vec<Row>,
    unreadable: usize,
    read: usize,
    next: Option<Place>,
}

impl Tab {
    const ALL: [Self; 3] = [Self::Coming, Self::Past, Self::All];

    fn name(self) -> &'static str {
        match self {
            Self::Coming => "coming",
            Self::Past => "past",
            Self::All => "all",
        }
    }

    /// The first and the last date, as far as the tab has them.
    fn ends(self, today: BusinessDate) -> (Option<BusinessDate>, Option<BusinessDate>) {
        match self {
            Self::Coming => (Some(today), None),
            Self::Past => (None, Some(today.minus_days(1))),
            Self::All => (None, None),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Coming => "From today",
            Self::Past => "Past",
            Self::All => "All",
        }
    }
}

impl FromStr for Tab {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|tab| tab.name() == text).ok_or("it has to be coming, past or all")
    }
}

impl List {
    fn read(query: &Query<'_>, today: BusinessDate) -> Result<Self, Problem> {
        let statuses = filled::<Status>(query, "status")?.map(Statuses::from).unwrap_or_default();
        let filter = AccountFilter {
            statuses,
            payee: filled(query, "payee")?,
            reference: filled(query, "reference")?,
            amount: filled(query, "amount")?,
        };
        let tab = filled(query, "show")?.unwrap_or(Tab::Coming);
        let (from, to) = tab.ends(today);
        Ok(Self {
            account: filled(query, "id")?.ok_or_else(|| invalid_parameter("id", &"it is missing"))?,
            tab,
            // The form shows the ends of its tab; sent back, they filter nothing.
            from: filled(query, "from")?.filter(|date| Some(*date) != from),
            to: filled(query, "to")?.filter(|date| Some(*date) != to),
            filter,
            after: query.text("cursor")?.map(place).transpose()?,
            selects: Selects::read(query)?,
        })
    }

    /// The value of a date field of the form: the one in force.
    fn in_force(&self, name: &str, today: BusinessDate) -> String {
        let (from, to) = self.tab.ends(today);
        let date = if name == "from" { self.from.or(from) } else { self.to.or(to) };
        date.map(|date| date.to_string()).unwrap_or_default()
    }

    /// The first and the last date, and the order.
    fn range(&self, today: BusinessDate) -> Result<(BusinessDate, BusinessDate, ListOrder), Problem> {
        let order = if self.tab == Tab::Coming { ListOrder::Ascending } else { ListOrder::Descending };
        let (from, to) = self.tab.ends(today);
        let (from, to) = (from.unwrap_or(BusinessDate::MIN), to.unwrap_or(BusinessDate::MAX));
        let (from, to) = date_order(Some(self.from.unwrap_or(from)), self.to.unwrap_or(to), today)?;
        Ok((from, to, order))
    }

    fn has_filter(&self) -> bool {
        !self.filter.is_all() || self.from.is_some() || self.to.is_some()
    }

    /// The value of a field of the filter; empty if it is not filled in.
    fn value(&self, name: &str) -> String {
        let text = |value: Option<&dyn Display>| value.map(ToString::to_string).unwrap_or_default();
        match name {
            "from" => text(self.from.as_ref().map(|date| date as _)),
            "to" => text(self.to.as_ref().map(|date| date as _)),
            "status" => self.filter.statuses.to_string(),
            "amount" => text(self.filter.amount.as_ref().map(|amount| amount as _)),
            "payee" => text(self.filter.payee.as_ref().map(|payee| payee as _)),
            "reference" => text(self.filter.reference.as_ref().map(|reference| reference as _)),
            _ => String::new(),
        }
    }

    /// The address of the same list from another place on.
    fn next(&self, next: Place) -> String {
        self.address(("cursor", &format!("{}_{}", next.due_at, next.payment_id)))
    }

    /// The address of the same list with one more argument.
    fn address(&self, more: (&str, &str)) -> String {
        let fields = ["from", "to", "status", "amount", "payee", "reference"].map(|name| (name, self.value(name)));
        let mut arguments = vec![("id", self.account.as_str()), ("show", self.tab.name())];
        arguments
            .extend(fields.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (*name, value.as_str())));
        arguments.push(more);
        link("account", &arguments)
    }

    /// The address of a tab without filters.
    fn tab(&self, tab: Tab) -> String {
        link("account", &[("id", self.account.as_str()), ("show", tab.name())])
    }
}

/// A field that may be empty, as forms send it.
fn filled<T: FromStr<Err: Display>>(query: &Query<'_>, name: &'static str) -> Result<Option<T>, Problem> {
    let text = query.text(name)?.unwrap_or_default().trim();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error| invalid_parameter(name, &error))
}

/// The place after which a page begins, from the link to the page.
fn place(text: &str) -> Result<Place, Problem> {
    let (due_at, payment_id) = place_in("account", "cursor", text)?;
    Ok(Place { due_at, payment_id })
}

impl Console {
    /// The view of an account. It reads as the API's list does: up to a page, or a thousand payments if a filter leaves out many.
    pub(crate) async fn account(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let today = self.today();
        let list = List::read(&request.query(PARAMETERS)?, today)?;
        let (from, to, order) = list.range(today)?;
        let zone = self.config.business_days.zone();
        let (from_instant, to_instant) = (zone.start_of(from), zone.end_of(to));
        if list.after.as_ref().is_some_and(|after| !(from_instant..to_instant).contains(&after.due_at)) {
            return Err(invalid_parameter(
                "cursor",
                &"it is a place outside of these dates; begin again with the account",
            ));
        }
        let query = AccountQuery {
            account: &list.account,
            from: from_instant,
            to: to_instant,
            after: list.after,
            filter: &list.filter,
            order,
            limit: list.selects.most(SHOWN),
            with_history: from < today,
        };
        let deadline = self.deadline();
        let page = self.store.account_list(&query, || !deadline.has_come()).await?;
        Ok(list.shown(&self.readable(page), today, self.times()))
    }

    fn readable(&self, page: AccountPage) -> Page {
        let AccountPage { heads, without_key, next, read } = page;
        let mut shown = Page { heads: Vec::new(), rows: Vec::new(), unreadable: without_key.len(), read, next };
        for (_, head) in heads {
            match head {
                Ok(head) => {
                    shown.rows.push(Row::from_head(&head, self.note(&head)));
                    shown.heads.push(head);
                }
                Err(error) => {
                    tracing::error!(%error, "a payment cannot be read and is left out of the console's view of an account");
                    shown.unreadable += 1;
                }
            }
        }
        shown
    }
}

impl List {
    fn shown(&self, page: &Page, today: BusinessDate, times: Times) -> Markup {
        let to_it = link("find", &[("text", self.account.as_str())]);
        let heading = html! { div class="row" {
            h1 tabindex="-1" class="any" { (self.account) " " span class="quiet" { "account" } }
            a class="button" href=(to_it) title="Add the account that pays: payees are found only within one" { "Payments to it" }
        } };
        html! {
            (top(&heading, times))
            @if page.unreadable > 0 {
                p class="notice" { span { (page.unreadable) " payments cannot be read. The function's log names them. See " (PAYMENTS_UNREADABLE) "." } }
            }
            section class="panel" {
                nav class="tabs" aria-label="Time" {
                    @for tab in Tab::ALL {
                        a href=(self.tab(tab)) aria-current=[(tab == self.tab).then_some("page")] { (tab.title()) }
                    }
                }
                (self.fields(today))
                @if page.rows.is_empty() { p class="empty" { (self.nothing(page)) } } @else { (self.selection(page, times)) }
            }
            @if let Some(next) = page.next {
                p class="row" {
                    a class="button" href=(self.next(next)) { "Next " (SHOWN) }
                    span class="quiet" { @if self.filter.is_all() { "More follow" } @else { (page.read) " payments were looked at here, and more follow" } }
                }
            }
        }
    }

    /// The form of the filter.
    fn fields(&self, today: BusinessDate) -> Markup {
        let status = self.value("status");
        html! {
            form class="pad" data-view="account" autocomplete="off" {
                input type="hidden" name="id" value=(self.account);
                input type="hidden" name="show" value=(self.tab.name());
                div class="fields" {
                    label { "From" input type="date" name="from" value=(self.in_force("from", today)); }
                    label { "To" input type="date" name="to" value=(self.in_force("to", today)); }
                    label { "Status" select name="status" {
                        option value="" { "Any" }
                        @for known in Status::ALL { option value=(known) selected[known.as_str() == status] { (word(known)) } }
                    } }
                    label { "Amount" input name="amount" inputmode="decimal" size="10" maxlength="40" placeholder="1250.00" value=(self.value("amount")); }
                    label { "Payee" input name="payee" size="14" maxlength="48" value=(self.value("payee")); }
                    label { "Reference" input name="reference" size="16" maxlength="35" placeholder="exact" value=(self.value("reference")); }
                    div class="row all" {
                        button class="primary" { "Show" }
                        @if self.has_filter() { a href=(self.tab(self.tab)) { "Clear filters" } }
                    }
                }
            }
        }
    }

    /// The payments, of which the scheduled ones can be selected.
    fn selection(&self, page: &Page, times: Times) -> Markup {
        let order = if self.tab == Tab::Coming { "earliest due first" } else { "latest due first" };
        let head = |class: &'static str, text: &'static str| {
            html! { th role="columnheader" scope="col" class=[(!class.is_empty()).then_some(class)] { (text) } }
        };
        let selects = page.heads.iter().any(|head| head.state.status() == Status::Scheduled);
        html! {
            form data-action="cancel" {
                input type="hidden" name="step" value="preview";
                table class="cards" role="table" {
                    caption class="skip" { "Payments of " (self.account) ", " (order) }
                    thead role="rowgroup" { tr role="row" {
                        @if selects { th role="columnheader" scope="col" class="tick" { input type="checkbox" aria-label="Select all scheduled on this page"; } }
                        (head("num", "Amount")) (head("", "Due")) (head("", "To, reference")) (head("", "Status")) (head("act", "Payment"))
                    } }
                    tbody role="rowgroup" {
                        @for (head, row) in page.heads.iter().zip(&page.rows) {
                            tr role="row" { @if selects { td role="cell" class="tick" { (tick(head, self.selects.is_all)) } } (row.cells(times, false)) }
                        }
                    }
                }
                (self.selects.bar(page.next.is_some(), &self.address(("select", "all"))))
            }
        }
    }

    /// The words for a page without payments.
    fn nothing(&self, page: &Page) -> Markup {
        html! {
            @if page.next.is_some() { b { "Nothing matches so far." } " " (page.read) " payments were looked at. Go on to look further." }
            @else if self.has_filter() { b { "Nothing matches." } " " a href=(self.tab(self.tab)) { "Clear filters" } "." }
            @else if self.after.is_some() { b { "No more payments." } }
            @else {
                @match self.tab {
                    Tab::Coming => { b { "No payment from today on." } " See " a href=(self.tab(Tab::Past)) { "the past" } "." }
                    Tab::Past => { b { "No payment before today." } " See those " a href=(self.tab(Tab::Coming)) { "from today on" } "." }
                    Tab::All => b { "No payment is of this account." },
                }
            }
        }
    }
}

/// The box that selects a payment, if it can be cancelled.
fn tick(head: &Head, is_selected: bool) -> Markup {
    let (minor, currency) = (head.money.amount.get(), head.money.currency);
    let what = format!("Select {} {currency} to {}", major(minor.into(), currency.decimals()), head.payee);
    html! { @if head.state.status() == Status::Scheduled {
        input type="checkbox" name="payments" value=(head.payment_id) aria-label=(what) checked[is_selected]
            data-minor=(minor) data-decimals=(currency.decimals()) data-currency=(currency);
    } }
}
