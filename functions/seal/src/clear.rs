//! Clears the data of sealed payments from the long-term table, part after part.
//!
//! A part is read as a whole, and each row is compared with the payment's items in all that the API shows. Then the place of the row
//! takes the place of the data, if the details are as they were read. Details that never were in force are in no row, and stay. What is
//! cleared costs no second write, so a run that is killed anywhere is continued by the next one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use chrono::TimeDelta;
use payments_boot::Deadline;
use payments_model::{BusinessDate, HeadKey, PaymentId, SealedPlace};
use payments_sealed::{Folder, Part, SealedError, SealedRow, damaged, path};
use payments_store::{Cleared, MAX_BATCH_GET, StoredDetails};
use payments_work::{at_once, retried};

use crate::compared::{Ends, ToClear, compared};
use crate::date::{MAX_NAMED, READS_AT_ONCE};
use crate::error::SealError;
use crate::function::{LATE_AFTER_DAYS, Seal, pass_over};
use crate::outcome::SealOutcome;
use crate::stop::{Stop, readable};

/// The payments that a run compares a second, and the items that it writes: a million in three invocations. A payment takes 3 reads, and
/// a write of 2 units for structured data of 8 KB, or 9 at most.
pub const CLEARS_PER_SECOND: u32 = 500;

/// The days by which details end before their part, and the head before them.
const BEFORE_PART: u32 = 60;
const BEFORE_DETAILS: u32 = 14;

/// A row of a part.
struct Row {
    place: SealedPlace,
    payment_id: PaymentId,
    sealed: SealedRow,
}

/// The result of a look at a row.
enum Looked {
    /// The row and the tables say the same.
    Same(Box<ToClear>),
    /// The hot table has the payment. A restore has brought it back, and the archive takes it away again.
    Hot,
    Differs(String),
}

