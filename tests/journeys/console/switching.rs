//! Operators stop and resume all claims and sends, and hold due dates; the strip and the view Bank say so.

use anyhow::{Context as _, Result};
use payments_machine::given::turn_switch;
use payments_model::{DayCounts, DayTotal, Hold, Status};
use payments_store::DateCounters;
use payments_tests::tables::{audited, item, text};
use payments_tests::{Reply, World};

use super::acting::{Offered, confirm, offered, preview, preview_of};
use super::second::{ana, bank, ben, decision_on, look, signed};
use super::{page, rent};

const BEGAN: &str = "2026-12-01T14:02:00Z";

/// A bank with a payment that is due.
async fn due() -> Result<World> {
    let world = World::open().await?;
    rent(&world, "rent").await?;
    world.count_all().await?;
    world.set_clock(BEGAN)?;
    Ok(world)
}

/// Confirms a turn with a reason, and returns its outcome in the trail.
async fn turned(world: &World, request: &str, offer: &Offered, reason: &str) -> Result<String> {
    let offer = offer.clone().with("reason", reason);
    confirm(world, request, &offer).await?;
    let trail = world.audit_trail().await?;
    Ok(trail.iter().find(|entry| entry.intent.request == request).map(audited).unwrap_or_default().to_owned())
}

#[tokio::test]
async fn one_person_stops_all_with_a_reason_and_the_strip_says_so_first() -> Result<()> {
    let world = due().await?;
    world.forget();
    let offer = offered(&world, "stop", "").await?;
    assert_eq!(world.recorder.take_operations(), ["GetItem"], "a stop reads no shard");
    for reason in ["", " ", "a\nb", "\u{200b}", "\u{3164}", "-", "why\u{202e}", "w\u{200b}hy", &"é".repeat(201)] {
        world.answered(offer.clone().with("reason", reason).ask(), 400).await?;
    }
    assert!(!world.store().await.switch().await?.stopped);
    let done = turned(&world, "first", &offer, "the feed of <b>shop</b> is wrong").await?;
    assert_eq!(done, "stopped; nothing is claimed or sent from five seconds later on");
    let switch = world.store().await.switch().await?;
    assert!(switch.stopped && switch.version == 1, "{switch:?}");
    assert_eq!(turned(&world, "again", &offer, "the feed of <b>shop</b> is wrong").await?, "", "it is the same action");
    let strip = page(&world, "attention").await?;
    let first = strip.split("<li").nth(1).unwrap_or_default();
    assert!(first.contains("<b>Stopped by ") && first.contains("since 14:02</b>"), "{strip}");
    assert!(first.contains("the feed of &lt;b&gt;shop&lt;/b&gt; is wrong"), "{strip}");
    let bank = page(&world, "bank").await?;
    assert!(bank.contains("Resume…") && !bank.contains("Stop…") && bank.contains("Received by the service"), "{bank}");
    let shown = preview(&world, "stop", "").await?;
    assert!(shown.contains("not stopped again, it is stopped by") && !shown.contains("name=\"reason\""), "{shown}");
    Ok(())
}

#[tokio::test]
async fn while_all_is_stopped_nothing_is_swept_redriven_or_sent_by_hand() -> Result<()> {
    let world = due().await?;
    let start = offered(&world, "start-sweep", "").await?;
    turned(&world, "stop", &offered(&world, "stop", "").await?, "why").await?;
    let refused = "All claims and sends are stopped";
    let id = rent(&world, "another").await?;
    for (action, form) in [
        ("start-sweep", ""),
        ("start-redrive", ""),
        ("send-again", &*format!("payment={id}")),
        ("move-dead-letters", "queue=request-dead-letters"),
    ] {
        let shown = preview(&world, action, form).await?;
        assert!(shown.contains(refused) && shown.contains("#operations?at=stop-a-wrong-feed"), "{action}: {shown}");
    }
    for (action, form) in [("start-report", ""), ("move-dead-letters", "queue=result-dead-letters")] {
        assert!(!preview(&world, action, form).await?.contains(refused), "{action}");
    }
    // The stop began after the preview.
    confirm(&world, "start", &start).await?;
    let trail = world.audit_trail().await?;
    let entry = trail.iter().find(|entry| entry.intent.request == "start");
    assert!(entry.is_some_and(|entry| audited(entry).starts_with(&format!("refused: {refused}"))), "{trail:?}");
    Ok(())
}

