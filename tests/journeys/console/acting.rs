//! Actions of operators: previewed, confirmed once, and in the audit trail whatever fails.

use anyhow::{Context as _, Result, bail, ensure};
use http::Method;
use payments_bank::Functions;
use payments_machine::{Fate, Recorder};
use payments_store::AuditEntry;
use payments_tests::tables::audited;
use payments_tests::{Ask, CrashPoint, CrashPoints, Reply, TROUBLES, Way, World};
use serde_json::{Value, json};

use super::{claim, damage, form, page, payment, rent};

/// A call fails, and so do all later ones.
pub(super) const LASTING: [Way; 3] = [
    Way::lasting(Fate::Refuse(500, "InternalServerError")),
    Way::lasting(Fate::LoseRequest),
    Way::lasting(Fate::LoseReply),
];

/// A request for an action with a form.
pub(super) fn action(name: &str, form: &str) -> Ask {
    let ask = Ask::post(&format!("/console/actions/{name}"));
    ask.header("Content-Type", "application/x-www-form-urlencoded").text(form)
}

/// An action as its preview offers it: its name and the fields of its form.
#[derive(Debug, Clone)]
pub(super) struct Offered {
    name: String,
    fields: Vec<(String, String)>,
}

impl Offered {
    /// Reads the form of a preview.
    pub(super) fn parse(text: &str) -> Result<Self> {
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
        action(&self.name, &form(&fields))
    }
}

/// A request for a preview.
pub(super) fn preview_of(name: &str, form: &str) -> Ask {
    action(name, &format!("step=preview&{form}"))
}

/// Previews an action.
pub(super) async fn preview(world: &World, name: &str, form: &str) -> Result<String> {
    Ok(world.answered(preview_of(name, form), 200).await?.text)
}

pub(super) async fn offered(world: &World, name: &str, form: &str) -> Result<Offered> {
    Offered::parse(&preview(world, name, form).await?)
}

/// The form that names payments.
fn payments(ids: &[String]) -> String {
    format!("payments={}", ids.join("%0D%0A"))
}

/// The offered cancellation of payments.
pub(super) async fn offered_cancel(world: &World, ids: &[String]) -> Result<Offered> {
    offered(world, "cancel", &payments(ids)).await
}

/// Confirms an action with a request of its own, whatever the reply.
async fn try_to_confirm(world: &World, request: &str, offered: &Offered) -> Result<Reply> {
    world.send_named(world.functions(), request, offered.ask()).await
}

/// Confirms an action, whose outcome must be shown.
pub(super) async fn confirm(world: &World, request: &str, offered: &Offered) -> Result<Reply> {
    try_to_confirm(world, request, offered).await?.with_status(200)
}

/// Confirms an action with functions that fail at this point. Returns the reply, and the calls.
pub(super) async fn first_try(world: &World, point: CrashPoint, offered: &Offered) -> Result<(Reply, Vec<String>)> {
    let (functions, recorder) = troubled(world, point).await?;
    let reply = world.send_named(&functions, "first", offered.ask()).await?;
    Ok((reply, recorder.take_operations()))
}

/// The only entry of the trail.
pub(super) async fn only_entry(world: &World) -> Result<AuditEntry> {
    let mut trail = world.audit_trail().await?;
    ensure!(trail.len() == 1, "{trail:?}");
    trail.pop().context("no entry")
}

/// A scheduled, a cancelled and a pending payment, and an id of none.
async fn mixed(world: &World) -> Result<[String; 4]> {
    let [scheduled, cancelled, pending] = [rent(world, "a").await?, rent(world, "b").await?, rent(world, "c").await?];
    world.cancel("tenant", &cancelled).await?;
    claim(world, &pending, None).await?;
    Ok([scheduled, cancelled, pending, "00000000-0000-5000-8000-000000000000".to_owned()])
}

async fn status_of(world: &World, id: &str) -> Result<Value> {
    Ok(world.get(&format!("/accounts/tenant/payments/{id}")).await?.body["status"].clone())
}

