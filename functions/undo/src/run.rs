//! Runs: part by part through an approved plan. The place moves after a part's results were stored.

use std::collections::{BTreeMap, HashMap};

use object_store::{Error, ObjectStoreExt as _, PutPayload};
use payments_files::{
    PlanReader, PlanRow, UndoEnd, UndoFileError, claimed_csv, claimed_path, decode_part, encode_part, part_path,
    plan_path,
};
use payments_model::undo::Approved;
use payments_model::{HeadKey, UndoId, causes};
use payments_store::{UndoPlan, UndoRun, UndoTotals};
use payments_work::{require_consent, retried};

use crate::error::UndoError;
use crate::function::{Deadlines, Undo};
use crate::hold::HOLD_WORKS_AFTER;
use crate::outcome::{Bypassed, RunOutcome};
use crate::part::Part;
use crate::plan::MAX_TRIES;

/// Payments of a plan with their ends.
type Ends = Vec<(PlanRow, UndoEnd)>;

/// The payments of a part. An interrupted part is repeated: at 240 a second it takes 5 s.
const PART: usize = 1_250;

impl Undo {
    /// Begins the run of an approved plan, or goes on with it.
    pub(crate) async fn run(&self, approved: &Approved, deadlines: &Deadlines) -> Result<RunOutcome, UndoError> {
        let file = self.plan_file(&approved.id, approved.plan, &approved.sha256).await?;
        let undo = self.begin(approved, &file, deadlines).await?;
        self.proceed(undo, approved.plan, &file, deadlines).await
    }

    /// Goes on with all runs that are not at their end. Returns those that went on, and why others failed.
    pub(crate) async fn go_on(&self, deadlines: &Deadlines) -> Result<(Vec<RunOutcome>, Vec<UndoError>), UndoError> {
        let (mut outcomes, mut failures) = (Vec::new(), Vec::new());
        for id in retried(&deadlines.work, async || self.store.open_undos().await).await? {
            // One damaged item or file must not stop the runs of others.
            let mut fail = |error: UndoError| {
                tracing::error!(%id, causes = ?causes(&error), "a run of an undo failed");
                failures.push(error);
            };
            let undo = match self.known(&id, &deadlines.work).await {
                Ok(undo) => undo,
                Err(error) => {
                    fail(error);
                    continue;
                }
            };
            let open = |plan: &&UndoPlan| plan.run.as_ref().is_some_and(|run| run.ended_at.is_none());
            let open: Vec<UndoPlan> = undo.plans.iter().filter(open).cloned().collect();
            for plan in open {
                match self.go_on_with(&id, &plan, deadlines).await {
                    Ok(outcome) => outcomes.push(outcome),
                    Err(error) => fail(error),
                }
            }
        }
        Ok((outcomes, failures))
    }

    async fn go_on_with(&self, id: &UndoId, plan: &UndoPlan, deadlines: &Deadlines) -> Result<RunOutcome, UndoError> {
        let file = self.plan_file(id, plan.number, &plan.sha256).await?;
        let undo = self.known(id, &deadlines.work).await?;
        self.proceed(undo, plan.number, &file, deadlines).await
    }

