//! The plan of a list: the request's parameters and cursor, checked before anything is read.

use std::str::FromStr;

use payments_http::cursor::invalid_cursor;
use payments_http::request::date_range;
use payments_http::{AccountCursor, PageLimit, Problem, Query};
use payments_model::{AccountId, BusinessDate, BusinessZone, HeadSort, Status};
use payments_store::AccountQuery;

/// The query parameters of a list.
pub const PARAMETERS: &[&str] = &["from", "to", "status", "limit", "cursor", "include"];

/// The latest `to`, in days after `from`.
const MAX_DAYS: i64 = 366;

/// A list to read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    account: AccountId,
    from: BusinessDate,
    to: BusinessDate,
    status: Option<Status>,
    after: Option<HeadSort>,
    limit: PageLimit,
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

impl Plan {
    /// Plans the list that `query` describes. A cursor continues with the range and status it was made for, even
    /// after midnight; parameters next to it must agree with it.
    pub(crate) fn of(account: AccountId, query: &Query<'_>, today: BusinessDate) -> Result<Self, Problem> {
        let (from, to) = (query.get::<BusinessDate>("from")?, query.get::<BusinessDate>("to")?);
        let status = query.get::<Status>("status")?;
        let limit = query.get("limit")?.unwrap_or(PageLimit::DEFAULT);
        let with_data = query.get::<Include>("include")?.is_some();
        let cursor = query.text("cursor")?.map(AccountCursor::decode).transpose()?;
        let Some(cursor) = cursor else {
            let (from, to) = date_range(from, to, today, MAX_DAYS)?;
            return Ok(Self { account, from, to, status, after: None, limit, with_data });
        };
        let agrees = cursor.account == account
            && from.is_none_or(|from| from == cursor.from)
            && to.is_none_or(|to| to == cursor.to)
            && (status.is_none() || status == cursor.status);
        if !agrees {
            return Err(invalid_cursor("it belongs to a list of another account, range or status"));
        }
        let (from, to) = date_range(Some(cursor.from), Some(cursor.to), today, MAX_DAYS)
            .map_err(|_| invalid_cursor("its range is invalid"))?;
        Ok(Self { account, from, to, status: cursor.status, after: Some(cursor.after), limit, with_data })
    }

    /// The store's query for one page.
    pub(crate) fn read(&self, zone: BusinessZone, today: BusinessDate) -> Result<AccountQuery<'_>, Problem> {
        let (from, to) = (zone.start_of(self.from), zone.end_of(self.to));
        if self.after.is_some_and(|after| !(from..to).contains(&after.due_at)) {
            return Err(invalid_cursor("it points outside its own range"));
        }
        Ok(AccountQuery {
            account: &self.account,
            from,
            to,
            after: self.after,
            status: self.status,
            limit: self.limit.get(),
            // Only payments of past days are archived.
            with_history: self.from < today,
        })
    }

    /// The cursor of the page after the payment at `after`.
    pub(crate) fn cursor(&self, after: HeadSort) -> String {
        let Self { account, from, to, status, .. } = self;
        AccountCursor { account: account.clone(), from: *from, to: *to, status: *status, after }.encode()
    }
}
