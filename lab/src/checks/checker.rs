//! The checker: it applies the laws. It has the intents, the answers to clients, the raw tables,
//! the changes, the messages and the files, and shares no code with the functions.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use payments_machine::layers::attributes::{Key, key_of, number, text};
use payments_machine::layers::lag::Change;
use payments_machine::layers::sqs::Sent;
use payments_model::PaymentId;
use serde_json::{Value, json};

use crate::checks::redated;
use crate::facts::heads::{Tables, due_of, id_of, is_of_head, is_settled};
use crate::facts::intent::Intent;
use crate::facts::zone::Zone;
use crate::laws::cancels::check_cancel;
use crate::laws::day_limits::Claims;
use crate::laws::reports;
use crate::laws::reports::Published;
use crate::laws::told_times::check_time as check_told_time;
use crate::laws::{self, Pending};
use crate::plans::faults::FaultKind;
use crate::plans::later;
use crate::plans::limits::DayLimits;
use crate::time::CLOCKS_AGREE;
use crate::world::bank::Bank;
use crate::world::by_hand_log::ByHand;

/// The longest time from the last look at a head until the queue has its request.
const LONGEST_SEND: TimeDelta = TimeDelta::minutes(2);

/// The checker.
#[derive(Default)]
pub(crate) struct Checker {
    /// The number of checked changes.
    followed: usize,
    /// The requests that were checked.
    requests: usize,
    /// The first time at which each payment was pending, by dispatch attempt.
    pending: Pending<DateTime<Utc>>,
    /// The first time at which each payment was sent.
    sent: BTreeMap<String, DateTime<Utc>>,
    /// The heads that left the hot table, as they were then.
    archived: BTreeMap<Key, Value>,
    /// The first time at which the long-term table had each settlement.
    decided_at: BTreeMap<String, DateTime<Utc>>,
    /// The heads of the long-term table, as they were first.
    decided: BTreeMap<Key, Value>,
    /// The most dispatch attempts of a payment, if no operator changes them.
    attempts: Option<u32>,
    /// The stops so far.
    stops: u64,
    /// The payments of which a restore lost something.
    lost: BTreeSet<String>,
    /// The claims of due dates, if these have limits.
    claims: Claims,
    /// The broken guarantees.
    pub(crate) violations: BTreeSet<String>,
}

/// Reads both tables, past everything that fails.
pub(crate) fn tables(bank: &Bank) -> Result<Tables> {
    Ok(Tables { hot: scan(bank, "payments")?, history: scan(bank, "payment-history")? })
}