#[tokio::test]
async fn a_resume_shows_what_it_frees_and_is_of_the_switch_that_it_showed() -> Result<()> {
    let world = due().await?;
    turned(&world, "stop", &offered(&world, "stop", "").await?, "why").await?;
    let shown = preview(&world, "resume", "").await?;
    assert!(shown.contains("<b>1</b> scheduled, due today or") && shown.contains("about 0 requests"), "{shown}");
    let late = offered(&world, "resume", "").await?;
    let form = "from=2026-12-01&to=2026-12-02";
    assert!(preview(&world, "hold-dates", form).await?.contains("<b>1</b>"));
    let held = turned(&world, "hold", &offered(&world, "hold-dates", form).await?, "why").await?;
    assert_eq!(held, "held; no claims from five seconds later on");
    assert_eq!(turned(&world, "late", &late, "why").await?, "not resumed, the switch changed since the preview");
    world.answered(late.with("version", "").with("reason", "why").ask(), 400).await?;
    let shown = preview(&world, "resume", "").await?;
    assert!(shown.contains("<b>0</b> scheduled, due today or") && shown.contains("1 hold stays"), "{shown}");
    let resumed = turned(&world, "resume", &offered(&world, "resume", "").await?, "it is undone").await?;
    assert_eq!(resumed, "resumed; the next sweep claims, and redrives send what was skipped");
    let switch = world.store().await.switch().await?;
    assert!(!switch.stopped && switch.holds.len() == 1 && switch.freed_at == Some(BEGAN.parse()?), "{switch:?}");
    // The day after, the held payment is not overdue.
    world.set_clock("2026-12-02T14:02:00Z")?;
    let strip = page(&world, "attention").await?;
    assert!(strip.contains("<b>Payments due from Tue 1 Dec 2026 to Wed 2 Dec 2026 are held</b>"), "{strip}");
    assert!(!strip.contains("overdue"), "{strip}");
    let waiting = page(&world, "waiting").await?;
    assert!(waiting.contains(", held</small>") && !waiting.contains(" late</small>"), "{waiting}");
    let released = turned(&world, "release", &offered(&world, "release-dates", form).await?, "why").await?;
    assert_eq!(released, "released; the next sweep claims what is due");
    // A release is of the hold that it showed, and says what else keeps payments from their claim.
    turned(&world, "hold-2", &offered(&world, "hold-dates", form).await?, "why").await?;
    let late = offered(&world, "release-dates", form).await?;
    turned(&world, "stop-2", &offered(&world, "stop", "").await?, "why").await?;
    assert_eq!(turned(&world, "late-2", &late, "why").await?, "not released, the switch changed since the preview");
    let shown = preview(&world, "release-dates", form).await?;
    assert!(shown.contains("this waits until somebody resumes") && shown.contains("Held by "), "{shown}");
    let released = turned(&world, "release-2", &offered(&world, "release-dates", form).await?, "why").await?;
    assert_eq!(released, "released; the next sweep claims what is due, once somebody resumes");
    turned(&world, "resume-2", &offered(&world, "resume", "").await?, "why").await?;
    assert!(page(&world, "attention").await?.contains("<b>1 overdue</b>"));
    assert!(page(&world, "waiting").await?.contains(" late</small>"));
    let shown = preview(&world, "release-dates", form).await?;
    assert!(shown.contains("no hold has exactly these dates"), "{shown}");
    world.answered(super::acting::preview_of("hold-dates", "from=2026-12-02&to=2026-12-01"), 400).await?;
    Ok(())
}

