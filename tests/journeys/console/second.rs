//! Four eyes: an action waits for a second person, and happens once, if that person approves the same plan in time.

use anyhow::{Context as _, Result};
use payments_model::second::NamedBy;
use payments_model::{ActionName, PlanHash};
use payments_store::{Approval, AuditEntry};
use payments_tests::tables::audited;
use payments_tests::{Ask, CrashPoints, World};
use serde_json::{Value, json};

use super::acting::{LASTING, Offered, action, preview_of, troubled};
use super::{assert_plain, token};

/// Dead letters of results, and the action that moves them.
const MOVE: (&str, &str) = ("move-dead-letters", "queue=result-dead-letters");

/// The number of dead letters: one more than one person moves.
const LETTERS: usize = 101;

const LATER: &str = "2026-11-20T13:00:00Z";
const TOO_LATE: &str = "2026-11-20T13:00:01Z";

/// The issuer of tokens.
const ISSUER: &str = "https://login.example.com";

/// A token of the client that acts, with these scopes beside inspect.
pub(super) fn signed(person: &str, scope: &str) -> Value {
    signed_at(ISSUER, person, scope)
}

fn signed_at(issuer: &str, person: &str, scope: &str) -> Value {
    let scope = format!("payments/inspect {scope}");
    token(&json!({ "iss": issuer, "client_id": "local-console", "sub": person, "scope": scope }))
}

pub(super) fn ana() -> Value {
    signed("ana", "payments/operate")
}

pub(super) fn ben() -> Value {
    signed("ben", "payments/approve")
}

/// A bank whose operators sign in, with so many dead letters.
pub(super) async fn bank(letters: usize) -> Result<World> {
    let world = World::with(|environment| environment.require_tokens = true).await?;
    add(&world, letters)?;
    Ok(world)
}

fn add(world: &World, letters: usize) -> Result<()> {
    let queue = &world.outside.operations.queues.result_dead_letters;
    for n in 0..letters {
        queue.send(format!("letter {n}"), world.now().as_chrono())?;
    }
    Ok(())
}

/// The messages that were moved back.
fn moved(world: &World) -> usize {
    world.outside.operations.queues.results.counts(world.now().as_chrono()).visible
}

/// The offer to Ana.
async fn offer(world: &World) -> Result<Offered> {
    let reply = world.send_authorized(&ana(), preview_of(MOVE.0, MOVE.1)).await?.with_status(200)?;
    Offered::parse(&reply.text)
}

/// Ana asks for the move.
async fn asked(world: &World) -> Result<ActionName> {
    let offer = offer(world).await?;
    world.send_authorized(&ana(), offer.ask()).await?.with_status(200)?;
    Ok(only(world).await?.intent.name)
}

async fn only(world: &World) -> Result<AuditEntry> {
    super::acting::only_entry(world).await
}

/// The decision that a person sends about what waits.
async fn decision(world: &World, wish: &str) -> Result<Ask> {
    let intent = only(world).await?.intent;
    let hash = intent.first.context("it needs one person")?.hash;
    Ok(decision_on(wish, intent.name, &hash))
}

pub(super) fn decision_on(wish: &str, name: ActionName, hash: &PlanHash) -> Ask {
    let form = format!("at={}&id={}&hash={hash}", name.previewed_at, name.id);
    let ask = Ask::post(&format!("/console/approvals/{wish}"));
    ask.header("Content-Type", "application/x-www-form-urlencoded").text(&form)
}

pub(super) fn look(name: ActionName) -> Ask {
    let form = format!("at={}&id={}", name.previewed_at, name.id);
    let ask = Ask::post("/console/approvals/look");
    ask.header("Content-Type", "application/x-www-form-urlencoded").text(&form)
}

async fn view(world: &World, as_: &Value, wanted: &str) -> Result<String> {
    let reply = world.send_authorized(as_, Ask::get(&format!("/console/views/{wanted}"))).await?;
    Ok(reply.with_status(200)?.text)
}

async fn decided(world: &World, name: ActionName) -> Result<Option<Approval>> {
    Ok(world.store().await.approval(name).await?)
}

