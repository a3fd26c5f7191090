//! The network between the functions and AWS: every call takes its time, may fail, and is followed.
//!
//! A call goes on even if its caller is killed meanwhile, as on a network.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use payments_machine::interceptor::{Answer, Next, Process, read_whole, respond};
use payments_machine::recorder::add_capacity;
use payments_machine::{Call, CapacityUse, Direct, Fate, Interceptor};
use serde_json::{Value, json};

use crate::facts::attributes::text;
use crate::facts::changes::{Changes, EngineStream};
use crate::facts::heads::{id_of, is_of_head};
use crate::laws::check_batch;
use crate::laws::check_write;
use crate::laws::told_times::check_told;
use crate::plans::broken::{Broken, Part};
use crate::plans::faults::{FaultKind, Faults};
use crate::plans::first_details;
use crate::plans::lanes;
use crate::plans::later::{self, RESTORE};
use crate::plans::switches::Switches;
use crate::plans::weakness::Weakness;
use crate::time::{Time, pause};
use crate::world::lag::{Lag, Read};
use crate::world::metrics::Metrics;
use crate::world::partitions::Partitions;
use crate::world::requests::RequestQueue;
use crate::world::trace::Trace;

/// The operations that write.
const WRITES: [&str; 4] = ["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"];

/// Who calls: a function in one of its sandboxes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) function: &'static str,
    pub(crate) sandbox: usize,
}

/// The network. Clones are the same.
#[derive(Clone)]
pub(crate) struct Network(Arc<Shared>);

/// What the network needs.
pub(crate) struct Shared {
    pub(crate) time: Time,
    pub(crate) faults: Faults,
    pub(crate) trace: Trace,
    pub(crate) changes: Changes,
    pub(crate) engine_stream: EngineStream,
    pub(crate) lag: Lag,
    pub(crate) partitions: Partitions,
    pub(crate) engine: Direct,
    pub(crate) used: Mutex<CapacityUse>,
    pub(crate) calls: Mutex<BTreeMap<String, u64>>,
    pub(crate) requests: RequestQueue,
    pub(crate) switches: Switches,
    pub(crate) weakness: Option<Weakness>,
    /// What a weakness draws from.
    pub(crate) random: Mutex<Rng>,
    /// When the long-term table had each settlement first.
    pub(crate) decided: Mutex<BTreeMap<String, DateTime<Utc>>>,
    /// What no call may be.
    pub(crate) complaints: Mutex<Vec<String>>,
    pub(crate) broken: Broken,
    pub(crate) metrics: Metrics,
}

impl Network {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// Returns an interceptor of a caller's calls.
    pub(crate) fn interceptor(&self, caller: Caller) -> Interceptor {
        let network = self.clone();
        Interceptor::over(self.0.engine.clone(), move |call, next| {
            let network = network.clone();
            async move {
                let calls = tokio::spawn(async move { network.carry(call, next, caller).await });
                calls.await.map_err(|error| ConnectorError::other(error.into(), None))?
            }
        })
    }

    /// How far the clock of a caller is ahead because of a weakness.
    pub(crate) fn ahead(&self, caller: Caller) -> TimeDelta {
        self.0.weakness.map_or(TimeDelta::zero(), |weakness| weakness.ahead(caller.function))
    }

