//! Actions of operators: previewed, confirmed once, and in the audit trail whatever fails.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use payments_bank::Functions;
use payments_machine::{Fate, Recorder};
use payments_model::{Event, PaymentId};
use payments_store::{AuditEntry, AuditMonth};
use payments_tests::given::move_on;
use payments_tests::tables::details_key;
use payments_tests::{Ask, CrashPoint, CrashPoints, Reply, TROUBLES, Way, World};
use serde_json::{Value, json};

use super::{form, page, payment};

/// The most items that a test's trail has.
const ALL: u16 = 500;

/// A request for an action.
pub(super) fn action(name: &str, fields: &[(&str, &str)]) -> Ask {
    let ask = Ask::post(&format!("/console/actions/{name}"));
    ask.header("Content-Type", "application/x-www-form-urlencoded").text(form(fields))
}

/// An action as its preview offers it: its name and the fields of its form.
#[derive(Debug, Clone)]
pub(super) struct Offered {
    name: String,
    fields: Vec<(String, String)>,
}

impl Offered {
    /// Reads the form of a preview.
    fn of(text: &str) -> Result<Self> {
        let (_, form) = text.split_once("<form data-action=\"").with_context(|| format!("no form: {text}"))?;
        let (name, form) = form.split_once('"').context("no name")?;
        let inputs = form.split("<input type=\"hidden\" name=\"").skip(1);
        let fields = inputs.filter_map(|input| {
            let (name, rest) = input.split_once("\" value=\"")?;
            let value = rest.split_once('"')?.0;
            let value = value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
            Some((name.to_owned(), value))
        });
        Ok(Self { name: name.to_owned(), fields: fields.collect() })
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.retain(|(known, _)| known != name);
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn ask(&self) -> Ask {
        let fields: Vec<_> = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        action(&self.name, &fields)
    }
}

/// Previews an action.
pub(super) async fn preview(world: &World, name: &str, fields: &[(&str, &str)]) -> Result<String> {
    let fields: Vec<_> = fields.iter().copied().chain([("step", "preview")]).collect();
    let reply = world.send(action(name, &fields)).await?;
    ensure!(reply.status == 200, "{name}: {reply}");
    Ok(reply.text)
}

pub(super) async fn offered(world: &World, name: &str, fields: &[(&str, &str)]) -> Result<Offered> {
    Offered::of(&preview(world, name, fields).await?)
}

/// Confirms an action with a request of its own.
pub(super) async fn confirm(world: &World, request: &str, offered: &Offered) -> Result<Reply> {
    world.send_named(world.functions(), request, offered.ask()).await
}

/// The trail of the month, the newest first.
pub(super) async fn trail(world: &World) -> Result<Vec<AuditEntry>> {
    let page = world.store().await.audit_page(&AuditMonth::of(world.now()), None, ALL).await?;
    Ok(page.entries.into_iter().collect::<Result<_, _>>()?)
}

/// A scheduled, a cancelled and a pending payment, and an id of none.
async fn mixed(world: &World) -> Result<[String; 4]> {
    let scheduled = world.create("tenant", "a", &payment("2026-12-01")).await?;
    let cancelled = world.create("tenant", "b", &payment("2026-12-01")).await?;
    world.cancel("tenant", &cancelled).await?;
    let pending = world.create("tenant", "c", &payment("2026-12-01")).await?;
    let id: PaymentId = pending.parse()?;
    move_on(world, id, vec![Event::Sweep], "2026-12-01T10:00:00Z").await?;
    Ok([scheduled, cancelled, pending, "00000000-0000-5000-8000-000000000000".to_owned()])
}

async fn status_of(world: &World, id: &str) -> Result<Value> {
    Ok(world.send(Ask::get(&format!("/accounts/tenant/payments/{id}"))).await?.body["status"].clone())
}

#[tokio::test]
async fn a_cancel_says_what_it_will_touch_and_what_it_did() -> Result<()> {
    let world = World::open().await?;
    let ids = mixed(&world).await?;
    drop(world.recorder.take_operations());
    let shown = preview(&world, "cancel", &[("payments", &ids.join("\r\n"))]).await?;
    let operations = world.recorder.take_operations();
    assert!(operations.iter().all(|operation| operation == "GetItem"), "a preview writes nothing: {operations:?}");
    for text in
        ["Cancel 4 payments", "1 of 4 payments", "SCHEDULED", "CANCELLED", "PENDING", "there is no such payment"]
    {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert_eq!(shown.matches("1\u{202f}234\u{202f}567").count(), 3, "{shown}");
    assert!(ids.iter().all(|id| shown.contains(id.as_str())));
    assert_eq!(shown.matches("<form").count(), 1);
    assert_eq!(status_of(&world, &ids[0]).await?, "SCHEDULED");

    let offered = Offered::of(&shown)?;
    drop(world.recorder.take_operations());
    let done = confirm(&world, "first", &offered).await?;
    ensure!(done.status == 200, "{done}");
    let operations = world.recorder.take_operations();
    let writes = |operation: &&String| *operation != "GetItem";
    // What the preview left as it is is not even tried.
    let wanted = ["PutItem", "UpdateItem", "PutItem"];
    assert_eq!(operations.iter().filter(writes).collect::<Vec<_>>(), wanted);
    let [scheduled, ..] = &ids;
    let wanted = format!("{scheduled}: CANCELLED");
    let all = trail(&world).await?;
    let [entry] = all.as_slice() else { anyhow::bail!("{all:?}") };
    assert_eq!(entry.outcome.as_ref().map(|outcome| outcome.result.as_str()), Some(wanted.as_str()));
    assert_eq!((entry.intent.by.as_str(), entry.intent.action.as_str()), ("o:local-development", "cancel"));
    assert_eq!(entry.intent.arguments, format!("payments: {scheduled}"));
    let view = page(&world, "audit").await?;
    for line in wanted.lines() {
        assert!(done.text.contains(line), "{line}: {done}");
        assert!(view.contains(line), "{line}: {view}");
    }
    assert_eq!(status_of(&world, &ids[0]).await?, "CANCELLED");
    assert!(page(&world, &format!("payment?id={scheduled}")).await?.contains("o:local-development"));

    // The same confirmation again, as a browser or an operator sends it.
    drop(world.recorder.take_operations());
    let again = confirm(&world, "second", &offered).await?;
    assert_eq!((again.status, &again.text), (200, &done.text));
    assert_eq!(world.recorder.take_operations(), ["PutItem", "Query"]);
    assert_eq!(trail(&world).await?, all);
    Ok(())
}

#[tokio::test]
async fn what_changed_since_the_preview_is_said() -> Result<()> {
    let world = World::open().await?;
    let mut ids = Vec::new();
    for key in ["a", "b", "c", "d"] {
        ids.push(world.create("tenant", key, &payment("2026-12-01")).await?);
    }
    let offered = offered(&world, "cancel", &[("payments", &ids.join("\n"))]).await?;
    world.set_clock("2026-11-20T09:01:00Z")?;
    world.cancel("tenant", &ids[1]).await?;
    let pending: PaymentId = ids[2].parse()?;
    move_on(&world, pending, vec![Event::Sweep], "2026-12-01T10:00:00Z").await?;
    let (client, table) = (world.client().await, world.environment.tables.history.clone());
    let damage = client.update_item().table_name(table).set_key(Some(details_key(&ids[3])));
    damage.update_expression("REMOVE currency").send().await?;
    world.set_clock("2026-11-20T09:02:00Z")?;
    let done = confirm(&world, "first", &offered).await?;
    ensure!(done.status == 200, "{done}");
    let [scheduled, cancelled, pending, damaged] = ids.as_slice() else { anyhow::bail!("{ids:?}") };
    let wanted = format!(
        "{scheduled}: CANCELLED\n{cancelled}: CANCELLED already\n{pending}: not cancelled, it is PENDING\n\
         {damaged}: not cancelled, it cannot be read; the function's log says why"
    );
    let all = trail(&world).await?;
    assert_eq!(all[0].outcome.as_ref().map(|outcome| outcome.result.as_str()), Some(wanted.as_str()));
    // One that cannot be read hides none of the others, in a preview either.
    let shown = preview(&world, "cancel", &[("payments", &ids.join("\n"))]).await?;
    assert!(shown.contains("it cannot be read"), "{shown}");
    Ok(())
}

#[tokio::test]
async fn a_payment_can_be_cancelled_from_its_view() -> Result<()> {
    let world = World::open().await?;
    let [scheduled, cancelled, ..] = mixed(&world).await?;
    let start = Offered::of(&page(&world, &format!("payment?id={scheduled}")).await?)?;
    let shown = world.send(start.ask()).await?;
    ensure!(shown.status == 200, "{shown}");
    assert_eq!(confirm(&world, "do", &Offered::of(&shown.text)?).await?.status, 200);
    assert_eq!(status_of(&world, &scheduled).await?, "CANCELLED");
    for id in [scheduled, cancelled] {
        let view = page(&world, &format!("payment?id={id}")).await?;
        assert!(!view.contains("<form"), "{view}");
        let nothing = preview(&world, "cancel", &[("payments", &id)]).await?;
        assert!(nothing.contains("There is nothing to do") && !nothing.contains("<form"), "{nothing}");
    }
    Ok(())
}

/// Functions that fail at this point, and what records their calls.
pub(super) async fn troubled(world: &World, point: CrashPoint) -> Result<(Functions, Recorder)> {
    let recorder = point.recorder();
    Ok((world.functions_over(&recorder).await?, recorder))
}

#[tokio::test]
async fn whatever_fails_a_cancel_is_in_the_trail_and_a_repeat_completes_it() -> Result<()> {
    let mut points = CrashPoints::new("console-cancel", TROUBLES);
    while let Some(point) = points.next_case() {
        let world = World::open().await?;
        let ids = [
            world.create("tenant", "a", &payment("2026-12-01")).await?,
            world.create("tenant", "b", &payment("2026-12-01")).await?,
        ];
        let offered = offered(&world, "cancel", &[("payments", &ids.join("\n"))]).await?;
        let (functions, recorder) = troubled(&world, point).await?;
        let first = world.send_named(&functions, "first", offered.ask()).await?;
        let operations = recorder.take_operations();
        if operations.len() <= point.call {
            assert_eq!(first.status, 200, "{first}");
            continue;
        }
        points.failed(point.way.name)?;
        let case = format!("{point:?}: {first}");
        assert_eq!(first.status, if point.way.lasts() { 503 } else { 200 }, "{case}");
        let known = trail(&world).await?;
        if operations.iter().any(|operation| operation == "UpdateItem") {
            assert_eq!(known.len(), 1, "nothing is done without an intent: {case}");
        }
        let repeat = confirm(&world, "second", &offered).await?;
        assert_eq!(repeat.status, 200, "{case}: {repeat}");
        for id in &ids {
            assert_eq!(status_of(&world, id).await?, "CANCELLED", "{case}");
            let view = page(&world, &format!("payment?id={id}")).await?;
            assert_eq!(view.matches("<td><span class=\"status cancelled\">").count(), 1, "once: {case}");
            assert!(repeat.text.contains(&format!("{id}: CANCELLED")), "{case}: {repeat}");
        }
        let all = trail(&world).await?;
        assert_eq!(all.len(), 1, "{case}");
        assert!(all[0].outcome.is_some(), "{case}");
    }
    let cases = points.cases();
    println!("{cases} cases");
    assert!(cases >= 24, "{cases} cases");
    Ok(())
}

#[tokio::test]
async fn an_intent_without_an_outcome_is_shown_as_unknown() -> Result<()> {
    let world = World::open().await?;
    let id = world.create("tenant", "a", &payment("2026-12-01")).await?;
    let offered = offered(&world, "cancel", &[("payments", &id)]).await?;
    let (functions, _) = troubled(&world, CrashPoint { call: 1, way: Way::lasting(Fate::LoseRequest) }).await?;
    assert_eq!(world.send_named(&functions, "first", offered.ask()).await?.status, 503);
    let view = page(&world, "audit").await?;
    assert!(view.contains("Unknown: it may have happened") && view.contains(&id), "{view}");
    // Too late to go on: a repeat shows what is known, and does nothing.
    world.set_clock("2026-11-20T09:15:01Z")?;
    drop(world.recorder.take_operations());
    let late = confirm(&world, "second", &offered).await?;
    assert!(late.status == 200 && late.text.contains("Unknown: it may have happened"), "{late}");
    assert!(world.recorder.take_operations().iter().all(|operation| operation == "Query"));
    assert_eq!(status_of(&world, &id).await?, "SCHEDULED");
    Ok(())
}

#[tokio::test]
async fn a_confirmation_is_of_what_its_operator_saw_a_moment_ago() -> Result<()> {
    let world = World::open().await?;
    let ids = [
        world.create("tenant", "a", &payment("2026-12-01")).await?,
        world.create("tenant", "b", &payment("2026-12-01")).await?,
    ];
    let first = offered(&world, "cancel", &[("payments", &ids[0])]).await?;
    assert_eq!(confirm(&world, "first", &first).await?.status, 200);
    // Another payment under the same id, and another operator.
    let other = confirm(&world, "second", &first.clone().with("payments", &ids[1])).await?;
    assert_eq!((other.status, other.problem()), (422, "idempotency-key-reused"), "{other}");
    let other = world.send_as("operations", first.ask()).await?;
    assert_eq!((other.status, other.problem()), (422, "idempotency-key-reused"), "{other}");
    let second = offered(&world, "cancel", &[("payments", &ids[1])]).await?;
    assert_ne!(first.fields, second.fields);
    for (at, status) in [("2026-11-20T09:15:01Z", 400), ("2026-11-20T08:59:54Z", 400), ("2026-11-20T09:15:00Z", 200)] {
        world.set_clock(at)?;
        let reply = confirm(&world, at, &second).await?;
        assert_eq!(reply.status, status, "{at}: {reply}");
        assert_eq!(trail(&world).await?.len(), if status == 200 { 2 } else { 1 }, "{at}");
    }
    Ok(())
}

#[tokio::test]
async fn every_field_is_bounded_and_checked() -> Result<()> {
    let world = World::open().await?;
    let id = world.create("tenant", "a", &payment("2026-12-01")).await?;
    let id_of = |n: usize| format!("00000000-0000-5000-8000-{n:012}");
    let many: Vec<String> = (0..101).map(id_of).collect();
    let one = json!({ "step": "preview", "payments": id });
    let posted = |body: &Value| Ask::post("/console/actions/cancel").json(body);
    assert_eq!(world.send(posted(&one)).await?.status, 200, "a form can be JSON");
    assert_eq!(
        world.send(action("cancel", &[("step", "preview"), ("payments", &many[..100].join("\n"))])).await?.status,
        200
    );
    let with_at = |at, id| action("cancel", &[("step", "do"), ("payments", many[0].as_str()), ("at", at), ("id", id)]);
    for (ask, status) in [
        (action("cancel", &[("payments", &id)]), 400),
        (action("cancel", &[("step", "later"), ("payments", &id)]), 400),
        (action("cancel", &[("step", "preview")]), 400),
        (action("cancel", &[("step", "preview"), ("payments", " \n ")]), 400),
        (action("cancel", &[("step", "preview"), ("payments", "1")]), 400),
        (action("cancel", &[("step", "preview"), ("payments", &many.join("\n"))]), 400),
        (action("cancel", &[("step", "preview"), ("payments", &" ".repeat(8_001))]), 400),
        (action("cancel", &[("step", "preview"), ("payments", &id), ("payments", &id)]), 400),
        (action("cancel", &[("step", "preview"), ("payments", &id), ("more", "1")]), 400),
        (action("cancel", &[("step", "preview"), ("payments", &"a".repeat(16 * 1024))]), 413),
        (action("cancel", &[("step", "do"), ("payments", &id)]), 400),
        (with_at("2026-11-20", &many[1]), 400),
        (with_at("2026-11-20T10:00:00+01:00", &many[1]), 400),
        (with_at("2026-11-20T09:00:00Z", "1"), 400),
        (with_at("2026-11-20T09:00:00Z", &many[1].replace('5', "A")), 400),
        (posted(&json!({ "step": "preview", "payments": [id] })), 400),
        (posted(&json!([])), 400),
        (Ask::post("/console/actions/cancel"), 400),
        (Ask::post("/console/actions/cancel").header("Content-Type", "text/plain").text("step=preview"), 415),
        (action("destroy", &[("step", "preview")]), 404),
        (Ask::new(Method::POST, "/console/actions/cancel?step=preview").json(&one), 400),
    ] {
        let reply = world.send(ask.clone()).await?;
        assert_eq!(reply.status, status, "{ask:?}: {reply}");
        assert_eq!(reply.header("x-frame-options"), Some("DENY"));
    }
    assert_eq!(trail(&world).await?, []);
    Ok(())
}

#[tokio::test]
async fn the_trail_shows_each_action_once_the_newest_first() -> Result<()> {
    let world = World::open().await?;
    let id = world.create("tenant", "a", &payment("2026-12-01")).await?;
    let mut wanted = Vec::new();
    for minute in 0..59 {
        world.set_clock(&format!("2026-11-20T10:{minute:02}:00Z"))?;
        let (at, name) = (world.now().to_string(), format!("00000000-0000-5000-8000-{minute:012}"));
        let ask = action("cancel", &[("payments", &id), ("at", &at), ("id", &name), ("step", "do")]);
        // Every seventh has no outcome, so pages end between an outcome and its intent.
        let (functions, _) = troubled(&world, CrashPoint { call: 1, way: Way::lasting(Fate::LoseRequest) }).await?;
        let on = if minute % 7 == 3 { &functions } else { world.functions() };
        world.send_named(on, &name, ask).await?;
        wanted.insert(0, name);
    }
    let (mut shown, mut pages, mut next) = (Vec::new(), 0, Some("audit?month=2026-11".to_owned()));
    while let Some(view) = next {
        let text = page(&world, &view).await?;
        let ids = text.split("<div class=\"quiet id\">").skip(1).filter_map(|rest| rest.split('<').next());
        shown.extend(ids.map(str::to_owned));
        let links = text.split("href=\"#").skip(1).filter_map(|link| link.split('"').next());
        next = links.map(|link| link.replace("&amp;", "&")).find(|link| link.contains("before="));
        pages += 1;
        ensure!(pages < 9, "the trail does not end");
    }
    assert_eq!(shown, wanted);
    assert!(pages >= 2, "{pages}");
    assert!(!page(&world, "audit?month=2026-12").await?.contains("class=\"quiet id\""));
    for wrong in ["audit?month=2026", "audit?month=2026-13", "audit?month=2026-11-20", "audit?before=x"] {
        assert_eq!(super::view(&world, wrong).await?.status, 400, "{wrong}");
    }
    Ok(())
}