#[tokio::test]
async fn a_second_person_sees_the_same_plan_and_approves_it_once() -> Result<()> {
    let world = bank(LETTERS).await?;
    let shown = world.send_authorized(&ana(), preview_of(MOVE.0, MOVE.1)).await?.text;
    assert!(
        shown.contains("A second person must agree") && shown.contains(">Ask to move about 101 messages"),
        "{shown}"
    );
    let offer = Offered::parse(&shown)?;
    let waits = world.send_authorized(&ana(), offer.ask()).await?.with_status(200)?;
    assert!(waits.text.contains("waits for a second person until 13:00"), "{waits}");
    let intent = only(&world).await?.intent;
    let first = intent.first.clone().context("it needs one person")?;
    let hash = PlanHash::from_facts("move-dead-letters", "queue: result-dead-letters\nmessages: 101");
    assert_eq!((first.person.as_str(), &first.hash), ("ana", &hash));
    assert_eq!((moved(&world), decided(&world, intent.name).await?), (0, None));
    // Whoever asks again waits on.
    let again = world.send_authorized(&ana(), offer.ask()).await?.with_status(200)?;
    assert_eq!(again.text, waits.text);
    for (wanted, says) in
        [("attention", "1 to approve"), ("audit", "1 action waits for a second person"), ("audit", "Read and decide…")]
    {
        let page = view(&world, &ben(), wanted).await?;
        assert!(page.contains(says) && page.contains("until 13:00"), "{wanted}: {page}");
    }
    let looked = world.send_authorized(&ben(), look(intent.name)).await?.with_status(200)?;
    for says in [">ana<", "101", hash.short(), hash.as_str(), "data-approval=\"approve\"", "data-approval=\"refuse\""] {
        assert!(looked.text.contains(says), "{says}: {looked}");
    }
    assert_plain(&looked.text, "the dialog");
    let approve = decision(&world, "approve").await?;
    let done = world.send_authorized(&ben(), approve.clone()).await?.with_status(200)?;
    assert!(done.text.contains("the move has begun"), "{done}");
    assert_eq!(moved(&world), LETTERS);
    let entry = only(&world).await?;
    assert_eq!(entry.outcome.and_then(|outcome| outcome.second).as_deref(), Some("o:ben"));
    let page = view(&world, &ben(), "audit").await?;
    assert!(page.contains(">ana<") && page.contains(">ben<") && !page.contains("waits for"), "{page}");
    let looked = world.send_authorized(&ben(), look(intent.name)).await?.with_status(200)?;
    assert!(looked.text.contains("the move has begun") && !looked.text.contains("efuse"), "{looked}");
    // Nothing more happens, whoever repeats what.
    add(&world, 1)?;
    for (who, ask) in [(ben(), approve), (ben(), decision(&world, "refuse").await?), (ana(), offer.ask())] {
        let again = world.send_authorized(&who, ask).await?.with_status(200)?;
        assert!(again.text.contains("the move has begun"), "{again}");
    }
    assert_eq!(moved(&world), LETTERS);
    Ok(())
}

