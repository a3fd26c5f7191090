//! The payments of a date, across accounts, ordered by status and shard.

use payments_boot::Deadline;
use payments_http::cursor::invalid_cursor;
use payments_http::query::invalid_parameter;
use payments_http::request::whole_number;
use payments_http::{DueCursor, PageLimit, Problem, ProblemKind, Query};
use payments_model::{BusinessDate, PaymentId, Shard, ShardCount, Status, Statuses, UtcSecond};
use payments_store::{DuePage, DueRange, DueRow, DueSort, DueUntil};
use serde::Serialize;

use crate::function::QueryDue;
use crate::page::Page;

/// The most reads of the index for one page, which may then end early. A whole date has a read for
/// each of five statuses and each shard: 160 with 32 shards, so at least four pages.
const MAX_READS: usize = 50;

/// A payment's JSON, with the attributes that the index has.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DueView {
    payment_id: String,
    account_id: String,
    payee_account_id: String,
    amount_minor: i64,
    currency: String,
    due_at: String,
    due_date: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<String>,
}

/// The list that a request describes, and where to continue it.
#[derive(Debug)]
struct Plan {
    due_date: BusinessDate,
    statuses: Statuses,
    only_shard: Option<Shard>,
    limit: PageLimit,
    /// The stretches of the index still to be read, in order.
    stretches: Vec<(Status, Shard)>,
    after: Option<(UtcSecond, PaymentId)>,
}

impl Plan {
    fn parse(query: &Query<'_>, shards: ShardCount) -> Result<Self, Problem> {
        let due_date = query.get::<BusinessDate>("dueDate")?;
        let statuses = query.list::<Statuses>("status")?;
        let only_shard =
            query.text("shard")?.map(|text| in_range(whole_number(text).unwrap_or(u16::MAX), shards)).transpose()?;
        let limit = query.get("limit")?.unwrap_or(PageLimit::DEFAULT);
        let Some(cursor) = query.text("cursor")?.map(DueCursor::decode).transpose()? else {
            let due_date = due_date.ok_or_else(missing_date)?;
            let statuses = statuses.unwrap_or_default();
            let stretches = stretches(&statuses, only_shard, shards).collect();
            return Ok(Self { due_date, statuses, only_shard, limit, stretches, after: None });
        };
        let agrees = due_date.is_none_or(|date| date == cursor.due_date)
            && statuses.is_none_or(|statuses| statuses == cursor.statuses)
            && only_shard.is_none_or(|shard| Some(shard.get()) == cursor.only_shard);
        if !agrees {
            return Err(invalid_cursor("it belongs to a list of another date, status or shard"));
        }
        let DueCursor { due_date, statuses, only_shard, at, after } = cursor;
        let known = |number| in_range(number, shards).map_err(|_| invalid_cursor("its shard is out of range"));
        let (only_shard, at) = (only_shard.map(known).transpose()?, (at.0, known(at.1)?));
        let stretches = stretches(&statuses, only_shard, shards).skip_while(|stretch| *stretch != at).collect();
        Ok(Self { due_date, statuses, only_shard, limit, stretches, after })
    }

    fn cursor(&self, (status, shard): (Status, Shard), after: Option<(UtcSecond, PaymentId)>) -> String {
        let cursor = DueCursor {
            due_date: self.due_date,
            statuses: self.statuses.clone(),
            only_shard: self.only_shard.map(Shard::get),
            at: (status, shard.get()),
            after,
        };
        cursor.encode()
    }
}

impl QueryDue {
    /// Returns one page. It costs the rows that it returns, and two small reads per stretch.
    pub(crate) async fn list_date(&self, query: &Query<'_>) -> Result<Page<DueView>, Problem> {
        let plan = Plan::parse(query, self.config.read_shards)?;
        // Only payments of past days are archived.
        let with_history = plan.due_date < self.config.zone.date_of(self.clock.now());
        let deadline = Deadline::for_http(&self.clock);
        let mut list = Page::new();
        let (mut after, mut reads) = (plan.after, 0);
        for &(status, shard) in &plan.stretches {
            loop {
                let room = usize::from(plan.limit.get()) - list.payments.len();
                if room == 0 || reads == MAX_READS || deadline.has_come() {
                    list.next_cursor = Some(plan.cursor((status, shard), after));
                    return Ok(list);
                }
                reads += 1;
                let due_date = plan.due_date;
                let after_key = after.map(|(due_at, payment_id)| DueSort { status, due_date, due_at, payment_id });
                let range = DueRange { shard, status, until: DueUntil::Date(plan.due_date), after: after_key };
                let limit = u16::try_from(room).unwrap_or(u16::MAX);
                let page = if with_history {
                    self.store.due_page_of_both(&range, limit).await
                } else {
                    self.store.due_page(&range, limit).await
                };
                let page = page?;
                after = page.next.map(|next| (next.due_at, next.payment_id));
                list.add(page);
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(list)
    }
}

impl Page<DueView> {
    fn add(&mut self, page: DuePage) {
        let mut ids = page.unreadable.into_iter();
        for row in page.rows {
            match row {
                Ok(row) => self.payments.push(view(&row)),
                Err(error) => {
                    tracing::error!(%error, "a payment cannot be read and is left out of the list");
                    self.unreadable.add(ids.next());
                }
            }
        }
    }
}

fn stretches(statuses: &Statuses, shard: Option<Shard>, shards: ShardCount) -> impl Iterator<Item = (Status, Shard)> {
    let statuses = Status::ALL.into_iter().filter(|known| statuses.has(*known));
    statuses.flat_map(move |status| {
        let shards = shards.all().filter(move |known| shard.is_none_or(|only| only == *known));
        shards.map(move |shard| (status, shard))
    })
}

fn missing_date() -> Problem {
    let detail = "The parameter \"dueDate\" is missing; send a date as YYYY-MM-DD, or a \"transactionId\".";
    Problem::new(ProblemKind::InvalidParameter, detail).at("dueDate")
}

fn in_range(number: u16, shards: ShardCount) -> Result<Shard, Problem> {
    let shard = shards.all().nth(number.into());
    shard
        .ok_or_else(|| invalid_parameter("shard", &format!("a shard is a whole number from 0 to {}", shards.get() - 1)))
}

fn view(row: &DueRow) -> DueView {
    DueView {
        payment_id: row.due.payment_id.to_string(),
        account_id: row.head.account.to_string(),
        payee_account_id: row.payee.to_string(),
        amount_minor: row.money.amount.get(),
        currency: row.money.currency.to_string(),
        due_at: row.due.due_at.to_string(),
        due_date: row.due.due_date.to_string(),
        status: row.due.status.as_str(),
        reference: row.reference.as_ref().map(ToString::to_string),
        version: row.version,
        settled_at: row.settled_at.map(|at| at.to_string()),
        failure_code: row.failure_code.as_ref().map(ToString::to_string),
    }
}
