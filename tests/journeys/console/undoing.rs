//! An undo in the console: one person plans, two agree on the plan, and `undo` runs it.

use anyhow::{Context as _, Result};
use payments_store::AuditEntry;
use payments_tests::tables::{NO_DEADLINE, audited};
use payments_tests::{Ask, World, invoke_until};
use serde_json::{Value, json};

use super::acting::{Offered, preview_of};
use super::rent;
use super::second::{ana, bank, ben, decision_on};

/// Invokes the functions that were started, and returns their inputs.
async fn started(world: &World) -> Result<Vec<Value>> {
    let mut inputs = Vec::new();
    while let Some((function, input)) = world.outside.operations.started.take(world.now().as_chrono()) {
        assert_eq!(function, "undo");
        let input: Value = serde_json::from_str(&input)?;
        invoke_until(|event| world.functions().undo.handle(event), input.clone(), NO_DEADLINE).await?;
        inputs.push(input);
    }
    Ok(inputs)
}

/// Ana previews an action, and confirms it.
async fn asked(world: &World, action: &str, form: &str) -> Result<(String, String)> {
    let shown = world.send_authorized(&ana(), preview_of(action, form)).await?.with_status(200)?.text;
    let done = world.send_authorized(&ana(), Offered::parse(&shown)?.ask()).await?.with_status(200)?.text;
    Ok((shown, done))
}

async fn undos(world: &World) -> Result<String> {
    let reply = world.send_authorized(&ana(), Ask::get("/console/views/undos")).await?;
    Ok(reply.with_status(200)?.text)
}

async fn entry(world: &World, action: &str) -> Result<AuditEntry> {
    world.audit_trail().await?.into_iter().find(|entry| entry.intent.action == action).context("no entry")
}

#[tokio::test]
async fn one_person_plans_an_undo_and_two_persons_agree_on_its_run() -> Result<()> {
    let world = bank(0).await?;
    let id = rent(&world, "a").await?;
    let (shown, done) = asked(&world, "plan-undo", &format!("ids={id}")).await?;
    assert!(shown.contains("holds the due dates") && !shown.contains("A second person must agree"), "{shown}");
    assert!(done.contains("is planned within minutes"), "{done}");
    let plan = started(&world).await?;
    let undo = plan[0]["id"].as_str().context("no id")?.to_owned();
    assert_eq!((&plan[0]["action"], &plan[0]["select"]), (&json!("plan"), &json!({ "ids": [id] })));
    let view = undos(&world).await?;
    assert!(view.contains(&undo) && view.contains("plan-1.jsonl.gz") && view.contains("Undo…"), "{view}");

    let form = format!("undo={undo}&plan=1");
    let (shown, waits) = asked(&world, "undo", &form).await?;
    let says = ["A second person must agree", "A cancelled key stays cancelled", "Scheduled", "SHA-256"];
    assert!(says.iter().all(|text| shown.contains(text)), "{shown}");
    assert!(waits.contains("waits for a second person") && started(&world).await?.is_empty(), "{waits}");
    let intent = entry(&world, "undo").await?.intent;
    let hash = intent.first.context("it needs one person")?.hash;
    // Nobody agrees with oneself.
    world.send_authorized(&ana(), decision_on("approve", intent.name, &hash)).await?.with_status(403)?;
    world.send_authorized(&ben(), decision_on("approve", intent.name, &hash)).await?.with_status(200)?;
    world.set_clock("2026-11-20T09:01:00Z")?;
    let run = started(&world).await?;
    assert_eq!((run.len(), &run[0]["approval"]), (1, &json!(intent.name.to_string())));
    assert!(audited(&entry(&world, "undo").await?).contains("it begins within minutes"));
    let status = world.get(&format!("/accounts/tenant/payments/{id}")).await?.body["status"].clone();
    assert_eq!(status, "CANCELLED");
    let view = undos(&world).await?;
    assert!(view.contains("1 cancelled") && view.contains("claimed.csv") && !view.contains("Undo…"), "{view}");
    Ok(())
}

/// What was claimed or created since is another plan of the same undo, with the same selection.
#[tokio::test]
async fn a_plan_is_made_again_from_its_undo() -> Result<()> {
    let world = bank(0).await?;
    rent(&world, "a").await?;
    let first = "client=development&from=2026-11-20T08:00:00Z&to=2026-11-20T09:00:00Z";
    asked(&world, "plan-undo", first).await?;
    let plan = started(&world).await?;
    let undo = plan[0]["id"].as_str().context("no id")?.to_owned();
    let view = undos(&world).await?;
    assert!(view.contains("does not show that a shard of the stream stands still"), "{view}");
    let form = view.split("<form").find(|form| form.contains("Plan again…")).context("no button")?;
    let field = |name: &str| {
        let value = form.split(&format!("name=\"{name}\" value=\"")).nth(1)?;
        value.split('"').next().map(|value| format!("{name}={value}"))
    };
    let fields: Vec<String> = ["client", "from", "to", "undo"].into_iter().filter_map(field).collect();
    assert_eq!(fields.join("&"), format!("{first}&undo={undo}"));
    world.set_clock("2026-11-20T09:10:00Z")?;
    asked(&world, "plan-undo", &fields.join("&")).await?;
    let again = started(&world).await?;
    assert_eq!((&again[0]["id"], &again[0]["select"]), (&json!(undo), &plan[0]["select"]));
    let view = undos(&world).await?;
    assert!(view.contains("plan-2.jsonl.gz") && view.matches("Plan again…").count() == 1, "{view}");
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_planned_or_run_says_why() -> Result<()> {
    let world = bank(0).await?;
    for (action, form, says) in [
        ("plan-undo", "", "choose ids, a file of ids, an account, a client or a due date"),
        ("plan-undo", "due=2026-12-01&ids=x", "choose ids, a file of ids, an account, a client or a due date"),
        ("plan-undo", "file=../plan-1", "that of undo/ids/"),
        ("plan-undo", "ids=x", "This cannot be planned"),
        ("plan-undo", "account=tenant&from=2026-12-02&to=2026-12-01", "give the earlier date"),
        ("plan-undo", "client=feed&from=2026-12-01&to=2026-12-02", "This cannot be planned"),
        ("undo", "undo=0123456789abcdef&plan=1", "the undo has no such plan"),
        ("undo", "undo=0123&plan=1", "16 lower-case hexadecimal digits"),
    ] {
        let reply = world.send_authorized(&ana(), preview_of(action, form)).await?.with_status(400)?;
        assert!(reply.text.contains(says), "{action} {form}: {reply}");
    }
    Ok(())
}