#[tokio::test]
async fn a_cancel_says_what_it_will_touch_and_what_it_did() -> Result<()> {
    let world = World::open().await?;
    let ids = mixed(&world).await?;
    world.forget();
    let shown = preview(&world, "cancel", &payments(&ids)).await?;
    let operations = world.recorder.take_operations();
    assert!(operations.iter().all(|operation| operation == "GetItem"), "a preview writes nothing: {operations:?}");
    for text in [
        "Cancel 1 payment?",
        "3 others stay",
        "nothing takes it back",
        "Cancelled",
        "Pending",
        "no payment has this id",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    // The payment in its sum and its row, and two of those that stay.
    assert_eq!(shown.matches("12,345.67").count(), 4, "{shown}");
    assert!(ids.iter().all(|id| shown.contains(id.as_str())));
    assert_eq!(shown.matches("<form").count(), 1);
    assert_eq!(status_of(&world, &ids[0]).await?, "SCHEDULED");

    let offered = Offered::parse(&shown)?;
    world.forget();
    let done = confirm(&world, "first", &offered).await?;
    let mut operations = world.recorder.take_operations();
    operations.retain(|operation| operation != "GetItem");
    // The action does not even try the payments that the preview left out.
    assert_eq!(operations, ["PutItem", "UpdateItem", "PutItem"]);
    let [scheduled, ..] = &ids;
    let wanted = format!("{scheduled}: CANCELLED");
    let entry = only_entry(&world).await?;
    assert_eq!(audited(&entry), wanted);
    assert_eq!((entry.intent.by.as_str(), entry.intent.action.as_str()), ("o:local-development", "cancel"));
    assert_eq!(entry.intent.arguments, format!("payments: {scheduled}@1"));
    for shown in [&done.text, &page(&world, "audit").await?] {
        assert!(shown.contains("1 cancelled") && shown.contains(&format!("#payment?id={scheduled}")), "{shown}");
    }
    assert_eq!(status_of(&world, scheduled).await?, "CANCELLED");
    assert!(page(&world, &format!("payment?id={scheduled}")).await?.contains("operator local-development"));

    // The same confirmation again, as a browser or an operator sends it.
    world.forget();
    assert_eq!(confirm(&world, "second", &offered).await?.text, done.text);
    assert_eq!(world.recorder.take_operations(), ["PutItem", "Query"]);
    assert_eq!(only_entry(&world).await?, entry);
    Ok(())
}

#[tokio::test]
async fn what_changed_since_the_preview_is_said() -> Result<()> {
    let world = World::open().await?;
    let mut ids = Vec::new();
    for key in ["a", "b", "c", "d", "e"] {
        ids.push(rent(&world, key).await?);
    }
    let [scheduled, cancelled, pending, damaged, amended] = ids.as_slice() else { bail!("{ids:?}") };
    let offered = offered_cancel(&world, &ids).await?;
    world.set_clock("2026-11-20T09:01:00Z")?;
    world.cancel("tenant", cancelled).await?;
    claim(&world, pending, None).await?;
    damage(&world, damaged).await?;
    let other = payment("2026-12-02");
    world.send(Ask::amend("tenant", amended, ("later", 1), &other)).await?.with_status(200)?;
    world.set_clock("2026-11-20T09:02:00Z")?;
    confirm(&world, "first", &offered).await?;
    let wanted = format!(
        "{scheduled}: CANCELLED\n{cancelled}: CANCELLED already\n{pending}: not cancelled, it is PENDING\n\
         {damaged}: not cancelled, it cannot be read; the function's log says why\n\
         {amended}: not cancelled, it was amended since the preview"
    );
    assert_eq!(audited(&only_entry(&world).await?), wanted);
    assert_eq!(status_of(&world, amended).await?, "SCHEDULED");
    // A payment that cannot be read hides no other payment, in a preview either.
    let shown = preview(&world, "cancel", &payments(&ids)).await?;
    assert!(shown.contains("it cannot be read"), "{shown}");
    Ok(())
}

#[tokio::test]
async fn a_payment_can_be_cancelled_from_its_view() -> Result<()> {
    let world = World::open().await?;
    let [scheduled, cancelled, ..] = mixed(&world).await?;
    let start = Offered::parse(&page(&world, &format!("payment?id={scheduled}")).await?)?;
    let shown = world.answered(start.ask(), 200).await?;
    confirm(&world, "do", &Offered::parse(&shown.text)?).await?;
    assert_eq!(status_of(&world, &scheduled).await?, "CANCELLED");
    for id in [scheduled, cancelled] {
        let view = page(&world, &format!("payment?id={id}")).await?;
        assert!(!view.contains("<form"), "{view}");
        let nothing = preview(&world, "cancel", &payments(&[id])).await?;
        assert!(nothing.contains("Nothing was changed") && !nothing.contains("<form"), "{nothing}");
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
        let ids = [rent(&world, "a").await?, rent(&world, "b").await?];
        let offered = offered_cancel(&world, &ids).await?;
        let (first, operations) = first_try(&world, point, &offered).await?;
        if operations.len() <= point.call {
            first.with_status(200)?;
            continue;
        }
        points.failed(point.way.name)?;
        let case = format!("{point:?}: {first}");
        assert_eq!(first.status, if point.way.lasts() { 503 } else { 200 }, "{case}");
        if operations.iter().any(|operation| operation == "UpdateItem") {
            only_entry(&world).await.with_context(|| format!("nothing is done without an intent: {case}"))?;
        }
        let repeat = confirm(&world, "second", &offered).await.with_context(|| case.clone())?;
        for id in &ids {
            assert_eq!(status_of(&world, id).await?, "CANCELLED", "{case}");
            let view = page(&world, &format!("payment?id={id}")).await?;
            // In the head of the view, and once in the timeline.
            assert_eq!(view.matches("<span class=\"pill dot cancelled\">").count(), 2, "once: {case}");
            assert!(repeat.text.contains(&format!("#payment?id={id}")), "{case}: {repeat}");
        }
        assert!(repeat.text.contains("2 cancelled"), "{case}: {repeat}");
        let entry = only_entry(&world).await.with_context(|| case.clone())?;
        assert!(entry.outcome.is_some(), "{case}");
    }
    assert!(points.cases() >= 24, "{points:?}");
    Ok(())
}

/// The first call that is lost is that of the outcome, and so are all later ones.
pub(super) const NO_OUTCOME: CrashPoint = CrashPoint { call: 1, way: Way::lasting(Fate::LoseRequest) };

#[tokio::test]
async fn an_intent_without_an_outcome_is_shown_as_unknown() -> Result<()> {
    let world = World::open().await?;
    let id = rent(&world, "a").await?;
    let offered = offered_cancel(&world, std::slice::from_ref(&id)).await?;
    first_try(&world, NO_OUTCOME, &offered).await?.0.with_status(503)?;
    let view = page(&world, "audit").await?;
    assert!(view.contains("Outcome unknown") && view.contains(&id), "{view}");
    // The action is too late to continue: a repeat shows what is known, and does nothing.
    world.set_clock("2026-11-20T09:15:01Z")?;
    world.forget();
    let late = confirm(&world, "second", &offered).await?;
    assert!(late.text.contains("Unknown: it may have happened"), "{late}");
    assert!(world.recorder.take_operations().iter().all(|operation| operation == "Query"));
    assert_eq!(status_of(&world, &id).await?, "SCHEDULED");
    Ok(())
}

#[tokio::test]
async fn a_confirmation_is_of_what_its_operator_saw_a_moment_ago() -> Result<()> {
    let world = World::open().await?;
    let ids = [rent(&world, "a").await?, rent(&world, "b").await?];
    let first = offered_cancel(&world, &ids[..1]).await?;
    confirm(&world, "first", &first).await?;
    // Another payment under the same id, and another operator.
    let other = try_to_confirm(&world, "second", &first.clone().with("payments", &format!("{}@1", ids[1]))).await?;
    for other in [other, world.send_as("operations", first.ask()).await?] {
        other.refused(422, "idempotency-key-reused")?;
    }
    let second = offered_cancel(&world, &ids[1..]).await?;
    assert_ne!(first.fields, second.fields);
    for (at, status, entries) in
        [("2026-11-20T09:15:01Z", 400, 1), ("2026-11-20T08:59:54Z", 400, 1), ("2026-11-20T09:15:00Z", 200, 2)]
    {
        world.set_clock(at)?;
        try_to_confirm(&world, at, &second).await?.with_status(status).context(at)?;
        assert_eq!(world.audit_trail().await?.len(), entries, "{at}");
    }
    Ok(())
}

#[tokio::test]
async fn every_field_is_bounded_and_checked() -> Result<()> {
    let world = World::open().await?;
    let id = rent(&world, "a").await?;
    let many: Vec<String> = (0..101).map(|n| format!("00000000-0000-5000-8000-{n:012}")).collect();
    let one = json!({ "step": "preview", "payments": id });
    let posted = |body: &Value| Ask::post("/console/actions/cancel").json(body);
    world.answered(posted(&one), 200).await?;
    world.answered(preview_of("cancel", &payments(&many[..100])), 200).await?;
    let all = payments(&many);
    let spaces = "+".repeat(8_001);
    let long = "a".repeat(16 * 1024);
    let form = |form: &str| action("cancel", &form.replace("ID", &id));
    for (ask, status) in [
        (form("payments=ID"), 400),
        (form("payments=ID&step=later"), 400),
        (form("step=preview"), 400),
        (form("step=preview&payments=+%0A+"), 400),
        (form("step=preview&payments=1"), 400),
        (form("step=preview&payments=ID@x"), 400),
        (form("step=do&payments=ID&at=2026-11-20T09:00:00Z&id=00000000-0000-5000-8000-000000000001"), 400),
        (form(&format!("step=preview&{all}")), 400),
        (form(&format!("step=preview&payments={spaces}")), 400),
        (form("step=preview&payments=ID&payments=ID"), 400),
        (form("step=preview&payments=ID&more=1"), 400),
        (form(&format!("step=preview&payments={long}")), 413),
        (form("step=do&payments=ID"), 400),
        (form("step=do&payments=ID&at=2026-11-20&id=ID"), 400),
        (form("step=do&payments=ID&at=2026-11-20T10:00:00%2B01:00&id=ID"), 400),
        (form("step=do&payments=ID&at=2026-11-20T09:00:00Z&id=1"), 400),
        (form("step=do&payments=ID&at=2026-11-20T09:00:00Z&id=00000000-0000-A000-8000-000000000001"), 400),
        (posted(&json!({ "step": "preview", "payments": [id] })), 400),
        (posted(&json!([])), 400),
        (Ask::post("/console/actions/cancel"), 400),
        (Ask::post("/console/actions/cancel").header("Content-Type", "text/plain").text("step=preview"), 415),
        (action("destroy", "step=preview"), 404),
        (Ask::new(Method::POST, "/console/actions/cancel?step=preview").json(&one), 400),
    ] {
        let reply = world.answered(ask.clone(), status).await?;
        assert_eq!(reply.header("x-frame-options"), Some("DENY"));
        assert!(status != 415 || reply.text.contains("application/x-www-form-urlencoded"), "{reply}");
    }
    assert_eq!(world.audit_trail().await?, []);
    Ok(())
}
