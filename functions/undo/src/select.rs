//! Reads the payments that a plan selects. Cancelled payments are left out.

use std::collections::{BTreeSet, HashMap, HashSet};

use futures::StreamExt as _;
use payments_boot::Deadline;
use payments_files::{PlanRow, PlanWriter};
use payments_model::undo::Selector;
use payments_model::{AccountId, BusinessDate, Head, HeadKey, PaymentId, Status, UndoId};
use payments_store::{AccountFilter, AccountQuery, DueRange, DueRow, DueUntil, ListOrder, StoreError, UndoTotals};

use crate::error::UndoError;
use crate::function::Undo;
use crate::logged::Logged;

/// The most payments of a plan. Its file has about 45 MB then, which one call stores.
const MAX_PAYMENTS: u64 = 1_000_000;

/// The index entries of one page, 300 KB.
const PAGE: u16 = 1_000;

/// The payments of one page of an account.
const ACCOUNT_PAGE: u16 = 100;

/// The most payments that are read by their ids at once.
const AT_ONCE: usize = 16;

/// The most unknown ids that an outcome names.
const MAX_EXAMPLES: usize = 10;

/// The statuses of planned payments, in the order of a payment's life: a payment that changes meanwhile is read twice, not missed.
const STATUSES: [Status; 4] = [Status::Scheduled, Status::Pending, Status::Processed, Status::Failed];

/// The selected payments.
pub(crate) struct Selected {
    pub(crate) file: PlanWriter,
    pub(crate) payments: u64,
    pub(crate) totals: UndoTotals,
    pub(crate) unknown: Vec<String>,
    pub(crate) unreadable: u64,
    pub(crate) is_complete: bool,
}

/// A payment that was read by its id, with its due date.
type Found = (PaymentId, Result<Option<(BusinessDate, PlanRow)>, StoreError>);

impl Selected {
    fn new(id: &UndoId, plan: u32, inexact: &[String]) -> Result<Self, UndoError> {
        let file = PlanWriter::new(id, plan, inexact)?;
        let totals = UndoTotals::new();
        Ok(Self { file, payments: 0, totals, unknown: Vec::new(), unreadable: 0, is_complete: true })
    }

    /// Adds a payment, unless the plan is full. A cancelled payment is not added.
    fn add(&mut self, row: &PlanRow) -> Result<(), UndoError> {
        if row.status == Some(Status::Cancelled) {
            return Ok(());
        }
        if self.payments == MAX_PAYMENTS {
            self.is_complete = false;
            return Ok(());
        }
        self.file.add(row)?;
        self.payments += 1;
        let (count, sum) = self.totals.entry((row.status, row.money.currency)).or_default();
        *count += 1;
        *sum += i128::from(row.money.amount.get());
        Ok(())
    }

    fn add_found(&mut self, (payment_id, found): Found) -> Result<(), UndoError> {
        match found {
            Ok(Some((_, row))) => return self.add(&row),
            Ok(None) if self.unknown.len() < MAX_EXAMPLES => self.unknown.push(payment_id.to_string()),
            Ok(None) => {}
            Err(error) => self.add_unreadable(&error),
        }
        Ok(())
    }

    /// The reasons why the plan may lack selected payments, with those that the log gave.
    pub(crate) fn doubts(&self, logged: &[String]) -> Vec<String> {
        let unreadable = (self.unreadable > 0).then(|| format!("{} payments cannot be read", self.unreadable));
        let more = if self.unknown.len() == MAX_EXAMPLES { " or more" } else { "" };
        let unknown = self.unknown.first();
        let unknown = unknown.map(|id| format!("ids of no payment: {}{more}, such as {id}", self.unknown.len()));
        let full = (!self.is_complete).then(|| "it is full, so plan again once it has run".to_owned());
        logged.iter().cloned().chain(unreadable).chain(unknown).chain(full).collect()
    }

    fn add_unreadable(&mut self, error: &StoreError) {
        tracing::error!(%error, "a payment cannot be read, and is not in the plan");
        self.unreadable += 1;
    }
}

impl Undo {
    /// The due dates of a selection, which are held before it is planned.
    pub(crate) async fn dates(
        &self,
        select: &Selector,
        logged: &Logged,
        deadline: &Deadline,
    ) -> Result<BTreeSet<BusinessDate>, UndoError> {
        Ok(match select {
            Selector::DueDate(date) => [*date].into(),
            Selector::Account { from, to, .. } => {
                let days = u32::try_from(to.days_since(*from)).unwrap_or(0);
                (0..=days).map(|days| from.plus_days(days)).collect()
            }
            Selector::Ids(ids) => dates_of(self.by_ids(ids, deadline).await?).collect(),
            // The file was read before.
            Selector::File(_) => BTreeSet::new(),
            Selector::Client(_) => {
                let mut dates = BTreeSet::new();
                for keys in logged.in_batches() {
                    dates.extend(dates_of(self.by_keys(keys, deadline).await?));
                }
                dates
            }
        })
    }

    /// Reads the payments of a selection into the file of a plan.
    pub(crate) async fn select(
        &self,
        (id, plan): (&UndoId, u32),
        (select, logged): (&Selector, &Logged),
        deadline: &Deadline,
    ) -> Result<Selected, UndoError> {
        let mut selected = Selected::new(id, plan, &logged.inexact)?;
        match select {
            Selector::DueDate(date) => self.by_due_date(*date, deadline, &mut selected).await?,
            Selector::Account { id, from, to } => {
                self.by_account(id, (*from, *to), deadline, &mut selected).await?;
            }
            Selector::Ids(ids) => {
                self.by_ids(ids, deadline).await?.into_iter().try_for_each(|found| selected.add_found(found))?;
            }
            Selector::File(_) => {}
            Selector::Client(_) => {
                for keys in logged.in_batches() {
                    let found = self.by_keys(keys, deadline).await?;
                    found.into_iter().try_for_each(|found| selected.add_found(found))?;
                }
            }
        }
        Ok(selected)
    }

