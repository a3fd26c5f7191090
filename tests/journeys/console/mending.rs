//! Operators mend single troubles: send a request again, close a finding, enable an endpoint, replay from a time.

use anyhow::{Context as _, Result};
use http::Method;
use payments_model::webhook::EndpointId;
use payments_model::{Event, Failure, Finding, Head, PaymentId, Settlement, Told, UtcSecond};
use payments_store::{WebhookEndpoint, WebhookState};
use payments_tests::given::{HORIZON_DAYS, move_on, prepare};
use payments_tests::tables::{audited, units};
use payments_tests::{Ask, CrashPoints, TROUBLES, World};
use serde_json::json;

use super::acting::{Offered, confirm, first_try, offered, only_entry, preview, preview_of};
use super::{HOSTILE, assert_plain, claim, page, rent};

/// The claim of the stuck payment, and the moment from which an operator can send it again.
const CLAIMED: &str = "2026-12-01T10:00:00Z";
const HOUR_OVER: &str = "2026-12-01T11:00:00Z";

const ENDPOINT: &str = "shop";

/// A bank with so many dispatch attempts and a pending payment, an hour after its claim.
async fn pending(attempts: u32) -> Result<(World, String)> {
    pending_in(attempts, "none").await
}

async fn pending_in(attempts: u32, paused: &'static str) -> Result<(World, String)> {
    let world = World::with(|environment| {
        environment.dispatch_attempts = attempts;
        environment.paused = paused;
    });
    let world = world.await?;
    let id = rent(&world, "stuck").await?;
    claim(&world, &id, None).await?;
    world.set_clock(HOUR_OVER)?;
    Ok((world, id))
}

async fn head(world: &World, id: &str) -> Result<Head> {
    let store = world.store().await;
    let first = store.details(id.parse()?).await?.context("no details")?;
    store.head(&first.key()).await?.context("no head")
}

/// The last dispatch attempt of a payment, and the time of its last request after the first.
async fn sent(world: &World, id: &str) -> Result<(Option<u32>, Option<UtcSecond>)> {
    let head = head(world, id).await?;
    Ok((head.dispatch_attempt, head.sent_again_at))
}

/// A settled payment with an open finding: the result says that it failed for this reason.
async fn contradicted(reason: &str) -> Result<(World, Finding)> {
    let world = World::open().await?;
    let id = rent(&world, "contradicted").await?;
    claim(&world, &id, Some(Settlement::Processed("TX-1".parse()?))).await?;
    let head = head(&world, &id).await?;
    let settlement = Settlement::Failed(Failure::new(Some("AM04"), reason));
    let finding = Finding {
        key: head.key(),
        money: head.money,
        payee: head.payee.clone(),
        stands: head.state.clone(),
        told: Told { settlement, money: head.money, payee: head.payee },
        found_at: CLAIMED.parse()?,
        closed: None,
    };
    assert!(world.store().await.put_finding(&finding).await?);
    world.set_clock(HOUR_OVER)?;
    Ok((world, finding))
}

fn close_of(finding: &Finding) -> String {
    format!("payment={}&hash={}", finding.key.slot.payment_id, finding.told.hash())
}

async fn finding_of(world: &World, id: PaymentId) -> Result<Finding> {
    Ok(world.store().await.findings_of(id).await?.pop().context("no finding")??)
}

/// A bank with a disabled endpoint.
async fn disabled() -> Result<World> {
    let world = World::open().await?;
    let body = json!({ "url": "https://shop.example.com/hook", "enabled": false });
    let put = world.send(Ask::new(Method::PUT, &format!("/webhook-endpoints/{ENDPOINT}")).json(&body)).await?;
    put.with_status(201)?;
    Ok(world)
}

async fn endpoint(world: &World) -> Result<(WebhookEndpoint, WebhookState)> {
    let (store, id) = (world.store().await, ENDPOINT.parse::<EndpointId>()?);
    let found = (store.webhook_endpoint(&id).await?, store.webhook_state(&id).await?);
    found.0.zip(found.1).context("no endpoint")
}

