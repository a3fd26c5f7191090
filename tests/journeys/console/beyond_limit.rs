//! Operators release a date that its limit holds, up to the numbers that the preview showed.

use anyhow::{Context as _, Result, ensure};
use payments_machine::given::{stop, turn_switch};
use payments_model::{Actor, BusinessDate, DayCounts, DayTotal, Status, SwitchChange};
use payments_store::{DateCounters, DayRelease};
use payments_tests::tables::{audited, item, text};
use payments_tests::{CrashPoints, TROUBLES, World};

use super::acting::{Offered, confirm, first_try, offered, only_entry, preview, preview_of};
use super::second::{ana, ben, decision_on, look, signed};
use super::{page, rent};

const TODAY: &str = "2026-11-20";
const FORM: &str = "date=2026-11-20";
const NAME: &str = "release-day";

/// A bank whose limit holds today, of which so many payments of 5.00 GBP are claimed and scheduled.
async fn held(claimed: i64, scheduled: i64, has_tokens: bool) -> Result<World> {
    let limit = "payments=2,GBP=500".to_owned();
    let world = World::with(|environment| (environment.max_day, environment.require_tokens) = (limit, has_tokens));
    let world = world.await?;
    world.store().await.note_day_held(today()?, "2026-11-20T08:00:00Z".parse()?).await?;
    count(&world, claimed, scheduled).await?;
    Ok(world)
}

fn today() -> Result<BusinessDate> {
    Ok(TODAY.parse()?)
}

/// Sets the counters of today, and nothing else.
async fn count(world: &World, claimed: i64, scheduled: i64) -> Result<()> {
    let (store, gbp) = (world.store().await, "GBP".parse()?);
    let known: DateCounters = store.counters(today()?, today()?).await?.remove(&today()?).unwrap_or_default();
    let mut counts = DayCounts::default();
    for (status, payments) in [(Status::Pending, claimed), (Status::Scheduled, scheduled)] {
        counts.shift(status, payments);
        counts.shift_sum(gbp, status, 500 * i128::from(payments));
    }
    ensure!(store.correct_counters(today()?, &known, &counts).await?, "the counters changed meanwhile");
    Ok(())
}

async fn release(world: &World) -> Result<Option<DayRelease>> {
    Ok(world.store().await.day_release(today()?).await?)
}

async fn up_to(world: &World) -> Result<String> {
    Ok(release(world).await?.map(|release| release.up_to.to_string()).unwrap_or_default())
}

/// Confirms a release with a reason, and returns its outcome in the trail.
async fn done(world: &World, request: &str, offer: &Offered) -> Result<String> {
    confirm(world, request, &offer.clone().with("reason", "the feed is right")).await?;
    let trail = world.audit_trail().await?;
    let entry = trail.iter().find(|entry| entry.intent.request == request).context("no entry")?;
    Ok(audited(entry).to_owned())
}

#[tokio::test]
async fn what_a_limit_holds_is_claimed_after_its_release() -> Result<()> {
    let world = World::with(|environment| environment.max_day = "payments=2,EUR=5000000".to_owned()).await?;
    for key in ["a", "b", "c"] {
        rent(&world, key).await?;
    }
    world.count_all().await?;
    world.set_clock("2026-12-01T14:02:00Z")?;
    world.sweep().await?;
    let strip = page(&world, "attention").await?;
    assert!(strip.contains("held by MaxDay") && strip.contains("href=\"#day?date=2026-12-01\""), "{strip}");
    for view in ["day?date=2026-12-01", "day", "waiting"] {
        let view = page(&world, view).await?;
        assert!(view.contains("<form data-action=\"release-day\">") && view.contains("value=\"2026-12-01\""), "{view}");
    }
    world.forget();
    let shown = preview(&world, NAME, "date=2026-12-01").await?;
    let mut reads = world.recorder.take_operations();
    reads.sort();
    assert_eq!(reads, ["BatchGetItem", "GetItem", "GetItem"], "a preview writes nothing");
    for (name, cells) in
        [("Payments", ["2", "0", "3", "103"]), ("EUR", ["50,000.00", "0.00", "37,037.01", "50,000.00"])]
    {
        let row =
            shown.split("<tr role=\"row\">").find(|row| row.contains(&format!(">{name}</th>"))).context("no row")?;
        let found: Vec<&str> =
            row.split("\">").filter_map(|cell| cell.split_once("</td>")).map(|(cell, _)| cell).collect();
        assert_eq!(found, cells, "{name}: {shown}");
    }
    let offer = Offered::parse(&shown)?;
    world.answered(offer.ask(), 400).await?;
    let told = done(&world, "first", &offer).await?;
    assert_eq!(told, "released up to 103 payments; the sweep claims what is due, unless it is stopped");
    let trail = page(&world, "audit").await?;
    assert!(trail.contains("Raised the limit of") && trail.contains("up to 103 payments"), "{trail}");
    world.set_clock("2026-12-01T14:05:00Z")?;
    world.sweep().await?;
    world.count_all().await?;
    let day = page(&world, "day?date=2026-12-01").await?;
    assert!(
        day.contains("<strong class=\"zero\">0</strong><span class=\"quiet\">claimed when due") && !day.contains(NAME),
        "{day}"
    );
    assert!(!page(&world, "attention").await?.contains("held by MaxDay"));
    let shown = preview(&world, NAME, "date=2026-12-01").await?;
    assert!(shown.contains("its limit does not hold this date") && !shown.contains("name=\"reason\""), "{shown}");
    Ok(())
}