    async fn carry(&self, mut call: Call, next: Next, caller: Caller) -> Answer {
        let shared = &*self.0;
        let unprocessed = self.hold_back(&mut call);
        let (fate, there, back) = self.fate(&call, caller);
        pause(there).await;
        let (operation, service) = (call.operation.clone(), call.service().to_owned());
        let mut input = call.shared_input();
        if operation == "PutItem" && later::add(caller.function, Arc::make_mut(&mut input)) {
            call.set_input(Value::clone(&input));
        }
        let held = match shared.weakness {
            Some(_) => self.alter(caller, &mut call, Arc::make_mut(&mut input)),
            None => None,
        };
        lock(&shared.complaints)
            .extend([check_write(&operation, &input), check_batch(&operation, &input)].into_iter().flatten());
        // What the engine answered, parsed, so that it is parsed once.
        let shown = Mutex::new(None);
        let send = |call: Call| async {
            match service.as_str() {
                "AmazonSQS" => shared.requests.take(&input, shared.time.now(), &shared.faults),
                _ if self.is_swallowed(caller, &operation, &input) => respond(200, "{}"),
                _ => {
                    let (status, mut answer, mut body) = self.ask(call, next, (caller, &operation, &input)).await?;
                    if status == 200 && !unprocessed.is_null() {
                        answer["UnprocessedKeys"] = unprocessed.clone();
                        body = answer.to_string().into();
                    }
                    *lock(&shown) = Some(answer);
                    respond(status, body)
                }
            }
        };
        let mut answer = fate.carry_out(call, &Process::default(), send).await;
        let shown = lock(&shown).take();
        let (status, body) = match answer {
            Ok(response) => {
                let (status, body) = read_whole(response).await?;
                if status == 200 && caller.function == "settle" && operation == "PutItem" {
                    self.cut_off();
                }
                if let Some(segment) = held.filter(|_| status == 200) {
                    tokio::spawn(lanes::append_later(shared.engine.clone(), segment));
                }
                let shown = shown.unwrap_or_else(|| serde_json::from_slice(&body).unwrap_or_default());
                let weakened = shared.weakness.and_then(|it| it.answer(caller.function, &operation, (status, &shown)));
                answer = weakened
                    .map_or_else(|| respond(status, body), |(status, other)| respond(status, other.to_string()));
                (status, shown)
            }
            Err(error) => {
                answer = Err(error);
                (0, Value::Null)
            }
        };
        let what = format!("{} {operation}", caller.function);
        *lock(&shared.calls).entry(what.clone()).or_default() += 1;
        // The description of a table has times and ids that are this machine's, and not the month's.
        let told = if operation == "DescribeTable" { &Value::Null } else { &body };
        shared.trace.add(shared.time.now(), &what, &[&json!([caller.sandbox, status]), &input, told]);
        pause(back).await;
        answer
    }

    /// Makes a call what a weakness makes of it. Returns what it holds back.
    fn alter(&self, caller: Caller, call: &mut Call, input: &mut Value) -> Option<Value> {
        if self.weaken(caller, &call.operation, input) {
            call.set_input(input.clone());
        }
        let held = if self.0.weakness == Some(Weakness::Lanes) { lanes::take(input) } else { None };
        if held.is_some() {
            call.set_input(input.clone());
        }
        held
    }

    /// Takes the keys of throttled partitions out of a BatchGetItem, if it has others: DynamoDB answers those, and returns
    /// these as unprocessed.
    fn hold_back(&self, call: &mut Call) -> Value {
        let shared = &*self.0;
        if call.operation != "BatchGetItem" {
            return Value::Null;
        }
        let (mut input, mut unprocessed) = (call.input().clone(), json!({}));
        let now = shared.time.now();
        for (table, asked) in input["RequestItems"].as_object_mut().into_iter().flatten() {
            let Some(keys) = asked["Keys"].as_array().cloned() else { continue };
            let of_key = |key: &Value| json!({ "RequestItems": { table.as_str(): { "Keys": [key] } } });
            let is_hot = |key: &Value| !shared.partitions.refusing(&of_key(key), false, now).is_empty();
            let (hot, cold): (Vec<Value>, Vec<Value>) = keys.into_iter().partition(is_hot);
            if hot.is_empty() || cold.is_empty() {
                continue;
            }
            unprocessed[table] = asked.clone();
            (unprocessed[table]["Keys"], asked["Keys"]) = (hot.into(), cold.into());
        }
        if unprocessed == json!({}) {
            return Value::Null;
        }
        shared.faults.count(FaultKind::Unprocessed);
        call.set_input(input);
        unprocessed
    }

    /// Weakens a call. Returns whether anything changed.
    fn weaken(&self, caller: Caller, operation: &str, input: &mut Value) -> bool {
        let Some(weakness) = self.0.weakness else { return false };
        let before = input.clone();
        weakness.weaken(caller.function, operation, input);
        if weakness == Weakness::FirstDetails && operation == "SendMessageBatch" {
            first_details::send(&self.0.engine, input);
        }
        if operation == "Query" {
            weakness.weaken_query(caller.function, input, self.0.time.now());
        }
        before != *input
    }