    /// Checks the consent and notes it, and begins the run, which then goes on without it. After a restore, the undo may not know its plan: the file and its hash are enough.
    async fn begin(
        &self,
        approved: &Approved,
        file: &[u8],
        deadlines: &Deadlines,
    ) -> Result<payments_store::Undo, UndoError> {
        let Approved { id, plan: number, sha256, approval, ticket, again, .. } = approved;
        for _ in 0..MAX_TRIES {
            let mut undo = self.known(id, &deadlines.work).await?;
            if undo.plans.iter().all(|plan| plan.number != *number) {
                undo.plans.push(self.adopted(id, *number, (sha256, file))?);
                undo.plans.sort_by_key(|plan| plan.number);
            }
            let Some(plan) = undo.plans.iter_mut().find(|plan| plan.number == *number) else { continue };
            if plan.sha256 != *sha256 {
                return Err(UndoError::OtherPlan(*number, id.to_string()));
            }
            if plan.run.is_some() && !again {
                return Ok(undo);
            }
            if !plan.inexact.is_empty() && !approved.accept_inexact {
                return Err(UndoError::Inexact(*number, id.to_string(), plan.inexact.join("; ")));
            }
            let read = async |name| self.store.agreement(name).await;
            require_consent(&approved.consent(), (self.now(), &deadlines.work), read).await?;
            if ticket.is_some() {
                tracing::warn!(%id, number, ?ticket, "an undo begins without a second person");
                self.metrics.emit(self.clock.instant(), &Bypassed { four_eyes_bypassed: 1 });
            }
            plan.run = Some(UndoRun {
                approval: approval.filter(|_| ticket.is_none()),
                ticket: ticket.clone(),
                began_at: self.now(),
                place: 0,
                ends: BTreeMap::new(),
                ended_at: None,
            });
            undo.revision += 1;
            if retried(&deadlines.work, async || self.store.change_undo(&undo).await).await? {
                return Ok(undo);
            }
        }
        Err(UndoError::Overtaken)
    }

