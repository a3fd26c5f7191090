//! Clears the data of sealed payments from the long-term table, part after part.
//!
//! A part is read as a whole, and each row is compared with the payment's items in all that the API shows. Then the place of the row
//! takes the place of the data, if the details are as they were read. Details that never were in force are in no row, and stay. What is
//! cleared costs no second write, so a run that is killed anywhere is continued by the next one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use chrono::TimeDelta;
use payments_boot::Deadline;
use payments_model::{BusinessDate, HeadKey, PaymentId, SealedData, SealedPlace};
use payments_sealed::{Folder, Part, SealedError, SealedRow, damaged, path};
use payments_store::{Cleared, MAX_BATCH_GET, StoredDetails};
use payments_work::{at_once, retried};

use crate::compared::compared;
use crate::date::{MAX_NAMED, READS_AT_ONCE};
use crate::error::SealError;
use crate::function::{Seal, pass_over};
use crate::outcome::SealOutcome;
use crate::stop::{Stop, readable};

/// The payments that a run compares and clears a second: a million in three invocations. Each takes 3 reads, and a write of 2 units
/// for structured data of 8 KB, or 9 at most. Heads are not written, so the pace of one account is no other.
pub const CLEARS_PER_SECOND: u32 = 500;

/// A row of a part.
struct Row {
    place: SealedPlace,
    payment_id: PaymentId,
    sealed: SealedRow,
}

/// The details of a payment that are cleared.
type ToClear = Vec<(StoredDetails, SealedData)>;

/// The result of a look at a row.
enum Looked {
    /// The row and the tables say the same.
    Same(ToClear),
    /// The hot table has the payment. A restore has brought it back, and the archive takes it away again.
    Hot,
    Differs(String),
}

impl Seal {
    /// Clears the data of the payments of parts that are old enough and not cleared yet, the earliest dates first.
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
        let (last, mut first) = (self.ended(self.config.seal_after_days + self.config.clear_after_days), None);
        for (date, numbers) in parts.range(..=last) {
            let done = |number: &u32| cleared.done.get(date).is_some_and(|done| done.contains(number));
            match self.clear_date(*date, numbers, &done, deadline, outcome).await {
                Ok(()) => {}
                Err(Stop::Later) => break,
                Err(Stop::Failed(error)) => pass_over(*date, error, outcome, &mut first)?,
            }
        }
        first.map_or(Ok(()), Err)
    }

    async fn clear_date(
        &self,
        date: BusinessDate,
        numbers: &BTreeSet<u32>,
        is_done: &dyn Fn(&u32) -> bool,
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<(), Stop> {
        let folder = Folder(&*self.files);
        for &number in numbers.iter().filter(|number| !is_done(number)) {
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
            if !self.is_old(&part) || part.name.rows_before != rows_before {
                return Err(damaged(&path(date, number), SealedError::Changed("its time, or its place")).into());
            }
            self.clear_part(date, number, rows, deadline, outcome).await?;
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
        date: BusinessDate,
        number: u32,
        rows: Vec<SealedRow>,
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<(), Stop> {
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
            let count = u32::try_from(some.len()).unwrap_or(u32::MAX);
            is_whole &= self.clear_rows(some, deadline, outcome).await?;
            deadline.keep_rate(count, started, CLEARS_PER_SECOND).await;
        }
        if is_whole {
            retried(deadline, async || self.store.end_clear(date, number).await).await?;
        }
        Ok(())
    }

    /// Compares rows with the tables, and clears the payments. Returns whether nothing of them is left to clear.
    async fn clear_rows(&self, rows: Vec<Row>, deadline: &Deadline, outcome: &mut SealOutcome) -> Result<bool, Stop> {
        let (mut is_whole, mut payments) = (true, VecDeque::new());
        for (payment_id, looked) in self.looked(rows, deadline).await? {
            match looked {
                Looked::Same(details) if details.is_empty() => {}
                Looked::Same(details) => payments.push_back(details),
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
            let clear = async |details: &ToClear| self.clear_payment(details, deadline).await;
            for (_, cleared) in at_once(&mut payments, READS_AT_ONCE, clear).await {
                let cleared = cleared?;
                is_whole &= cleared;
                outcome.cleared += u64::from(cleared);
            }
        }
        Ok(is_whole)
    }

    /// Returns whether all details were as they had been read, and name their row now.
    async fn clear_payment(&self, details: &ToClear, deadline: &Deadline) -> Result<bool, Stop> {
        let mut is_whole = true;
        for (stored, sealed) in details {
            is_whole &= retried(deadline, async || self.store.clear_data(stored, sealed).await).await?;
        }
        Ok(is_whole)
    }

    /// Compares rows with their payments: first details, which have the keys of the heads, then the heads of both tables.
    async fn looked(&self, rows: Vec<Row>, deadline: &Deadline) -> Result<Vec<(PaymentId, Looked)>, Stop> {
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
        let look = |(row, found): (Row, Result<(HeadKey, Vec<StoredDetails>), String>)| {
            let same = || {
                let (key, all) = found?;
                if hot.contains(&key) {
                    return Ok(Looked::Hot);
                }
                let head = heads.remove(&key).ok_or("the long-term table lacks its head")?;
                let head = head.map_err(|error| error.to_string())?;
                compared(&row.sealed, row.place, &head, all).map(Looked::Same)
            };
            (row.payment_id, same().unwrap_or_else(Looked::Differs))
        };
        Ok(found.into_iter().map(look).collect())
    }
}