/// Reads a whole table, past everything that fails.
pub(crate) fn scan(bank: &Bank, table: &str) -> Result<BTreeMap<Key, Value>> {
    let (mut items, mut start) = (BTreeMap::new(), Value::Null);
    loop {
        let mut input = json!({ "TableName": table });
        if !start.is_null() {
            input["ExclusiveStartKey"] = start;
        }
        let mut page = bank.engine.call("Scan", &input).map_err(|error| anyhow::anyhow!("{error}"))?;
        let found = page["Items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        items.extend(found.into_iter().map(|item| (key_of(&item), item)));
        start = page["LastEvaluatedKey"].take();
        if start.is_null() {
            return Ok(items);
        }
    }
}

impl Checker {
    /// Creates a checker of payments that have at most so many dispatch attempts.
    pub(crate) fn new(attempts: Option<u32>) -> Self {
        Self { attempts, ..Self::default() }
    }

    /// A payment has so many dispatch attempts, and no more than one for each stop that may have skipped the last.
    fn check_attempt(&self, request: &Value) -> Option<String> {
        let attempt = request["dispatchAttempt"].as_u64()?;
        let most = u64::from(self.attempts?) + self.stops;
        (attempt > most).then(|| format!("was sent at {attempt}, and {most} is the last"))
    }

    /// Checks the changes and the requests since the last time, and the tables.
    pub(crate) fn check(&mut self, bank: &Bank) -> Result<Tables> {
        let sent = bank.requests.sent()[self.requests..].to_vec();
        self.requests += sent.len();
        for Sent { at, request, .. } in &sent {
            self.sent.entry(request["paymentId"].as_str().unwrap_or_default().to_owned()).or_insert(*at);
        }
        let (by_hand, asked) = {
            let state = bank.state();
            self.stops = state.stops;
            (state.by_hand.clone(), state.cancel_asked.clone())
        };
        self.lost.clone_from(&bank.state().lost);
        self.decided_at = bank.network.decided();
        let changes = bank.changes.log();
        for (place, change) in changes.iter().enumerate().skip(self.followed) {
            if by_hand.restored.as_ref().is_some_and(|restored| restored.end == place) {
                self.claims.forget(&self.lost);
            }
            if is_of_head(&change.key.0) && !by_hand.made(place) {
                self.follow(change, &bank.tz, (&by_hand, &asked));
                self.follow_claim(change, bank.limits.as_ref());
            }
        }
        self.followed = changes.len();
        drop(changes);
        let tables = tables(bank)?;
        if bank.limits.is_some() && !bank.switches.is_restoring() {
            self.violations.extend(self.claims.check_reserved(&tables.hot, false));
        }
        redated::learn(bank);
        let mut state = bank.state();
        let now = bank.time.now();
        laws::check_heads(&tables, &state.intents).iter().for_each(|problem| self.complain(now, problem));
        later::check(&tables).iter().for_each(|problem| self.complain(now, problem));
        self.check_archived(now, &tables);
        self.check_requests(&sent, &state.intents);
        self.violations.extend(std::mem::take(&mut state.complaints));
        self.violations.extend(bank.network.complaints());
        Ok(tables)
    }

    fn complain(&mut self, at: DateTime<Utc>, what: &str) {
        self.violations.insert(format!("{}: {what}", at.format("%F %T")));
    }

    /// Every change is legal, and comes neither too early nor from nowhere.
    fn follow(&mut self, change: &Change, zone: &Zone, (by_hand, asked): (&ByHand, &BTreeSet<String>)) {
        let Change { at, key, before, after } = change;
        self.pending.follow(key, after.as_ref(), *at);
        let id = id_of(&key.1);
        let settles = after.as_ref().is_some_and(|head| is_settled(text(head, "status")));
        let was_sent = self.sent.get(id).is_some_and(|sent| sent <= at) || by_hand.refused.contains(id);
        let unasked = (settles && !was_sent).then(|| "was settled and never sent".to_owned());
        let early = before.as_ref().filter(|_| after.is_none()).and_then(|head| check_day_over(head, *at, zone));
        let step = before.as_ref().zip(after.as_ref());
        let cancel = step.and_then(|(before, after)| check_cancel(before, after, asked));
        let time = step.and_then(|(before, after)| check_told_time(before, after, *at));
        let problems = [laws::check_change(before.as_ref(), after.as_ref()), unasked, early, cancel, time];
        problems.into_iter().flatten().for_each(|problem| self.complain(*at, &format!("{} {problem}", key.1)));
        if let (Some(head), None) = (before, after) {
            self.archived.insert(key.clone(), laws::as_in_history(head));
        }
    }

    /// No claim is beyond the limit of its date.
    fn follow_claim(&mut self, Change { at, key, before, after }: &Change, limits: Option<&DayLimits>) {
        let Some(limits) = limits else { return };
        let limit_of = |date: &str| limits.of_date(date, *at);
        if let Some(problem) = self.claims.follow(before.as_ref(), after.as_ref(), limit_of) {
            self.complain(*at, &format!("{} {problem}", id_of(&key.1)));
        }
    }

    /// A head that left the hot table is in the long-term table unchanged, and stays so.
    fn check_archived(&mut self, now: DateTime<Utc>, tables: &Tables) {
        for (key, head) in tables.history.iter().filter(|((pk, _), _)| is_of_head(pk)) {
            let first = self.decided.entry(key.clone()).or_insert_with(|| head.clone());
            if first != head {
                let what = format!("{} changed in the long-term table from {first} to {head}", id_of(&key.1));
                self.complain(now, &what);
            }
        }
        let differs = |(key, head): &(&Key, &Value)| {
            tables.history.get(*key) != Some(*head) && !self.lost.contains(id_of(&key.1))
        };
        let differing: Vec<String> = self.archived.iter().filter(differs).map(|(key, _)| key.1.clone()).collect();
        for sort in differing {
            self.complain(now, &format!("{} was archived, and its copy is another one or gone", id_of(&sort)));
        }
    }

    /// Each request was pending at that attempt before it was sent, and has the content that was in force when it was claimed.
    fn check_requests(&mut self, sent: &[Sent], intents: &[Intent]) {
        for Sent { at, request, .. } in sent {
            let Some(intent) = intents.iter().find(|intent| intent.has_amount(&request["amountMinor"])) else {
                self.complain(*at, &format!("a request that nobody asked for: {request}"));
                continue;
            };
            let id = request["paymentId"].as_str().unwrap_or_default();
            let of_claimed = |wanted: Intent| [laws::check_request(&wanted, request), check_time(&wanted, *at)];
            // A restore may have taken back a claim of another content: then either is right.
            let claimed = self.pending.claimed(id, intent).map(of_claimed).min();
            let [content, time] = claimed.unwrap_or_default();
            let problems = [
                content,
                time,
                self.pending.check(request, at),
                self.check_attempt(request),
                self.check_late(request, *at),
            ];
            for problem in problems.into_iter().flatten() {
                self.complain(*at, &format!("payment {} {problem}", intent.amount));
            }
        }
    }

    /// No request is sent long after its payment ceased to be pending.
    fn check_late(&self, request: &Value, at: DateTime<Utc>) -> Option<String> {
        let id = request["paymentId"].as_str()?;
        // A second dispatch attempt looks into the long-term table first.
        let decided = self.decided_at.get(id).filter(|_| request["dispatchAttempt"] != 1);
        let until = *self.pending.until(id).into_iter().chain(decided).min()?;
        (!self.lost.contains(id) && at > until + LONGEST_SEND)
            .then(|| format!("was settled at {until} and sent at {at}"))
    }

    /// Everything is over: every payment is settled as the service said, reported once and archived.
    pub(crate) fn check_end(&mut self, bank: &Bank, tables: &Tables, published: &BTreeMap<String, Published>) {
        let now = bank.time.now();
        // Without a fault of a call or a sandbox, all claims were made that were reserved, or given back.
        let counts = bank.faults.counts();
        let is_exact = bank.faults.of_calls() + counts[&FaultKind::Killed] + counts[&FaultKind::BothFail] == 0;
        if bank.limits.is_some() {
            self.violations
                .extend(self.claims.check_reserved(&tables.hot, is_exact && counts[&FaultKind::Restored] == 0));
        }
        let state = bank.state();
        let settings = *state.service.settings();
        let contested = state.intents.iter().filter(|intent| intent.contested);
        let contested: BTreeSet<u64> = contested.flat_map(Intent::amounts).collect();
        for (key, head) in tables.heads() {
            let (id, status) = (id_of(&key.1), text(head, "status"));
            let is_contested = contested.contains(&number(head, "amountMinor"));
            let said = id.parse::<PaymentId>().map(|id| settings.settlement_of(id));
            let wrong = said.map_or_else(
                |_| Some("has no valid id".to_owned()),
                |said| laws::check_settlement(head, &said, is_contested),
            );
            for problem in [laws::check_over(head), wrong].into_iter().flatten() {
                self.complain(now, &format!("{id} {problem}"));
            }
            if tables.hot.contains_key(key) {
                self.complain(now, &format!("{id} is {status} and was not archived"));
            }
        }
        reports::check(published, &tables.heads()).iter().for_each(|problem| self.complain(now, problem));
    }
}

/// No head leaves the hot table before its day is over.
fn check_day_over(head: &Value, at: DateTime<Utc>, zone: &Zone) -> Option<String> {
    let date = due_of(head).0.parse().ok()?;
    let now = zone.date_of(at + CLOCKS_AGREE)?;
    (now <= date).then(|| format!("left the hot table at {at}, on its own day"))
}

/// No request is sent before its payment is due, as far as clocks agree.
fn check_time(intent: &Intent, at: DateTime<Utc>) -> Option<String> {
    let due_at = intent.due()?;
    (at + CLOCKS_AGREE < due_at).then(|| format!("is due at {due_at} and was sent at {at}"))
}
