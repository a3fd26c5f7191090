//! Wrong feeds: in some months operators undo payments at random moments, as docs/operations.md says.
//!
//! Operators plan by ids, by account, by due date or by client and time, run the plan, and release its hold; after a restore, the run
//! begins again. Before every second undo they stop all claims and sends, and resume after it. The results are compared with the
//! tables, and noted: no client may find them otherwise, and no request of them may be sent.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
use crate::facts::heads::id_of;
use crate::laws::undone;
use crate::plans::faults::FaultKind;
use crate::settings::Settings;
use crate::time::pause;
use crate::workloads::approvals::{ALONE, BOTH, approved};
use crate::workloads::by_hand::heads;
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
        let operator = Operator { bank: &bank, files: &files, restores: false };
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
    /// Whether this is a step of a restore.
    restores: bool,
}

/// A plan that was written, which can be run.
struct Planned {
    id: UndoId,
    number: u32,
    sha256: String,
    rows: Vec<PlanRow>,
}

/// An undo that ended just before a restore, which may take it back.
pub(crate) struct Undone(Planned);

/// Undoes scheduled payments to the end, as the last thing before the tables are lost. From now on no change is counted, so the log
/// does not have it.
pub(crate) async fn before_restore(bank: &Arc<Bank>, files: &Arc<dyn ObjectStore>) -> Result<Option<Undone>> {
    let scheduled = heads(bank, "SCHEDULED")?;
    let ids: Vec<&str> = scheduled.iter().map(|head| id_of(text(head, "sk"))).take(MOST_IDS).collect();
    if !bank.undos || ids.is_empty() {
        return Ok(None);
    }
    bank.switches.uncounted.store(true, Ordering::Relaxed);
    let operator = Operator { bank, files, restores: true };
    let id = new_id(&mut bank.seed.source("undo before a restore"))?;
    let planned = operator.plan(id, json!({ "ids": ids })).await?;
    operator.run(&planned, false).await?;
    Ok(Some(Undone(planned)))
}

/// Runs an undo again before the first sweep after a restore, as docs/restore.md says.
pub(crate) async fn after_restore(bank: &Arc<Bank>, files: &Arc<dyn ObjectStore>, undone: &Undone) -> Result<()> {
    let operator = Operator { bank, files, restores: true };
    operator.run(&undone.0, true).await?;
    operator.note(&undone.0, &BTreeSet::new()).await?;
    operator.turn(released).await
}

impl Operator<'_> {
    async fn undo(&self, random: &mut Rng) -> Result<()> {
        let stops = random.bool();
        if stops {
            self.until_restored().await;
            self.turn(stopped).await?;
            pause(TimeDelta::seconds(random.i64(0..600))).await;
        }
        let id = new_id(random)?;
        let planned = self.plan(id, self.select(random)?).await?;
        pause(TimeDelta::seconds(random.i64(0..7_200))).await;
        let sent = self.sent();
        let mut request = planned.request();
        request["approval"] = json!(approved(self.bank, ALONE, (ACTION, &planned.fields())).await?);
        if self.bank.scheduled("undo", request, TimeDelta::zero()).await.is_ok() {
            self.bank.complain(format!("one person began the undo {} alone", planned.id));
        }
        self.run(&planned, false).await?;
        self.note(&planned, &sent).await?;
        self.turn(released).await
    }

    /// Plans the payments of a wrong feed, and checks the plan.
    async fn plan(&self, id: UndoId, select: Value) -> Result<Planned> {
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
        let sha256 = plan["sha256"].as_str().context("no hash")?.to_owned();
        Ok(Planned { id, number, sha256, rows })
    }

    /// Runs a plan until it has ended, and was not taken back meanwhile.
    async fn run(&self, planned: &Planned, again: bool) -> Result<()> {
        let mut request = planned.request();
        request["again"] = json!(again);
        for _ in 0..TRIES {
            let restores = self.restores();
            // A restore may have taken back the approval, and the run then needs one again.
            request["approval"] = json!(approved(self.bank, BOTH, (ACTION, &planned.fields())).await?);
            let run = self.ask(&request).await?;
            let has_ended = run["runs"][0]["hasEnded"] == true;
            // Of what a restore took back, nothing is known: the plan is run again.
            request["again"] = json!(restores != self.restores());
            if has_ended && request["again"] == false {
                return Ok(());
            }
            pause(TimeDelta::minutes(5)).await;
        }
        Err(anyhow!("the run of {} does not end", planned.id))
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
        while !self.restores && self.bank.switches.is_restoring() {
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
    async fn note(&self, Planned { id, number, rows, .. }: &Planned, sent: &BTreeSet<String>) -> Result<()> {
        let (mut ends, mut place) = (Vec::new(), 0);
        while ends.len() < rows.len() {
            let part = self.files.get(&part_path(id, *number, place)).await?.bytes().await?;
            ends.extend(decode_part(&part)?);
            place = u64::try_from(ends.len())?;
        }
        let bank = self.bank;
        let claimed = self.files.get(&claimed_path(id, *number)).await?.bytes().await?;
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
            let is_over = matches!(end, UndoEnd::Cancelled | UndoEnd::AlreadyCancelled);
            // A run after a restore cancels also what that took back.
            let is_lost = bank.state().lost.contains(&payment_id) && !is_over;
            let is_restored = is_lost || (bank.switches.is_restoring() && !self.restores);
            let status = head.as_ref().map(|head| text(head, "status"));
            if let Some(problem) = undone::check_end(row.status.map(|it| it.to_string()).as_deref(), end, status)
                && !is_restored
            {
                bank.complain(format!("{payment_id} of the undo {id} {problem}"));
            }
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

impl Planned {
    fn request(&self) -> Value {
        let (id, sha256) = (self.id.as_str(), self.sha256.as_str());
        json!({ "action": "run", "id": id, "plan": self.number, "sha256": sha256, "acceptInexact": true })
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        fields(&self.id, (self.number, &self.sha256), true)
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

fn new_id(random: &mut Rng) -> Result<UndoId> {
    Ok(format!("{:016x}", random.u64(..)).parse()?)
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