/// Confirms an action. Returns its outcome in the trail.
async fn told(world: &World, request: &str, offer: &Offered) -> Result<String> {
    confirm(world, request, offer).await?;
    let trail = world.audit_trail().await?;
    let entry = trail.iter().find(|entry| entry.intent.request == request).context("no entry")?;
    Ok(audited(entry).to_owned())
}

#[tokio::test]
async fn a_stuck_payment_is_sent_again_once_an_hour() -> Result<()> {
    let (world, id) = pending(1).await?;
    let form = format!("payment={id}");
    world.forget();
    let first = offered(&world, "send-again", &form).await?;
    world.set_clock("2026-12-01T10:59:59Z")?;
    let early = preview(&world, "send-again", &form).await?;
    assert!(early.contains("less than an hour passed"), "{early}");
    world.set_clock("2026-12-01T11:00:01Z")?;
    let second = offered(&world, "send-again", &form).await?;
    world.set_clock(HOUR_OVER)?;
    let operations = world.recorder.take_operations();
    assert!(operations.iter().all(|operation| operation == "GetItem"), "a preview writes nothing: {operations:?}");
    let done = confirm(&world, "first", &first).await?;
    assert!(done.text.contains("request 2 is sent") && done.text.contains(&format!("#payment?id={id}")), "{done}");
    let line = format!("{id}: request 2 is sent");
    let entry = only_entry(&world).await?;
    assert_eq!(
        (audited(&entry), entry.intent.arguments.as_str()),
        (line.as_str(), &*format!("payment: {id}\nattempt: 1"))
    );
    assert_eq!(sent(&world, &id).await?, (Some(2), Some(HOUR_OVER.parse()?)));
    // The same confirmation again, and one of another preview that showed the first attempt.
    world.set_clock("2026-12-01T11:01:00Z")?;
    assert_eq!(confirm(&world, "again", &first).await?.text, done.text);
    let late = told(&world, "second", &second).await?;
    assert_eq!(late, format!("{id}: not sent, it was sent again since the preview"));
    assert_eq!(sent(&world, &id).await?, (Some(2), Some(HOUR_OVER.parse()?)));
    let early = preview(&world, "send-again", &form).await?;
    assert!(early.contains("less than an hour passed") && !early.contains("name=\"attempt\""), "{early}");
    world.set_clock("2026-12-01T12:00:00Z")?;
    confirm(&world, "third", &offered(&world, "send-again", &form).await?).await?;
    assert_eq!(sent(&world, &id).await?, (Some(3), Some("2026-12-01T12:00:00Z".parse()?)));
    Ok(())
}

#[tokio::test]
async fn what_the_redrive_sends_or_a_pause_holds_is_not_sent_again() -> Result<()> {
    let (redriven, id) = pending(8).await?;
    let form = format!("payment={id}");
    let shown = preview(&redriven, "send-again", &form).await?;
    assert!(shown.contains("the redrive sends it by itself, the first one after Tue 1 Dec, 11:00"), "{shown}");
    let (stuck, _) = pending(1).await?;
    let offer = offered(&stuck, "send-again", &form).await?;
    let done = told(&redriven, "first", &offer).await?;
    assert!(done.contains("not sent: the redrive sends it by itself"), "{done}");
    for pause in ["sending", "settling"] {
        let (paused, _) = pending_in(1, pause).await?;
        let shown = preview(&paused, "send-again", &form).await?;
        assert!(shown.contains("Resume with Paused=none") && !shown.contains("name=\"attempt\""), "{shown}");
        // The pause began after the preview.
        let done = told(&paused, "first", &offer).await?;
        assert!(done.starts_with("refused: The parameter Paused is set"), "{done}");
        assert_eq!(sent(&paused, &id).await?, (Some(1), None));
    }
    // The payment was settled after the preview.
    let (settled, id) = pending(1).await?;
    let offer = offered(&settled, "send-again", &form).await?;
    let settle = Event::Settle(Settlement::Processed("TX-1".parse()?));
    move_on(&settled, id.parse()?, vec![settle], HOUR_OVER).await?;
    let done = told(&settled, "first", &offer).await?;
    assert!(done.contains("not sent: it is PROCESSED"), "{done}");
    assert_eq!(sent(&settled, &id).await?, (Some(1), None));
    for (form, status) in [
        ("payment=00000000-0000-5000-8000-000000000000", 404),
        ("payment=1", 400),
        ("", 400),
        (&format!("payment={id}&attempt=x"), 400),
        (&format!("payment={id}&more=1"), 400),
    ] {
        stuck.answered(preview_of("send-again", form), status).await?;
    }
    let offer = offered(&stuck, "send-again", &format!("payment={id}")).await?;
    stuck.answered(offer.with("attempt", "").ask(), 400).await?;
    Ok(())
}

