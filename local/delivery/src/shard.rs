//! One shard of a stream mapping: reading, batching, handing over, and going on from the answer.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::batch::{self, Batch, Failure, Next, Verdict};
use crate::failure::{Condition, Discarded};
use crate::record::Record;
use crate::source::{Cursor, MAX_READ, Position, ShardId, Source, SourceError, StreamShard};
use crate::stream::{Delivery, Outcome, StreamSettings};
use crate::window::{self, Invocation, Window};
use payments_model::sequence_number::SequenceNumber;

/// The largest payload of a synchronous invocation, 6 MB (*Lambda quotas*). A record that is larger
/// by itself cannot exist: an item has at most 400 KB.
const MAX_PAYLOAD_BYTES: usize = 6 * 1024 * 1024;

/// A page of fewer bytes and records than a read returns is the last one for now: GetRecords ends pages at
/// 1 MB, and no record has more than two images of 400 KB. To read on would be to follow whoever writes,
/// page by small page, for as long as they do.
const LAST_PAGE_BYTES: usize = 128 * 1024;

/// What a step needs of its mapping.
pub(crate) struct Context<'a> {
    pub(crate) settings: &'a StreamSettings,
    pub(crate) source: &'a Source,
    pub(crate) cuts: Option<&'a mut (dyn FnMut(usize) -> usize + Send + 'static)>,
    /// How many failure records the mapping has written.
    pub(crate) discards: &'a mut u64,
    pub(crate) now: DateTime<Utc>,
}

/// A shard's reader.
#[derive(Debug)]
pub(crate) struct ShardReader {
    pub(crate) id: ShardId,
    pub(crate) parent: Option<ShardId>,
    cursor: Cursor,
    /// Whether the shard has ended and everything was read.
    closed: bool,
    /// Read, passed by the filter, not yet in a batch.
    waiting: VecDeque<Record>,
    waiting_since: Option<DateTime<Utc>>,
    /// Batches in the order in which they are handed over; more than one after a split.
    in_flight: VecDeque<Batch>,
    window: Option<Window>,
    /// The last record that was read, passed by the filter or not.
    last_read: Option<SequenceNumber>,
    checkpoint: Option<SequenceNumber>,
}

impl ShardReader {
    pub(crate) fn new(place: StreamShard, position: Position) -> Self {
        Self {
            id: place.id,
            parent: place.parent,
            cursor: Cursor::at(position),
            closed: false,
            waiting: VecDeque::new(),
            waiting_since: None,
            in_flight: VecDeque::new(),
            window: None,
            last_read: None,
            checkpoint: None,
        }
    }

    pub(crate) fn restart(&mut self) {
        let place = StreamShard { id: self.id.clone(), parent: self.parent.clone() };
        *self = Self::new(place, Position::TrimHorizon);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.closed && self.is_idle() && self.window.is_none()
    }

    pub(crate) fn checkpoint(&self) -> Option<&SequenceNumber> {
        self.checkpoint.as_ref()
    }

    fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.waiting.is_empty()
    }

    /// One step: at most one invocation.
    pub(crate) async fn step<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        mut context: Context<'_>,
        function: impl Fn(Value) -> Answer,
    ) -> Result<Option<Delivery>, SourceError> {
        if self.window.as_ref().is_some_and(|window| window.overflowing) {
            let arn = context.source.arn();
            return Ok(Some(self.invoke_for_window(arn, Invocation::WindowTerminatedEarly, function).await));
        }
        if self.in_flight.is_empty() {
            self.read(context.source, context.settings).await?;
            self.cut(&mut context);
        }
        if let Some(expired) = self.expire(&mut context) {
            return Ok(Some(expired));
        }
        if let Some(batch) = self.in_flight.front_mut() {
            batch.invocations += 1;
            let window = self.window.as_ref();
            let event = window::event(&batch.records, window, &self.id, context.source.arn(), Invocation::Batch);
            // The batch stays in flight: a caller that drops this future has killed the function.
            let answer = function(event).await;
            let batch = self.in_flight.pop_front().unwrap_or_default();
            let records = batch.records.len();
            let outcome = self.settle(batch, &answer, &mut context);
            return Ok(Some(self.delivery(Invocation::Batch, records, outcome)));
        }
        if self.window_is_over(&context) {
            let arn = context.source.arn();
            return Ok(Some(self.invoke_for_window(arn, Invocation::WindowEnd, function).await));
        }
        Ok(None)
    }

    /// Reads until a batch is full or the shard has no more.
    async fn read(&mut self, source: &Source, settings: &StreamSettings) -> Result<(), SourceError> {
        while !self.closed && self.waiting.len() < settings.batch_size {
            let page = source.read(&self.id, &mut self.cursor, MAX_READ).await?;
            self.closed = page.closed;
            let Some(last) = page.records.last() else { break };
            self.last_read = Some(last.sequence_number().clone());
            let bytes: usize = page.records.iter().map(Record::bytes).sum();
            let is_last = page.records.len() < MAX_READ && bytes < LAST_PAGE_BYTES;
            let passes = |record: &Record| settings.filter_criteria.matches(record.event());
            self.waiting.extend(page.records.into_iter().filter(passes));
            if is_last {
                break;
            }
        }
        self.note_idle();
        Ok(())
    }

    /// What was filtered out after the last batch is done with, too.
    fn note_idle(&mut self) {
        if self.is_idle() && self.last_read.is_some() {
            self.checkpoint.clone_from(&self.last_read);
        }
    }

    /// Makes a batch of what is waiting, unless it is worth waiting on or another window is open.
    fn cut(&mut self, context: &mut Context<'_>) {
        let settings = context.settings;
        let Some(first) = self.waiting.front() else {
            self.waiting_since = None;
            return;
        };
        if self.opens_later_window(first, settings) {
            return;
        }
        let opened = settings.tumbling_window.map(|length| Window::holding(first.created_at(), length));
        let end = self.window.as_ref().or(opened.as_ref()).map(|window| window.end);
        let fits = self.fitting(settings, end);
        let full = fits == settings.batch_size || fits < self.waiting.len() || self.closed;
        let since = *self.waiting_since.get_or_insert(context.now);
        if !full && context.now < since + settings.maximum_batching_window {
            return;
        }
        let size = context.cuts.as_mut().map_or(fits, |cut| cut(fits).clamp(1, fits));
        self.window = self.window.take().or(opened);
        self.waiting_since = None;
        self.in_flight.push_back(Batch::of(self.waiting.drain(..size).collect()));
    }

    /// How many of the waiting records one invocation can have: at least one.
    fn fitting(&self, settings: &StreamSettings, window_end: Option<DateTime<Utc>>) -> usize {
        let mut bytes = 0;
        let fits = |record: &&Record| {
            bytes += record.bytes();
            bytes <= MAX_PAYLOAD_BYTES && window_end.is_none_or(|end| record.created_at() < end)
        };
        self.waiting.iter().take(settings.batch_size).take_while(fits).count().max(1)
    }

    /// Whether a record belongs to a window after the open one. A record from before it, which clocks
    /// that were set back could make, counts to the open one.
    fn opens_later_window(&self, record: &Record, settings: &StreamSettings) -> bool {
        let open = self.window.as_ref().filter(|_| settings.tumbling_window.is_some());
        open.is_some_and(|open| record.created_at() >= open.end)
    }

    fn window_is_over(&self, context: &Context<'_>) -> bool {
        let Some(open) = &self.window else { return false };
        match self.waiting.front() {
            Some(next) => self.opens_later_window(next, context.settings),
            None => self.closed || context.now >= open.end,
        }
    }

    /// Gives up the records of the next batch that have become too old.
    fn expire(&mut self, context: &mut Context<'_>) -> Option<Delivery> {
        let oldest = context.now - context.settings.maximum_record_age?;
        let batch = self.in_flight.front_mut()?;
        let old = batch.records.iter().take_while(|record| record.created_at() < oldest).count();
        if old == 0 {
            return None;
        }
        let expired = Batch { records: batch.records.drain(..old).collect(), invocations: batch.invocations };
        if batch.records.is_empty() {
            self.in_flight.pop_front();
        } else {
            batch.invocations = 0;
        }
        let outcome = self.give_up(&expired, Condition::RecordAgeExceeded, false, context);
        Some(self.delivery(Invocation::Batch, old, outcome))
    }

    /// Goes on from the answer to a batch.
    fn settle(&mut self, mut batch: Batch, answer: &Result<Value, String>, context: &mut Context<'_>) -> Outcome {
        let settings = context.settings;
        let mut verdict = batch.judge(settings, answer);
        if let Some(window) = &mut self.window
            && !matches!(verdict, Verdict::Failed(_) | Verdict::DoneBefore(0))
        {
            match batch::state(answer) {
                Ok(state) => window.carry(state),
                Err(failure) => verdict = Verdict::Failed(failure),
            }
        }
        let failure = match verdict {
            Verdict::Done => {
                self.advance(&batch.records);
                return Outcome::Succeeded;
            }
            Verdict::DoneBefore(index) if index > 0 => {
                let rest = batch.records.split_off(index);
                self.advance_to(&batch.records);
                let remaining = rest.len();
                self.again(vec![Batch::of(rest)], context);
                return Outcome::Retrying { why: REPORTED.to_owned(), remaining };
            }
            Verdict::DoneBefore(_) => Failure { why: REPORTED.to_owned(), function_error: false },
            Verdict::Failed(failure) => failure,
        };
        match batch.retry(settings) {
            Next::Again(batches) => {
                let remaining = batches.iter().map(|batch| batch.records.len()).sum();
                self.again(batches, context);
                Outcome::Retrying { why: failure.why, remaining }
            }
            Next::GiveUp(batch) => {
                self.give_up(&batch, Condition::RetryAttemptsExhausted, failure.function_error, context)
            }
        }
    }

    /// Puts batches back to the front. Under a caller's cuts and without a retry limit that would
    /// count them, they go back to the waiting records and are cut anew.
    fn again(&mut self, batches: Vec<Batch>, context: &Context<'_>) {
        if context.cuts.is_some() && context.settings.maximum_retry_attempts.is_none() && self.in_flight.is_empty() {
            batches.into_iter().rev().flat_map(|batch| batch.records.into_iter().rev()).for_each(|record| {
                self.waiting.push_front(record);
            });
        } else {
            batches.into_iter().rev().for_each(|batch| self.in_flight.push_front(batch));
        }
    }

    fn give_up(
        &mut self,
        batch: &Batch,
        condition: Condition,
        function_error: bool,
        context: &mut Context<'_>,
    ) -> Outcome {
        self.advance(&batch.records);
        *context.discards += 1;
        let discarded = Discarded {
            function: &context.settings.function_name,
            arn: context.source.arn(),
            shard: &self.id,
            records: &batch.records,
            condition,
            invocations: batch.invocations,
            function_error,
        };
        let record = discarded.record(*context.discards, context.now);
        if let Some((queue, record)) = context.settings.on_failure.as_ref().zip(record) {
            // A failure record has some 700 bytes, which every queue takes.
            let _sent = queue.send(record.to_string(), context.now);
        }
        Outcome::Discarded { condition, records: batch.records.len() }
    }

    /// Records are done with, and perhaps they were the last.
    fn advance(&mut self, records: &[Record]) {
        self.advance_to(records);
        self.note_idle();
    }

    fn advance_to(&mut self, records: &[Record]) {
        if let Some(last) = records.last() {
            self.checkpoint = Some(last.sequence_number().clone());
        }
    }

    /// Invokes the function for the window itself. It "suspends further processing until a
    /// successful invocation": whatever the retry quota, it is repeated.
    async fn invoke_for_window<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        arn: &str,
        invocation: Invocation,
        function: impl Fn(Value) -> Answer,
    ) -> Delivery {
        let event = window::event([], self.window.as_ref(), &self.id, arn, invocation);
        let outcome = match batch::state(&function(event).await) {
            Ok(_) => {
                match (&mut self.window, invocation) {
                    (Some(window), Invocation::WindowTerminatedEarly) => window.reset(),
                    (window, _) => *window = None,
                }
                Outcome::Succeeded
            }
            Err(Failure { why, .. }) => Outcome::Retrying { why, remaining: 0 },
        };
        self.delivery(invocation, 0, outcome)
    }

    fn delivery(&self, invocation: Invocation, records: usize, outcome: Outcome) -> Delivery {
        Delivery { shard: self.id.clone(), invocation, records, outcome }
    }
}

/// Why a batch is retried of which the function reported failures.
const REPORTED: &str = "the function reported batch item failures";
