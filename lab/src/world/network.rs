//! The network between the functions and AWS: every call takes its time, may fail, and is recorded.
//!
//! A call outlives a caller that is killed meanwhile, as on a network.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_smithy_runtime_api::client::result::ConnectorError;
use chrono::{DateTime, TimeDelta, Utc};
use payments_machine::layers::attributes::{Key, key_of, text};
use payments_machine::layers::fault::Fault;
use payments_machine::layers::lag::{Changes, Lag};
use payments_machine::layers::record::Record;
use payments_machine::layers::sqs::Sqs;
use payments_machine::layers::throttle::{Throttle, throttled};
use payments_machine::layers::trace::Trace;
use payments_machine::layers::weaken::{Swallow, Weaken, Weakness};
use payments_machine::layers::{Answer, Next, WRITES, names};
use payments_machine::{Call, CapacityUse, Direct, Fate, Layers};
use serde_json::Value;

use crate::facts::heads::{HOT, id_of, is_of_head};
use crate::laws::calls::Complaints;
use crate::laws::told_times::check_told;
use crate::plans::broken::{Broken, Part};
use crate::plans::faults::{FaultKind, Faults};
use crate::plans::later::{self, RESTORE};
use crate::plans::switches::Switches;
use crate::time::{Time, pause};
use crate::world::lag::Spells;
use crate::world::metrics::Metrics;

/// The caller: a function in one of its sandboxes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) function: &'static str,
    pub(crate) sandbox: usize,
}

/// The network. Clones are the same.
#[derive(Clone)]
pub(crate) struct Network(Arc<Shared>);

/// The parts that the network uses.
pub(crate) struct Shared {
    pub(crate) time: Time,
    pub(crate) faults: Faults,
    pub(crate) trace: Trace,
    pub(crate) changes: Changes,
    pub(crate) spells: Spells,
    pub(crate) throttle: Throttle,
    pub(crate) engine: Direct,
    pub(crate) record: Record,
    pub(crate) requests: Sqs,
    pub(crate) switches: Switches,
    pub(crate) weakness: Option<Weakness>,
    pub(crate) weaken: Weaken,
    /// The first time at which the long-term table had each settlement.
    pub(crate) decided: Mutex<BTreeMap<String, DateTime<Utc>>>,
    /// The last instant at which data of each details item was cleared.
    pub(crate) cleared: Mutex<BTreeMap<Key, DateTime<Utc>>>,
    pub(crate) complaints: Complaints,
    pub(crate) broken: Broken,
    pub(crate) metrics: Metrics,
}

impl Network {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// Returns the layers of a caller's calls.
    pub(crate) fn layers(&self, caller: Caller) -> Layers {
        let Shared { time, trace, requests, throttle, record, complaints, .. } = &*self.0;
        let weaken = self.0.weaken.for_function(caller.function);
        let (travels, tables) = (self.clone(), self.clone());
        Layers::over(self.0.engine.clone())
            .with_fn(detached)
            .with_fn(move |call, next| with_later(caller, call, next))
            .with(weaken.clone())
            .with(complaints.clone())
            .with(trace.for_function(&time.clock(TimeDelta::zero()), caller.function, caller.sandbox))
            .with_fn(move |call, next| travels.clone().travel(caller, call, next))
            .with(Fault::new(|call| call.fate))
            .with(requests.clone())
            .with(Swallow(weaken))
            .with_fn(move |call, next| tables.clone().watch(caller, call, next))
            .with(self.lag(caller))
            .with(throttle.clone())
            .with(record.clone())
    }