    fn is_swallowed(&self, caller: Caller, operation: &str, input: &Value) -> bool {
        let swallows = |it: Weakness| it.swallows(caller.function, operation, input, &mut lock(&self.0.random));
        self.0.weakness.is_some_and(swallows)
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
        let is_dynamodb = call.service() != "AmazonSQS";
        let fate = if caller.function == "settle" && self.0.switches.is_cut_off() {
            Fate::LoseRequest
        } else if is_dynamodb && self.0.switches.is_log_lost() && names(call.input(), LOG) {
            Fate::Refuse(400, "ResourceNotFoundException")
        } else if is_dynamodb && let Some(place) = self.throttled_at(call, is_write, caller) {
            if is_write {
                self.0.metrics.throttled(place);
            }
            if is_transaction {
                Fate::CancelTransaction("ThrottlingError")
            } else {
                Fate::Refuse(400, "ProvisionedThroughputExceededException")
            }
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
        lock(&shared.complaints).extend(told);
        lock(&shared.decided).entry(id.to_owned()).or_insert(now);
    }

    /// Returns when the long-term table had each settlement first.
    pub(crate) fn decided(&self) -> BTreeMap<String, DateTime<Utc>> {
        lock(&self.0.decided).clone()
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
    fn throttled_at(&self, call: &Call, is_write: bool, caller: Caller) -> Option<&'static str> {
        let (shared, input) = (&*self.0, call.input());
        if caller.function == RESTORE {
            // Its batches of a hundred are nothing to a partition of AWS, and far too much for one of this bank.
            return shared.faults.draw(FaultKind::Throttled, 10).then_some("payments");
        }
        let of_head = ["Key", "Item"].into_iter().any(|name| is_of_head(text(&input[name], "pk")));
        if is_write && of_head && input["TableName"] == "payments" && shared.broken.is(Part::Writes) {
            return Some("payments");
        }
        let place = shared.partitions.refusing(input, is_write, shared.time.now()).into_iter().next();
        place.inspect(|_| shared.faults.count(FaultKind::Throttled))
    }

    /// Asks the engine. Returns its answer, parsed and as it came.
    async fn ask(
        &self,
        mut call: Call,
        next: Next,
        (caller, operation, input): (Caller, &str, &Value),
    ) -> Result<(u16, Value, SdkBody), ConnectorError> {
        let shared = &*self.0;
        call.ask_for_capacity();
        let (status, body) = read_whole(next.send(call).await?).await?;
        let mut answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        self.count_units(operation, input, &answer);
        if status != 200 {
            return Ok((status, answer, body.into()));
        }
        if caller.function == "settle" && operation == "PutItem" {
            self.note_decision(&input["Item"]);
        }
        if WRITES.contains(&operation) {
            // Only the hot table has a stream that is followed.
            if names(input, HOT) {
                let followed = shared.engine_stream.follow(shared.time.now());
                followed.map_err(|error| ConnectorError::other(error.into(), None))?;
            }
            return Ok((status, answer, body.into()));
        }
        let trusts = shared.weakness.is_some_and(|weakness| weakness.trusts_index(caller.function));
        if operation == "DescribeTable" && shared.switches.is_table_lost() {
            // A restored table has no stream.
            answer["Table"]["StreamSpecification"] = Value::Null;
            let body = answer.to_string().into();
            return Ok((status, answer, body));
        }
        let read = Read { operation, input, trusts_index: trusts, now: shared.time.now() };
        let is_aged = shared.lag.age(&read, &mut answer, &shared.changes);
        let body = if is_aged { answer.to_string().into() } else { body.into() };
        Ok((status, answer, body))
    }

    /// Counts what a call used, and charges it to its partitions.
    fn count_units(&self, operation: &str, input: &Value, answer: &Value) {
        let shared = &*self.0;
        let mut used = CapacityUse::new();
        add_capacity(&mut used, operation, answer);
        shared.partitions.charge(input, &used, shared.time.now());
        let mut all = lock(&shared.used);
        used.into_iter().for_each(|(what, half_units)| *all.entry(what).or_default() += half_units);
    }

    /// Takes what calls were that no call may be.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let at = self.0.time.now().format("%F %T");
        std::mem::take(&mut *lock(&self.0.complaints)).into_iter().map(|what| format!("{at}: {what}")).collect()
    }

    /// Returns the numbers of calls, by function and operation.
    pub(crate) fn calls(&self) -> BTreeMap<String, u64> {
        lock(&self.0.calls).clone()
    }

    /// Returns the capacity that all calls used.
    pub(crate) fn used(&self) -> CapacityUse {
        lock(&self.0.used).clone()
    }
}

/// The log's table.
pub(crate) const LOG: &str = "payments-log";

/// The hot table.
const HOT: &str = "payments";

/// Whether a call is about a table.
fn names(input: &Value, table: &str) -> bool {
    let transaction = input["TransactItems"].as_array().into_iter().flatten();
    let of_transaction = transaction.flat_map(|action| action.as_object().into_iter().flat_map(|all| all.values()));
    of_transaction.chain([input]).any(|action| action["TableName"] == table)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
