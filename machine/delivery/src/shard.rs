//! One shard of a stream mapping: reads it, makes batches, delivers them, and continues from the response.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::batch::{self, Batch, BatchOutcome, Failure, Next};
use crate::failure::Discarded;
use crate::outcome::{Delivery, DeliveryOutcome};
use crate::page::{Cursor, Position, ShardId, SourceError, StreamShard};
use crate::record::Record;
use crate::settings::StreamSettings;
use crate::source::{MAX_READ, Source};
use crate::window::{self, Invocation, Window};
use payments_model::sequence_number::SequenceNumber;

/// The largest payload of a synchronous invocation, 6 MB (*Lambda quotas*). One record is always smaller, since an item
/// has at most 400 KB.
const MAX_PAYLOAD_BYTES: usize = 6 * 1024 * 1024;

/// A page of fewer bytes and records than this is the last one for now. GetRecords ends pages at 1 MB, and a record has
/// at most two images of 400 KB. Reading on would follow a writer page by small page, for as long as it writes.
const LAST_PAGE_BYTES: usize = 128 * 1024;

/// Chooses the sizes of batches.
pub(crate) type Cut = dyn FnMut(usize) -> usize + Send;

/// The parts of a mapping that a step needs.
pub(crate) struct Context<'a> {
    pub(crate) settings: &'a StreamSettings,
    pub(crate) source: &'a Source,
    pub(crate) cuts: Option<&'a Mutex<Box<Cut>>>,
    /// The number of batches that the mapping has discarded.
    pub(crate) discards: &'a AtomicU64,
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
    /// Records that match the filter and are in no batch yet.
    waiting: VecDeque<Record>,
    waiting_since: Option<DateTime<Utc>>,
    /// Batches in the order of their delivery; more than one after a split.
    in_flight: VecDeque<Batch>,
    window: Option<Window>,
    /// The last record that was read, whether it matches the filter or not.
    last_read: Option<SequenceNumber>,
    checkpoint: Option<SequenceNumber>,
}