/// The claims of a crashed sweep stay in the date's item, and a release has room for them.
#[tokio::test]
async fn a_release_has_room_for_claims_that_were_reserved_and_not_made() -> Result<()> {
    let world = held(150, 20, false).await?;
    let sums = [("GBP".parse()?, 100_000)].into();
    let reserved = DayTotal { payments: 200, sums };
    let store = world.store().await;
    ensure!(store.reserve_claims(today()?, &reserved, &"payments=200".parse()?, None).await?);
    let told = done(&world, "first", &offered(&world, NAME, FORM).await?).await?;
    assert!(told.starts_with("released up to 320 payments, 1,111.00 GBP;"), "{told}");
    assert_eq!(up_to(&world).await?, "payments=320,GBP=111100");
    Ok(())
}

/// Claims that are not counted are counted as scheduled, too: a release by these numbers has room for a feed loaded twice.
#[tokio::test]
async fn nothing_is_released_while_the_counters_stand_still() -> Result<()> {
    let sums = [("GBP".parse()?, 1_500_000)].into();
    let reserved = DayTotal { payments: 3_000, sums };
    for (claimed, is_offered) in [(0, false), (1_999, false), (2_000, true)] {
        let world = held(claimed, 3_000 - claimed, false).await?;
        let store = world.store().await;
        ensure!(store.reserve_claims(today()?, &reserved, &"payments=3000".parse()?, None).await?);
        store.note_day_held(today()?, "2026-11-20T08:00:00Z".parse()?).await?;
        let shown = preview(&world, NAME, FORM).await?;
        assert_eq!(shown.contains("the counters lack claims"), !is_offered, "{claimed}: {shown}");
        assert_eq!(shown.contains("name=\"reason\""), is_offered, "{claimed}: {shown}");
    }
    Ok(())
}

#[tokio::test]
async fn a_release_is_of_the_numbers_that_its_preview_showed() -> Result<()> {
    for (scheduled, is_released) in [(11_000, true), (11_111, false), (10_900, true), (10_800, false)] {
        let world = held(0, 11_000, false).await?;
        let offer = offered(&world, NAME, FORM).await?;
        count(&world, 0, scheduled).await?;
        let told = done(&world, "first", &offer).await?;
        assert_eq!(told.starts_with("released up to 11,110 payments"), is_released, "{scheduled}: {told}");
        assert_eq!(told.contains("Preview it again, and ask anew"), !is_released, "{scheduled}: {told}");
        assert_eq!(release(&world).await?.is_some(), is_released, "{scheduled}");
    }
    // No form releases more than the preview showed.
    let world = held(0, 10, false).await?;
    let offer = offered(&world, NAME, FORM).await?;
    for (field, value) in [("up-to", "payments=1000000,GBP=5050"), ("up-to", ""), ("version", ""), ("need", "x")] {
        world.answered(offer.clone().with("reason", "why").with(field, value).ask(), 400).await?;
    }
    let forged = offer.clone().with("need", "payments=9000,GBP=5000").with("up-to", "payments=9100,GBP=5050");
    assert!(done(&world, "forged", &forged).await?.contains("needs 10 payments, 50.00 GBP now, far from"));
    world.set_clock("2026-11-20T09:01:00Z")?;
    let offer = offered(&world, NAME, FORM).await?;
    let forged = offer.with("need", "payments=10,GBP=5000,EUR=900").with("up-to", "payments=110,GBP=5050,EUR=909");
    assert!(done(&world, "other", &forged).await?.contains("far from what was shown"));
    assert_eq!(release(&world).await?, None);
    world.answered(preview_of(NAME, "date=today"), 400).await?;
    Ok(())
}

#[tokio::test]
async fn a_release_is_of_the_release_that_its_preview_showed() -> Result<()> {
    let world = held(0, 300, false).await?;
    let offer = offered(&world, NAME, FORM).await?;
    let change = |at: &str| -> Result<_> {
        Ok(SwitchChange { by: Actor::operator("eve"), at: at.parse()?, reason: "<b>other</b>".to_owned() })
    };
    let at = "2026-11-20T09:00:00Z";
    let other = DayRelease { version: 1, up_to: "payments=250".parse()?, change: change(at)? };
    ensure!(world.store().await.release_day(today()?, &other).await?);
    ensure!(!world.store().await.release_day(today()?, &other).await?, "a version is put once");
    let told = done(&world, "first", &offer).await?;
    assert_eq!(told, "not released, the date was released since the preview");
    world.set_clock("2026-11-20T09:01:00Z")?;
    let shown = preview(&world, NAME, FORM).await?;
    assert!(shown.contains("Released before") && shown.contains("up to 250 payments by eve"), "{shown}");
    assert!(shown.contains("&lt;b&gt;other") && !shown.contains("<b>other"), "{shown}");
    done(&world, "second", &Offered::parse(&shown)?).await?;
    assert_eq!(release(&world).await?.map(|release| release.version), Some(2));
    Ok(())
}

