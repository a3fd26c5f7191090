//! Recounting a date from the `due` indexes of both tables, one query at a time.
//!
//! A payment that is in both tables counts once, as one of the hot table. Of every stretch of keys
//! the hot table is read before history, because a payment that is being archived is in history
//! before it leaves the hot table.

use std::collections::HashSet;

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{AmountMinor, BusinessDate, Currency, DayCounts, Money, Shard, Status};

use crate::error::failed;
use crate::key::DueSort;
use crate::schema::DUE;
use crate::{Item, Store, StoreError};

/// How many index entries are read at once: 300 KB of them.
const PAGE: i32 = 1_000;

/// What a recount found.
#[derive(Debug, Default)]
pub struct Recounted {
    /// The numbers.
    pub counts: DayCounts,
    /// How many index entries cannot be read, so that the numbers may be wrong.
    pub unreadable: u64,
    /// One of those entries.
    pub example: Option<StoreError>,
}

impl Recounted {
    /// Adds what was found of the same date elsewhere.
    pub fn add(&mut self, other: Self) {
        self.counts.add(&other.counts);
        self.unreadable += other.unreadable;
        self.example = self.example.take().or(other.example);
    }
}

/// One shard and status of a date on its way through both tables. It holds the keys of one page,
/// whatever the date holds.
#[derive(Debug)]
pub struct DueRecount {
    shard: Shard,
    status: Status,
    /// Where the keys of the date begin and end.
    from: String,
    end: String,
    /// Where the keys begin that history was not asked for yet.
    history_from: String,
    next: Next,
    found: Recounted,
}

/// What to read next.
#[derive(Debug)]
enum Next {
    /// The hot table, after this place.
    Hot(Option<Item>),
    /// History, as far as a page of the hot table reached.
    History(HotPage, Option<Item>),
    /// Nothing: all was read.
    Nothing,
}

/// The page of the hot table that history is compared with.
#[derive(Debug)]
struct HotPage {
    keys: HashSet<String>,
    /// Where it ended, if the hot table has more.
    last: Option<Item>,
}

impl DueRecount {
    /// The recount of a date's payments of one shard and status.
    #[must_use]
    pub fn of(date: BusinessDate, shard: Shard, status: Status) -> Self {
        let (from, end) = (DueSort::start_of(status, date), DueSort::end_of(status, date));
        let history_from = from.clone();
        Self { shard, status, from, end, history_from, next: Next::Hot(None), found: Recounted::default() }
    }

    /// What was found; all there is once [`Store::recount_next`] has nothing more to read.
    #[must_use]
    pub fn found(self) -> Recounted {
        self.found
    }

    /// Takes a page of the hot table.
    fn take_hot(&mut self, entries: Vec<Item>, last: Option<Item>) {
        let mut keys = HashSet::with_capacity(entries.len());
        for entry in entries {
            self.count(&entry);
            keys.insert(due_of(&entry).to_owned());
        }
        let page = HotPage { keys, last };
        // Only what is over is ever archived.
        self.next = if self.status.is_terminal() { Next::History(page, None) } else { Next::after(page) };
    }

    /// Takes a page of history.
    fn take_history(&mut self, page: HotPage, entries: &[Item], last: Option<Item>) {
        for entry in entries.iter().filter(|entry| !page.keys.contains(due_of(entry))) {
            if self.count(entry) {
                self.found.counts.archived += 1;
            }
        }
        if last.is_some() {
            self.next = Next::History(page, last);
        } else {
            if let Some(hot_end) = &page.last {
                // Sorts after that key and before every later one.
                self.history_from = format!("{}#", due_of(hot_end));
            }
            self.next = Next::after(page);
        }
    }

    /// Counts an entry, and says whether it could be read.
    fn count(&mut self, entry: &Item) -> bool {
        match money_of(entry) {
            Ok(money) => {
                self.found.counts.enter(self.status, money);
                true
            }
            Err(why) => {
                self.found.unreadable += 1;
                let key = due_of(entry).to_owned();
                self.found.example.get_or_insert(StoreError::Unreadable { key, why: why.to_owned() });
                false
            }
        }
    }
}

impl Next {
    /// What follows a page of the hot table with which everything was done.
    fn after(page: HotPage) -> Self {
        page.last.map_or(Self::Nothing, |last| Self::Hot(Some(last)))
    }
}

impl Store {
    /// Reads one page more, half a read unit per 4 KB of index entries, and says whether there is
    /// still more. What fails can be tried again: nothing is counted twice.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails.
    pub async fn recount_next(&self, recount: &mut DueRecount) -> Result<bool, StoreError> {
        let DueRecount { from, end, history_from, .. } = &*recount;
        let (table, from, until, after) = match &recount.next {
            Next::Nothing => return Ok(false),
            Next::Hot(after) => (&self.tables.payments, from, end.as_str(), after),
            Next::History(page, after) => {
                (&self.tables.history, history_from, page.last.as_ref().map_or(end.as_str(), due_of), after)
            }
        };
        let query = self
            .client
            .query()
            .table_name(table)
            .index_name(DUE.name)
            .key_condition_expression("#shard = :shard AND due BETWEEN :from AND :until")
            .projection_expression("due, amountMinor, currency")
            // SHARD is one of DynamoDB's reserved words.
            .expression_attribute_names("#shard", "shard")
            .expression_attribute_values(":shard", AttributeValue::N(recount.shard.get().to_string()))
            .expression_attribute_values(":from", AttributeValue::S(from.clone()))
            .expression_attribute_values(":until", AttributeValue::S(until.to_owned()))
            .set_exclusive_start_key(after.clone())
            .limit(PAGE);
        let answer = query.send().await.map_err(failed("Query"))?;
        let (entries, last) = (answer.items.unwrap_or_default(), answer.last_evaluated_key);
        match std::mem::replace(&mut recount.next, Next::Nothing) {
            Next::Hot(_) => recount.take_hot(entries, last),
            Next::History(page, _) => recount.take_history(page, &entries, last),
            Next::Nothing => {}
        }
        Ok(!matches!(recount.next, Next::Nothing))
    }
}

/// The `due` key of an index entry; empty where there is none, which an index does not have.
fn due_of(entry: &Item) -> &str {
    entry.get("due").and_then(|due| due.as_s().ok()).map_or("", String::as_str)
}

/// What an index entry adds to the sums. Its status and date are those that were asked for.
fn money_of(entry: &Item) -> Result<Money, &'static str> {
    due_of(entry).parse::<DueSort>().map_err(|_| "its due key is none")?;
    let amount = entry.get("amountMinor").and_then(|amount| amount.as_n().ok());
    let amount = amount.and_then(|amount| amount.parse::<AmountMinor>().ok()).ok_or("its amount is none")?;
    let currency = entry.get("currency").and_then(|currency| currency.as_s().ok());
    let currency = currency.and_then(|code| Currency::from_stored(code).ok()).ok_or("its currency is none")?;
    Ok(Money { amount, currency })
}
