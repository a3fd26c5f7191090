//! Finds payments and accounts by anything that a caller knows. A text can mean several things: each is a section.

mod dates;
mod meaning;
mod sections;

use maud::{Markup, html};
use payments_boot::Deadline;
use payments_http::query::invalid_parameter;
use payments_http::{Problem, Request, bounded};
use payments_model::{AccountId, BusinessDate, Head, HeadKey, IdempotencyKey, PaymentId};
use payments_store::{AccountFilter, AccountQuery, ListOrder, StoreError};

use crate::function::Console;
use crate::html::{foreign, top};
use crate::times::Times;
use crate::views::find::dates::OnDate;
use crate::views::find::meaning::Meanings;
use crate::views::rows::Row;

/// The most bytes of a text that the view repeats.
const MAX_SHOWN_BYTES: usize = 80;

/// An account that has payments, by the one that is next, or the last one.
enum Known {
    Next(Box<Head>),
    Last(Box<Head>),
    Unreadable,
}

/// All that was found.
struct Found {
    meant: Meanings,
    /// The payments of the id or the transaction.
    payments: Vec<Row>,
    /// Whether the text is a payment's id, so that nothing else is asked.
    is_of_id: bool,
    /// Whether the transaction service gave one id to several payments.
    is_shared: bool,
    known: Option<Known>,
    /// The date that is looked at, or could be.
    date: BusinessDate,
    of_amount: Option<OnDate>,
    of_digits: Option<OnDate>,
}

impl Console {
    /// The view of a search: the payment itself if the text names one and nothing else, or else a section for each meaning.
    pub(crate) async fn find(&self, request: &Request<'_>) -> Result<Markup, Problem> {
        let query = request.query(&["text", "date", "account", "key"])?;
        let (account, name) = (query.text("account")?.unwrap_or_default(), query.text("key")?.unwrap_or_default());
        if !account.is_empty() || !name.is_empty() {
            let account: AccountId = account.trim().parse().map_err(|error| invalid_parameter("account", &error))?;
            let key: IdempotencyKey = name.parse().map_err(|error| invalid_parameter("key", &error))?;
            let shown = self.shown(PaymentId::derive(&account, &key), None).await?;
            return Ok(shown.unwrap_or_else(|| nothing(name, &[], self.times())));
        }
        let mut meant = Meanings::read(query.text("text")?.unwrap_or_default());
        if query.text("date")?.is_some_and(|date| !date.is_empty()) {
            meant.date = query.get("date")?;
        }
        let deadline = self.deadline();
        let in_time = || if deadline.has_come() { Err(Problem::repeat()) } else { Ok(()) };
        // A transaction's id can look like a payment's.
        let mut heads: Vec<(PaymentId, Option<HeadKey>)> = Vec::new();
        if let Some(id) = meant.payment
            && self.store.details(id).await.map_or_else(unreadable, |first| Ok(first.is_some()))?
        {
            heads.push((id, None));
        }
        let is_of_id = !heads.is_empty();
        in_time()?;
        let keys = self.of_transaction(&meant).await?;
        let is_shared = keys.len() > 1;
        for key in keys {
            let id = key.slot.payment_id;
            if !heads.iter().any(|(known, _)| *known == id) {
                heads.push((id, Some(key)));
            }
        }
        // An account can look like an id, too, but nobody who has found the payment asks for it.
        let known = match &meant.account {
            Some(account) if !is_of_id => self.known(account, &deadline).await?,
            _ => None,
        };
        in_time()?;
        if let ([(id, key)], None) = (&heads[..], &known)
            && let Some(shown) = self.shown(*id, key.clone()).await?
        {
            return Ok(shown);
        }
        let payments = self.rows(heads, &deadline).await?;
        let date = meant.date.unwrap_or_else(|| self.today());
        let mut found = Found { meant, payments, is_of_id, is_shared, known, date, of_amount: None, of_digits: None };
        if let (Some(_), Some(amount)) = (found.meant.date, found.meant.amount) {
            found.of_amount = Some(self.of_amount(date, amount, &deadline).await?);
        }
        if let (Some(_), Some(digits)) = (found.meant.date, &found.meant.digits) {
            found.of_digits = Some(self.of_digits(date, digits, &deadline).await?);
        }
        Ok(found.shown(self.times()))
    }

    /// The payments of a transaction's id, in each of its spellings.
    async fn of_transaction(&self, meant: &Meanings) -> Result<Vec<HeadKey>, StoreError> {
        let reads: Vec<_> = meant.transactions.iter().map(|id| self.store.payments_of_transaction(id)).collect();
        Ok(futures::future::try_join_all(reads).await?.concat())
    }

