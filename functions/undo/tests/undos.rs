//! `undo` alone over the machine: a run cancels the payments of its plan as they were planned, and nothing else.

#[path = "undos/ids.rs"]
mod ids;
#[path = "undos/kit.rs"]
mod kit;
#[path = "undos/logged.rs"]
mod logged;

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use object_store::ObjectStoreExt as _;
use payments_machine::given::Given;
use payments_model::{
    Actor, BusinessDate, DataHash, Event, Failure, Head, LAST_CREATE, SealedData, Settlement, Status, UndoId,
};
use payments_store::DueSort;
use serde_json::json;
use undo::{Config, PlanOutcome, Undo, UndoOutcome};

use self::kit::{Alone, ID, NOW, TODAY, by_ids, ends, one};

/// A settlement with this transaction id, or a failure without one.
fn settlement(transaction: &str) -> Result<Settlement> {
    Ok(match transaction {
        "" => Settlement::Failed(Failure::new(Some("AC07"), "The payee's account is closed.")),
        id => Settlement::Processed(id.parse()?),
    })
}

#[tokio::test]
async fn scheduled_payments_of_a_plan_are_cancelled_and_nothing_else_is_touched() -> Result<()> {
    let alone = Alone::start().await?;
    let (one, two) = (alone.given.scheduled("one", TODAY).await?, alone.given.scheduled("two", TODAY).await?);
    let pending = alone.given.pending("pending").await?;
    let other_date = alone.given.scheduled("other-date", "2026-11-21").await?;
    let plan = alone.plan(json!({ "dueDate": TODAY })).await?;
    let totals: Vec<_> = plan.totals.iter().map(|total| (total.status.as_deref(), total.count, &*total.sum)).collect();
    assert_eq!(totals, [(Some("SCHEDULED"), 2, "1000"), (Some("PENDING"), 1, "500")], "{plan:?}");
    let later = alone.given.scheduled("later", TODAY).await?;

    let switch = alone.given.store.switch().await?;
    assert!(switch.is_held(TODAY.parse()?) && !switch.is_held("2026-11-21".parse::<BusinessDate>()?), "{switch:?}");
    let run = alone.run(&plan, false).await?;
    assert_eq!((ends(&run), run.has_ended), (json!({ "cancelled": 2, "claimed": 1 }), true), "{run:?}");
    assert!(alone.given.stack.clock.now() >= "2026-11-20T09:00:10Z".parse()?, "the run did not wait for the hold");
    for (payment, status) in [
        (&one, Status::Cancelled),
        (&two, Status::Cancelled),
        (&pending, Status::Pending),
        (&other_date, Status::Scheduled),
        (&later, Status::Scheduled),
    ] {
        assert_eq!(alone.status(payment).await?, status, "{}", payment.payment_id);
    }
    assert_eq!(alone.head(&one).await?.last_change().1, &ID.parse::<UndoId>()?.actor());
    let claimed = alone.given.stack.reports.get(&run.claimed.as_str().into()).await?.bytes().await?;
    let claimed = String::from_utf8(claimed.to_vec())?;
    assert_eq!(claimed.lines().count(), 2);
    assert!(claimed.contains(&pending.payment_id.to_string()), "{claimed}");
    assert_eq!(alone.given.raised()?, ["FourEyesBypassed 1", "Undone 2"]);
    assert_eq!(alone.given.store.open_undos().await?, []);
    // Another plan of the same undo has what came later, and what was not cancelled.
    let next = alone.plan(json!({ "dueDate": TODAY })).await?;
    assert_eq!((next.plan, next.payments), (2, 2));
    Ok(())
}

/// Of what was sent, the transaction service's operators must know what was paid by then.
#[tokio::test]
async fn what_was_claimed_is_listed_with_its_status_also_if_it_was_settled() -> Result<()> {
    let alone = Alone::start().await?;
    let pending = alone.given.pending("pending").await?;
    let settled = async |key: &str, how: &str| alone.given.settled_as(key, settlement(how)?, |_| {}).await;
    let (processed, failed) = (settled("processed", "TX-1").await?, settled("failed", "").await?);
    let run = alone.run(&alone.plan(by_ids(&[&pending, &processed, &failed])).await?, false).await?;
    assert_eq!(ends(&run), json!({ "claimed": 1, "processed": 1, "failed": 1 }));
    let claimed = alone.given.stack.reports.get(&run.claimed.as_str().into()).await?.bytes().await?;
    let claimed = String::from_utf8(claimed.to_vec())?;
    for (payment, status) in [(&pending, "PENDING"), (&processed, "PROCESSED"), (&failed, "FAILED")] {
        let line = format!("{},tenant,landlord,500,GBP,{status}", payment.payment_id);
        assert!(claimed.lines().any(|known| known == line), "{line} in {claimed}");
    }
    Ok(())
}

