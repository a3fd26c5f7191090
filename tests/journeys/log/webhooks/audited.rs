//! The audit trail of endpoints: who changed where events go, written before it is done.

use http::Method;
use payments_machine::{Recorder, event};
use payments_store::{AuditEntry, AuditMonth};
use payments_tests::{CrashPoints, TROUBLES};

use super::*;

const PATH: &str = "/webhook-endpoints/erp";

/// What the trail has, the oldest first: an action, who asked for it, and what came of it.
async fn trail(world: &World) -> Result<Vec<AuditEntry>> {
    let page = world.store().await.audit_page(&AuditMonth::of(world.now()), None, 100).await?;
    let mut entries = page.entries.into_iter().collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(|entry| entry.intent.at);
    Ok(entries)
}

fn shown(entry: &AuditEntry) -> (String, String) {
    let outcome = entry.outcome.as_ref().map_or("unknown", |outcome| &outcome.result);
    (format!("{}\n{}", entry.intent.action, entry.intent.arguments), outcome.to_owned())
}

#[tokio::test]
async fn every_change_of_an_endpoint_and_each_look_at_its_secret_is_in_the_audit_trail_and_nothing_else_is()
-> Result<()> {
    let hooks = Hooks::open().await?;
    let world = &hooks.world;
    let body = json!({ "url": format!("http://127.0.0.1:{PORT}/hook"), "description": "books" });
    let mut moved = body.clone();
    (moved["url"], moved["enabled"], moved["types"]) =
        (json!("https://hooks.thief.co.uk/"), json!(false), json!(["payment.scheduled"]));
    let put = |body: &Value| Ask::new(Method::PUT, PATH).json(body);
    let post = |what: &str, body: &Value| Ask::post(&format!("{PATH}/{what}")).json(body);
    let thief = event::jwt(&json!({ "client_id": "operations", "sub": "eve", "scope": "payments/webhooks" }));
    for (minute, (ask, status)) in [
        (put(&body), 201),
        // Nothing changes.
        (put(&body), 200),
        (put(&json!({ "url": "http://example.com/" })), 422),
        (Ask::new(Method::DELETE, "/webhook-endpoints/none"), 404),
        (post("rotate", &json!({ "generation": 9 })), 409),
        (post("skip", &json!({ "eventId": "x" })), 409),
        (put(&moved), 200),
        (post("rotate", &json!({ "generation": 2 })), 200),
        (Ask::get(&format!("{PATH}/secret")), 200),
        (Ask::post(&format!("{PATH}/test")), 202),
        (post("replay", &json!({ "cursor": "1.1.0" })), 200),
        (Ask::new(Method::DELETE, PATH), 200),
    ]
    .into_iter()
    .enumerate()
    {
        world.set_clock(&format!("2026-11-20T10:{minute:02}:00Z"))?;
        let reply = world.send_authorized(&thief, ask.clone()).await?;
        assert_eq!(reply.status, status, "{ask:?}: {reply}");
    }
    let trail = trail(world).await?;
    for AuditEntry { intent, .. } in &trail {
        assert_eq!((intent.by.as_str(), intent.subject.as_deref()), ("c:operations", Some("eve")));
        assert_eq!(intent.request, "test-request");
    }
    let url = format!("http://127.0.0.1:{PORT}/hook");
    let entry = |action: &str, outcome: &str| (action.to_owned(), outcome.to_owned());
    assert_eq!(
        trail.iter().map(shown).collect::<Vec<_>>(),
        [
            entry(
                &format!("put-endpoint\nendpoint: erp\nurl: {url}\ndescription: books\nenabled: true\ncursor: 1.1.0"),
                "erp: created"
            ),
            entry(
                "put-endpoint\nendpoint: erp\nurl: https://hooks.thief.co.uk/\ndescription: books\ntypes: payment.scheduled\nenabled: false",
                "erp: changed"
            ),
            entry("rotate-secret\nendpoint: erp\ngeneration: 2", "erp: rotated"),
            entry("read-secret\nendpoint: erp", "erp: read"),
            entry("test-endpoint\nendpoint: erp", "erp: a test is sent within a minute"),
            entry("replay-endpoint\nendpoint: erp\ncursor: 1.1.0", "erp: it gets the events after 1.1.0 again"),
            entry("delete-endpoint\nendpoint: erp", "erp: deleted"),
        ]
    );
    Ok(())
}

/// The secret has changed, so neither the client nor the trail may hear that it has not.
#[tokio::test]
async fn a_rotation_whose_first_answer_is_lost_is_done() -> Result<()> {
    let world = World::open().await?;
    let put = Ask::new(Method::PUT, PATH).json(&json!({ "url": "https://hooks.shop.co.uk/" }));
    assert_eq!(world.send(put).await?.status, 201);
    let tries = std::sync::atomic::AtomicUsize::new(0);
    let lossy = Recorder::with_fate(move |call| {
        let is_first = call.operation == "UpdateItem" && tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        if is_first { Fate::LoseReply } else { Fate::Pass }
    });
    let rotate = Ask::post(&format!("{PATH}/rotate")).json(&json!({ "generation": 2 }));
    let reply = world.send_named(&world.functions_over(&lossy).await?, "rotates", rotate).await?;
    assert_eq!((reply.status, &reply.body["secretGeneration"]), (200, &json!(2)), "{reply}");
    let trail = trail(&world).await?;
    assert!(
        trail.iter().map(shown).any(|(what, came)| what.starts_with("rotate") && came == "erp: rotated"),
        "{trail:?}"
    );
    Ok(())
}

/// Each call of a PUT fails in each way: what is changed has an intent, and what has none is not changed.
#[tokio::test]
async fn no_endpoint_is_changed_that_the_trail_does_not_have() -> Result<()> {
    let mut points = CrashPoints::new("webhooks-put", TROUBLES);
    while let Some(point) = points.next_case() {
        let world = World::open().await?;
        let put = || Ask::new(Method::PUT, PATH).json(&json!({ "url": "https://hooks.shop.co.uk/" }));
        let recorder = point.recorder();
        let first = world.send_named(&world.functions_over(&recorder).await?, "first", put()).await?;
        let case = format!("{point:?}: {first}");
        if recorder.take_operations().len() <= point.call {
            assert_eq!(first.status, 201, "{case}");
            continue;
        }
        points.failed(point.way.name)?;
        let known = trail(&world).await?;
        let is_there = world.store().await.webhook_endpoint(&id()?).await?.is_some();
        assert!(!is_there || known.len() == 1, "it is there without an intent: {case}");
        let is_known = known.first().is_some_and(|entry| entry.outcome.is_some());
        assert!(is_there || !is_known, "an outcome of nothing: {case}");
        let repeat = world.send_named(world.functions(), "second", put()).await?;
        assert_eq!(repeat.status, if is_there { 200 } else { 201 }, "{case}: {repeat}");
        let all = trail(&world).await?;
        let done = all.iter().filter(|entry| entry.outcome.is_some()).count();
        assert!(done <= 1 && (is_there || done == 1), "{case}: {all:?}");
    }
    let cases = points.cases();
    assert!(cases >= 16, "{cases} cases");
    Ok(())
}
