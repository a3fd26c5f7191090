//! The recount of a date from the `due` indexes of both tables, one query at a time.
//!
//! A payment in both tables counts once, as the hot table has it. For every range of keys, the hot
//! table is read before history: a head is in history before it leaves the hot table. A settlement that
//! only history knows yet is not counted: its payment is still pending in the hot table.

use std::collections::HashSet;

use payments_model::{BusinessDate, DayCounts, Money, Shard, Status};

use crate::error::{StoreError, failed};
use crate::index::due::{DUE_KEYS, due_of};
use crate::item::{Item, key_of, parse_money, text_of};
use crate::key::due::DueSort;
use crate::store::Store;

/// The index entries that one query reads: 300 KB.
const PAGE: i32 = 1_000;

/// The most unreadable entries of a date that are named. Further ones are only counted.
const MAX_EXAMPLES: usize = 10;

/// The result of a recount.
#[derive(Debug, Default)]
pub struct Recounted {
    /// The numbers.
    pub counts: DayCounts,
    /// The number of index entries that cannot be read. If there are any, the numbers may be wrong.
    pub unreadable: u64,
    /// The errors of the first few of those entries.
    pub examples: Vec<StoreError>,
}

impl Recounted {
    /// Adds the result of another part of the same date.
    pub fn add(&mut self, other: Self) {
        self.counts.add(&other.counts);
        self.unreadable += other.unreadable;
        self.examples.extend(other.examples);
        self.examples.truncate(MAX_EXAMPLES);
    }
}

/// The recount of one shard and status of a date. It holds the keys of one page at a time, and those of the pending payments
/// within it.
#[derive(Debug)]
pub struct DueRecount {
    shard: Shard,
    status: Status,
    /// The bounds of the date's keys.
    from: String,
    end: String,
    /// The first key that was not read from history yet.
    history_from: String,
    next: Next,
    found: Recounted,
}

/// The next read.
#[derive(Debug)]
enum Next {
    /// The hot table, after this key.
    Hot(Option<Item>),
    /// The hot table's pending payments, up to the end of this page.
    Pending(HotPage, Option<Item>),
    /// History, up to the end of this page of the hot table.
    History(HotPage, Option<Item>),
    /// None: everything was read.
    Nothing,
}

/// A page of the hot table.
#[derive(Debug)]
struct HotPage {
    /// The keys that history does not count: those of the page, and those that pending payments will have.
    keys: HashSet<String>,
    /// Its last key, if the hot table has more.
    last: Option<Item>,
}

impl DueRecount {
    /// Creates the recount of a date's payments of one shard and status.
    pub fn new(date: BusinessDate, shard: Shard, status: Status) -> Self {
        let (from, end) = (DueSort::start_of(status, date), DueSort::end_of(status, date));
        let history_from = from.clone();
        Self { shard, status, from, end, history_from, next: Next::Hot(None), found: Recounted::default() }
    }

    /// Returns the result, which is complete once [`Store::recount_next`] returned `false`.
    pub fn found(self) -> Recounted {
        self.found
    }

    /// Counts a page of the hot table.
    fn take_hot(&mut self, table: &str, entries: Vec<Item>, last: Option<Item>) {
        let mut keys = HashSet::with_capacity(entries.len());
        for entry in entries {
            self.count(table, &entry);
            keys.insert(text_of(&entry, "due").to_owned());
        }
        let page = HotPage { keys, last };
        self.next = if self.status.is_settled() {
            Next::Pending(page, None)
        } else if self.status.is_terminal() {
            Next::History(page, None)
        } else {
            Next::after(page)
        };
    }

    /// Keeps a page of pending payments.
    fn take_pending(&mut self, mut page: HotPage, entries: &[Item], last: Option<Item>) {
        let settled = |entry| text_of(entry, "due").replacen(Status::Pending.as_str(), self.status.as_str(), 1);
        page.keys.extend(entries.iter().map(settled));
        self.next = if last.is_some() { Next::Pending(page, last) } else { Next::History(page, None) };
    }

    /// Counts a page of history.
    fn take_history(&mut self, table: &str, page: HotPage, entries: &[Item], last: Option<Item>) {
        for entry in entries.iter().filter(|entry| !page.keys.contains(text_of(entry, "due"))) {
            if self.count(table, entry) {
                self.found.counts.archived += 1;
            }
        }
        if last.is_some() {
            self.next = Next::History(page, last);
        } else {
            if let Some(hot_end) = &page.last {
                // Sorts after that key and before every later one.
                self.history_from = format!("{}#", text_of(hot_end, "due"));
            }
            self.next = Next::after(page);
        }
    }