#[tokio::test]
async fn a_date_that_its_limit_holds_is_not_overdue() -> Result<()> {
    let world = due().await?;
    let (store, date) = (world.store().await, "2026-12-01".parse()?);
    store.note_day_held(date, BEGAN.parse()?).await?;
    for now in [BEGAN, "2026-12-02T14:02:00Z"] {
        world.set_clock(now)?;
        let strip = page(&world, "attention").await?;
        assert!(strip.contains("<b>Payments due on Tue 1 Dec 2026 are held by MaxDay</b>"), "{strip}");
        assert!(strip.contains("#alarms?at=dayheld") && !strip.contains("overdue"), "{strip}");
        let day = page(&world, "day?date=2026-12-01").await?;
        assert!(day.contains(">held</span>") && !day.contains("overdue"), "{day}");
    }
    let waiting = page(&world, "waiting").await?;
    assert!(waiting.contains(", held</small>") && !waiting.contains(" late</small>"), "{waiting}");
    // Claims go on: what is left is late.
    let one = DayTotal { payments: 1, ..DayTotal::default() };
    let freed = store.reserve_claims(date, &one, &"payments=1".parse()?, Some("2026-12-02T14:00:00Z".parse()?)).await?;
    let strip = page(&world, "attention").await?;
    assert!(freed && strip.contains("<b>1 overdue</b>") && !strip.contains("are held"), "{strip}");
    assert!(page(&world, "day?date=2026-12-01").await?.contains("overdue"));
    Ok(())
}

#[tokio::test]
async fn a_date_whose_claims_are_damaged_hides_no_other_date() -> Result<()> {
    let world = due().await?;
    world.create("tenant", "late", &super::payment("2026-12-02")).await?;
    world.create("tenant", "damaged", &super::payment("2026-12-03")).await?;
    world.count_all().await?;
    world.set_clock("2026-12-04T14:02:00Z")?;
    world.store().await.note_day_held("2026-12-01".parse()?, BEGAN.parse()?).await?;
    let damaged = item([("pk", text("CLAIMS")), ("sk", text("2026-12-03")), ("heldSince", text("today"))]);
    world.put_items(&world.environment.tables.payments, [damaged]).await?;
    let strip = page(&world, "attention").await?;
    for line in [
        "<b>Payments due on Tue 1 Dec 2026 are held by MaxDay</b>",
        "<b>1 overdue</b>",
        "<b>Claims of Thu 3 Dec 2026 unknown</b>",
    ] {
        assert!(strip.contains(line), "{line}: {strip}");
    }
    assert!(strip.contains("#day?date=2026-12-03") && !strip.contains("Overdue payments unknown"), "{strip}");
    let waiting = page(&world, "waiting").await?;
    assert_eq!(
        (waiting.matches(", held</small>").count(), waiting.matches(" late</small>").count()),
        (2, 1),
        "{waiting}"
    );
    Ok(())
}

#[tokio::test]
async fn a_full_or_damaged_switch_says_what_to_do() -> Result<()> {
    let world = due().await?;
    let at = BEGAN.parse()?;
    let date = "2026-12-24".parse()?;
    let hold = |change| Hold { from: date, to: date, change };
    turn_switch(&world.store().await, at, |switch, change| switch.holds = vec![hold(change); 16]).await?;
    let shown = preview(&world, "hold-dates", "from=2026-12-01&to=2026-12-01").await?;
    assert!(shown.contains("there are 16 holds; release one, or stop all"), "{shown}");
    let stop = offered(&world, "stop", "").await?;
    let damaged = item([("pk", text("CONTROL")), ("sk", text("SWITCH")), ("stopped", text("no"))]);
    world.put_items(&world.environment.tables.history, [damaged]).await?;
    assert!(page(&world, "attention").await?.contains("<b>Stopped: the switch cannot be read</b>"));
    assert!(page(&world, "bank").await?.contains("#alarms?at=switchunreadable"));
    for action in ["stop", "resume"] {
        assert!(preview(&world, action, "").await?.contains("The switch cannot be read"), "{action}");
    }
    assert!(turned(&world, "stop", &stop, "why").await?.starts_with("refused: The switch cannot be read"));
    assert!(preview(&world, "start-sweep", "").await?.contains("All claims and sends are stopped"));
    Ok(())
}

/// Ana's confirmation of an action of the switch.
/// It is one text, and not two facts of the plan.
const REASON: &str = "a wrong feed; 0 to claim";