#[tokio::test]
async fn an_account_is_planned_by_its_due_dates() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", "2026-11-21").await?;
    alone.given.scheduled("two", "2026-11-23").await?;
    let other = |instruction: &mut payments_model::Instruction| instruction.account = "another".parse().unwrap();
    alone.given.scheduled_as("three", "2026-11-21", other).await?;
    let plan = alone.plan(json!({ "account": { "id": "tenant", "from": TODAY, "to": "2026-11-22" } })).await?;
    assert_eq!(plan.payments, 1);
    assert_eq!(ends(&alone.run(&plan, false).await?), json!({ "cancelled": 1 }));
    assert_eq!(alone.status(&payment).await?, Status::Cancelled);
    Ok(())
}

#[tokio::test]
async fn only_the_plan_that_was_approved_runs() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    let plan = alone.plan(by_ids(&[&payment])).await?;
    let other = PlanOutcome { sha256: "0".repeat(64), ..plan.clone() };
    let error = alone.run(&other, false).await.unwrap_err().to_string();
    assert!(error.contains("does not have the approved SHA-256"), "{error}");
    let error = alone.run(&PlanOutcome { plan: 7, ..plan.clone() }, false).await.unwrap_err().to_string();
    assert!(error.contains("has no plan 7"), "{error}");
    // Another file in the plan's place.
    let (files, path) = (&alone.given.stack.reports, plan.file.as_str().into());
    files.put(&path, b"another plan".as_slice().into()).await?;
    let error = alone.run(&plan, false).await.unwrap_err().to_string();
    assert!(error.contains("does not have the approved SHA-256"), "{error}");
    assert_eq!(alone.status(&payment).await?, Status::Scheduled);
    Ok(())
}

#[tokio::test]
async fn a_plan_never_replaces_a_file() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    // As of a plan that was written, and not noted.
    let (files, first) = (&alone.given.stack.reports, payments_files::plan_path(&ID.parse()?, 1));
    files.put(&first, b"a plan".as_slice().into()).await?;
    assert_eq!(alone.plan(by_ids(&[&payment])).await?.plan, 2);
    assert_eq!(files.get(&first).await?.bytes().await?, b"a plan".as_slice());
    Ok(())
}

#[tokio::test]
async fn an_undo_has_at_most_32_plans() -> Result<()> {
    let alone = Alone::start().await?;
    for number in 1..=32 {
        assert_eq!(alone.plan(json!({ "dueDate": TODAY })).await?.plan, number);
    }
    drop(alone.given.raised()?);
    let error = alone.plan(json!({ "dueDate": TODAY })).await.err().context("a plan too many")?;
    assert!(error.to_string().contains("give the next plan a new id"), "{error}");
    // The console does not wait for the answer.
    assert!(alone.given.raised()?.contains(&"UndoUnfinished 1".to_owned()));
    Ok(())
}

#[tokio::test]
async fn an_amended_payment_is_left_as_it_is() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    let plan = alone.plan(by_ids(&[&payment])).await?;
    alone.amend(&payment).await?;
    assert_eq!(ends(&alone.run(&plan, false).await?), json!({ "amended": 1 }));
    assert_eq!(alone.status(&payment).await?, Status::Scheduled);
    // As it is now, it is planned and cancelled.
    let plan = alone.plan(by_ids(&[&payment])).await?;
    assert_eq!(ends(&alone.run(&plan, false).await?), json!({ "cancelled": 1 }));
    Ok(())
}

#[tokio::test]
async fn a_create_that_was_cut_off_is_completed_and_cancelled_or_listed_if_it_is_too_late() -> Result<()> {
    // A create that began before 00:30, the last time, may write the head until 00:32.
    let last = TimeDelta::hours(15) + TimeDelta::minutes(30);
    for (pass, end) in [
        (TimeDelta::zero(), "cancelled"),
        (last + TimeDelta::seconds(30), "cancelled"),
        (last + LAST_CREATE, "never-created"),
    ] {
        let alone = Alone::start().await?;
        let payment = alone.cut_off("one", TODAY).await?;
        let plan = alone.plan(by_ids(&[&payment])).await?;
        assert_eq!((plan.totals[0].status.as_deref(), plan.payments), (None, 1));
        alone.given.pass(pass);
        assert_eq!(ends(&alone.run(&plan, false).await?), json!({ end: 1 }));
        // A repetition of the create finds the cancelled payment, and a payment that can no longer be created has no head.
        let head = alone.given.store.head(&payment.key()).await?.map(|head| head.state.status());
        assert_eq!(head, (end == "cancelled").then_some(Status::Cancelled));
    }
    Ok(())
}