    async fn by_due_date(
        &self,
        date: BusinessDate,
        deadline: &Deadline,
        selected: &mut Selected,
    ) -> Result<(), UndoError> {
        // All scheduled ones first: a plan that is full has as many of them as it can.
        let mut seen = HashSet::new();
        for status in STATUSES {
            for shard in self.config.read_shards.all() {
                let mut range = DueRange { shard, status, until: DueUntil::Date(date), after: None };
                loop {
                    let page =
                        payments_work::retried(deadline, async || self.store.due_page_of_both(&range, PAGE).await)
                            .await?;
                    for row in page.rows {
                        match row {
                            Ok(row) if seen.insert(row.due.payment_id) => selected.add(&row_of_due(row))?,
                            Ok(_) => {}
                            Err(error) => selected.add_unreadable(&error),
                        }
                    }
                    range.after = page.next;
                    if range.after.is_none() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    async fn by_account(
        &self,
        account: &AccountId,
        (from, to): (BusinessDate, BusinessDate),
        deadline: &Deadline,
        selected: &mut Selected,
    ) -> Result<(), UndoError> {
        let filter = AccountFilter::default();
        let mut query = AccountQuery {
            account,
            from: self.config.zone.start_of(from),
            to: self.config.zone.end_of(to),
            after: None,
            filter: &filter,
            order: ListOrder::Ascending,
            limit: ACCOUNT_PAGE,
            with_history: true,
        };
        loop {
            let page = payments_work::retried(deadline, async || self.store.account_page(&query).await).await?;
            page.without_key.iter().for_each(|error| selected.add_unreadable(error));
            for (_, head) in page.heads {
                match head {
                    Ok(head) if (from..=to).contains(&head.due_date) => selected.add(&row_of_head(&head))?,
                    Ok(_) => {}
                    Err(error) => selected.add_unreadable(&error),
                }
            }
            query.after = page.next;
            if query.after.is_none() {
                return Ok(());
            }
        }
    }

    /// Reads payments by their ids, each once.
    async fn by_ids(&self, ids: &[PaymentId], deadline: &Deadline) -> Result<Vec<Found>, UndoError> {
        let ids: BTreeSet<PaymentId> = ids.iter().copied().collect();
        let reads = ids.into_iter().map(|id| async move {
            match payments_work::retried(deadline, async || self.by_id(id).await).await {
                Ok(found) => Ok((id, Ok(found))),
                Err(payments_work::Halt::Broken(error @ StoreError::Unreadable { .. })) => Ok((id, Err(error))),
                Err(halt) => Err(UndoError::from(halt)),
            }
        });
        let found: Vec<Result<Found, UndoError>> = futures::stream::iter(reads).buffered(AT_ONCE).collect().await;
        found.into_iter().collect()
    }

    /// Reads payments by the keys of their heads, at most as many as one call reads. The log knows the key of each. Heads that the hot
    /// table does not have are looked for.
    async fn by_keys(&self, keys: &[HeadKey], deadline: &Deadline) -> Result<Vec<Found>, UndoError> {
        let hot = payments_work::retried(deadline, async || self.store.hot_heads(keys).await).await?;
        let mut hot: HashMap<HeadKey, _> = hot.into_iter().collect();
        let (mut found, mut others): (Vec<Found>, Vec<PaymentId>) = Default::default();
        for key in keys {
            match hot.remove(key) {
                Some(head) => {
                    found.push((key.slot.payment_id, head.map(|head| Some((head.due_date, row_of_head(&head))))))
                }
                None => others.push(key.slot.payment_id),
            }
        }
        found.extend(self.by_ids(&others, deadline).await?);
        Ok(found)
    }

    /// A payment without a head is one whose create was cut off, and which a repetition of it would complete.
    async fn by_id(&self, id: PaymentId) -> Result<Option<(BusinessDate, PlanRow)>, StoreError> {
        let Some(details) = self.store.details(id).await? else { return Ok(None) };
        let row = match self.store.head(&details.key()).await? {
            Some(head) => (head.due_date, row_of_head(&head)),
            None => {
                let scheduled = Head::scheduled(&details);
                (details.due_date, PlanRow { version: 0, status: None, ..row_of_head(&scheduled) })
            }
        };
        Ok(Some(row))
    }
}

/// The due dates of what an undo may cancel.
fn dates_of(found: Vec<Found>) -> impl Iterator<Item = BusinessDate> {
    let rows = found.into_iter().filter_map(|(_, row)| row.ok().flatten());
    let rows = rows.filter(|(_, row)| row.status.is_none_or(|status| status == Status::Scheduled));
    rows.map(|(date, _)| date)
}

fn row_of_due(row: DueRow) -> PlanRow {
    let DueRow { head, due, payee, money, version, .. } = row;
    PlanRow { head, version, payee, money, status: Some(due.status) }
}

fn row_of_head(head: &Head) -> PlanRow {
    PlanRow {
        head: head.key(),
        version: head.version,
        payee: head.payee.clone(),
        money: head.money,
        status: Some(head.state.status()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_lacks_payments_says_so() {
        let mut selected = Selected::new(&"0123456789abcdef".parse().unwrap(), 1, &[]).unwrap();
        assert_eq!(selected.doubts(&["a gap".to_owned()]), ["a gap"]);
        (selected.unreadable, selected.is_complete) = (2, false);
        assert_eq!(selected.doubts(&[]), ["2 payments cannot be read", "it is full, so plan again once it has run"]);
    }
}