    /// A plan that its undo does not know, by its file.
    fn adopted(&self, id: &UndoId, number: u32, (sha256, file): (&str, &[u8])) -> Result<UndoPlan, UndoError> {
        let damaged = |error| UndoError::Damaged(plan_path(id, number).to_string(), error);
        let mut reader = PlanReader::new(id, number, file).map_err(damaged)?;
        let (mut payments, mut totals) = (0, UndoTotals::new());
        loop {
            let rows = reader.next_rows(PART).map_err(damaged)?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                payments += 1;
                let (count, sum) = totals.entry((row.status, row.money.currency)).or_default();
                *count += 1;
                *sum += i128::from(row.money.amount.get());
            }
        }
        let (sha256, inexact) = (sha256.to_owned(), reader.inexact().to_vec());
        Ok(UndoPlan {
            number,
            select: BTreeMap::new(),
            sha256,
            inexact,
            payments,
            totals,
            held_at: self.now(),
            run: None,
        })
    }

    /// Goes on with a run until its end or the deadline.
    async fn proceed(
        &self,
        mut undo: payments_store::Undo,
        number: u32,
        file: &[u8],
        deadlines: &Deadlines,
    ) -> Result<RunOutcome, UndoError> {
        let (id, mut now) = (undo.id.clone(), BTreeMap::new());
        let damaged = |error: UndoFileError| UndoError::Damaged(plan_path(&id, number).to_string(), error);
        let Some((plan, run)) = run_of(&mut undo, number) else {
            return Err(UndoError::NoPlan(number, id.to_string()));
        };
        let (mut place, is_open) = (run.place, run.ended_at.is_none());
        if is_open {
            let wait = plan.held_at.saturating_add(HOLD_WORKS_AFTER).as_chrono() - self.clock.instant();
            deadlines.work.sleep(wait.to_std().unwrap_or_default()).await;
        }
        let mut reader = PlanReader::new(&id, number, file).map_err(damaged)?;
        reader.skip(place).map_err(damaged)?;
        while is_open && !deadlines.work.has_come() {
            let rows = reader.next_rows(PART).map_err(damaged)?;
            let before = self.part_before(&id, number, place).await?;
            let ends = match self.ends_of(&id, rows, &before, deadlines).await? {
                Some(ends) if !ends.is_empty() => ends,
                Some(_) => {
                    self.list_claimed(&id, number, place, deadlines).await?;
                    let Some((_, run)) = run_of(&mut undo, number) else { break };
                    run.ended_at = Some(self.now());
                    self.store_place(&mut undo, deadlines).await?;
                    break;
                }
                None => break,
            };
            self.files.put(&part_path(&id, number, place), PutPayload::from(encode_part(&ends)?)).await?;
            let Some((_, run)) = run_of(&mut undo, number) else { break };
            for (_, end) in &ends {
                *run.ends.entry(end.to_string()).or_default() += 1;
                *now.entry(end.to_string()).or_default() += 1;
            }
            place += u64::try_from(ends.len()).unwrap_or(u64::MAX);
            run.place = place;
            if !self.store_place(&mut undo, deadlines).await? {
                break;
            }
        }
        let undo = self.known(&id, &deadlines.last).await?;
        let plan = undo.plans.iter().find(|plan| plan.number == number);
        let outcome = plan.and_then(|plan| plan.run.as_ref().map(|run| RunOutcome::new(&id, plan, run)));
        outcome.map(|outcome| RunOutcome { now, ..outcome }).ok_or_else(|| UndoError::NoPlan(number, id.to_string()))
    }

    /// The ends of a part, if a run stored them before.
    async fn part_before(&self, id: &UndoId, number: u32, place: u64) -> Result<Ends, UndoError> {
        let path = part_path(id, number, place);
        let bytes = match self.files.get(&path).await {
            Ok(file) => file.bytes().await?,
            Err(Error::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        decode_part(&bytes).map_err(|error| UndoError::Damaged(path.to_string(), error))
    }

    /// Works on a part. `None` if it is left to the next run. Payments that an earlier run left as they were stay so: after a restore,
    /// one that was claimed may be scheduled again, although its request was sent.
    async fn ends_of(
        &self,
        id: &UndoId,
        rows: Vec<PlanRow>,
        before: &Ends,
        deadlines: &Deadlines,
    ) -> Result<Option<Ends>, UndoError> {
        if rows.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let stays = |end: &UndoEnd| end.claimed_status().is_some() || *end == UndoEnd::Amended;
        let known: HashMap<&HeadKey, UndoEnd> =
            before.iter().filter(|(_, end)| stays(end)).map(|(row, end)| (&row.head, *end)).collect();
        let (kept, rows): (Vec<PlanRow>, Vec<PlanRow>) =
            rows.into_iter().partition(|row| known.contains_key(&row.head));
        let mut ends: Ends = kept
            .into_iter()
            .filter_map(|row| Some((known.get(&row.head).copied()?, row)))
            .map(|(end, row)| (row, end))
            .collect();
        if !rows.is_empty() {
            let (per_second, by) = (self.pace(id, &deadlines.work).await?, id.actor());
            let Some(new) = Part::new(self, &by, per_second, rows).run(&deadlines.work).await? else { return Ok(None) };
            ends.extend(new);
        }
        Ok(Some(ends))
    }

    /// Stores how far a run is, unless another run has moved the place. Returns whether it did.
    async fn store_place(&self, undo: &mut payments_store::Undo, deadlines: &Deadlines) -> Result<bool, UndoError> {
        undo.revision += 1;
        Ok(retried(&deadlines.last, async || self.store.change_undo(undo).await).await?)
    }

    /// Lists the claimed and the settled payments of all parts, for the transaction service's operators.
    async fn list_claimed(&self, id: &UndoId, number: u32, end: u64, deadlines: &Deadlines) -> Result<(), UndoError> {
        let mut csv = claimed_csv(&[], true)?;
        for place in (0..end).step_by(PART) {
            if deadlines.last.has_come() {
                return Err(UndoError::OutOfTime);
            }
            let path = part_path(id, number, place);
            let bytes = self.files.get(&path).await?.bytes().await?;
            let ends = decode_part(&bytes).map_err(|error| UndoError::Damaged(path.to_string(), error))?;
            csv.extend(claimed_csv(&ends, false)?);
        }
        self.files.put(&claimed_path(id, number), PutPayload::from(csv)).await?;
        Ok(())
    }
}

/// A plan of an undo, and its run.
fn run_of(undo: &mut payments_store::Undo, number: u32) -> Option<(UndoPlan, &mut UndoRun)> {
    let plan = undo.plans.iter_mut().find(|plan| plan.number == number)?;
    let known = UndoPlan { run: None, ..plan.clone() };
    plan.run.as_mut().map(|run| (known, run))
}
