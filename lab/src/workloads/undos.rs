//! Wrong feeds: in some months operators undo payments at random moments, as docs/operations.md says.
//!
//! Operators plan by ids, by account, by due date or by client and time, run the plan, and release its hold; after a restore, the run
//! begins again. Before every second undo they stop all claims and sends, and resume after it. The results are compared with the
//! tables, and noted: no client may find them otherwise, and no request of them may be sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use chrono::{SecondsFormat, TimeDelta};
use fastrand::Rng;
use object_store::{ObjectStore, ObjectStoreExt as _};
use payments_files::{PlanReader, PlanRow, UndoEnd, claimed_path, decode_part, part_path, plan_path};
use payments_machine::event::DEVELOPMENT_CLIENT;
use payments_machine::layers::attributes::text;
use payments_machine::layers::random::{Seed, happens};
use payments_model::undo::{ACTION, fields};
use payments_model::{Actor, Hold, PaymentId, Switch, SwitchChange, UndoId, UtcSecond};
use serde_json::{Value, json};
use tokio::task::spawn_local;

use crate::checks::checker::tables;
use crate::laws::undone;
use crate::plans::faults::FaultKind;
use crate::settings::Settings;
use crate::time::pause;
use crate::workloads::approvals::{ALONE, BOTH, approved};
use crate::world::bank::Bank;
use crate::world::lag;

/// Shorter months have no undo.
const LEAST_DAYS: u32 = 4;

/// In how many of a thousand months there is one.
const PER_THOUSAND: u16 = 600;

/// The most payments that are undone by their ids.
const MOST_IDS: usize = 12;

/// The most tries of a step, which fails or is killed now and then.
const TRIES: u32 = 120;

/// The time after which the log has a change.
const LATEST: TimeDelta = TimeDelta::minutes(15);

/// The most payments of a plan that are read at once.
const ALL: usize = 1_000_000;

/// Whether a month has undos. Other months are as if the function did not exist: its schedule does not run in them.
pub(crate) fn are_in(settings: &Settings, seed: Seed) -> bool {
    settings.days >= LEAST_DAYS
        && settings.outages.is_empty()
        && !settings.without.contains(&FaultKind::WrongFeed)
        && happens(&mut seed.source("undos in the month"), PER_THOUSAND)
}

/// Starts the operators who undo payments.
pub(crate) fn start(bank: &Arc<Bank>, files: &Arc<dyn ObjectStore>, days: u32) {
    if bank.undos {
        spawn_local(run(Arc::clone(bank), Arc::clone(files), days));
    }
}

async fn run(bank: Arc<Bank>, files: Arc<dyn ObjectStore>, days: u32) {
    let mut random = bank.seed.source("undos");
    let last = bank.begin + TimeDelta::days(i64::from(days) - 2);
    loop {
        let left = last - bank.time.now();
        pause(TimeDelta::minutes(random.i64(300..3 * 1_440)).min(left.max(TimeDelta::zero()))).await;
        let operator = Operator { bank: &bank, files: &files };
        if bank.time.now() >= last {
            // A restore may have brought back a hold or a stop.
            return bank.busy_with(operator.turn(released), "holds are not released").await;
        }
        bank.faults.count(FaultKind::WrongFeed);
        bank.busy_with(operator.undo(&mut random), "an undo failed").await;
    }
}

/// The operator of an undo.
struct Operator<'b> {
    bank: &'b Arc<Bank>,
    files: &'b Arc<dyn ObjectStore>,
}