#[tokio::test]
async fn one_person_is_not_two() -> Result<()> {
    let world = bank(LETTERS).await?;
    let name = asked(&world).await?;
    let approve = decision(&world, "approve").await?;
    // Ana has both rights. Another client gives her another name.
    let both = signed("ana", "payments/operate payments/approve");
    let looked = world.send_authorized(&both, look(name)).await?.with_status(200)?;
    assert!(looked.text.contains("another person has to decide") && !looked.text.contains("data-approval"), "{looked}");
    let scope = "payments/inspect payments/approve";
    for claims in [
        json!({ "client_id": "local-console", "sub": "ana", "username": "ben", "scope": scope }),
        json!({ "client_id": "feed", "sub": "ana-at-feed", "scope": scope }),
        json!({ "client_id": "local-client", "sub": "ana-elsewhere", "scope": scope }),
        json!({ "sub": "ben", "scope": scope }),
        // No person, or more than one.
        json!({ "client_id": "local-console", "scope": scope }),
        json!({ "client_id": "local-console", "sub": "", "scope": scope }),
        json!({ "client_id": "local-console", "sub": "ben@example.com", "scope": scope }),
        json!({ "client_id": "local-console", "sub": ["ben"], "scope": scope }),
        // A right is missing.
        json!({ "client_id": "local-console", "sub": "ben", "scope": "payments/inspect payments/operate" }),
        json!({ "client_id": "local-console", "sub": "ben", "scope": "payments/approve" }),
        json!({ "client_id": "local-console", "sub": "ben", "scope": scope, "custom:accounts": "tenant" }),
    ] {
        let mut claims = claims;
        claims["iss"] = json!(ISSUER);
        for ask in [approve.clone(), decision(&world, "refuse").await?] {
            let claims = payments_machine::event::jwt(&claims);
            world.send_authorized(&claims, ask).await?.with_status(403).with_context(|| claims.to_string())?;
        }
    }
    // Another issuer's names, or none's.
    let elsewhere = &signed_at("https://sso.example.com", "ben", "payments/approve");
    let refused = world.send_authorized(elsewhere, approve.clone()).await?.with_status(403)?;
    assert!(refused.field("detail").contains("the issuer of the tokens, changed"), "{refused}");
    world.send_authorized(&signed_at("", "ben", "payments/approve"), approve.clone()).await?.with_status(403)?;
    world.send_authorized(&Value::Null, approve).await?.with_status(401)?;
    assert_eq!((decided(&world, name).await?, moved(&world)), (None, 0));
    Ok(())
}

#[tokio::test]
async fn whoever_asks_is_a_person_and_up_to_a_hundred_need_one() -> Result<()> {
    let nobody = |claims: Value| token(&claims);
    let scope = "payments/inspect payments/operate";
    let world = bank(LETTERS).await?;
    let offer = offer(&world).await?;
    for claims in [
        json!({ "client_id": "local-console", "scope": scope }),
        json!({ "client_id": "local-console", "sub": "ana@example.com", "scope": scope }),
    ] {
        for ask in [preview_of(MOVE.0, MOVE.1), offer.ask()] {
            let refused = world.send_authorized(&nobody(claims.clone()), ask).await?.with_status(403)?;
            assert!(refused.field("detail").contains("the token's claim sub names none"), "{refused}");
        }
    }
    assert_eq!(world.audit_trail().await?, []);
    // Without a sign-in there are no persons.
    let open = World::open().await?;
    add(&open, LETTERS)?;
    let refused = open.answered(preview_of(MOVE.0, MOVE.1), 403).await?;
    assert!(refused.field("detail").contains("as Four eyes in docs/operations.md says"), "{refused}");
    // One person moves a hundred, and not one more that comes after the preview, or that the form leaves out.
    let small = bank(LETTERS - 1).await?;
    let first = self::offer(&small).await?;
    add(&small, 1)?;
    let refused = small.send_authorized(&ana(), first.ask()).await?.with_status(200)?;
    assert!(refused.text.contains("the preview showed fewer"), "{refused}");
    small.set_clock("2026-11-20T09:00:01Z")?;
    let forged = self::offer(&small).await?.with("messages", "100");
    let refused = small.send_authorized(&ana(), forged.ask()).await?.with_status(200)?;
    assert!(refused.text.contains("the preview showed fewer"), "{refused}");
    assert_eq!(moved(&small), 0);
    let few = bank(LETTERS - 1).await?;
    let offer = self::offer(&few).await?;
    few.send_authorized(&ana(), offer.ask()).await?.with_status(200)?;
    assert_eq!((moved(&few), only(&few).await?.intent.first), (LETTERS - 1, None));
    Ok(())
}