#[tokio::test]
async fn what_is_not_released_says_why() -> Result<()> {
    let none = World::open().await?;
    assert!(preview(&none, NAME, FORM).await?.contains("there is no MaxDay"));
    let fits = held(0, 1, false).await?;
    assert!(preview(&fits, NAME, FORM).await?.contains("so no release is needed"));
    let world = held(0, 300, false).await?;
    turn_switch(&world.store().await, world.now(), stop).await?;
    assert!(preview(&world, NAME, FORM).await?.contains("is on in Bank, too: this waits until it ends"));
    let offer = offered(&world, NAME, FORM).await?;
    let tables = &world.environment.tables;
    for (partition, sort, table) in
        [("CONTROL", "RELEASE#2026-11-20", &tables.history), ("CLAIMS", TODAY, &tables.payments)]
    {
        world.put_items(table, [item([("pk", text(partition)), ("sk", text(sort)), ("payments", text("x"))])]).await?;
        let shown = preview(&world, NAME, FORM).await?;
        assert!(shown.contains("cannot be read, so the date stays held") && !shown.contains("<form"), "{shown}");
        let told = done(&world, "first", &offer).await?;
        assert!(told.starts_with("refused: What was claimed of this date"), "{told}");
        let client = world.client().await.delete_item().table_name(table);
        client.key("pk", text(partition)).key("sk", text(sort)).send().await?;
    }
    Ok(())
}

#[tokio::test]
async fn two_persons_release_a_date_up_to_numbers_that_both_saw() -> Result<()> {
    for (scheduled, now, is_done) in [(12_000, "12,000 payments, ", true), (12_121, "12,121 payments, ", false)] {
        let world = held(0, 12_000, true).await?;
        let shown = world.send_authorized(&ana(), preview_of(NAME, FORM)).await?.with_status(200)?.text;
        assert!(shown.contains("A second person must agree") && shown.contains(">Ask to release them<"), "{shown}");
        let offer = Offered::parse(&shown)?.with("reason", "after a holiday");
        let waits = world.send_authorized(&ana(), offer.ask()).await?.with_status(200)?;
        assert!(waits.text.contains("waits for a second person until 13:00"), "{waits}");
        let intent = only_entry(&world).await?.intent;
        let hash = intent.first.as_ref().context("it needs one person")?.hash.clone();
        count(&world, 0, scheduled).await?;
        let looked = world.send_authorized(&ben(), look(intent.name)).await?.with_status(200)?.text;
        for says in ["up to 12,120 payments, 60,600.00 GBP", now, "after a holiday"] {
            assert!(looked.contains(says), "{says}: {looked}");
        }
        assert_eq!(looked.contains("data-approval=\"approve\""), is_done, "{looked}");
        let approve = decision_on("approve", intent.name, &hash);
        world.send_authorized(&signed("ana", "payments/approve"), approve.clone()).await?.with_status(403)?;
        assert_eq!(release(&world).await?, None);
        world.send_authorized(&ben(), approve).await?.with_status(200)?;
        let wanted = if is_done { "payments=12120,GBP=6060000" } else { "" };
        assert_eq!(up_to(&world).await?, wanted, "{:?}", only_entry(&world).await?);
    }
    Ok(())
}

#[tokio::test]
async fn whatever_fails_a_release_is_in_the_trail_and_a_repeat_completes_it() -> Result<()> {
    let mut points = CrashPoints::new("console-release-day", TROUBLES);
    while let Some(point) = points.next_case() {
        let world = held(0, 3, false).await?;
        let offer = offered(&world, NAME, FORM).await?.with("reason", "it is right");
        let (first, operations) = first_try(&world, point, &offer).await?;
        if operations.len() <= point.call {
            first.with_status(200)?;
            continue;
        }
        points.failed(point.way.name)?;
        let case = format!("{point:?}: {first}");
        assert_eq!(first.status, if point.way.lasts() { 503 } else { 200 }, "{case}");
        let is_released = release(&world).await?.is_some();
        if is_released {
            only_entry(&world).await.with_context(|| format!("nothing is done without an intent: {case}"))?;
        }
        let repeat = confirm(&world, "second", &offer).await.with_context(|| case.clone())?;
        assert!(repeat.text.contains("released up to 103 payments"), "{case}: {repeat}");
        let known = release(&world).await?.map(|release| (release.version, release.up_to.to_string()));
        assert_eq!(known, Some((1, "payments=103,GBP=1515".to_owned())), "{case}");
        let entry = only_entry(&world).await.with_context(|| case.clone())?;
        assert!(entry.outcome.is_some(), "{case}");
    }
    assert!(points.cases() >= 20, "{points:?}");
    Ok(())
}