impl ShardReader {
    pub(crate) fn new(place: StreamShard) -> Self {
        Self {
            id: place.id,
            parent: place.parent,
            cursor: Cursor::at(Position::TrimHorizon),
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
        *self = Self::new(place);
    }

    /// Forgets the records that were read and not processed, and reads them again from the
    /// checkpoint. A window begins anew.
    pub(crate) fn resume(&mut self) {
        let Some(checkpoint) = self.checkpoint.clone() else { return self.restart() };
        self.restart();
        self.cursor = Cursor::at(Position::After(checkpoint.clone()));
        (self.last_read, self.checkpoint) = (Some(checkpoint.clone()), Some(checkpoint));
    }

    /// Notes that the stream no longer has this shard: there is nothing to read from it any more.
    pub(crate) fn end(&mut self) {
        self.closed = true;
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

    /// Makes at most one invocation.
    pub(crate) async fn step<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        context: Context<'_>,
        function: impl Fn(Value) -> Answer,
    ) -> Result<Option<Delivery>, SourceError> {
        if self.in_flight.is_empty() {
            self.read(context.source, context.settings).await?;
            self.cut(&context);
        }
        if let Some(batch) = self.in_flight.front_mut() {
            batch.invocations += 1;
            let window = self.window.as_ref();
            let event = window::event(&batch.records, window, &self.id, context.source.arn(), Invocation::Batch);
            // The batch stays in flight meanwhile: a caller that drops this future kills the function. In a box, so that an idle step is small.
            let answer = Box::pin(function(event)).await;
            let batch = self.in_flight.pop_front().unwrap_or_default();
            let records = batch.records.len();
            let outcome = self.settle(batch, &answer, &context);
            return Ok(Some(self.delivery(Invocation::Batch, records, outcome)));
        }
        if self.window_is_over(&context) {
            let arn = context.source.arn();
            return Ok(Some(self.end_window(arn, function).await));
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
            let passes = |record: &Record| settings.filter.as_ref().is_none_or(|filter| filter.matches(record.event()));
            self.waiting.extend(page.records.into_iter().filter(passes));
            if is_last {
                break;
            }
        }
        self.note_idle();
        Ok(())
    }

    /// Moves the checkpoint past the records that the filter dropped after the last batch.
    fn note_idle(&mut self) {
        if self.is_idle() && self.last_read.is_some() {
            self.checkpoint.clone_from(&self.last_read);
        }
    }

    /// Makes a batch of the waiting records, unless the batching window is open or another tumbling window is.
    fn cut(&mut self, context: &Context<'_>) {
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
        let chosen = context.cuts.map_or(fits, |cut| cut.lock().unwrap_or_else(PoisonError::into_inner)(fits));
        let size = chosen.clamp(1, fits);
        self.window = self.window.take().or(opened);
        self.waiting_since = None;
        self.in_flight.push_back(Batch::from_records(self.waiting.drain(..size).collect()));
    }

    /// Returns how many of the waiting records fit into one invocation: at least one.
    fn fitting(&self, settings: &StreamSettings, window_end: Option<DateTime<Utc>>) -> usize {
        let mut bytes = 0;
        let fits = |record: &&Record| {
            bytes += record.bytes();
            bytes <= MAX_PAYLOAD_BYTES && window_end.is_none_or(|end| record.created_at() < end)
        };
        self.waiting.iter().take(settings.batch_size).take_while(fits).count().max(1)
    }

    /// Whether a record belongs to a window after the open one. An earlier record, from a clock that was set back, belongs
    /// to the open one.
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

    /// Continues from the response to a batch.
    fn settle(&mut self, mut batch: Batch, answer: &Result<Value, String>, context: &Context<'_>) -> DeliveryOutcome {
        let settings = context.settings;
        let mut outcome = batch.outcome(settings, answer);
        if let Some(window) = &mut self.window
            && !matches!(outcome, BatchOutcome::Failed(_) | BatchOutcome::DoneBefore(0))
        {
            match batch::state(answer) {
                Ok(state) => window.state = state,
                Err(failure) => outcome = BatchOutcome::Failed(failure),
            }
        }
        let failure = match outcome {
            BatchOutcome::Done => {
                self.advance(&batch.records);
                return DeliveryOutcome::Succeeded;
            }
            BatchOutcome::DoneBefore(index) if index > 0 => {
                let rest = batch.records.split_off(index);
                self.advance_to(&batch.records);
                let remaining = rest.len();
                self.again(vec![Batch::from_records(rest)], context);
                return DeliveryOutcome::Retrying { why: REPORTED.to_owned(), remaining };
            }
            BatchOutcome::DoneBefore(_) => Failure { why: REPORTED.to_owned(), function_error: false },
            BatchOutcome::Failed(failure) => failure,
        };
        match batch.retry(settings, failure.function_error) {
            Next::Again(batches) => {
                let remaining = batches.iter().map(|batch| batch.records.len()).sum();
                self.again(batches, context);
                DeliveryOutcome::Retrying { why: failure.why, remaining }
            }
            Next::Discard(batch) => self.discard(&batch, failure.function_error, context),
        }
    }

    /// Puts batches back to the front. If the caller cuts batches and no retry limit counts them, their records wait again
    /// and are cut anew.
    fn again(&mut self, batches: Vec<Batch>, context: &Context<'_>) {
        if context.cuts.is_some() && context.settings.maximum_retry_attempts.is_none() && self.in_flight.is_empty() {
            batches.into_iter().rev().flat_map(|batch| batch.records.into_iter().rev()).for_each(|record| {
                self.waiting.push_front(record);
            });
        } else {
            batches.into_iter().rev().for_each(|batch| self.in_flight.push_front(batch));
        }
    }

    fn discard(&mut self, batch: &Batch, function_error: bool, context: &Context<'_>) -> DeliveryOutcome {
        self.advance(&batch.records);
        let number = context.discards.fetch_add(1, Ordering::Relaxed) + 1;
        let discarded = Discarded {
            function: &context.settings.function_name,
            arn: context.source.arn(),
            shard: &self.id,
            records: &batch.records,
            invocations: batch.invocations,
            function_error,
        };
        let record = discarded.record(number, context.now);
        if let Some((queue, record)) = context.settings.on_failure.as_ref().zip(record) {
            // A failure record has some 700 bytes, which every queue accepts.
            let _sent = queue.send(record.to_string(), context.now);
        }
        DeliveryOutcome::Discarded { records: batch.records.len() }
    }

    /// Moves the checkpoint past records, and past records that the filter dropped if they were the last.
    fn advance(&mut self, records: &[Record]) {
        self.advance_to(records);
        self.note_idle();
    }

    fn advance_to(&mut self, records: &[Record]) {
        if let Some(last) = records.last() {
            self.checkpoint = Some(last.sequence_number().clone());
        }
    }

    /// Invokes the function for the end of the window. Whatever the retry quota, a failure is repeated: Lambda "suspends
    /// further processing until a successful invocation".
    async fn end_window<Answer: Future<Output = Result<Value, String>>>(
        &mut self,
        arn: &str,
        function: impl Fn(Value) -> Answer,
    ) -> Delivery {
        let event = window::event([], self.window.as_ref(), &self.id, arn, Invocation::WindowEnd);
        let outcome = match batch::state(&Box::pin(function(event)).await) {
            Ok(_) => {
                self.window = None;
                DeliveryOutcome::Succeeded
            }
            Err(Failure { why, .. }) => DeliveryOutcome::Retrying { why, remaining: 0 },
        };
        self.delivery(Invocation::WindowEnd, 0, outcome)
    }

    fn delivery(&self, invocation: Invocation, records: usize, outcome: DeliveryOutcome) -> Delivery {
        Delivery { shard: self.id.clone(), invocation, records, outcome }
    }
}

/// The reason for a retry if the function reported failures.
const REPORTED: &str = "the function reported batch item failures";