#[tokio::test]
async fn a_finding_is_closed_once_with_a_reason() -> Result<()> {
    let (world, finding) = contradicted("no funds").await?;
    let id = finding.key.slot.payment_id;
    let shown = preview(&world, "close-finding", &close_of(&finding)).await?;
    for text in ["Processed, transaction TX-1", "Failed, AM04 no funds", "name=\"reason\""] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let offer = offered(&world, "close-finding", &close_of(&finding)).await?;
    for reason in ["", " ", "a\nb", "a\u{7f}", &"é".repeat(201)] {
        world.answered(offer.clone().with("reason", reason).ask(), 400).await?;
    }
    assert_eq!((world.audit_trail().await?, finding_of(&world, id).await?), (vec![], finding.clone()));
    let reason = "é".repeat(200);
    let closing = offer.with("reason", &format!(" {reason} "));
    let done = confirm(&world, "first", &closing).await?;
    let line = format!("{id}: the finding {} is closed", finding.told.hash());
    assert!(done.text.contains("is closed") && done.text.contains(&format!("#payment?id={id}")), "{done}");
    assert_eq!(audited(&only_entry(&world).await?), line);
    let closed = finding_of(&world, id).await?.closed.context("it is closed")?;
    assert_eq!((closed.by.as_str(), &closed.reason), ("o:local-development", &reason));
    assert!(world.store().await.open_findings(None, 10).await?.findings.is_empty());
    assert!(only_entry(&world).await?.intent.arguments.contains(&reason));
    world.set_clock("2026-12-01T11:05:00Z")?;
    assert_eq!(confirm(&world, "again", &closing).await?.text, done.text);
    // The same id with another reason is another action.
    let other = world.send_named(world.functions(), "other", closing.clone().with("reason", "other").ask()).await?;
    other.refused(422, "idempotency-key-reused")?;
    let again = preview(&world, "close-finding", &close_of(&finding)).await?;
    assert!(again.contains("It was closed") && !again.contains("name=\"reason\""), "{again}");
    for (form, status) in [
        (format!("payment={id}&hash=0123456789abcdef"), 404),
        (format!("payment={id}&hash=0123456789ABCDEF"), 400),
        (format!("payment={id}"), 400),
        (String::new(), 400),
    ] {
        world.answered(preview_of("close-finding", &form), status).await?;
    }
    Ok(())
}

#[tokio::test]
async fn of_two_operators_the_first_closes_a_finding() -> Result<()> {
    let (world, finding) = contradicted("no funds").await?;
    let mut offers = Vec::new();
    for reason in ["the service was right", "the bank was right"] {
        offers.push(offered(&world, "close-finding", &close_of(&finding)).await?.with("reason", reason));
        world.set_clock("2026-12-01T11:00:01Z")?;
    }
    confirm(&world, "first", &offers[0]).await?;
    let second = told(&world, "second", &offers[1]).await?;
    assert!(second.contains("was closed before, at 2026-12-01T11:00:01Z by local-development"), "{second}");
    let closed = finding_of(&world, finding.key.slot.payment_id).await?.closed.context("it is closed")?;
    assert_eq!(closed.reason, "the service was right");
    Ok(())
}