impl Seal {
    /// Clears the data of the payments of parts that are old enough and not cleared yet, the earliest dates first. Parts that earlier runs
    /// could not finish come last, so that they hold up no other.
    pub(crate) async fn clear(
        &self,
        parts: &BTreeMap<BusinessDate, BTreeSet<u32>>,
        cleared: &Cleared,
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<(), SealError> {
        if cleared.not_before.is_some_and(|at| self.clock.now() < at) {
            return Ok(());
        }
        let days = self.config.seal_after_days + self.config.clear_after_days;
        let (last, late) = (self.ended(days), self.ended(days + LATE_AFTER_DAYS));
        let mut first = None;
        for are_begun in [false, true] {
            for (&date, numbers) in parts.range(..=last) {
                let has = |all: &BTreeMap<BusinessDate, BTreeSet<u32>>, number: &u32| {
                    all.get(&date).is_some_and(|numbers| numbers.contains(number))
                };
                let is_next = |number: &&u32| !has(&cleared.done, number) && has(&cleared.begun, number) == are_begun;
                let next: Vec<u32> = numbers.iter().filter(is_next).copied().collect();
                match self.clear_date(date, &next, deadline, outcome).await {
                    Ok(()) => {}
                    Err(Stop::Later) => {
                        outcome.seal_behind += u64::from(date <= late);
                        return first.map_or(Ok(()), Err);
                    }
                    Err(Stop::Failed(error)) => pass_over(date, error, outcome, &mut first)?,
                }
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// Clears parts of a date.
    async fn clear_date(
        &self,
        date: BusinessDate,
        numbers: &[u32],
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<(), Stop> {
        let folder = Folder(&*self.files);
        for &number in numbers {
            if deadline.has_come() {
                return Err(Stop::Later);
            }
            // Parts are written one after the other, so those that follow are young, too.
            if !self.is_old(&folder.part(&path(date, number)).await?) {
                return Ok(());
            }
            let rows_before = match number {
                1 => 0,
                _ => folder.part(&path(date, number - 1)).await?.rows_up_to(),
            };
            let (part, rows) = folder.read(&path(date, number)).await?;
            if !self.is_old(&part) {
                return Err(damaged(&path(date, number), SealedError::Changed("its time")).into());
            }
            if part.name.rows_before != rows_before {
                let error = SealedError::NotAPart("it does not follow the part before it");
                return Err(damaged(&path(date, number), error).into());
            }
            self.clear_part((date, &part), rows, deadline, outcome).await?;
        }
        Ok(())
    }

    /// Whether no restore comes back to a time without the part.
    fn is_old(&self, part: &Part) -> bool {
        let days = TimeDelta::days(self.config.clear_after_days.into());
        part.name.sealed_at.saturating_add(days) <= self.clock.now()
    }

    async fn clear_part(
        &self,
        (date, part): (BusinessDate, &Part),
        rows: Vec<SealedRow>,
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<(), Stop> {
        let number = part.name.number;
        let mut queue = VecDeque::with_capacity(rows.len());
        for (row, sealed) in (0..).zip(rows) {
            let id = sealed.text("paymentId").and_then(|id| id.parse().ok());
            let payment_id = id.ok_or_else(|| damaged(&path(date, number), SealedError::Changed("a payment's id")))?;
            queue.push_back(Row { place: SealedPlace { date, part: number, row }, payment_id, sealed });
        }
        retried(deadline, async || self.store.begin_clear(date, number).await).await?;
        let mut is_whole = true;
        while !queue.is_empty() {
            let started = self.clock.instant();
            let some: Vec<Row> = queue.drain(..queue.len().min(MAX_BATCH_GET)).collect();
            let rows = some.len();
            let (is_done, writes) = self.clear_rows(part, some, deadline, outcome).await?;
            is_whole &= is_done;
            let count = u32::try_from(rows.max(writes)).unwrap_or(u32::MAX);
            deadline.keep_rate(count, started, CLEARS_PER_SECOND).await;
        }
        if is_whole {
            retried(deadline, async || self.store.end_clear(date, number).await).await?;
        }
        Ok(())
    }

    /// Compares rows with the tables, and clears the payments. Returns whether nothing of them is left to clear, and the number of writes.
    async fn clear_rows(
        &self,
        part: &Part,
        rows: Vec<Row>,
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<(bool, usize), Stop> {
        let (mut is_whole, mut writes) = (true, 0);
        let mut payments = VecDeque::new();
        for (payment_id, looked) in self.looked(part, rows, deadline).await? {
            match looked {
                Looked::Same(left) if left.writes() == 0 => {}
                Looked::Same(left) => {
                    writes += left.writes();
                    payments.push_back(*left);
                }
                Looked::Hot => (is_whole, outcome.waiting) = (false, outcome.waiting + 1),
                Looked::Differs(why) => {
                    is_whole = false;
                    outcome.seal_differs += 1;
                    if outcome.seal_differs <= MAX_NAMED {
                        tracing::error!(%payment_id, why, "a sealed row differs from its payment, whose data stays");
                    }
                }
            }
        }
        while !payments.is_empty() {
            let clear = async |left: &ToClear| self.clear_payment(left, deadline).await;
            for (left, is_cleared) in at_once(&mut payments, READS_AT_ONCE, clear).await {
                let is_cleared = is_cleared?;
                is_whole &= is_cleared;
                outcome.cleared += u64::from(is_cleared && left.has_data());
            }
        }
        Ok((is_whole, writes))
    }

    /// Returns whether all items were as they had been read. The head comes last: it is found by its details.
    async fn clear_payment(&self, left: &ToClear, deadline: &Deadline) -> Result<bool, Stop> {
        let (mut is_whole, until) = (true, left.ends.map(|ends| ends.details));
        for (stored, sealed) in &left.details {
            let clear = async || self.store.clear_data(stored, sealed.as_ref(), until).await;
            is_whole &= retried(deadline, clear).await?;
        }
        if let (Some(head), Some(ends)) = (&left.head, left.ends) {
            is_whole &= retried(deadline, async || self.store.keep_head_until(head, ends.head).await).await?;
        }
        Ok(is_whole)
    }

    /// Compares rows with their payments: first details, which have the keys of the heads, then the heads of both tables.
    async fn looked(&self, part: &Part, rows: Vec<Row>, deadline: &Deadline) -> Result<Vec<(PaymentId, Looked)>, Stop> {
        let (mut rows, mut read) = (VecDeque::from(rows), Vec::new());
        while !rows.is_empty() {
            let details =
                async |row: &Row| retried(deadline, async || self.store.all_details(row.payment_id).await).await;
            read.extend(at_once(&mut rows, READS_AT_ONCE, details).await);
        }
        let mut found = Vec::new();
        for (row, details) in read {
            let first = |all: Vec<StoredDetails>| {
                let first = all.iter().find(|it| it.known().amendment.is_none()).map(|it| it.known().key());
                first.map(|key| (key, all)).ok_or_else(|| "it has no first details".to_owned())
            };
            found.push((row, readable(details)?.and_then(first)));
        }
        let keys: Vec<HeadKey> = found.iter().filter_map(|(_, it)| Some(it.as_ref().ok()?.0.clone())).collect();
        let heads = retried(deadline, async || self.store.archived_heads(&keys).await).await?;
        let hot = retried(deadline, async || self.store.hot_heads(&keys).await).await?;
        let hot: HashSet<HeadKey> = hot.into_iter().map(|(key, _)| key).collect();
        let mut heads: HashMap<HeadKey, _> = heads.into_iter().collect();
        let ends = ends(part);
        let look = |(row, found): (Row, Result<(HeadKey, Vec<StoredDetails>), String>)| {
            let same = || {
                let (key, all) = found?;
                if hot.contains(&key) {
                    return Ok(Looked::Hot);
                }
                let head = heads.remove(&key).ok_or("the long-term table lacks its head")?;
                let head = head.map_err(|error| error.to_string())?;
                compared((part, &row.sealed), (row.place, ends), head, all).map(|left| Looked::Same(Box::new(left)))
            };
            (row.payment_id, same().unwrap_or_else(Looked::Differs))
        };
        Ok(found.into_iter().map(look).collect())
    }
}

/// The ends of retention of a part's payments, if the part has one.
fn ends(part: &Part) -> Option<Ends> {
    let days = part.name.kept_days.checked_sub(BEFORE_PART + BEFORE_DETAILS)?;
    let head = part.name.sealed_at.saturating_add(TimeDelta::days(days.into()));
    Some(Ends { head, details: head.saturating_add(TimeDelta::days(BEFORE_DETAILS.into())) })
}
