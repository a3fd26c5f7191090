//! Golden items of the bank's own work: runs, figures, the report's run, drift, findings, the audit trail.

use payments_model::second::NamedBy;
use payments_model::{
    ActionId, ActionName, Actor, BusinessDate, DayCounts, DayTotal, Failure, Finding, FindingClosed, HeadKey, Hold,
    Money, PaymentId, PlanHash, Settlement, Slot, State, Status, Switch, SwitchChange, Told,
};
use payments_store::key::LANES;
use payments_store::{
    Approval, AuditIntent, AuditOutcome, Cleared, ClosedFinding, DayRelease, Evidence, First, Job, LastRun, ReportFile,
    ReportRun, Store, Undo, UndoPlan, UndoRun,
};
use payments_tests::prelude::*;

const UNDO: &str = "0123456789abcdef";

const AT: &str = "2026-11-20T10:00:00Z";

fn date() -> Result<BusinessDate> {
    Ok("2026-12-01".parse()?)
}

/// The actions of the audit trail: with a person and an outcome, without, and those of two persons, approved and refused.
fn actions() -> Result<[ActionName; 4]> {
    let previewed_at = AT.parse()?;
    Ok(["cancel", "start", "approved", "refused"]
        .map(|what| ActionName { previewed_at, id: ActionId::derive("request", previewed_at, what) }))
}

/// Puts a last run of each job, and the figures of a day.
async fn put_runs(store: &Store) -> Result<()> {
    let (began, ended) = (AT.parse()?, "2026-11-20T10:04:07Z".parse()?);
    for job in Job::ALL {
        let run = LastRun::new(*job, (began, ended), Some(&json!({"claimed": 3, "published": ["reports/a"]})));
        store.put_last_run(&run.with_failure((*job == Job::Report).then_some("DynamoDB rejected Query"))).await?;
    }
    let mut counts = DayCounts::default();
    Status::ALL.into_iter().zip(1..).for_each(|(status, number)| counts.shift(status, number));
    for (at, counts) in [(began, DayCounts::default()), (ended, counts)] {
        store.add_sample(date()?, at, &counts).await?;
    }
    Ok(store.add_failures(date()?, 42, &[("AC01".parse()?, 7), ("NARR".parse()?, 1)].into()).await?)
}

