//! The plan of a list: the request's parameters and cursor, checked before anything is read.

use std::str::FromStr;

use payments_http::cursor::invalid_cursor;
use payments_http::query::invalid_parameter;
use payments_http::request::date_order;
use payments_http::{AccountCursor, PageLimit, Problem, Query};
use payments_model::{AccountId, BusinessDate, BusinessZone, IdempotencyKey, Place, Reference, Statuses};
use payments_store::{AccountFilter, AccountQuery, ListOrder};

/// The parameter that names a payment by its key.
const KEY: &str = "idempotencyKey";

/// The parameter that asks for more than the heads have.
const INCLUDE: &str = "include";

/// The query parameters of a list. `idempotencyKey` stands alone, but for `include`.
pub const PARAMETERS: &[&str] =
    &["from", "to", "status", "payeeAccountId", "reference", "order", "limit", "cursor", INCLUDE, KEY];

/// The query parameters of the list of a payment's versions.
pub const VERSIONS_PARAMETERS: &[&str] = &[INCLUDE];

/// A list to read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    account: AccountId,
    from: BusinessDate,
    to: BusinessDate,
    filter: AccountFilter,
    order: ListOrder,
    after: Option<Place>,
    pub(crate) limit: PageLimit,
    pub(crate) with_data: bool,
}

/// The value of the parameter `include`.
struct Include;

impl FromStr for Include {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "data" { Ok(Self) } else { Err("its only value is \"data\"") }
    }
}

/// The value of the parameter `order`.
struct Order(ListOrder);

impl FromStr for Order {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "asc" => Ok(Self(ListOrder::Ascending)),
            "desc" => Ok(Self(ListOrder::Descending)),
            _ => Err("it is \"asc\" or \"desc\""),
        }
    }
}

/// Whether the payments come with their data.
pub(crate) fn with_data(query: &Query<'_>) -> Result<bool, Problem> {
    Ok(query.get::<Include>(INCLUDE)?.is_some())
}

/// The key of a list of one payment, if the query has one.
pub(crate) fn key(query: &Query<'_>) -> Result<Option<IdempotencyKey>, Problem> {
    let Some(key) = query.get(KEY)? else { return Ok(None) };
    for &other in PARAMETERS.iter().filter(|name| ![KEY, INCLUDE].contains(name)) {
        if query.has(other) {
            return Err(invalid_parameter(other, &"it cannot stand beside \"idempotencyKey\"; send one of them"));
        }
    }
    Ok(Some(key))
}

impl Plan {
    /// Plans the list that `query` describes. A cursor continues with the range, filter and order it was made for, even
    /// after midnight; parameters next to it must agree with it.
    pub(crate) fn parse(account: AccountId, query: &Query<'_>, today: BusinessDate) -> Result<Self, Problem> {
        let (from, to) = (query.get::<BusinessDate>("from")?, query.get::<BusinessDate>("to")?);
        let statuses = query.list::<Statuses>("status")?;
        let payee = query.get::<AccountId>("payeeAccountId")?;
        let reference = query.get::<Reference>("reference")?;
        let order = query.get::<Order>("order")?.map(|Order(order)| order);
        let limit = query.get("limit")?.unwrap_or(PageLimit::DEFAULT);
        let with_data = with_data(query)?;
        let cursor = query.text("cursor")?.map(AccountCursor::decode).transpose()?;
        let Some(cursor) = cursor else {
            let (from, to) = date_order(from, to.unwrap_or(BusinessDate::MAX), today)?;
            let filter = AccountFilter { statuses: statuses.unwrap_or_default(), payee, reference, amount: None };
            let order = order.unwrap_or_default();
            return Ok(Self { account, from, to, filter, order, after: None, limit, with_data });
        };
        let made_in = if cursor.is_descending { ListOrder::Descending } else { ListOrder::Ascending };
        let agrees = cursor.account == account
            && from.is_none_or(|from| from == cursor.from)
            && to.is_none_or(|to| to == cursor.to)
            && statuses.is_none_or(|statuses| statuses == cursor.statuses)
            && (payee.is_none() || payee == cursor.payee)
            && (reference.is_none() || reference == cursor.reference)
            && order.is_none_or(|order| order == made_in);
        if !agrees {
            return Err(invalid_cursor("it belongs to a list of another account, range, filter or order"));
        }
        let (from, to) =
            date_order(Some(cursor.from), cursor.to, today).map_err(|_| invalid_cursor("its range is invalid"))?;
        let (payee, reference) = (cursor.payee, cursor.reference);
        let filter = AccountFilter { statuses: cursor.statuses, payee, reference, amount: None };
        Ok(Self { account, from, to, filter, order: made_in, after: Some(cursor.after), limit, with_data })
    }

    /// The first and the last date of the list.
    pub(crate) fn range(&self) -> (BusinessDate, BusinessDate) {
        (self.from, self.to)
    }

    /// The store's query for the payments of the page.
    pub(crate) fn read(&self, zone: BusinessZone, today: BusinessDate) -> Result<AccountQuery<'_>, Problem> {
        let (from, to) = (zone.start_of(self.from), zone.end_of(self.to));
        let after = self.after;
        if after.is_some_and(|after| !(from..to).contains(&after.due_at)) {
            return Err(invalid_cursor("it points outside its own range"));
        }
        Ok(AccountQuery {
            account: &self.account,
            from,
            to,
            after,
            filter: &self.filter,
            order: self.order,
            limit: self.limit.get(),
            // Only payments of past days are archived.
            with_history: self.from < today,
        })
    }

    /// The cursor of the page after the payment at `after`.
    pub(crate) fn cursor(&self, after: Place) -> String {
        let Self { account, from, to, filter, order, .. } = self;
        let account = account.clone();
        let from = *from;
        let to = *to;
        let AccountFilter { statuses, payee, reference, .. } = filter.clone();
        let is_descending = *order == ListOrder::Descending;
        AccountCursor { account, from, to, statuses, payee, reference, is_descending, after }.encode()
    }
}
