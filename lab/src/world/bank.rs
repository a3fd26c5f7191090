//! The bank: everything that the tasks of a month share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, anyhow};
use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use payments_bank::Functions;
use payments_machine::invocation::context;
use payments_machine::layers::attributes::{json_of_key, text};
use payments_machine::layers::lag::Changes;
use payments_machine::layers::random::Seed;
use payments_machine::layers::sqs::Sqs;
use payments_machine::layers::weaken::Weakness;
use payments_machine::transaction_service::TransactionService;
use payments_machine::{Direct, Handlers as _, Queues};
use payments_model::{BusinessZone, ShardCount};
use serde_json::{Value, json};

use crate::facts::heads::id_of;
use crate::facts::intent::Intent;
use crate::facts::results::{processed, result};
use crate::facts::zone::Zone;
use crate::laws::consumer::Consumer;
use crate::plans::acts::{Act, AmendmentCounts};
use crate::plans::broken::{Broken, Part};
use crate::plans::faults::{FaultKind, Faults};
use crate::plans::limits::DayLimits;
use crate::plans::outages::Outage;
use crate::plans::switches::Switches;
use crate::time::Time;
use crate::world::alarms::Alarms;
use crate::world::by_hand_log::ByHand;
use crate::world::lambda::{Lambda, timeout_of};
use crate::world::metrics::Metrics;
use crate::world::network::Network;
use crate::world::receivers::Receivers;
use crate::world::stream::Stream;

/// The bank.
pub(crate) struct Bank {
    pub(crate) seed: Seed,
    pub(crate) time: Time,
    /// The beginning of the month.
    pub(crate) begin: DateTime<Utc>,
    pub(crate) zone: BusinessZone,
    /// The same zone, for those who share no code with the functions.
    pub(crate) tz: Zone,
    pub(crate) faults: Faults,
    pub(crate) lambda: Lambda,
    pub(crate) network: Network,
    pub(crate) engine: Direct,
    pub(crate) changes: Changes,
    pub(crate) stream: Stream,
    pub(crate) queues: Queues,
    pub(crate) requests: Sqs,
    pub(crate) switches: Switches,
    pub(crate) weakness: Option<Weakness>,
    pub(crate) broken: Broken,
    pub(crate) metrics: Metrics,
    pub(crate) alarms: Alarms,
    /// Whether clients amend payments: not where an outage damages heads.
    pub(crate) amends: bool,
    /// Whether `redate` has a calendar, and an operator runs it.
    pub(crate) redates: bool,
    /// Whether operators undo payments.
    pub(crate) undos: bool,
    /// The days after which the data of sealed parts is cleared, if dates are sealed.
    pub(crate) clears_after: Option<u32>,
    /// The limits of due dates, if there are any.
    pub(crate) limits: Option<DayLimits>,
    /// The shards of the indexes.
    pub(crate) shards: ShardCount,
    /// The receiver of webhooks; none where an outage is planned.
    pub(crate) receivers: Option<Receivers>,
    pub(crate) state: Mutex<State>,
}

/// The mutable state, beside the tables.
pub(crate) struct State {
    pub(crate) service: TransactionService,
    /// The number of requests for which the service's contradictions were drawn.
    pub(crate) drawn: usize,
    /// The results that the service did not send by itself, in their order.
    pub(crate) told: Vec<Value>,
    pub(crate) intents: Vec<Intent>,
    /// The acts of clients with amendments.
    pub(crate) amendments: AmendmentCounts,
    /// The invocations that failed and are tried again.
    pub(crate) troubles: Vec<String>,
    /// The answers that clients must not see.
    pub(crate) complaints: Vec<String>,
    /// The number of lists that clients have read to their end.
    pub(crate) lists: usize,
    pub(crate) consumer: Consumer,
    /// The number of days that are over.
    pub(crate) days: u32,
    pub(crate) by_hand: ByHand,
    /// The payments that a client has asked to cancel, whatever came of it.
    pub(crate) cancel_asked: BTreeSet<String>,
    /// The stops of all claims and sends so far.
    pub(crate) stops: u64,
    /// The payments of which a restore lost what was not logged, or what has no details any more.
    pub(crate) lost: BTreeSet<String>,
    /// The number of payments that the operator moved.
    pub(crate) redated: u64,
    /// The number of changes that were searched for amendments by the bank.
    pub(crate) learned: usize,
    /// The epoch of the log that was lost, if it was.
    pub(crate) lost_epoch: Option<u64>,
    /// The restores, in words.
    pub(crate) restores: Vec<String>,
    /// The beginning of each planned outage.
    pub(crate) began: BTreeMap<Outage, DateTime<Utc>>,
    /// The number of tasks of planned outages, restores and the operator.
    pub(crate) busy: usize,
    /// Whether the operator repairs counters.
    pub(crate) repairing: bool,
}

impl State {
    /// Returns the state before anything has happened.
    pub(crate) fn new(service: TransactionService) -> Self {
        Self {
            service,
            drawn: 0,
            told: Vec::new(),
            intents: Vec::new(),
            amendments: Act::none_yet(),
            troubles: Vec::new(),
            complaints: Vec::new(),
            lists: 0,
            consumer: Consumer::default(),
            days: 0,
            by_hand: ByHand::default(),
            cancel_asked: BTreeSet::new(),
            stops: 0,
            lost: BTreeSet::new(),
            redated: 0,
            learned: 0,
            lost_epoch: None,
            restores: Vec::new(),
            began: BTreeMap::new(),
            busy: 0,
            repairing: false,
        }
    }
}