async fn turned_by_ana(world: &World, name: &str, form: &str) -> Result<Reply> {
    let reply = world.send_authorized(&ana(), preview_of(name, form)).await?.with_status(200)?;
    let offer = Offered::parse(&reply.text)?.with("reason", REASON);
    world.send_authorized(&ana(), offer.ask()).await?.with_status(200)
}

#[tokio::test]
async fn one_person_stops_and_holds_and_two_resume_and_release() -> Result<()> {
    let dates = "from=2026-12-01&to=2026-12-01";
    for (first, second, form) in [("stop", "resume", ""), ("hold-dates", "release-dates", dates)] {
        let world = bank(0).await?;
        turned_by_ana(&world, first, form).await?;
        let switch = world.store().await.switch().await?;
        assert!(switch.stopped || !switch.holds.is_empty(), "{first}: {switch:?}");
        let waits = turned_by_ana(&world, second, form).await?;
        assert!(waits.text.contains("waits for a second person until 13:00"), "{second}: {waits}");
        assert_eq!(world.store().await.switch().await?, switch, "{second}");
        let trail = world.audit_trail().await?;
        let intent =
            trail.iter().map(|entry| &entry.intent).find(|intent| intent.action == second).context("no intent")?;
        let hash = intent.first.as_ref().context("it needs one person")?.hash.clone();
        let approve = decision_on("approve", intent.name, &hash);
        world.send_authorized(&signed("ana", "payments/approve"), approve.clone()).await?.with_status(403)?;
        assert_eq!(world.store().await.switch().await?, switch, "{second}");
        world.send_authorized(&ben(), approve).await?.with_status(200)?;
        let freed = world.store().await.switch().await?;
        assert!(!freed.stopped && freed.holds.is_empty() && freed.freed_at.is_some(), "{second}: {freed:?}");
    }
    Ok(())
}

/// The second person sees the numbers of the first and today's, and more than the first saw is not freed.
#[tokio::test]
async fn what_grew_since_the_first_person_asked_is_not_freed() -> Result<()> {
    let dates = "from=2026-11-20&to=2026-11-20";
    // A few come while two persons decide.
    for (first, second, form, grown) in [
        ("stop", "resume", "", 101),
        ("hold-dates", "release-dates", dates, 101),
        ("hold-dates", "release-dates", dates, 100),
    ] {
        let world = bank(0).await?;
        turned_by_ana(&world, first, form).await?;
        for (asked_again, is_done) in [(false, grown <= 100), (true, true)] {
            if asked_again && grown <= 100 {
                continue;
            }
            if asked_again {
                world.set_clock("2026-11-20T09:00:01Z")?;
            }
            turned_by_ana(&world, second, form).await?;
            let trail = world.audit_trail().await?;
            let mut waits = trail.iter().filter(|entry| entry.intent.action == second && entry.outcome.is_none());
            let intent = &waits.next().context("no intent")?.intent;
            let hash = intent.first.as_ref().context("it needs one person")?.hash.clone();
            if !asked_again {
                let today = "2026-11-20".parse()?;
                let mut counts = DayCounts::default();
                counts.shift(Status::Scheduled, grown);
                let counted = world.store().await.correct_counters(today, &DateCounters::default(), &counts).await?;
                assert!(counted, "it is counted already");
            }
            let looked = world.send_authorized(&ben(), look(intent.name)).await?.with_status(200)?.text;
            assert!(
                looked.contains(&format!("{grown} to claim, 0 pending"))
                    && looked.contains(">claims<")
                    && !looked.contains(">0 to claim<"),
                "{second}: {looked}"
            );
            assert_eq!(looked.contains("data-approval=\"approve\""), is_done, "{second}: {looked}");
            let approve = decision_on("approve", intent.name, &hash);
            let done = world.send_authorized(&ben(), approve).await?.with_status(200)?.text;
            assert_eq!(done.contains("Preview it again, and ask anew"), !is_done, "{second}: {done}");
            let switch = world.store().await.switch().await?;
            assert_eq!(!switch.stopped && switch.holds.is_empty(), is_done, "{second}: {switch:?}");
        }
    }
    Ok(())
}