/// A sealed payment had ended, so a head that is lost is not built anew.
#[tokio::test]
async fn a_sealed_payment_without_a_head_is_lost_and_not_created() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.cut_off("one", TODAY).await?;
    let plan = alone.plan(by_ids(&[&payment])).await?;
    let store = &alone.given.store;
    let details = store.all_details(payment.payment_id).await?.pop().context("no details")?;
    let sealed = SealedData { place: "2026-11-20/1/0".parse()?, hash: DataHash::new("{}") };
    assert!(store.clear_data(&details, Some(&sealed), None).await?);
    assert_eq!(ends(&alone.run(&plan, false).await?), json!({ "lost": 1 }));
    assert!(store.head(&payment.key()).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_payment_that_was_claimed_when_it_was_planned_is_never_cancelled() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.pending("one").await?;
    let plan = alone.plan(by_ids(&[&payment])).await?;
    // A restore to before the claim, whose request was sent.
    let pending = alone.given.store.stored_head(&payment.key()).await?.context("no head")?;
    alone.given.store.remove_head(&pending).await?;
    alone.given.store.put_head(&Head::scheduled(&payment)).await?;
    assert_eq!(ends(&alone.run(&plan, false).await?), json!({ "claimed": 1 }));
    assert_eq!(alone.status(&payment).await?, Status::Scheduled);
    Ok(())
}

#[tokio::test]
async fn a_run_begins_again_after_a_restore_although_the_tables_do_not_know_it() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    let plan = alone.plan(by_ids(&[&payment])).await?;
    let run = alone.run(&plan, false).await?;
    assert_eq!(alone.run(&plan, false).await?.ends, run.ends, "a run that ended is left as it is");
    // The tables are of before: nothing is planned, and the payment is scheduled.
    let restored = Alone { given: Given::at(NOW, |_| {}).await?, undo: alone.undo.clone() };
    restored.given.scheduled("one", TODAY).await?;
    let file = alone.given.stack.reports.get(&plan.file.as_str().into()).await?.bytes().await?;
    restored.given.stack.reports.put(&plan.file.as_str().into(), file.into()).await?;
    let files = std::sync::Arc::clone(&restored.given.stack.reports);
    let new = |config, store, clock, metrics| Undo::new(config, store, files, clock, metrics);
    let undo = restored.given.function("undo", Config::read, new)?;
    let restored = Alone { undo, ..restored };
    for again in [false, true] {
        let run = restored.run(&plan, again).await?;
        assert_eq!((ends(&run), run.has_ended), (json!({ "cancelled": 1 }), true), "again: {again}");
    }
    assert_eq!(restored.status(&payment).await?, Status::Cancelled);
    Ok(())
}

/// The results say that the payment is cancelled, but a restored head is scheduled.
#[tokio::test]
async fn a_run_begins_again_with_its_plan_and_not_after_its_results() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    let plan = alone.plan(by_ids(&[&payment])).await?;
    alone.run(&plan, false).await?;
    let cancelled = alone.given.store.stored_head(&payment.key()).await?.context("no head")?;
    alone.given.store.remove_head(&cancelled).await?;
    alone.given.store.put_head(&Head::scheduled(&payment)).await?;
    for (again, status) in [(false, Status::Scheduled), (true, Status::Cancelled)] {
        assert_eq!(ends(&alone.run(&plan, again).await?), json!({ "cancelled": 1 }));
        assert_eq!(alone.status(&payment).await?, status, "again: {again}");
    }
    Ok(())
}

#[tokio::test]
async fn a_run_without_time_is_open_and_the_schedule_goes_on_with_it() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    let plan = alone.plan(by_ids(&[&payment])).await?;
    let request = json!({ "action": "run", "id": ID, "plan": 1, "sha256": plan.sha256, "ticket": "INC-4711" });
    let mut event = alone.given.scheduled_event(request)?;
    // Enough for the approval, and not for the hold.
    event.context.deadline -= 880_000;
    let run = one(alone.undo.handle(event).await.map_err(anyhow::Error::from_boxed)?)?;
    assert_eq!((run.place, run.has_ended), (0, false));
    assert_eq!(alone.given.store.open_undos().await?, [ID.parse()?]);
    alone.given.pass(TimeDelta::hours(3));
    let run = one(alone.ask(json!({ "action": "continue" })).await?)?;
    assert_eq!((ends(&run), run.has_ended), (json!({ "cancelled": 1 }), true));
    assert_eq!(alone.ask(json!({ "action": "continue" })).await?, UndoOutcome::Ran { runs: Vec::new() });
    Ok(())
}

