//! The data of sealed payments leaves the long-term table, and nobody sees a difference.

use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use object_store::ObjectStoreExt as _;
use payments_model::{PaymentData, PaymentId, UtcSecond};
use payments_sealed::encode;
use payments_tests::LogLines;
use payments_tests::prelude::*;

use super::reading::answers;
use super::{DAY, SEALED_AT, assert_sealed, body, data, day, parts, seal, settle_late, world_of};
use crate::report::faulty_store::FaultyStore;

/// The instant at which the parts are old enough: three days after they were written.
pub(super) const CLEARED_AT: &str = "2026-11-29T04:10:00Z";

/// The partition of the notes of clears.
const NOTES: &str = "CLEARED";

/// A world with a sealed day, whose part is kept for so many days. Returns the ids of its finished payments, and all that the API shows of them.
pub(super) async fn sealed_day(kept_days: u32) -> Result<(World, Vec<String>, Vec<String>)> {
    let world = world_of(kept_days).await?;
    let (ids, _) = day(&world).await?;
    world.set_clock(SEALED_AT)?;
    seal(world.functions()).await?;
    let shown = answers(&world, &ids).await?;
    Ok((world, ids, shown))
}

/// The places of the sealed data of a payment's details, and `None` for details that still have their text.
async fn places(world: &World, id: &str) -> Result<Vec<Option<String>>> {
    let details = world.store().await.all_details(id.parse()?).await?;
    let place = |data: &PaymentData| data.text().err().map(|sealed| sealed.place.to_string());
    Ok(details.iter().map(|it| it.known().instruction.data.as_ref().and_then(place)).collect())
}

/// Asserts that all data of the payments is sealed, but that of the one with little, and that the API shows what it showed.
pub(super) async fn assert_cleared(world: &World, ids: &[String], shown: &[String], when: &str) -> Result<()> {
    let little = PaymentId::derive(&"tenant".parse()?, &"two".parse()?).to_string();
    for (_, part, rows, _) in parts(world).await? {
        for (row, sealed) in rows.iter().enumerate() {
            let id = sealed.text("paymentId").context("an id")?;
            let want = (id != little).then(|| format!("{DAY}/{}/{row}", part.name.number));
            let found = places(world, id).await?;
            assert!(
                !found.is_empty() && found.iter().all(|place| *place == want),
                "{when}: {id}: {found:?}, not {want:?}"
            );
        }
    }
    assert_eq!(answers(world, ids).await?, shown, "{when}");
    assert_sealed(world, ids, when).await
}

#[tokio::test]
async fn data_leaves_the_table_when_its_part_is_old_and_not_earlier() -> Result<()> {
    let (world, ids, shown) = sealed_day(0).await?;
    world.set_clock("2026-11-29T04:09:59Z")?;
    assert_eq!(seal(world.functions()).await?["cleared"], 0, "it is too early");
    world.set_clock(CLEARED_AT)?;
    let items = world.items().await?;
    world.forget();
    let outcome = seal(world.functions()).await?;
    assert_eq!((&outcome["cleared"], &outcome["sealDiffers"]), (&json!(3), &json!(0)), "{outcome}");
    // Details of less than a KB, of which one payment has two, and two notes of each of the two parts.
    assert_eq!(world.take_write_units(), units("UpdateItem", [("history", 4 + 4)]));
    assert_cleared(&world, &ids, &shown, "cleared").await?;
    world.forget();
    assert_eq!(seal(world.functions()).await?["cleared"], 0, "nothing is left");
    assert_eq!(world.take_write_units(), Units::new());

    // A retry is answered as ever.
    let repeated = world.send(Ask::create("tenant", "three", &body("three"))).await?.with_status(201)?;
    assert_eq!(repeated.header("idempotent-replayed"), Some("true"));
    let other = order_with(DAY, json!({ "data": data("three"), "reference": "three", "amountMinor": 9 }));
    let refused = world.send(Ask::create("tenant", "three", &other)).await?.with_status(422)?;
    assert_eq!(refused.body["fields"], json!(["amountMinor"]), "{refused}");
    let first = PaymentId::derive(&"tenant".parse()?, &"one".parse()?).to_string();
    let changes = order_with(DAY, json!({ "data": data("changed"), "amountMinor": 77 }));
    let amended = world.send(Ask::amend("tenant", &first, ("change", 1), &changes)).await?.with_status(200)?;
    assert_eq!(amended.header("idempotent-replayed"), Some("true"), "{amended}");

    // A restored table has its data again, and not the note that it was cleared.
    let history = &world.environment.tables.history;
    for item in world.partition(history, NOTES).await? {
        world.delete(history, &item).await?;
    }
    world
        .put_items(history, items.into_iter().filter(|item| item["pk"].as_s().is_ok_and(|pk| pk.starts_with("PAY#"))))
        .await?;
    assert_eq!(places(&world, &first).await?, [None, None]);
    let until = world.now().saturating_add(TimeDelta::days(2));
    world.store().await.clear_not_before(until).await?;
    world.store().await.clear_not_before(world.now()).await?;
    assert_eq!(seal(world.functions()).await?["cleared"], 0, "the restore forbids it for some time");
    world.set_clock(&until.to_string())?;
    assert_eq!(seal(world.functions()).await?["cleared"], 3);
    assert_cleared(&world, &ids, &shown, "after a restore").await
}