/// The finding and its mark are two items, written together: 2 units each. A request that is sent again changes no index.
#[tokio::test]
async fn mending_costs_a_few_units() -> Result<()> {
    let (world, finding) = contradicted("no funds").await?;
    let other = Finding { told: Told { payee: "other".parse()?, ..finding.told.clone() }, ..finding.clone() };
    for (puts, want) in [(true, 4), (false, 0)] {
        world.forget();
        assert_eq!(world.store().await.put_finding(&other).await?, puts);
        let spent = world.take_write_units();
        assert!(!puts || spent == units("TransactWriteItems", [("history", want)]), "{spent:?}");
    }
    let offer = offered(&world, "close-finding", &close_of(&finding)).await?.with("reason", "the bank is right");
    world.forget();
    confirm(&world, "first", &offer).await?;
    let mut want = units("TransactWriteItems", [("history", 4)]);
    want.extend(units("PutItem", [("history", 2)]));
    assert_eq!(world.take_write_units(), want);

    let (world, id) = pending(1).await?;
    let offer = offered(&world, "send-again", &format!("payment={id}")).await?;
    world.forget();
    confirm(&world, "first", &offer).await?;
    let mut want = units("UpdateItem", [("payments", 1)]);
    want.extend(units("PutItem", [("history", 2)]));
    assert_eq!(world.take_write_units(), want);
    Ok(())
}

#[tokio::test]
async fn hostile_reasons_are_shown_as_text() -> Result<()> {
    for text in HOSTILE.into_iter().filter(|text| text.chars().any(char::is_alphanumeric)) {
        let (world, finding) = contradicted(text).await?;
        let offer = offered(&world, "close-finding", &close_of(&finding)).await?.with("reason", text);
        let mut shown = vec![preview(&world, "close-finding", &close_of(&finding)).await?];
        shown.push(confirm(&world, "first", &offer).await?.text);
        shown.push(preview(&world, "close-finding", &close_of(&finding)).await?);
        shown.push(page(&world, "audit").await?);
        shown.iter().for_each(|page| assert_plain(page, text));
        let closed = finding_of(&world, finding.key.slot.payment_id).await?.closed.context("it is closed")?;
        assert_eq!(closed.reason, text);
    }
    Ok(())
}

#[tokio::test]
async fn a_disabled_endpoint_is_enabled_at_its_place() -> Result<()> {
    let world = disabled().await?;
    let (before, state) = endpoint(&world).await?;
    let offer = offered(&world, "enable-endpoint", "endpoint=shop").await?;
    world.set_clock("2026-11-20T09:01:00Z")?;
    assert_eq!(told(&world, "first", &offer).await?, "shop: enabled, it gets every event since its place");
    let (after, now) = endpoint(&world).await?;
    assert!(before.disabled(&state).is_some() && after.disabled(&now).is_none());
    assert_eq!((now.position, after.chosen), (state.position, before.chosen));
    let again = preview(&world, "enable-endpoint", "endpoint=shop").await?;
    assert!(again.contains("It is enabled.") && again.contains("Nothing was changed"), "{again}");
    // The place changed after the preview.
    let moved = disabled().await?;
    let offer = offered(&moved, "enable-endpoint", "endpoint=shop").await?.with("place", "3637440.7.0");
    let refused = told(&moved, "first", &offer).await?;
    let (still, state) = endpoint(&moved).await?;
    assert!(refused.starts_with("refused: The endpoint's place changed since the preview"), "{refused}");
    assert!(still.disabled(&state).is_some());
    for (form, status) in [("endpoint=other", 404), ("", 400), ("endpoint=shop&place=x", 400)] {
        moved.answered(preview_of("enable-endpoint", form), status).await?;
    }
    moved.answered(offer.with("place", "").ask(), 400).await?;
    Ok(())
}