/// An undo whose run is not at its end, of a plan with a payment without a head.
fn undo() -> Result<Undo> {
    let ends = [("cancelled".to_owned(), 1_249), ("claimed".to_owned(), 1)].into();
    let run = UndoRun {
        approval: Some(actions()?[2]),
        ticket: None,
        began_at: AT.parse()?,
        place: 1_250,
        ends,
        ended_at: None,
    };
    let gbp = "GBP".parse()?;
    let totals = [((Some(Status::Scheduled), gbp), (1_250, 1 << 64)), ((None, gbp), (1, 500))].into();
    let plan = UndoPlan {
        number: 1,
        select: [("client", "feed"), ("from", AT), ("to", AT)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        inexact: vec!["the log has no head".to_owned()],
        sha256: "f".repeat(64),
        payments: 1_251,
        totals,
        held_at: AT.parse()?,
        run: Some(run.clone()),
    };
    let ended = UndoPlan { run: Some(UndoRun { ended_at: Some(AT.parse()?), ..run }), ..plan.clone() };
    Ok(Undo { id: UNDO.parse()?, revision: 1, plans: vec![ended, UndoPlan { number: 2, ..plan }] })
}

/// A switch that stops all, and holds dates.
fn switch() -> Result<Switch> {
    let change = SwitchChange { by: Actor::operator("ada"), at: AT.parse()?, reason: "a wrong feed".to_owned() };
    let holds = vec![Hold { from: date()?, to: "2026-12-03".parse()?, change: change.clone() }];
    Ok(Switch {
        version: 1,
        stopped: true,
        change: Some(change),
        holds,
        freed_at: Some(AT.parse()?),
        stopped_at: Some(AT.parse()?),
    })
}

/// The claims of a date within its limit.
fn claims() -> Result<DayTotal> {
    let money = |amount: &str, currency: &str| -> Result<_> {
        Ok(Money { amount: amount.parse()?, currency: currency.parse()? })
    };
    [money("125000", "GBP"), money("999", "EUR")].into_iter().collect()
}

/// The release of a date beyond its limit.
fn release() -> Result<DayRelease> {
    let change = SwitchChange { by: Actor::operator("ada"), at: AT.parse()?, reason: "after a holiday".to_owned() };
    Ok(DayRelease { version: 1, up_to: "payments=2000000,GBP=250000000".parse()?, change })
}

/// Reserves claims of a date that was held before and is held again, as the sweep does, and releases it.
async fn put_claims(store: &Store, claims: &DayTotal, release: &DayRelease) -> Result<()> {
    ensure!(store.release_day(date()?, release).await?, "it is the first release");
    ensure!(store.reserve_claims(date()?, claims, &release.up_to, Some(AT.parse()?)).await?, "it is within its limit");
    Ok(store.note_day_held(date()?, AT.parse()?).await?)
}

/// Notes the cleared parts of a date, and the instant before which nothing is cleared.
async fn put_cleared(store: &Store, cleared: Cleared) -> Result<()> {
    for part in &cleared.begun[&date()?] {
        store.begin_clear(date()?, *part).await?;
    }
    for part in &cleared.done[&date()?] {
        store.end_clear(date()?, *part).await?;
    }
    Ok(store.clear_not_before(cleared.not_before.context("no instant")?).await?)
}

/// The payment of the findings.
fn payment() -> Result<PaymentId> {
    Ok(PaymentId::derive(&"tenant".parse()?, &"rent".parse()?))
}

/// Findings: an open one, and a closed one.
fn findings() -> Result<[Finding; 2]> {
    let money = Money { amount: "125000".parse()?, currency: "GBP".parse()? };
    let finding = |stands: State, settlement: Settlement, closed| -> Result<_> {
        let told = Told { settlement, money, payee: "landlord".parse()? };
        let slot = Slot { at: "2026-12-01T00:00:00Z".parse()?, payment_id: payment()? };
        let key = HeadKey { account: "tenant".parse()?, slot };
        Ok(Finding { key, money, payee: "landlord".parse()?, stands, told, found_at: AT.parse()?, closed })
    };
    let processed = |id: &str| Ok::<_, anyhow::Error>(Settlement::Processed(id.parse()?));
    let closed = FindingClosed { at: AT.parse()?, by: Actor::operator("ada"), reason: "It was a test.".to_owned() };
    Ok([
        finding(processed("TX-1")?.into(), Settlement::Failed(Failure::new(Some("AM04"), "no funds")), None)?,
        finding(State::Cancelled, processed("TX-2")?, Some(closed))?,
    ])
}

/// Puts findings as `settle` does, and closes them as the console does.
async fn put_findings(store: &Store, findings: Vec<Finding>) -> Result<()> {
    for finding in findings {
        let closed = finding.closed.clone();
        ensure!(store.put_finding(&Finding { closed: None, ..finding.clone() }).await?, "it is new");
        if let Some(closed) = closed {
            let done = store.close_finding(finding.key.slot.payment_id, &finding.told.hash(), &closed).await?;
            ensure!(done == ClosedFinding::Done, "{done:?}");
        }
    }
    Ok(())
}

/// Puts an intent; the first has a person and an outcome, and the third and fourth need a second person.
async fn put_action(store: &Store, name: ActionName, n: usize) -> Result<()> {
    let at = AT.parse()?;
    let (action, arguments) = ("cancel", "payments: 626e8292-8e84-575a-b684-0af73927405b\nreason: twice");
    let hash = PlanHash::from_facts(action, arguments);
    let is_of_two = n >= 2;
    let named_by = NamedBy { claim: "sub".parse()?, issuer: "https://login.example.com".to_owned() };
    let first = First { person: "ana".parse()?, named_by: named_by.clone(), hash: hash.clone() };
    let intent = AuditIntent {
        name,
        at,
        by: "o:console".to_owned(),
        subject: (n == 0).then(|| "user-1".to_owned()),
        request: "request-2".to_owned(),
        action: action.to_owned(),
        arguments: arguments.to_owned(),
        first: is_of_two.then_some(first),
    };
    store.put_audit_intent(&intent).await?;
    let second = is_of_two.then(|| "o:ben".to_owned());
    if is_of_two {
        let person = "ben".parse()?;
        let (by, request) = ("o:ben".to_owned(), "request-3".to_owned());
        store.put_approval(&Approval { name, at, is_approved: n == 2, person, named_by, by, hash, request }).await?;
    }
    if n == 0 || n == 2 {
        let result = "cancelled\nthe other was late".to_owned();
        store.put_audit_outcome(name, &AuditOutcome { at, result, second }).await?;
    }
    Ok(())
}

pub(super) async fn written() -> Result<World> {
    let world = World::open().await?;
    let (store, at) = (world.store().await, AT.parse()?);
    put_runs(&store).await?;
    let file = |ending: &str| ReportFile {
        attempt: format!("000042-20261120T100000.000000Z-a-request/report.{ending}"),
        published: format!("reports/2026-11-20T090000Z--2026-11-20T093000Z-run-000042.{ending}"),
        bytes: 1_234,
        sha256: "f".repeat(64),
    };
    let run = ReportRun {
        number: 42,
        csv: file("csv.gz"),
        summary: file("summary.json"),
        rows: 7,
        first_settled_at: "2026-11-20T09:00:00Z".parse()?,
        last_settled_at: "2026-11-20T09:30:00Z".parse()?,
        committed_at: at,
        finished: true,
    };
    store.commit_report_run(&run, None).await?;
    let mut recounted = DayCounts::default();
    (recounted.archived, recounted.unparsed) = (2, 1);
    recounted.shift(Status::Pending, 7);
    recounted.shift_sum("GBP".parse()?, Status::Pending, 1 << 64);
    store.keep_evidence(date()?, &Evidence { recounted, moves: [3; LANES], found_at: at }, None).await?;
    ensure!(store.change_undo(&undo()?).await?, "it is the first");
    ensure!(store.change_switch(&switch()?).await?, "it is the first");
    put_claims(&store, &claims()?, &release()?).await?;
    let parts = |numbers: &[u32]| -> Result<_> { Ok([(date()?, numbers.iter().copied().collect())].into()) };
    put_cleared(&store, Cleared { begun: parts(&[1, 2])?, done: parts(&[1])?, not_before: Some(AT.parse()?) }).await?;
    put_findings(&store, findings()?.into()).await?;
    for (n, name) in actions()?.into_iter().enumerate() {
        put_action(&store, name, n).await?;
    }
    Ok(world)
}

pub(super) async fn again(from: &World, to: &World) -> Result<()> {
    let (from, to) = (from.store().await, to.store().await);
    for run in from.last_runs().await? {
        to.put_last_run(&run?).await?;
    }
    let figures = from.figures(date()?).await?.context("no figures")?;
    for (at, counts) in &figures.samples {
        to.add_sample(date()?, *at, counts).await?;
    }
    let failures = figures.failures.iter().map(|(code, count)| Ok((code.parse()?, *count)));
    to.add_failures(date()?, 42, &failures.collect::<Result<_>>()?).await?;
    to.commit_report_run(&from.last_report_run().await?.context("no run")?, None).await?;
    let mut found = from.evidence(date()?, date()?).await?;
    let evidence = found.remove(&date()?).and_then(|found| found.evidence).context("no finding")?;
    to.keep_evidence(date()?, &evidence, None).await?;
    let [open] = from.open_undos().await?.try_into().map_err(|_| anyhow::anyhow!("one is open"))?;
    ensure!(to.change_undo(&from.undo(&open).await?.context("no undo")?).await?, "it is the first");
    ensure!(to.change_switch(&from.switch().await?).await?, "it is the first");
    let (_, claims) = from.day_claims(date()?).await?;
    put_claims(&to, &claims.reserved, &from.day_release(date()?).await?.context("no release")?).await?;
    put_cleared(&to, from.cleared(date()?).await?).await?;
    let found: Vec<Finding> = from.findings_of(payment()?).await?.into_iter().collect::<Result<_, _>>()?;
    put_findings(&to, found).await?;
    for name in actions()? {
        let entry = from.audit_entry(name).await?.context("no action")?;
        to.put_audit_intent(&entry.intent).await?;
        if let Some(outcome) = entry.outcome {
            to.put_audit_outcome(name, &outcome).await?;
        }
        if let Some(approval) = from.approval(name).await? {
            to.put_approval(&approval).await?;
        }
    }
    Ok(())
}