#[tokio::test]
async fn a_payment_that_an_earlier_run_found_claimed_is_never_cancelled() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    let plan = alone.plan(by_ids(&[&payment])).await?;
    // The sweep read the hold after its claim.
    let head = alone.head(&payment).await?;
    let step = head.transition(&Event::Sweep, alone.given.stack.clock.now(), Actor::sweep())?;
    alone.given.store.transition(&head.key(), DueSort::from_head(&head), &step).await?;
    assert_eq!(ends(&alone.run(&plan, false).await?), json!({ "claimed": 1 }));
    let pending = alone.given.store.stored_head(&payment.key()).await?.context("no head")?;
    alone.given.store.remove_head(&pending).await?;
    alone.given.store.put_head(&Head::scheduled(&payment)).await?;
    assert_eq!(ends(&alone.run(&plan, true).await?), json!({ "claimed": 1 }));
    assert_eq!(alone.status(&payment).await?, Status::Scheduled);
    Ok(())
}

#[tokio::test]
async fn a_run_that_fails_sets_off_an_alarm_and_stops_no_other() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    let plan = alone.plan(by_ids(&[&payment])).await?;
    let request = json!({ "action": "run", "id": ID, "plan": 1, "sha256": plan.sha256, "ticket": "INC-4711" });
    let mut event = alone.given.scheduled_event(request)?;
    event.context.deadline -= 880_000;
    one(alone.undo.handle(event).await.map_err(anyhow::Error::from_boxed)?)?;
    alone.given.stack.reports.put(&plan.file.as_str().into(), b"another plan".as_slice().into()).await?;
    drop(alone.given.raised()?);
    let error = alone.ask(json!({ "action": "continue" })).await.unwrap_err().to_string();
    assert!(error.contains("does not have the approved SHA-256"), "{error}");
    let raised = alone.given.raised()?;
    assert!(raised.contains(&"UndoUnfinished 1".to_owned()), "{raised:?}");
    Ok(())
}

/// The approval of two persons for this plan. The run goes on with it however long it takes.
#[tokio::test]
async fn a_run_checks_the_approval_that_it_names() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    let plan = alone.plan(by_ids(&[&payment])).await?;
    let request = |name: &str| json!({ "action": "run", "id": ID, "plan": 1, "sha256": plan.sha256, "approval": name });
    let agreed = async |persons: (&str, &str), sha256: &str| {
        let fields = payments_model::undo::fields(&ID.parse()?, (1, sha256), false);
        Ok::<_, anyhow::Error>(alone.given.agreed(persons, ("undo", &fields)).await?.to_string())
    };
    for (name, why) in [
        (agreed(("ana", "ana"), &plan.sha256).await?, "another person has to decide"),
        (agreed(("ana", "ben"), &"0".repeat(64)).await?, "this is not the plan on which two persons decided"),
    ] {
        let refused = alone.ask(request(&name)).await.err().context("it is refused")?.to_string();
        assert!(refused.contains(why) && refused.contains("send \"ticket\""), "{refused}");
        assert_eq!(
            (alone.given.store.open_undos().await?, alone.given.raised()?),
            (vec![], vec!["UndoUnfinished 1".into()])
        );
    }
    alone.given.pass(TimeDelta::seconds(1));
    let name = agreed(("ana", "ben"), &plan.sha256).await?;
    let mut event = alone.given.scheduled_event(request(&name))?;
    event.context.deadline -= 880_000;
    let run = one(alone.undo.handle(event).await.map_err(anyhow::Error::from_boxed)?)?;
    assert_eq!((run.has_ended, run.ticket, alone.given.raised()?), (false, None, Vec::new()));
    alone.given.pass(TimeDelta::hours(5));
    let run = one(alone.ask(request(&name)).await?)?;
    assert_eq!((ends(&run), run.has_ended), (json!({ "cancelled": 1 }), true));
    // To begin again is another run, and needs an approval of its own.
    let mut again = request(&name);
    again["again"] = json!(true);
    let late = alone.ask(again).await.err().context("it is refused")?.to_string();
    assert!(late.contains("the four hours for a second person are over"), "{late}");
    Ok(())
}

#[tokio::test]
async fn a_run_with_a_ticket_sets_off_an_alarm_once() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    let plan = alone.plan(by_ids(&[&payment])).await?;
    for (raised, ticket) in [(true, "INC-4711"), (false, "INC-4712")] {
        drop(alone.given.raised()?);
        let request = json!({ "action": "run", "id": ID, "plan": 1, "sha256": plan.sha256, "ticket": ticket });
        let run = one(alone.ask(request).await?)?;
        assert_eq!(run.ticket.as_deref(), Some("INC-4711"));
        assert_eq!(alone.given.raised()?.contains(&"FourEyesBypassed 1".to_owned()), raised, "{ticket}");
    }
    Ok(())
}