#[tokio::test]
async fn events_are_replayed_from_a_time_of_the_banks_zone() -> Result<()> {
    let world = World::with(|environment| environment.horizon_days = HORIZON_DAYS).await?;
    prepare(&world, &["failing-endpoint"], "2026-11-20T08:30:00Z").await?;
    world.set_clock("2026-11-20T09:00:00Z")?;
    let asked = preview(&world, "replay-endpoint", "endpoint=shop").await?;
    assert!(asked.contains("type=\"datetime-local\"") && asked.contains("value=\"preview\""), "{asked}");
    let place = endpoint(&world).await?.1.position;
    for (minute, since) in (1..).zip(["2026-11-20T08:00", "2026-11-20T08:00:30", "2026-11-20T08:00:00Z"]) {
        world.set_clock(&format!("2026-11-20T09:0{minute}:00Z"))?;
        let offer = offered(&world, "replay-endpoint", &format!("endpoint=shop&since={since}")).await?;
        let done = told(&world, since, &offer).await?;
        assert!(done.starts_with("shop: it gets the events after"), "{since}: {done}");
        assert!(endpoint(&world).await?.1.position <= place);
    }
    for (since, status) in [
        ("2026-11-20T09:10", 400),
        ("2026-10-01T09:00", 410),
        ("yesterday", 400),
        ("2026-11-20T25:00", 400),
        ("2026-11-20T08:00&cursor=3637440.1.0", 400),
    ] {
        world.answered(preview_of("replay-endpoint", &format!("endpoint=shop&since={since}")), status).await?;
    }
    Ok(())
}

/// Prepares an action of this name. Returns the world and the offer.
async fn prepared(name: &str) -> Result<(World, Offered)> {
    match name {
        "send-again" => {
            let (world, id) = pending(1).await?;
            let offer = offered(&world, name, &format!("payment={id}")).await?;
            Ok((world, offer))
        }
        "close-finding" => {
            let (world, finding) = contradicted("no funds").await?;
            let offer = offered(&world, name, &close_of(&finding)).await?.with("reason", "the bank is right");
            Ok((world, offer))
        }
        _ => {
            let world = disabled().await?;
            let offer = offered(&world, name, "endpoint=shop").await?;
            Ok((world, offer))
        }
    }
}

/// The number of times that the action happened.
async fn effects(world: &World, name: &str) -> Result<u32> {
    Ok(match name {
        "send-again" => {
            let id = PaymentId::derive(&"tenant".parse()?, &"stuck".parse()?).to_string();
            sent(world, &id).await?.0.unwrap_or_default() - 1
        }
        "close-finding" => u32::from(world.store().await.open_findings(None, 10).await?.findings.is_empty()),
        _ => endpoint(world).await.map(|(endpoint, state)| u32::from(endpoint.disabled(&state).is_none()))?,
    })
}

#[tokio::test]
async fn whatever_fails_it_is_in_the_trail_and_a_repeat_completes_it_once() -> Result<()> {
    let mut cases = 0;
    for name in ["send-again", "close-finding", "enable-endpoint"] {
        let mut points = CrashPoints::new("console-mending", TROUBLES);
        while let Some(point) = points.next_case() {
            let (world, offer) = prepared(name).await?;
            let (first, operations) = first_try(&world, point, &offer).await?;
            if operations.len() <= point.call {
                first.with_status(200)?;
                continue;
            }
            points.failed(format_args!("{name} {}", point.way.name))?;
            let case = format!("{name}: {point:?}: {first}");
            assert_eq!(first.status, if point.way.lasts() { 503 } else { 200 }, "{case}");
            let has_intent = world.audit_trail().await?.iter().any(|entry| entry.intent.action == name);
            assert!(effects(&world, name).await? == 0 || has_intent, "nothing is done without an intent: {case}");
            let later = world.now().saturating_add(chrono::TimeDelta::minutes(10)).to_string();
            world.set_clock(&later)?;
            let repeat = confirm(&world, "second", &offer).await.with_context(|| case.clone())?;
            assert_eq!(effects(&world, name).await?, 1, "{case}: {repeat}");
            let mut trail = world.audit_trail().await?;
            trail.retain(|entry| entry.intent.action == name);
            assert_eq!(trail.len(), 1, "{case}");
            let result = audited(&trail[0]);
            let is_told = ["request 2 is sent", "is closed", "enabled"].iter().any(|done| result.contains(done));
            assert!(is_told, "{case}: {result}");
        }
        cases += points.cases();
    }
    assert!(cases >= 30, "{cases} cases");
    Ok(())
}