#[tokio::test]
async fn what_was_cleared_is_left_alone_when_it_grows_old_and_the_last_part_is_cleared_too() -> Result<()> {
    let (world, ..) = sealed_day(0).await?;
    world.set_clock(CLEARED_AT)?;
    assert_eq!(seal(world.functions()).await?["cleared"], 3);
    let due = format!("{DAY}T04:10:00Z").parse::<UtcSecond>()?;
    let after = |days| due.saturating_add(TimeDelta::days(days)).to_string();
    world.set_clock(&after(6 + 393))?;
    settle_late(&world, &PaymentId::derive(&"tenant".parse()?, &"pending".parse()?).to_string()).await?;
    // A date is sealed five days after its end, and looked at for 400 days more; its parts are for three and fourteen more.
    for (days, done) in [(399, [1, 0]), (400, [0, 0]), (402, [0, 1]), (403, [0, 0]), (416, [0, 0]), (417, [0, 0])] {
        world.set_clock(&after(6 + days))?;
        world.forget();
        let outcome = seal(world.functions()).await?;
        assert_eq!([&outcome["sealed"], &outcome["cleared"]], [&json!(done[0]), &json!(done[1])], "{days}: {outcome}");
        assert_eq!(world.take_write_units().is_empty(), done[1] == 0, "{days}");
    }
    Ok(())
}

/// The ends of retention of these items.
fn ends<'i>(items: impl IntoIterator<Item = &'i Item>) -> BTreeSet<Option<String>> {
    items.into_iter().map(|item| item.get("keptUntil").and_then(|it| it.as_n().ok()).cloned()).collect()
}

/// The ends of retention of the details of these payments, and of their heads in the long-term table.
async fn ends_of(world: &World, ids: &[String]) -> Result<[BTreeSet<Option<String>>; 2]> {
    let mut details = Vec::new();
    for id in ids {
        details.extend(world.details(id).await?);
    }
    let is_of = |head: &&Item| head["sk"].as_s().is_ok_and(|sk| ids.iter().any(|id| sk.ends_with(id)));
    Ok([ends(&details), ends(world.archived_heads("tenant").await?.iter().filter(is_of))])
}