impl Operator<'_> {
    async fn undo(&self, random: &mut Rng) -> Result<()> {
        let stops = random.bool();
        if stops {
            self.until_restored().await;
            self.turn(stopped).await?;
            pause(TimeDelta::seconds(random.i64(0..600))).await;
        }
        let id: UndoId = format!("{:016x}", random.u64(..)).parse()?;
        let select = self.select(random)?;
        let (known, recent) = (tables(self.bank)?, self.bank.changes.since(self.bank.time.now() - LATEST));
        let recent = recent.into_iter().map(|change| change.key.1).collect();
        let plan = self.ask(&json!({ "action": "plan", "id": id.as_str(), "select": select })).await?;
        let number = u32::try_from(plan["plan"].as_u64().context("no plan")?)?;
        let rows = self.rows(&id, number).await?;
        if plan["inexact"] == json!([]) && self.restores() == 0 {
            let lacks = undone::check_exact(&select["client"], &planned(&rows), &known, &recent);
            lacks.into_iter().for_each(|problem| self.bank.complain(problem));
        }
        let ids = rows.iter().map(|row| row.head.slot.payment_id.to_string());
        self.bank.state().cancel_asked.extend(ids);
        pause(TimeDelta::seconds(random.i64(0..7_200))).await;
        let sent = self.sent();
        let mut request = json!({ "action": "run", "id": id.as_str(), "plan": number, "sha256": plan["sha256"], "acceptInexact": true });
        let fields = fields(&id, (number, plan["sha256"].as_str().context("no hash")?), true);
        request["approval"] = json!(approved(self.bank, ALONE, (ACTION, &fields)).await?);
        if self.bank.scheduled("undo", request.clone(), TimeDelta::zero()).await.is_ok() {
            self.bank.complain(format!("one person began the undo {id} alone"));
        }
        for _ in 0..TRIES {
            let restores = self.restores();
            // A restore may have taken back the approval, and the run then needs one again.
            request["approval"] = json!(approved(self.bank, BOTH, (ACTION, &fields)).await?);
            let run = self.ask(&request).await?;
            let has_ended = run["runs"][0]["hasEnded"] == true;
            // Of what a restore took back, nothing is known: the plan is run again.
            request["again"] = json!(restores != self.restores());
            if has_ended && request["again"] == false {
                self.note(&id, number, &rows, &sent).await?;
                return self.turn(released).await;
            }
            pause(TimeDelta::minutes(5)).await;
        }
        Err(anyhow!("the run of {id} does not end"))
    }

    /// The number of restores that have begun.
    fn restores(&self) -> usize {
        self.bank.state().restores.len() + usize::from(self.bank.switches.is_restoring())
    }

    /// Draws the payments of a wrong feed.
    fn select(&self, random: &mut Rng) -> Result<Value> {
        let today = self.bank.tz.date_of(self.bank.time.now()).context("a date")?;
        Ok(match random.u8(0..8) {
            0 => json!({ "dueDate": today }),
            1 => {
                let to = self.bank.time.now() - LATEST - TimeDelta::minutes(random.i64(1..300));
                let from = to - TimeDelta::minutes(random.i64(1..300));
                let [from, to] = [from, to].map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
                json!({ "client": { "name": DEVELOPMENT_CLIENT, "from": from, "to": to } })
            }
            2..4 => {
                let account = format!("acc-{}", random.usize(0..3));
                json!({ "account": { "id": account, "from": today, "to": today + chrono::Days::new(random.u64(0..3)) } })
            }
            _ => {
                let state = self.bank.state();
                let recent = state.intents.iter().rev().take(MOST_IDS * 4).filter(|_| random.u8(0..4) == 0);
                let ids = recent.map(|intent| {
                    anyhow::Ok(PaymentId::derive(&intent.account.parse()?, &intent.key.parse()?).to_string())
                });
                let mut ids = ids.take(MOST_IDS).collect::<Result<Vec<_>>>()?;
                if ids.is_empty() {
                    ids.push(PaymentId::derive(&"nobody".parse()?, &"nothing".parse()?).to_string());
                }
                json!({ "ids": ids })
            }
        })
    }

    /// Invokes `undo` until it answers, and not during a restore.
    async fn ask(&self, request: &Value) -> Result<Value> {
        let mut last = None;
        for _ in 0..TRIES {
            self.until_restored().await;
            match self.bank.scheduled("undo", request.clone(), TimeDelta::zero()).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => last = Some(error),
            }
            pause(TimeDelta::minutes(5)).await;
        }
        Err(anyhow!("{}", last.unwrap_or_default()))
    }

    async fn until_restored(&self) {
        while self.bank.switches.is_restoring() {
            pause(TimeDelta::hours(1)).await;
        }
    }

    /// The payments of which requests were sent so far. After a restore, the tables may not know of them.
    fn sent(&self) -> BTreeSet<String> {
        if self.restores() > 0 {
            return BTreeSet::new();
        }
        let sent = self.bank.requests.sent();
        sent.iter().filter_map(|sent| Some(sent.request["paymentId"].as_str()?.to_owned())).collect()
    }

    async fn rows(&self, id: &UndoId, plan: u32) -> Result<Vec<PlanRow>> {
        let file = self.files.get(&plan_path(id, plan)).await?.bytes().await?;
        Ok(PlanReader::new(id, plan, &file)?.next_rows(ALL)?)
    }

    /// Compares the results with the tables, and notes the payments that are cancelled for good.
    /// `sent` are payments that were sent before the run.
    async fn note(&self, id: &UndoId, plan: u32, rows: &[PlanRow], sent: &BTreeSet<String>) -> Result<()> {
        let (mut ends, mut place) = (Vec::new(), 0);
        while ends.len() < rows.len() {
            let part = self.files.get(&part_path(id, plan, place)).await?.bytes().await?;
            ends.extend(decode_part(&part)?);
            place = u64::try_from(ends.len())?;
        }
        let bank = self.bank;
        let claimed = self.files.get(&claimed_path(id, plan)).await?.bytes().await?;
        let claimed = String::from_utf8(claimed.to_vec())?;
        let planned = planned(rows);
        if self.restores() == 0 {
            undone::check_claimed(&planned, sent, &claimed).into_iter().for_each(|problem| bank.complain(problem));
        }
        undone::check_others(id, &planned, &tables(bank)?).into_iter().for_each(|problem| bank.complain(problem));
        for (row, end) in ends {
            let payment_id = row.head.slot.payment_id.to_string();
            let sk = format!("{}#{payment_id}", row.head.slot.at);
            let pk = format!("ACCT#{}", row.head.account);
            let head = ["payments", "payment-history"].iter().find_map(|table| bank.item(table, &pk, &sk));
            let is_restored = bank.state().lost.contains(&payment_id) || bank.switches.is_restoring();
            let status = head.as_ref().map(|head| text(head, "status"));
            if let Some(problem) = undone::check_end(row.status.map(|it| it.to_string()).as_deref(), end, status)
                && !is_restored
            {
                bank.complain(format!("{payment_id} of the undo {id} {problem}"));
            }
            let is_over = matches!(end, UndoEnd::Cancelled | UndoEnd::AlreadyCancelled);
            let mut state = bank.state();
            let intent = state.intents.iter_mut().find(|intent| intent.accepted.as_ref() == Some(&payment_id));
            if let Some(intent) = intent.filter(|_| is_over && !is_restored) {
                intent.cancelled = true;
            }
        }
        Ok(())
    }

    /// Turns the switch.
    async fn turn(&self, turned: fn(&Switch, UtcSecond) -> Switch) -> Result<()> {
        turn(self.bank, turned).await
    }
}

