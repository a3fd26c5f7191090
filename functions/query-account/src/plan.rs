//! What a list request asks for, settled before anything is read.

use std::str::FromStr;

use payments_http::cursor::foreign;
use payments_http::request::invalid_parameter;
use payments_http::{AccountCursor, PageLimit, Problem, Query};
use payments_model::{AccountId, BusinessDate, BusinessZone, Status};
use payments_store::{AccountQuery, HeadSort};

/// The parameters of a list.
pub const PARAMETERS: &[&str] = &["from", "to", "status", "limit", "cursor", "include"];

/// How far a list reaches unless `to` says otherwise, in days after `from`.
const DEFAULT_DAYS: u32 = 90;

/// The widest range of a list, in days after `from`.
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

/// What else to include.
struct Include;

impl FromStr for Include {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "data" { Ok(Self) } else { Err("the only thing to include is \"data\"") }
    }
}

impl Plan {
    /// Settles the list that `query` asks for. A cursor goes on with the range and status it was
    /// made for, across midnight too; what is said beside it has to agree.
    pub(crate) fn of(account: AccountId, query: &Query<'_>, today: BusinessDate) -> Result<Self, Problem> {
        let (from, to) = (query.get::<BusinessDate>("from")?, query.get::<BusinessDate>("to")?);
        let status = query.get::<Status>("status")?;
        let limit = query.get("limit")?.unwrap_or(PageLimit::DEFAULT);
        let with_data = query.get::<Include>("include")?.is_some();
        let cursor = query.text("cursor")?.map(AccountCursor::decode).transpose()?;
        let Some(cursor) = cursor else {
            let from = from.unwrap_or(today);
            let to = to.unwrap_or_else(|| from.plus_days(DEFAULT_DAYS));
            check_range(from, to)?;
            return Ok(Self { account, from, to, status, after: None, limit, with_data });
        };
        let agrees = cursor.account == account
            && from.is_none_or(|from| from == cursor.from)
            && to.is_none_or(|to| to == cursor.to)
            && (status.is_none() || status == cursor.status);
        if !agrees {
            return Err(foreign("It belongs to a list of another account, range or status."));
        }
        check_range(cursor.from, cursor.to).map_err(|_| foreign("Its range is not one."))?;
        let (due_at, payment_id) = cursor.after;
        let after = Some(HeadSort { due_at, payment_id });
        Ok(Self { account, from: cursor.from, to: cursor.to, status: cursor.status, after, limit, with_data })
    }

    /// The read of one page.
    pub(crate) fn read(&self, zone: BusinessZone, today: BusinessDate) -> Result<AccountQuery<'_>, Problem> {
        let (from, to) = (zone.start_of(self.from), zone.end_of(self.to));
        if self.after.is_some_and(|after| !(from..to).contains(&after.due_at)) {
            return Err(foreign("It points outside its own range."));
        }
        Ok(AccountQuery {
            account: &self.account,
            from,
            to,
            after: self.after,
            status: self.status,
            limit: self.limit.get(),
            // Only days that are over are ever archived.
            with_history: self.from < today,
        })
    }

    /// The cursor of the page that begins after `after`.
    pub(crate) fn cursor(&self, after: HeadSort) -> String {
        let Self { account, from, to, status, .. } = self;
        let after = (after.due_at, after.payment_id);
        AccountCursor { account: account.clone(), from: *from, to: *to, status: *status, after }.encode()
    }
}

fn check_range(from: BusinessDate, to: BusinessDate) -> Result<(), Problem> {
    if from > to {
        return Err(invalid_parameter("from", &format!("{from} is after {to}")));
    }
    if to.days_since(from) > MAX_DAYS {
        return Err(invalid_parameter("to", &format!("a list reaches at most {MAX_DAYS} days after its first day")));
    }
    Ok(())
}