#[tokio::test]
async fn payments_expire_before_their_part_heads_first_or_never() -> Result<()> {
    let (world, ids, shown) = sealed_day(3_650).await?;
    let never = [[None].into(), [None].into()];
    assert_eq!(ends_of(&world, &ids).await?, never, "nothing expires before its part can be deleted");
    world.set_clock(CLEARED_AT)?;
    world.forget();
    // A part says for how long it is kept, whatever the parameter says later.
    let functions = world.functions_with(|environment| environment.kept_days = 600).await?;
    assert_eq!(seal(&functions).await?["cleared"], 3);
    // The details, of which one payment has two, the heads, whose end is in no index, and the notes.
    assert_eq!(world.take_write_units(), units("UpdateItem", [("history", 5 + 4 + 4)]));
    assert_fails(world.functions_with(|environment| environment.kept_days = 599).await, "expected 0, or at least 600");
    let sealed_at = "2026-11-26T04:10:00Z".parse::<DateTime<Utc>>()?;
    let end = |days| [Some((sealed_at + TimeDelta::days(days)).timestamp().to_string())].into();
    assert_eq!(ends_of(&world, &ids).await?, [end(3_650 - 60), end(3_650 - 74)]);
    assert_cleared(&world, &ids, &shown, "cleared").await?;
    for item in world.partition(&world.environment.tables.history, NOTES).await? {
        world.delete(&world.environment.tables.history, &item).await?;
    }
    world.forget();
    assert_eq!(seal(world.functions()).await?["sealDiffers"], 0);
    assert_eq!(world.take_write_units(), units("UpdateItem", [("history", 4)]), "they have their end");
    Ok(())
}

#[tokio::test]
async fn what_differs_is_never_cleared_and_holds_up_no_other() -> Result<()> {
    let (world, ids, shown) = sealed_day(0).await?;
    world.set_clock(CLEARED_AT)?;
    let id = PaymentId::derive(&"tenant".parse()?, &"three".parse()?).to_string();
    let (logs, _guard) = LogLines::start();
    for (why, change, value) in [
        ("its row has other values", "SET dateRule = :value", "preceding"),
        ("its head and its details differ in", "SET payeeAccountId = :value", "other"),
        ("cannot be read", "SET createdAt = :value", "yesterday"),
    ] {
        let item = world.details(&id).await?.pop().context("details")?;
        world.update_details(&id, change, &[(":value", text(value))]).await?;
        let outcome = seal(world.functions()).await?;
        assert_eq!(outcome["sealDiffers"], 1, "{why}: {outcome}");
        assert_eq!(world.metric("SealDiffers")?, 1, "{why}");
        let said = json!(logs.take()?).to_string();
        assert!(said.contains(&id) && said.contains(why), "{why}: {said}");
        assert!(world.details(&id).await?.iter().all(|item| !item.contains_key("row")), "{why}");
        world.put_items(&world.environment.tables.history, [item]).await?;
    }
    // A restore has brought its head back.
    let heads = world.archived_heads("tenant").await?;
    let head = heads.iter().find(|head| head["sk"].as_s().is_ok_and(|sk| sk.ends_with(&id))).context("its head")?;
    world.put_items(&world.environment.tables.payments, [head.clone()]).await?;
    let outcome = seal(world.functions()).await?;
    assert_eq!((&outcome["sealDiffers"], &outcome["waiting"], &outcome["cleared"]), (&json!(0), &json!(1), &json!(0)));
    world.delete(&world.environment.tables.payments, head).await?;
    assert_eq!(seal(world.functions()).await?["cleared"], 1, "the others were cleared before");
    assert_cleared(&world, &ids, &shown, "at last").await?;

    // Its details name another row now, and the note that its part is done is lost.
    let history = &world.environment.tables.history;
    for item in world.partition(history, NOTES).await? {
        world.delete(history, &item).await?;
    }
    world.update_details(&id, "SET #row = :value", &[(":value", text(format!("{DAY}/7/0")))]).await?;
    assert_eq!(seal(world.functions()).await?["sealDiffers"], 1);
    let said = json!(logs.take()?).to_string();
    assert!(said.contains("its details name the row 2026-11-20/7/0"), "{said}");
    Ok(())
}