/// Ends a stop, also one that a restore brought back.
pub(crate) async fn resume(bank: &Bank) -> Result<()> {
    turn(bank, resumed).await
}

async fn turn(bank: &Bank, turned: fn(&Switch, UtcSecond) -> Switch) -> Result<()> {
    let store = bank.lambda.operator();
    for _ in 0..TRIES {
        if let Ok(switch) = store.switch().await {
            let turned = turned(&switch, UtcSecond::new(bank.time.now())?);
            bank.state().stops += u64::from(turned.stopped && !switch.stopped);
            let is_same = (&turned.holds, turned.stopped) == (&switch.holds, switch.stopped);
            let turned = Switch { version: switch.version + 1, ..turned };
            if is_same || store.change_switch(&turned).await.is_ok_and(|is_done| is_done) {
                return Ok(());
            }
        }
        pause(lag::LONGEST).await;
    }
    Err(anyhow!("the switch cannot be turned"))
}

fn planned(rows: &[PlanRow]) -> BTreeSet<String> {
    rows.iter().map(|row| row.head.slot.payment_id.to_string()).collect()
}

fn stopped(switch: &Switch, now: UtcSecond) -> Switch {
    let change = SwitchChange { by: Actor::operator("ada"), at: now, reason: "a wrong feed".to_owned() };
    Switch { stopped: true, stopped_at: Some(switch.stop_begins(now)), change: Some(change), ..switch.clone() }
}

fn resumed(switch: &Switch, now: UtcSecond) -> Switch {
    let by = Actor::operator("ada");
    let resumed = SwitchChange { by, at: now, reason: "it was undone".to_owned() };
    let change = if switch.stopped { Some(resumed) } else { switch.change.clone() };
    Switch { stopped: false, freed_at: Some(now), change, ..switch.clone() }
}

fn released(switch: &Switch, now: UtcSecond) -> Switch {
    let is_others = |hold: &&Hold| !hold.change.by.as_str().starts_with("b:undo/");
    let holds = switch.holds.iter().filter(is_others).cloned().collect();
    Switch { holds, ..resumed(switch, now) }
}
