//! The faults of a month: each has a kind and a rate, and each that happens is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use clap::ValueEnum;
use fastrand::Rng;
use serde::{Deserialize, Serialize};

use payments_machine::layers::random::{Seed, happens};

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// DynamoDB throttles a call.
    Throttled,
    /// DynamoDB leaves some keys of a batch unprocessed, because it throttles them.
    Unprocessed,
    /// DynamoDB answers with an error of its own.
    ServerError,
    /// A write or transaction conflicts with another transaction on its item.
    Conflict,
    /// A call never arrives.
    RequestLost,
    /// A call is done, and its reply is lost.
    ReplyLost,
    /// A call takes longer than the SDK waits.
    SlowCall,
    /// An index shows the past.
    IndexLag,
    /// A read without consistency shows the past.
    StaleRead,
    /// A sandbox is killed during an invocation.
    Killed,
    /// Stream records are delivered again.
    RecordsRepeated,
    /// A mapping forgets what it has read, and begins anew.
    PollerRestarted,
    /// A stream shard ends, and its child begins.
    ShardRolled,
    /// A message is handled, and delivered again.
    MessageRepeated,
    /// SQS rejects a message of a batch.
    SendRejected,
    /// A schedule comes twice.
    ScheduleTwice,
    /// A schedule comes late.
    ScheduleLate,
    /// A schedule does not come.
    ScheduleMissed,
    /// The transaction service is away.
    ServiceAway,
    /// The transaction service contradicts itself.
    Contradiction,
    /// A client gets no response, and sends its request again.
    RequestRepeated,
    /// A client creates a payment again after days.
    CreateRepeatedLate,
    /// A client uses an idempotency key again for another payment.
    KeyReused,
    /// A call to the report store fails or its reply is lost.
    FileFailed,
    /// A call to the report store takes seconds.
    FileSlow,
    /// `settle` loses DynamoDB for hours, between the two writes of a settlement.
    CutOff,
    /// Sending is paused for hours.
    Paused,
    /// The hot table is lost, or both tables are, and an operator restores them.
    Restored,
    /// The log's own table is lost with the hot table.
    LogLost,
    /// Dates are closed on which payments are due, and an operator moves them.
    DatesClosed,
    /// A feed is wrong, and operators undo it.
    WrongFeed,
    /// Due dates have limits, and some are held.
    DayLimited,
    /// The stream's consumers stand still for hours.
    Stalled,
    /// DynamoDB and the report store fail at once, when a report is under way.
    BothFail,
    /// A partition of the hot table splits, and its stream shard with it.
    PartitionSplit,
    /// Stream records are trimmed after a day.
    RecordsTrimmed,
    /// A receiver of webhooks rejects a message, is slow or away, or loses its answer.
    ReceiverFailed,
    /// An item that has expired is still there, for up to four days.
    ExpiredLate,
    /// A client sends what no client should.
    Hostile,
}

impl FaultKind {
    /// All kinds.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// The kinds of faults that a call meets, to DynamoDB or to the store of files, which has the data of sealed payments.
const OF_CALLS: [FaultKind; 9] = [
    FaultKind::Throttled,
    FaultKind::Unprocessed,
    FaultKind::ServerError,
    FaultKind::Conflict,
    FaultKind::RequestLost,
    FaultKind::ReplyLost,
    FaultKind::SlowCall,
    FaultKind::FileFailed,
    FaultKind::FileSlow,
];

/// The number of injected faults of each kind.
pub type FaultCounts = BTreeMap<FaultKind, u64>;

/// The faults of a month. Clones share the switch and the counts.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    seed: Seed,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    enabled: bool,
    without: BTreeSet<FaultKind>,
    counts: FaultCounts,
    sources: BTreeMap<FaultKind, Rng>,
    lengths: Rng,
}

impl Faults {
    /// Creates the faults of a seed, without those of some kinds.
    pub(crate) fn new(seed: Seed, without: &BTreeSet<FaultKind>) -> Self {
        let counts = FaultKind::all().iter().map(|kind| (*kind, 0)).collect();
        let (without, sources) = (without.clone(), BTreeMap::new());
        let enabled = without.len() < FaultKind::all().len();
        let state = State { enabled, without, counts, sources, lengths: seed.source("lengths of faults") };
        Self { seed, state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a fault happens now that happens `per_thousand` times of a thousand. If so, it is counted.
    pub(crate) fn draw(&self, kind: FaultKind, per_thousand: u16) -> bool {
        let mut state = self.state();
        if !state.enabled || state.without.contains(&kind) {
            return false;
        }
        let seed = self.seed;
        let random = state.sources.entry(kind).or_insert_with(|| seed.source(&format!("{kind:?}")));
        let drawn = happens(random, per_thousand);
        if drawn {
            *state.counts.entry(kind).or_default() += 1;
        }
        drawn
    }

    /// Counts a fault that was decided on elsewhere, while faults of its kind happen.
    pub(crate) fn count(&self, kind: FaultKind) {
        if self.has(kind) {
            *self.state().counts.entry(kind).or_default() += 1;
        }
    }

    /// Draws a length of time, in milliseconds.
    pub(crate) fn millis(&self, range: std::ops::Range<i64>) -> TimeDelta {
        TimeDelta::milliseconds(self.state().lengths.i64(range))
    }

    /// Ends all faults.
    pub(crate) fn end(&self) {
        self.state().enabled = false;
    }

    /// Whether faults of a kind happen.
    pub(crate) fn has(&self, kind: FaultKind) -> bool {
        let state = self.state();
        state.enabled && !state.without.contains(&kind)
    }

    /// Whether faults happen.
    pub(crate) fn are_enabled(&self) -> bool {
        self.state().enabled
    }

    /// Returns how many calls met a fault so far.
    pub(crate) fn of_calls(&self) -> u64 {
        let state = self.state();
        OF_CALLS.iter().map(|kind| state.counts[kind]).sum()
    }

    /// Returns the counts so far.
    pub(crate) fn counts(&self) -> FaultCounts {
        self.state().counts.clone()
    }
}