#[tokio::test]
async fn a_refusal_ends_it() -> Result<()> {
    let world = bank(LETTERS).await?;
    let name = asked(&world).await?;
    let (refuse, approve) = (decision(&world, "refuse").await?, decision(&world, "approve").await?);
    let refused = world.send_authorized(&ben(), refuse).await?.with_status(200)?;
    assert!(refused.text.contains("the second person refused it"), "{refused}");
    let cem = signed("cem", "payments/approve");
    for who in [ben(), cem] {
        let late = world.send_authorized(&who, approve.clone()).await?.with_status(200)?;
        assert!(late.text.contains("the second person refused it"), "{late}");
    }
    assert_eq!(moved(&world), 0);
    assert!(decided(&world, name).await?.is_some_and(|decision| !decision.is_approved));
    assert_eq!(audited(&only(&world).await?), "refused: the second person refused it");
    let page = view(&world, &ben(), "attention").await?;
    assert!(!page.contains("to approve"), "{page}");
    Ok(())
}

#[tokio::test]
async fn an_approval_is_in_time_and_of_the_plan_that_waits() -> Result<()> {
    let world = bank(LETTERS).await?;
    let name = asked(&world).await?;
    let hash = PlanHash::from_facts("move-dead-letters", "queue: result-dead-letters\nmessages: 1000");
    for wrong in ["approve", "refuse"] {
        let forged = decision_on(wrong, name, &hash);
        world.send_authorized(&ben(), forged).await?.with_status(403)?;
    }
    assert_eq!(decided(&world, name).await?, None);
    let approve = decision(&world, "approve").await?;
    world.set_clock(TOO_LATE)?;
    for ask in [look(name), approve.clone(), decision(&world, "refuse").await?] {
        let late = world.send_authorized(&ben(), ask).await?.with_status(200)?;
        assert!(late.text.contains("no second person decided") && !late.text.contains("data-approval"), "{late}");
    }
    let page = view(&world, &ben(), "audit").await?;
    assert!(page.contains("Lapsed") && !page.contains("Read and decide"), "{page}");
    assert_eq!((decided(&world, name).await?, moved(&world)), (None, 0));
    world.set_clock(LATER)?;
    world.send_authorized(&ben(), approve).await?.with_status(200)?;
    assert_eq!(moved(&world), LETTERS);
    // Ben did not agree on the letter that came since.
    let grown = bank(LETTERS).await?;
    asked(&grown).await?;
    add(&grown, 1)?;
    let refused = grown.send_authorized(&ben(), decision(&grown, "approve").await?).await?.with_status(200)?;
    assert!(refused.text.contains("the preview showed fewer"), "{refused}");
    assert_eq!((moved(&grown), audited(&only(&grown).await?).starts_with("refused: ")), (0, true));
    Ok(())
}

#[tokio::test]
async fn of_two_who_decide_at_once_the_first_counts() -> Result<()> {
    let cem = signed("cem", "payments/approve");
    for (wish, moves) in [("approve", LETTERS), ("refuse", 0)] {
        let world = bank(LETTERS).await?;
        let name = asked(&world).await?;
        // Both read that nobody has decided, and Ben's decision is put first.
        let intent = only(&world).await?.intent;
        let (hash, person) = (intent.first.context("it needs one person")?.hash, "ben".parse()?);
        let is_approved = wish == "approve";
        let (by, request) = ("o:ben".to_owned(), "other".to_owned());
        let named_by = NamedBy { claim: "sub".parse()?, issuer: ISSUER.to_owned() };
        let first = Approval { name, at: world.now(), is_approved, person, named_by, by, hash, request };
        assert_eq!(world.store().await.put_approval(&first).await?, None);
        let approve = decision(&world, "approve").await?;
        world.send_authorized(&cem, approve).await?.with_status(200)?;
        assert_eq!(moved(&world), 0, "Cem's approval is not on record");
        // Ben's request goes on, as the SDK repeats it.
        let own = decision(&world, wish).await?;
        let ended = world.send_as_to(world.functions(), ("other", &ben()), own).await?.with_status(200)?;
        assert_eq!(moved(&world), moves, "{ended}");
        assert_eq!(decided(&world, name).await?, Some(first));
        assert_eq!(only(&world).await?.outcome.and_then(|outcome| outcome.second).as_deref(), Some("o:ben"));
    }
    Ok(())
}