impl Bank {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an intent as it is now.
    pub(crate) fn intent(&self, place: usize) -> Intent {
        self.state().intents[place].clone()
    }

    /// Whether the head of an intent is SCHEDULED in the hot table.
    pub(crate) fn is_scheduled(&self, place: usize) -> bool {
        let head = self.head_in("payments", place);
        head.is_some_and(|head| text(&head, "status") == "SCHEDULED")
    }

    /// Returns the head of an intent as it is now, wherever it is.
    pub(crate) fn head_of(&self, place: usize) -> Option<Value> {
        self.head_in("payments", place).or_else(|| self.head_in("payment-history", place))
    }

    /// Returns the heads of an intent in both tables, now and at each change of the hot one since an instant.
    pub(crate) fn heads_since(&self, place: usize, since: DateTime<Utc>) -> Vec<Value> {
        let now = ["payments", "payment-history"].into_iter().filter_map(|table| self.head_in(table, place));
        let mut heads: Vec<Value> = now.collect();
        let id = self.intent(place).accepted.unwrap_or_default();
        let changes = self.changes.log();
        let recent = changes.iter().rev().take_while(|change| change.at >= since);
        for change in recent.filter(|change| id_of(&change.key.1) == id) {
            heads.extend([&change.before, &change.after].into_iter().flatten().cloned());
        }
        heads
    }

    fn head_in(&self, table: &str, place: usize) -> Option<Value> {
        let intent = self.intent(place);
        let sk = format!("{}#{}", intent.slot_at()?, intent.accepted.as_ref()?);
        self.item(table, &format!("ACCT#{}", intent.account), &sk)
    }

    /// Returns an item as it is now, past everything that fails.
    pub(crate) fn item(&self, table: &str, pk: &str, sk: &str) -> Option<Value> {
        let input = json!({ "TableName": table, "Key": json_of_key(pk, sk) });
        let mut found = self.engine.call("GetItem", &input).ok()?;
        found.get_mut("Item").map(Value::take)
    }

    /// Invokes a scheduled function. Its clock may be ahead, and its deadline with it.
    pub(crate) async fn scheduled(
        &self,
        function: &'static str,
        mut input: Value,
        ahead: TimeDelta,
    ) -> Result<Value, String> {
        if self.weakness == Some(Weakness::UndoneByResults) && function == "undo" {
            input.as_object_mut().map(|input| input.remove("again"));
        }
        let context = context(self.time.now() + ahead + timeout_of(function)?);
        let run = |functions: Arc<Functions>| async move { functions.scheduled(function, input, context).await };
        self.lambda.invoke(function, run).await?
    }

    /// Whether nothing that was planned explains an answer of 500 or more: the faults of calls are still as many, and no table is lost.
    pub(crate) fn is_calm(&self, faults: u64) -> bool {
        let is_lost = self.switches.is_restoring() || self.switches.is_table_lost() || self.switches.is_log_lost();
        !is_lost && !self.broken.is(Part::Writes) && self.faults.of_calls() == faults
    }

    /// Does work that the month's end waits for, and complains if it fails.
    pub(crate) async fn busy_with(&self, work: impl Future<Output = Result<()>>, what: &str) {
        self.state().busy += 1;
        if let Err(error) = work.await {
            self.complain(format!("{what}: {error:#}"));
        }
        self.state().busy -= 1;
    }

    /// Notes what failed and is tried again.
    pub(crate) fn note(&self, trouble: String) {
        self.state().troubles.push(trouble);
    }

    /// Notes what a client must not see.
    pub(crate) fn complain(&self, complaint: String) {
        self.state().complaints.push(format!("{}: {complaint}", self.time.now()));
    }

    /// Sends a settlement result.
    pub(crate) fn send_result(&self, result: &Value) -> Result<()> {
        self.queues.results.send(result.to_string(), self.time.now()).map_err(|error| anyhow!("{error}"))?;
        self.state().told.push(result.clone());
        Ok(())
    }

    /// Runs the transaction service, which now and then contradicts itself.
    pub(crate) fn serve(&self, now: DateTime<Utc>, random: &mut Rng) {
        let mut state = self.state();
        state.service.step(now);
        let new = self.requests.sent()[state.drawn..].to_vec();
        state.drawn += new.len();
        for request in new {
            if self.faults.draw(FaultKind::Contradiction, 6) {
                let result = contradiction(&request.request, random);
                let amount = &request.request["amountMinor"];
                let contested = state.intents.iter_mut().filter(|intent| intent.has_amount(amount));
                contested.for_each(|intent| intent.contested = true);
                if self.queues.results.send(result.to_string(), now).is_ok() {
                    state.told.push(result);
                }
            }
        }
    }
}

/// Returns the result of a payment whose service has changed its mind.
pub(crate) fn second_thoughts(request: &Value) -> Value {
    let outcome = json!({ "status": "FAILED", "failureCode": "MS03", "failureReason": "on second thoughts" });
    result(request, outcome)
}

/// Returns a settlement result that differs from the one that the service sends.
fn contradiction(request: &Value, random: &mut Rng) -> Value {
    let mut result = if random.bool() {
        second_thoughts(request)
    } else {
        processed(request, &format!("TX-OTHER-{:016X}", random.u64(..)))
    };
    if random.bool() {
        result["accountId"] = request["accountId"].clone();
        result["dueAt"] = request["dueAt"].clone();
    }
    result
}