    /// Whether an account has payments: the next one, or else the last one.
    async fn known(&self, account: &AccountId, deadline: &Deadline) -> Result<Option<Known>, Problem> {
        let (zone, filter) = (self.config.business_days.zone(), AccountFilter::default());
        let coming = AccountQuery {
            account,
            from: zone.start_of(self.today()),
            to: zone.end_of(BusinessDate::MAX),
            after: None,
            filter: &filter,
            order: ListOrder::Ascending,
            limit: 1,
            with_history: false,
        };
        let past = AccountQuery {
            from: zone.start_of(BusinessDate::MIN),
            to: coming.from,
            order: ListOrder::Descending,
            with_history: true,
            ..coming
        };
        for (query, known) in [(&coming, Known::Next as fn(Box<Head>) -> Known), (&past, Known::Last)] {
            if deadline.has_come() {
                return Err(Problem::repeat());
            }
            let mut page = self.store.account_page(query).await?;
            match page.heads.pop() {
                Some((_, Ok(head))) => return Ok(Some(known(Box::new(head)))),
                Some((_, Err(_))) => return Ok(Some(Known::Unreadable)),
                None if !page.without_key.is_empty() => return Ok(Some(Known::Unreadable)),
                None => {}
            }
        }
        Ok(None)
    }

    /// The rows of payments, as far as their heads exist and can be read.
    async fn rows(
        &self,
        payments: Vec<(PaymentId, Option<HeadKey>)>,
        deadline: &Deadline,
    ) -> Result<Vec<Row>, Problem> {
        let mut rows = Vec::new();
        for (id, key) in payments {
            if deadline.has_come() {
                return Err(Problem::repeat());
            }
            let read = async {
                let key = match key {
                    Some(key) => Some(key),
                    None => self.store.details(id).await?.map(|details| details.key()),
                };
                match key {
                    Some(key) => self.store.head(&key).await,
                    None => Ok(None),
                }
            };
            match read.await {
                Ok(head) => rows.extend(head.map(|head| Row::from_head(&head, self.note(&head)))),
                Err(error @ StoreError::Unreadable { .. }) => {
                    tracing::error!(payment = %id, %error, "a payment that was found cannot be read");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(rows)
    }
}

/// A payment whose details are damaged exists.
fn unreadable(error: StoreError) -> Result<bool, StoreError> {
    if matches!(error, StoreError::Unreadable { .. }) { Ok(true) } else { Err(error) }
}

impl Found {
    fn shown(&self, times: Times) -> Markup {
        let sections = self.sections(times);
        let has = |found: &Option<OnDate>| found.as_ref().is_some_and(|found| !found.rows.is_empty());
        let has_found = !self.payments.is_empty()
            || self.known.is_some()
            || has(&self.of_amount)
            || has(&self.of_digits)
            || (self.meant.date.is_some() && self.meant.text.is_empty());
        if !has_found {
            return nothing(&self.meant.text, &sections, times);
        }
        let text = bounded(&self.meant.text, MAX_SHOWN_BYTES);
        html! {
            (top(&titled(&text, "Find", &match sections.len() {
                0 | 1 => ("Find ", String::new()),
                several => ("", format!(" can mean {} things", in_words(several))),
            }), times))
            @for section in sections { (section) }
            @if self.payments.is_empty() && !self.meant.transactions.is_empty() {
                p class="quiet" { "Not a payment, transaction or event: none has this id." }
            }
        }
    }
}

/// A heading with a text that somebody looks for, or another without it.
fn titled(text: &str, without: &str, (before, after): &(&str, String)) -> Markup {
    html! { h1 tabindex="-1" { @if text.is_empty() { (without) } @else { (before) "“" (foreign(text)) "”" (after) } } }
}

/// The view of a search that found nothing, with the fields that it lacks.
fn nothing(text: &str, sections: &[Markup], times: Times) -> Markup {
    let text = bounded(text, MAX_SHOWN_BYTES);
    html! {
        (top(&titled(&text, "Find", &("Nothing found for ", String::new())), times))
        p {
            @if text.is_empty() { b { "Nothing found." } " " }
            "An amount or 8 digits of an id need a date. A reference, a payee and a key need their account."
        }
        @for section in sections { (section) }
        @if sections.is_empty() {
            section class="panel" {
                div class="head" { h2 { "Find with more fields" } }
                form class="pad" data-view="find" autocomplete="off" {
                    div class="fields" {
                        label { "Amount, or 8 digits of an id" input name="text" size="18" maxlength="40" required; }
                        label { "Date" input type="date" name="date" required; }
                        button class="primary" { "Find on the date" }
                    }
                }
                form class="pad" data-view="find" autocomplete="off" {
                    div class="fields" {
                        label { "Account" input name="account" size="18" maxlength="48" required; }
                        label { "Idempotency key" input name="key" size="24" maxlength="255" required; }
                        button { "Find the key" }
                    }
                }
                form class="pad" data-view="account" autocomplete="off" {
                    input type="hidden" name="show" value="all";
                    div class="fields" {
                        label { "Account" input name="id" size="18" maxlength="48" required; }
                        label { "Reference" input name="reference" size="24" maxlength="35"; }
                        button { "Find the reference" }
                    }
                }
            }
        }
    }
}

/// A small number as a word.
fn in_words(number: usize) -> String {
    const WORDS: [&str; 10] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    WORDS.get(number).map_or_else(|| number.to_string(), |word| (*word).to_owned())
}