#[tokio::test]
async fn wherever_it_stops_it_happens_at_most_once_and_only_if_it_was_approved() -> Result<()> {
    let mut cases = 0;
    for step in ["ask", "approve", "refuse"] {
        let mut points = CrashPoints::new("console-second", LASTING);
        while let Some(point) = points.next_case() {
            let world = bank(LETTERS).await?;
            let offer = offer(&world).await?;
            if step != "ask" {
                world.send_authorized(&ana(), offer.ask()).await?.with_status(200)?;
            }
            let (who, ask) = if step == "ask" { (ana(), offer.ask()) } else { (ben(), decision(&world, step).await?) };
            let (functions, recorder) = troubled(&world, point).await?;
            let first = world.send_as_to(&functions, ("first", &who), ask.clone()).await?;
            if recorder.take_operations().len() <= point.call {
                first.with_status(200)?;
                continue;
            }
            points.failed(format_args!("{step} {:?}", point.way.fate))?;
            let case = format!("{step}: {point:?}: {first}");
            assert!(first.status >= 500, "{case}");
            let between = moved(&world);
            add(&world, usize::from(between > 0))?;
            let again =
                world.send_as_to(world.functions(), ("second", &who), ask).await.with_context(|| case.clone())?;
            again.with_status(200).with_context(|| case.clone())?;
            let entry = only(&world).await.with_context(|| case.clone())?;
            let known = decided(&world, entry.intent.name).await?;
            let after = moved(&world);
            match step {
                "ask" => assert_eq!((after, known), (0, None), "{case}"),
                "refuse" => {
                    assert_eq!((after, audited(&entry)), (0, "refused: the second person refused it"), "{case}");
                }
                _ => {
                    assert!(known.is_some_and(|decision| decision.is_approved), "{case}");
                    assert!(after == 0 || after == LETTERS, "{case}");
                    assert!(between == 0 || after == between, "it does not happen again: {case}");
                    // An action without an outcome may have happened, and is not repeated.
                    assert!(entry.outcome.is_none() || after == LETTERS, "{case}");
                }
            }
        }
        cases += points.cases();
    }
    assert!(cases >= 24, "{cases} cases");
    Ok(())
}

#[tokio::test]
async fn decisions_are_bounded_and_checked() -> Result<()> {
    let world = bank(LETTERS).await?;
    let name = asked(&world).await?;
    let whole = format!("at={}&id={}", name.previewed_at, name.id);
    let hash = "0".repeat(64);
    for (wish, form, status) in [
        ("look", whole.clone(), 200),
        ("look", format!("{whole}&hash={hash}"), 400),
        ("approve", whole.clone(), 400),
        ("approve", format!("{whole}&hash=0"), 400),
        ("approve", format!("{whole}&hash={hash}&step=do"), 400),
        ("approve", format!("at={}&id=00000000-0000-5000-8000-000000000001&hash={hash}", name.previewed_at), 404),
        ("look", "at=now&id=1".to_owned(), 400),
        ("agree", whole, 404),
    ] {
        let ask = Ask::post(&format!("/console/approvals/{wish}"));
        let ask = ask.header("Content-Type", "application/x-www-form-urlencoded").text(&form);
        let other = ask.clone().header("Sec-Fetch-Site", "cross-site");
        world.send_authorized(&ben(), ask).await?.with_status(status).with_context(|| format!("{wish} {form}"))?;
        world.send_authorized(&ben(), other).await?.with_status(403)?;
    }
    // An action of one person waits for nobody.
    let one =
        action("start-report", &format!("step=do&at={}&id={}", world.now(), "00000000-0000-5000-8000-000000000002"));
    world.send_authorized(&ana(), one).await?.with_status(200)?;
    let form = format!("at={}&id=00000000-0000-5000-8000-000000000002", world.now());
    let ask =
        Ask::post("/console/approvals/look").header("Content-Type", "application/x-www-form-urlencoded").text(&form);
    world.send_authorized(&ben(), ask).await?.with_status(404)?;
    assert_eq!((decided(&world, name).await?, moved(&world)), (None, 0));
    Ok(())
}