    /// Returns what calls were that no call may be.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.0.complaints.all()
    }

    /// Returns the capacity that all calls used.
    pub(crate) fn used(&self) -> CapacityUse {
        self.0.record.capacity_use()
    }

    /// The time by which a weakness sets a caller's clock ahead.
    pub(crate) fn ahead(&self, caller: Caller) -> TimeDelta {
        self.0.weakness.map_or(TimeDelta::zero(), |weakness| weakness.ahead(caller.function))
    }

    fn lag(&self, caller: Caller) -> Lag {
        let trusts_index = self.0.weakness == Some(Weakness::TrustedIndex) && caller.function == "report";
        let network = self.clone();
        Lag::new(&self.0.changes, move |read, answer| {
            let Shared { spells, changes, time, .. } = &*network.0;
            spells.age(read, (trusts_index, time.now()), changes, answer)
        })
    }

    /// Takes a call to AWS and its answer back: both take their time, and a fault can hit the call.
    async fn travel(self, caller: Caller, mut call: Call, next: Next) -> Answer {
        let shared = &*self.0;
        let settles = caller.function == "settle" && call.operation == "PutItem";
        let throttles = shared.faults.has(FaultKind::Throttled);
        let unprocessed = if throttles { shared.throttle.hold_back(&mut call) } else { Value::Null };
        if !unprocessed.is_null() {
            shared.faults.count(FaultKind::Unprocessed);
        }
        let (fate, there, back) = self.fate(&call, caller);
        call.fate = fate;
        pause(there).await;
        let mut answer = next.send(call).await;
        if let Some(reply) = answer.as_mut().ok().filter(|reply| reply.status == 200) {
            if settles {
                self.cut_off();
            }
            if !unprocessed.is_null() {
                reply.change(|answer| {
                    answer["UnprocessedKeys"] = unprocessed;
                    true
                });
            }
        }
        pause(back).await;
        answer
    }

    /// Notes what the tables have, and shows a restored one without a stream.
    async fn watch(self, caller: Caller, call: Call, next: Next) -> Answer {
        let settled = (caller.function == "settle" && call.operation == "PutItem").then(|| call.shared_input());
        let cleared = (caller.function == "seal" && call.operation == "UpdateItem").then(|| call.shared_input());
        let is_described = call.operation == "DescribeTable";
        let mut reply = next.send(call).await?;
        if let Some(input) = settled.filter(|_| reply.status == 200) {
            self.note_decision(&input["Item"]);
        }
        if let Some(input) = cleared.filter(|it| reply.status == 200 && text(&it["Key"], "pk").starts_with("PAY#")) {
            lock(&self.0.cleared).insert(key_of(&input["Key"]), self.0.time.now());
        }
        if is_described && reply.status == 200 && self.0.switches.is_table_lost() {
            reply.change(|answer| {
                answer["Table"]["StreamSpecification"] = Value::Null;
                true
            });
        }
        Ok(reply)
    }

    /// Draws what happens to a try, and how long its way there and back takes.
    fn fate(&self, call: &Call, caller: Caller) -> (Fate, TimeDelta, TimeDelta) {
        let faults = &self.0.faults;
        let (mut there, mut back) = (faults.millis(1..15), faults.millis(1..15));
        if faults.draw(FaultKind::SlowCall, 1) {
            // A call that is slow on its way there is done after the SDK has given it up, and perhaps after its repetition.
            let way = if faults.millis(0..2).is_zero() { &mut there } else { &mut back };
            *way += faults.millis(2_000..9_000);
        }
        let is_write = WRITES.contains(&call.operation.as_str());
        let is_transaction = call.operation == "TransactWriteItems";
        let is_dynamodb = !call.is_to_sqs();
        let fate = if caller.function == "settle" && self.0.switches.is_cut_off() {
            Fate::LoseRequest
        } else if is_dynamodb && self.0.switches.is_log_lost() && names(call.input(), LOG) {
            Fate::Refuse(400, "ResourceNotFoundException")
        } else if is_dynamodb && let Some(place) = self.throttled_at(call, is_write, caller) {
            if is_write {
                self.0.metrics.throttled(&place);
            }
            throttled(call)
        } else if faults.draw(FaultKind::ServerError, if self.0.switches.is_failing() { 500 } else { 2 }) {
            Fate::Refuse(500, "InternalServerError")
        } else if is_write && faults.draw(FaultKind::Conflict, 4) {
            if is_transaction {
                Fate::CancelTransaction("TransactionConflict")
            } else {
                Fate::Refuse(400, "TransactionConflictException")
            }
        } else if faults.draw(FaultKind::RequestLost, 2) {
            Fate::LoseRequest
        } else if faults.draw(FaultKind::ReplyLost, 4) {
            Fate::LoseReply
        } else {
            Fate::Pass
        };
        (fate, there, back)
    }

    /// Notes that the long-term table has a settlement.
    fn note_decision(&self, head: &Value) {
        let (shared, now) = (&*self.0, self.0.time.now());
        let id = id_of(text(head, "sk"));
        let told = check_told(head, now).map(|problem| format!("the settlement of {id} {problem}"));
        shared.complaints.add(told);
        lock(&shared.decided).entry(id.to_owned()).or_insert(now);
    }

    /// Returns when the long-term table had each settlement first.
    pub(crate) fn decided(&self) -> BTreeMap<String, DateTime<Utc>> {
        lock(&self.0.decided).clone()
    }

    /// Returns the last instant at which data of each details item was cleared.
    pub(crate) fn cleared(&self) -> BTreeMap<Key, DateTime<Utc>> {
        lock(&self.0.cleared).clone()
    }

    /// Now and then `settle` loses DynamoDB once the long-term table has a settlement, and the hot table does not know it yet.
    fn cut_off(&self) {
        let shared = &*self.0;
        if shared.faults.draw(FaultKind::CutOff, 10) {
            let (switches, minutes) = (shared.switches.clone(), shared.faults.millis(60..1_000).num_milliseconds());
            switches.cut_off.store(true, Ordering::Relaxed);
            tokio::spawn(async move {
                pause(TimeDelta::minutes(minutes)).await;
                switches.cut_off.store(false, Ordering::Relaxed);
            });
        }
    }

    /// Returns the table or index that throttles a call, if one does.
    fn throttled_at(&self, call: &Call, is_write: bool, caller: Caller) -> Option<String> {
        let (shared, input) = (&*self.0, call.input());
        if caller.function == RESTORE {
            // Its batches of a hundred are nothing to a partition of AWS, and far too much for one of this bank.
            return shared.faults.draw(FaultKind::Throttled, 10).then(|| HOT.to_owned());
        }
        let of_head = ["Key", "Item"].into_iter().any(|name| is_of_head(text(&input[name], "pk")));
        if is_write && of_head && input["TableName"] == HOT && shared.broken.is(Part::Writes) {
            return Some(HOT.to_owned());
        }
        if !shared.faults.has(FaultKind::Throttled) {
            return None;
        }
        let (place, _) = shared.throttle.refusing(input, is_write).into_iter().next()?;
        shared.faults.count(FaultKind::Throttled);
        Some(place)
    }
}

/// Sends a call that outlives its caller.
async fn detached(call: Call, next: Next) -> Answer {
    let sent = tokio::spawn(async move { next.send(call).await });
    sent.await.map_err(|error| ConnectorError::other(error.into(), None))?
}

/// Adds the attributes of a later version to what is created.
async fn with_later(caller: Caller, mut call: Call, next: Next) -> Answer {
    let mut input = call.shared_input();
    if call.operation == "PutItem" && later::add(caller.function, Arc::make_mut(&mut input)) {
        call.set_input(Value::clone(&input));
    }
    next.send(call).await
}

/// The log's table.
pub(crate) const LOG: &str = "payments-log";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