#[tokio::test]
async fn nothing_of_a_part_that_is_not_believed_is_cleared() -> Result<()> {
    let (world, _, _) = sealed_day(0).await?;
    world.set_clock(CLEARED_AT)?;
    let (path, _, _, bytes) = parts(&world).await?.swap_remove(0);
    let mut changed = bytes.to_vec();
    // A byte of a page: the end of the file, which says where the pages are, is whole.
    changed[100] ^= 1;
    world.outside.reports.put(&path.as_str().into(), changed.into()).await?;
    let error = seal(world.functions()).await.err().context("a changed part is believed")?;
    assert!(error.to_string().contains(&path), "{error}");
    let cleared: usize = world.items().await?.iter().filter(|item| item.contains_key("row")).count();
    assert_eq!(cleared, 0, "parts of the date after it are not looked at");

    // As S3 refuses a file of another storage class, or under a key of somebody else.
    world.outside.reports.put(&path.as_str().into(), bytes.into()).await?;
    let dependencies = world.dependencies_over(&world.recorder).await;
    let refused = path.clone();
    let reports = FaultyStore::over(&dependencies.reports, move |_, path| {
        if path.as_ref() == refused { Fate::Refuse(403, "InvalidObjectState") } else { Fate::Pass }
    });
    let error = seal(&world.functions_in(&Dependencies { reports, ..dependencies })?).await;
    assert_fails(error, &path);

    // A part before it was replaced by one with fewer rows.
    let (mut all, count) = (parts(&world).await?, parts(&world).await?.len());
    let ((second, ..), (first, part, rows, bytes)) = (all.pop().context("a part")?, all.pop().context("a part")?);
    world.outside.reports.put(&first.as_str().into(), encode(&part.name, &rows[..1])?.into()).await?;
    assert_fails(seal(world.functions()).await, &second);
    world.outside.reports.put(&first.as_str().into(), bytes.into()).await?;
    seal(world.functions()).await?;
    // The last one was replaced: its payments are not sealed again, though no part has them.
    let (last, part, rows, bytes) = parts(&world).await?.pop().context("a part")?;
    world.outside.reports.put(&last.as_str().into(), encode(&part.name, &rows[..1])?.into()).await?;
    assert_fails(seal(world.functions()).await, &last);
    assert_eq!(parts(&world).await?.len(), count);
    world.outside.reports.put(&last.as_str().into(), bytes.into()).await?;

    // Once data was cleared, no other part takes the place of one that is gone.
    seal(world.functions()).await?;
    let all = parts(&world).await?;
    for (path, ..) in &all {
        world.outside.reports.delete(&path.as_str().into()).await?;
    }
    let error = seal(world.functions()).await.err().context("the parts are not missed")?;
    assert!(error.to_string().contains(&path), "{error}");
    assert_eq!(parts(&world).await?.len(), 0);
    Ok(())
}

/// Somebody changes an item between the look and the clear: the clear does not see what it would write over, so it writes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn details_that_changed_after_the_look_are_not_cleared() -> Result<()> {
    let (world, ids, shown) = sealed_day(0).await?;
    world.set_clock(CLEARED_AT)?;
    let (world, id) = (Arc::new(world), PaymentId::derive(&"tenant".parse()?, &"three".parse()?).to_string());
    let (inside, changed) = (Arc::clone(&world), id.clone());
    let once = AtomicBool::new(false);
    let partition = format!("PAY#{id}");
    let before = world.details(&id).await?.pop().context("details")?;
    let recorder = interrupted(
        move |call| {
            let is_clear = call.operation == "UpdateItem" && call.input()["Key"]["pk"]["S"] == partition;
            is_clear && !once.swap(true, Ordering::Relaxed)
        },
        move || {
            let (inside, changed) = (Arc::clone(&inside), changed.clone());
            async move { inside.update_details(&changed, "SET payeeAccountId = :payee", &[(":payee", text("other"))]).await }
        },
    );
    let outcome = seal(&world.functions_over(&recorder).await?).await?;
    assert_eq!((&outcome["cleared"], &outcome["sealDiffers"]), (&json!(2), &json!(0)), "{outcome}");
    assert_eq!(places(&world, &id).await?, [None], "it has its text");
    // The next run looks again.
    assert_eq!(seal(world.functions()).await?["sealDiffers"], 1);
    world.put_items(&world.environment.tables.history, [before]).await?;
    assert_eq!(seal(world.functions()).await?["cleared"], 1);
    assert_cleared(&world, &ids, &shown, "at last").await
}