    /// Counts an entry. Returns whether it could be read.
    fn count(&mut self, table: &str, entry: &Item) -> bool {
        match money_of(table, entry) {
            Ok(money) => {
                self.found.counts.enter(self.status, money);
                true
            }
            Err(error) => {
                self.found.unreadable += 1;
                if self.found.examples.len() < MAX_EXAMPLES {
                    self.found.examples.push(error);
                }
                false
            }
        }
    }
}

impl Next {
    /// The next read after a page of the hot table, once history was read as far.
    fn after(page: HotPage) -> Self {
        page.last.map_or(Self::Nothing, |last| Self::Hot(Some(last)))
    }
}

impl Store {
    /// Reads and counts the next page: half a read unit per 4 KB of index entries. Returns whether
    /// there is more. After an error it can be called again: nothing is counted twice.
    pub async fn recount_next(&self, recount: &mut DueRecount) -> Result<bool, StoreError> {
        let DueRecount { from, end, history_from, status, .. } = &*recount;
        let end_of = |page: &HotPage| page.last.as_ref().map_or(end.as_str(), |last| text_of(last, "due")).to_owned();
        let pending = |key: &str| key.replacen(status.as_str(), Status::Pending.as_str(), 1);
        let (table, range, after) = match &recount.next {
            Next::Nothing => return Ok(false),
            Next::Hot(after) => (&self.tables.payments, (from.clone(), end.clone()), after),
            Next::Pending(page, after) => {
                (&self.tables.payments, (pending(history_from), pending(&end_of(page))), after)
            }
            Next::History(page, after) => (&self.tables.history, (history_from.clone(), end_of(page)), after),
        };
        // Only the keys of pending payments matter. The keys of the table name an entry that cannot be read.
        let is_pending = matches!(recount.next, Next::Pending(..));
        let query = self
            .due_query(table, recount.shard, range)
            .projection_expression(if is_pending { DUE_KEYS } else { "pk, sk, due, amountMinor, currency" })
            .set_exclusive_start_key(after.clone())
            .limit(PAGE);
        let answer = query.send().await.map_err(failed("Query"))?;
        let (entries, last) = (answer.items.unwrap_or_default(), answer.last_evaluated_key);
        match std::mem::replace(&mut recount.next, Next::Nothing) {
            Next::Hot(_) => recount.take_hot(table, entries, last),
            Next::Pending(page, _) => recount.take_pending(page, &entries, last),
            Next::History(page, _) => recount.take_history(table, page, &entries, last),
            Next::Nothing => {}
        }
        Ok(!matches!(recount.next, Next::Nothing))
    }
}

/// The amount of an index entry. Its status and date are those of the query.
fn money_of(table: &str, entry: &Item) -> Result<Money, StoreError> {
    due_of(table, entry)?;
    let amount = entry.get("amountMinor").and_then(|amount| amount.as_n().ok()).and_then(|amount| amount.parse().ok());
    let unreadable = |why: String| StoreError::unreadable(table, key_of(entry), why);
    let amount = amount.ok_or_else(|| unreadable("amountMinor is missing or not a whole number".to_owned()))?;
    parse_money(amount, text_of(entry, "currency")).map_err(|fault| unreadable(fault.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::item_key;

    #[test]
    fn all_unreadable_entries_are_counted_and_the_first_ten_are_named() {
        let shard = Shard::from_stored(3).unwrap();
        let mut recount = DueRecount::new("2026-11-20".parse().unwrap(), shard, Status::Scheduled);
        let entry = |number| item_key(format!("ACCT#{number:02}"), "2026-11-20T08:00:00Z#damaged".to_owned());
        recount.take_hot("payments", (0..12).map(entry).collect(), None);
        let Recounted { counts, unreadable, examples } = recount.found();
        assert_eq!((counts, unreadable, examples.len()), (DayCounts::default(), 12, 10));
        for (number, example) in examples.iter().enumerate() {
            let key = format!("ACCT#{number:02} / 2026-11-20T08:00:00Z#damaged");
            assert!(example.to_string().contains(&key), "{example} does not name {key}");
        }
    }
}
