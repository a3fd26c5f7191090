//! `undo` selects a client's payments by the log, and says why the log may lack some.

use anyhow::Result;
use chrono::TimeDelta;
use payments_model::{Details, Status};
use serde_json::{Value, json};
use undo::PlanOutcome;

use crate::kit::{Alone, TODAY, by_ids, ends};

/// The time of the payments.
const THEN: &str = "2026-11-20T09:00:00Z";

/// The event of a payment that a client creates at a time.
fn scheduled(payment: &Details, client: &str, at: &str) -> Value {
    json!({
        "type": "payment.scheduled", "at": at, "by": { "kind": "client", "name": client },
        "accountId": payment.instruction.account.as_str(), "paymentId": payment.payment_id.to_string(),
        "dueAt": payment.due_at.to_string(),
    })
}

/// The event of a change that selects nothing.
fn change(at: &str) -> Value {
    json!({ "type": "payment.pending", "at": at })
}

impl Alone {
    /// Plans the payments of the client `feed` of a time, by a log that got these events at 09:00, and others 20 minutes later.
    async fn logged(&self, first: &[Value], later: &[Value]) -> Result<PlanOutcome> {
        self.given.segment(first).await?;
        self.given.pass(TimeDelta::minutes(20));
        self.given.segment(later).await?;
        self.plan_client().await
    }

    async fn plan_client(&self) -> Result<PlanOutcome> {
        self.plan(json!({ "client": { "name": "feed", "from": THEN, "to": "2026-11-20T09:01:00Z" } })).await
    }
}

#[tokio::test]
async fn payments_are_selected_by_their_client_and_time() -> Result<()> {
    let alone = Alone::start().await?;
    let feed = alone.given.scheduled("one", TODAY).await?;
    let sent = alone.given.pending("sent").await?;
    let cut_off_from_hot = alone.cut_off("lost", TODAY).await?;
    let other = alone.given.scheduled("other", TODAY).await?;
    let earlier = alone.given.scheduled("earlier", TODAY).await?;
    let first = [
        scheduled(&earlier, "feed", "2026-11-20T08:59:59Z"),
        scheduled(&feed, "feed", THEN),
        scheduled(&sent, "feed", "2026-11-20T09:01:00Z"),
        scheduled(&cut_off_from_hot, "feed", THEN),
        scheduled(&other, "app", THEN),
    ];
    let plan = alone.logged(&first, &[change("2026-11-20T09:20:00Z")]).await?;
    assert_eq!((plan.payments, &*plan.inexact), (3, [].as_slice()), "{plan:?}");
    let run = alone.run(&plan, false).await?;
    assert_eq!(ends(&run), json!({ "cancelled": 2, "claimed": 1 }));
    for (payment, status) in [(&feed, Status::Cancelled), (&other, Status::Scheduled), (&earlier, Status::Scheduled)] {
        assert_eq!(alone.status(payment).await?, status, "{}", payment.payment_id);
    }
    Ok(())
}

/// An exact plan needs a log that has all changes of the time, and that says so.
#[tokio::test]
async fn a_plan_by_a_log_that_may_lack_payments_is_inexact_and_says_why() -> Result<()> {
    let (before, after) = (change("2026-11-20T08:30:00Z"), change("2026-11-20T09:20:00Z"));
    let gap = |since: Value, until: &str| json!({ "type": "log.gap", "at": THEN, "since": since, "until": until });
    let irregular = |at: &str| json!({ "type": "payment.irregular", "at": at, "paymentId": "626e8292" });
    let (early, late) = ("2026-11-20T08:40:00Z", "2026-11-20T09:10:00Z");
    for (first, later, reason) in [
        (vec![before.clone()], vec![after.clone()], ""),
        (vec![before.clone(), gap(Value::Null, early), irregular(early)], vec![after.clone()], ""),
        (vec![before.clone(), gap(json!(late), late)], vec![after.clone()], ""),
        (vec![change("2026-11-20T09:00:30Z")], vec![after.clone()], "no event from before 2026-11-20T09:00:00Z"),
        (vec![before.clone(), gap(Value::Null, late)], vec![after.clone()], "changes to 2026-11-20T09:10:00Z may be"),
        (vec![before.clone(), irregular(late)], vec![after.clone()], "irregular change of 626e8292"),
        (vec![before.clone()], vec![change(THEN), after.clone()], "came within the last 10 minutes"),
        (vec![before.clone()], vec![before.clone()], "no event from after 2026-11-20T09:01:00Z"),
        (vec![before.clone(), json!({ "type": "payment.new", "at": THEN })], vec![after.clone()], "cannot be read"),
    ] {
        let alone = Alone::start().await?;
        let plan = alone.logged(&first, &later).await?;
        let found = plan.inexact.iter().any(|known| known.contains(reason));
        assert_eq!((found, plan.inexact.is_empty()), (!reason.is_empty(), reason.is_empty()), "{reason}: {plan:?}");
    }
    let alone = Alone::start().await?;
    let plan = alone.plan_client().await?;
    assert!(plan.inexact.iter().any(|reason| reason == "the log has no head"), "{plan:?}");
    let plan = alone.logged(std::slice::from_ref(&before), std::slice::from_ref(&after)).await?;
    assert!(plan.inexact.is_empty(), "{plan:?}");
    alone.given.remove_segment(1).await?;
    let plan = alone.plan_client().await?;
    assert!(plan.inexact.iter().any(|reason| reason.contains("the log has a hole")), "{plan:?}");
    Ok(())
}

#[tokio::test]
async fn the_log_is_read_to_its_end_and_the_last_minutes_are_never_exact() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    // The create was cut off, and completed 20 minutes later.
    let plan = alone
        .logged(&[change("2026-11-20T08:30:00Z")], &[change("2026-11-20T09:19:00Z"), scheduled(&payment, "feed", THEN)])
        .await?;
    assert_eq!((plan.payments, plan.inexact.len()), (1, 1), "{plan:?}");
    let recent = json!({ "client": { "name": "feed", "from": THEN, "to": "2026-11-20T09:10:00Z" } });
    let plan = alone.plan(recent).await?;
    assert!(plan.inexact.iter().any(|reason| reason.contains("less than 15 minutes ago")), "{plan:?}");
    Ok(())
}

#[tokio::test]
async fn an_inexact_plan_runs_only_if_its_request_says_so() -> Result<()> {
    let alone = Alone::start().await?;
    let payment = alone.given.scheduled("one", TODAY).await?;
    let plan = alone.logged(&[scheduled(&payment, "feed", THEN)], &[change(THEN)]).await?;
    assert_eq!((plan.payments, plan.inexact.len()), (1, 2), "{plan:?}");
    let error = alone.run(&plan, false).await.unwrap_err().to_string();
    assert!(error.contains("may lack payments: ") && error.contains(&plan.inexact[0]), "{error}");
    assert_eq!(alone.status(&payment).await?, Status::Scheduled);
    assert_eq!(
        ends(&alone.run_with(&plan, json!({ "ticket": "INC-4711", "acceptInexact": true })).await?),
        json!({ "cancelled": 1 })
    );
    let exact = alone.plan(by_ids(&[&payment])).await?;
    assert!(alone.run(&exact, false).await?.has_ended);
    Ok(())
}
