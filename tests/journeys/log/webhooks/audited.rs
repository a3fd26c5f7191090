//! The audit trail of endpoints: the author of each change, written before the change.

use payments_machine::{Recorder, event};
use payments_store::AuditEntry;
use payments_tests::tables::audited;
use payments_tests::{CrashPoints, TROUBLES};

use super::*;

/// An action, its arguments, and its outcome.
fn shown(entry: &AuditEntry) -> String {
    format!("{}\n{}\n{}", entry.intent.action, entry.intent.arguments, audited(entry))
}

#[tokio::test]
async fn every_change_of_an_endpoint_and_each_look_at_its_secret_is_in_the_audit_trail_and_nothing_else_is()
-> Result<()> {
    let world = World::open().await?;
    let books = put("erp", &json!({ "description": "books" }));
    let moved = json!({
        "description": "books", "url": "https://hooks.thief.co.uk/", "enabled": false, "types": ["payment.scheduled"],
    });
    let thief = event::jwt(&json!({ "client_id": "operations", "sub": "eve", "scope": "payments/webhooks" }));
    for (minute, (ask, status)) in [
        (books.clone(), 201),
        // Nothing changes.
        (books, 200),
        (put("erp", &json!({ "url": "http://example.com/" })), 422),
        (delete("none"), 404),
        (post("rotate", &json!({ "generation": 9 })), 409),
        (post("skip", &json!({ "eventId": "x" })), 409),
        (put("erp", &moved), 200),
        (post("rotate", &json!({ "generation": 2 })), 200),
        (Ask::get(&format!("{}/secret", path("erp"))), 200),
        (ask_test(), 202),
        (post("replay", &json!({ "cursor": "1.1.0" })), 200),
        (delete("erp"), 200),
    ]
    .into_iter()
    .enumerate()
    {
        world.set_clock(&format!("2026-11-20T10:{minute:02}:00Z"))?;
        world.send_authorized(&thief, ask.clone()).await?.with_status(status).with_context(|| format!("{ask:?}"))?;
    }
    let mut trail = world.audit_trail().await?;
    trail.reverse();
    for AuditEntry { intent, .. } in &trail {
        assert_eq!((intent.by.as_str(), intent.subject.as_deref()), ("c:operations", Some("eve")));
        assert_eq!(intent.request, "test-request");
    }
    assert_eq!(
        trail.iter().map(shown).collect::<Vec<_>>(),
        [
            "put-endpoint\nendpoint: erp\nurl: http://127.0.0.1:7001/hook\ndescription: books\nenabled: true\ncursor: 1.1.0\nerp: created",
            "put-endpoint\nendpoint: erp\nurl: https://hooks.thief.co.uk/\ndescription: books\ntypes: payment.scheduled\nenabled: false\n\
             erp: changed",
            "rotate-secret\nendpoint: erp\ngeneration: 2\nerp: rotated",
            "read-secret\nendpoint: erp\nerp: read",
            "test-endpoint\nendpoint: erp\nerp: a test is sent within a minute",
            "replay-endpoint\nendpoint: erp\ncursor: 1.1.0\nerp: it gets the events after 1.1.0 again",
            "delete-endpoint\nendpoint: erp\nerp: deleted",
        ]
    );
    Ok(())
}

/// The secret has changed, so neither the client nor the trail may hear that it has not.
#[tokio::test]
async fn a_rotation_whose_first_answer_is_lost_is_done() -> Result<()> {
    let world = World::open().await?;
    world.answered(put("erp", &json!({})), 201).await?;
    let tries = AtomicUsize::new(0);
    let lossy = Recorder::with_fate(move |call| {
        let is_first = call.operation == "UpdateItem" && tries.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first { Fate::LoseReply } else { Fate::Pass }
    });
    let functions = world.functions_over(&lossy).await?;
    let rotated =
        world.send_named(&functions, "rotates", post("rotate", &json!({ "generation": 2 }))).await?.with_status(200)?;
    assert_eq!(rotated.body["secretGeneration"], 2, "{rotated}");
    let trail = world.audit_trail().await?;
    let is_rotated = |entry: &AuditEntry| entry.intent.action == "rotate-secret" && audited(entry) == "erp: rotated";
    assert!(trail.iter().any(is_rotated), "{trail:?}");
    Ok(())
}

/// Each call of a PUT fails in each way: every change has an intent.
#[tokio::test]
async fn no_endpoint_is_changed_that_the_trail_does_not_have() -> Result<()> {
    let mut points = CrashPoints::new("webhooks-put", TROUBLES);
    while let Some(point) = points.next_case() {
        let world = World::open().await?;
        let put = put("erp", &json!({}));
        let recorder = point.recorder();
        let first = world.send_named(&world.functions_over(&recorder).await?, "first", put.clone()).await?;
        let case = format!("{point:?}: {first}");
        if recorder.take_operations().len() <= point.call {
            first.with_status(201).context(case)?;
            continue;
        }
        points.failed(point.way.name)?;
        let known = world.audit_trail().await?;
        let is_there = world.store().await.webhook_endpoint(&id()?).await?.is_some();
        assert!(!is_there || known.len() == 1, "the endpoint exists without an intent: {case}");
        let is_known = known.first().is_some_and(|entry| entry.outcome.is_some());
        assert!(is_there || !is_known, "an outcome of nothing: {case}");
        let repeat = world.send_named(world.functions(), "second", put).await?;
        repeat.with_status(if is_there { 200 } else { 201 }).with_context(|| case.clone())?;
        let all = world.audit_trail().await?;
        let done = all.iter().filter(|entry| entry.outcome.is_some()).count();
        assert!(done <= 1 && (is_there || done == 1), "{case}: {all:?}");
    }
    assert!(points.cases() >= 16, "{points:?}");
    Ok(())
}
