//! Readers of the log learn what a restore took back, whenever the operator's steps are interrupted.

use payments_machine::Fate;
use payments_restore::{Restored, begin, begin_restored, finish};
use payments_store::{Item, Missed, Store};
use payments_tests::{Counting, CrashPoints, Way};

use super::between::failing;
use super::*;

/// The instant to which the table is restored. What happens later happens a minute later.
const T: &str = "2026-11-20T09:30:00Z";
const LATER: &str = "2026-11-20T09:31:00Z";

/// A bank whose hot table was restored, up to where the log's epoch must begin.
struct Bank {
    world: World,
    counting: Counting,
    stream: String,
}

/// The hot table's items.
async fn items(world: &World) -> Result<Vec<Item>> {
    let scan = world.client().await.scan().table_name(&world.environment.tables.payments).send().await?;
    Ok(scan.items.unwrap_or_default())
}

async fn cancel(world: &World, n: usize) -> Result<()> {
    let heads = world.heads(&account(n)).await?;
    let sort = heads.first().and_then(|head| head["sk"].as_s().ok()).context("no head")?;
    let id = sort.rsplit('#').next().context("no id")?;
    let reply = world.send(Ask::cancel(&account(n), id)).await?;
    ensure!(reply.status == 200, "{reply}");
    Ok(())
}

fn account(n: usize) -> String {
    format!("payer-{}", n * 7919 % 997)
}

impl Bank {
    /// After T one of four payments is cancelled, and a fifth is created. Neither is in the restored table.
    async fn new() -> Result<Self> {
        let world = World::open().await?;
        let (mut counting, stream) = (Counting::of(&world).await?, world.stream().await?.arn().to_owned());
        create(&world, 4, 0).await?;
        counting.count(world.functions()).await?;
        let at_t = items(&world).await?;
        world.set_clock(LATER)?;
        cancel(&world, 0).await?;
        create(&world, 1, 4).await?;
        counting.count(world.functions()).await?;

        begin(&world.store().await).await?;
        create(&world, 1, 5).await?;
        let error = counting.count(world.functions()).await.err().context("an ended log takes changes")?;
        assert!(format!("{error:#}").contains("A new epoch of the log"), "{error:#}");

        let (client, table) = (world.client().await, &world.environment.tables.payments);
        for item in items(&world).await? {
            let key = ["pk", "sk"].map(|name| (name.to_owned(), item[name].clone()));
            client.delete_item().table_name(table).set_key(Some(key.into())).send().await?;
        }
        let is_checkpoint = |item: &Item| item["pk"].as_s().is_ok_and(|pk| pk.starts_with("CHECKPOINT"));
        for item in at_t.into_iter().filter(|item| !is_checkpoint(item)) {
            client.put_item().table_name(table).set_item(Some(item)).send().await?;
        }
        // The new table's stream begins after this.
        let mut counting = Counting::of(&world).await?;
        counting.skip().await?;
        Ok(Self { world, counting, stream })
    }

    async fn finish(&self, store: &Store) -> Result<String> {
        let now = || self.world.now();
        let restored = Restored { stream: self.stream.clone(), tables_to: Some(T.parse()?), log_to: None };
        finish(store, &restored, now, |_, _| {}).await
    }

    /// The events of the new epoch, each once.
    async fn told(&self) -> Result<Vec<Value>> {
        let mut events = events(&all(&self.world, 1_000).await?)?;
        let epoch = head(&self.world).await?.epoch.get();
        events.retain(|event| event["epoch"] == epoch);
        Ok(events)
    }
}

/// The last event of each payment, by epoch and version, in whatever order they come.
fn folded(mut events: Vec<Value>) -> BTreeMap<String, Value> {
    fastrand::Rng::with_seed(7).shuffle(&mut events);
    let mut last: BTreeMap<String, Value> = BTreeMap::new();
    let place = |event: &Value| (event["epoch"].as_u64(), event["version"].as_u64());
    for event in events {
        let Some(payment) = event["paymentId"].as_str().map(str::to_owned) else { continue };
        if last.get(&payment).is_none_or(|before| place(before) < place(&event)) {
            last.insert(payment, event);
        }
    }
    last.retain(|_, event| event["version"] != 0);
    last
}

#[tokio::test]
async fn readers_learn_what_a_restore_took_back_and_then_what_happens() -> Result<()> {
    let mut bank = Bank::new().await?;
    let old_end = head(&bank.world).await?.end();
    assert_eq!(
        begin(&bank.world.store().await).await?,
        format!(
            "The epoch has ended at {old_end}; nothing is counted until finish, so finish within a day. Restore the tables, run apply until \
             nothing is left to do, then run finish."
        )
    );
    let done = bank.finish(&bank.world.store().await).await?;
    assert!(done.starts_with("The log takes the changes of arn:"), "{done}");
    assert_eq!(bank.finish(&bank.world.store().await).await?, done);

    let told = bank.told().await?;
    let of = |name: &str| told.iter().map(|event| event[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("type"), ["log.restored", "payment.restored", "payment.restored"]);
    assert_eq!((&told[0]["restoredTo"], &told[0]["endCursor"]), (&json!(T), &json!(old_end.to_string())));
    let mut versions = [(&told[1]["version"], told[1].get("status")), (&told[2]["version"], told[2].get("status"))];
    versions.sort_by_key(|(version, _)| version.as_u64());
    assert_eq!(versions, [(&json!(0), None), (&json!(1), Some(&json!("SCHEDULED")))]);

    // The client sends again what is missing, and cancels another payment.
    create(&bank.world, 2, 4).await?;
    cancel(&bank.world, 1).await?;
    bank.counting.count(bank.world.functions()).await?;
    let last = folded(events(&all(&bank.world, 1_000).await?)?);
    assert_eq!(last.len(), 6);
    for n in 0..6 {
        let heads = bank.world.heads(&account(n)).await?;
        let id = heads[0]["sk"].as_s().ok().and_then(|sort| sort.rsplit('#').next()).context("no id")?;
        assert_eq!(text(last[id]["status"].as_str().unwrap_or_default()), heads[0]["status"], "{}", last[id]);
    }
    Ok(())
}

#[tokio::test]
async fn a_step_that_is_killed_at_any_call_goes_on() -> Result<()> {
    let mut points = CrashPoints::new("restore", [Fate::KillBefore, Fate::KillAfter].map(Way::once));
    while let Some(point) = points.next_case() {
        let bank = Bank::new().await?;
        let tables = bank.world.environment.tables.clone();
        let run = async |client| bank.finish(&Store::new(client, tables)).await;
        failing(&bank.world, &mut points, point, |_| true, run).await?;
        bank.finish(&bank.world.store().await).await?;
        let told = bank.told().await?;
        let types: Vec<_> = told.iter().map(|event| event["type"].as_str().unwrap_or_default()).collect();
        assert_eq!(types, ["log.restored", "payment.restored", "payment.restored"], "{point:?}");
    }
    assert!(points.cases() > 17, "{points:?}");
    Ok(())
}

#[tokio::test]
async fn finish_says_what_is_wrong_and_changes_nothing() -> Result<()> {
    let world = World::open().await?;
    let (store, stream) = (world.store().await, world.stream().await?.arn().to_owned());
    let finish = |stream: String, to: &'static str| {
        let store = &store;
        let world = &world;
        async move {
            let restored = Restored { stream, tables_to: Some(to.parse()?), log_to: None };
            finish(store, &restored, || world.now(), |_, _| {}).await
        }
    };
    for step in [begin(&store).await?, finish(stream.clone(), "2026-11-20T09:00:00Z").await?] {
        assert!(step.starts_with("The log has never begun, so there is nothing to do."), "{step}");
    }
    create(&world, 1, 0).await?;
    world.count_all().await?;
    let before = head(&world).await?;
    for (stream, to, want) in [
        (stream.replace("/stream/", "/index/"), "2026-11-20T09:00:00Z", "give --stream the LatestStreamArn"),
        (stream.clone(), "2026-11-20T09:00:01Z", "is not over yet"),
    ] {
        let error = finish(stream, to).await.err().context("it finished")?;
        assert!(error.to_string().contains(want), "{error}");
    }
    let other = stream.replace("/stream/", "/stream/9");
    let error = finish(other, "2026-11-20T09:00:00Z").await.err().context("it finished")?;
    assert!(error.to_string().contains("run begin first"), "{error}");
    assert_eq!(head(&world).await?, before);
    Ok(())
}

/// Appends three segments of one event each.
async fn append_three(world: &World) -> Result<Counting> {
    let mut counting = Counting::of(world).await?;
    for n in 0..3 {
        create(world, 1, n).await?;
        counting.count(world.functions()).await?;
    }
    Ok(counting)
}

/// The log's own table was restored, and has a segment that its head does not count: it was appended, so it belongs to the log.
#[tokio::test]
async fn a_segment_that_a_restored_head_does_not_count_is_read() -> Result<()> {
    let world = World::open().await?;
    let (store, stream) = (world.store().await, world.stream().await?.arn().to_owned());
    append_three(&world).await?;
    let (client, table) = (world.client().await, &world.environment.tables.log);
    let two = aws_sdk_dynamodb::types::AttributeValue::N("2".to_owned());
    let update = client.update_item().table_name(table).key("pk", text("LOG#HEAD")).key("sk", text("HEAD"));
    let update = update.update_expression("SET #next = :two").expression_attribute_names("#next", "next");
    update.expression_attribute_values(":two", two).send().await?;
    world.set_clock("2026-11-20T12:00:00Z")?;
    begin_restored(&store, "2026-11-20T11:00:00Z".parse()?, world.now()).await?;
    let restored = Restored { stream, tables_to: None, log_to: Some("2026-11-20T11:00:00Z".parse()?) };
    finish(&store, &restored, || world.now(), |_, _| {}).await?;
    let found = events(&all(&world, 1_000).await?)?;
    let types: Vec<_> = found.iter().map(|event| event["type"].as_str().unwrap_or_default()).collect();
    assert_eq!(types[3..], ["log.restored", "log.gap"], "{types:?}");
    assert_eq!((&found[3]["endCursor"], &found[4]["since"]), (&json!("3622140.4.0"), &json!("2026-11-20T10:00:00Z")));
    Ok(())
}

/// Its head counts a segment that it lacks: nothing that reads it meets a hole.
#[tokio::test]
async fn a_restored_log_ends_behind_its_last_segment() -> Result<()> {
    let world = World::open().await?;
    let store = world.store().await;
    append_three(&world).await?;
    let key = Some([("pk".to_owned(), text("LOG#3622140")), ("sk".to_owned(), text("000000000003"))].into());
    world.client().await.delete_item().table_name(&world.environment.tables.log).set_key(key).send().await?;
    assert!(all(&world, 1_000).await.is_err(), "there is a hole");
    begin_restored(&store, "2026-11-20T09:00:00Z".parse()?, world.now()).await?;
    assert_eq!(events(&all(&world, 1_000).await?)?.len(), 2);
    Ok(())
}

/// A gap cannot be forgotten: what is noted at the same moment by others is kept, and `begin` notes what `finish` may not be told.
#[tokio::test]
async fn what_is_missing_is_noted_by_all_and_told_by_finish() -> Result<()> {
    let world = World::open().await?;
    let (store, stream) = (world.store().await, world.stream().await?.arn().to_owned());
    create(&world, 1, 0).await?;
    world.count_all().await?;
    let notes = (0..10).map(|n| {
        let since = format!("2026-11-20T08:00:{:02}Z", (n + 3) % 10).parse();
        let store = store.clone();
        async move {
            store
                .note_missed(Missed { since: Some(since?), until: "2026-11-20T09:00:00Z".parse()? })
                .await
                .map_err(anyhow::Error::from)
        }
    });
    futures::future::try_join_all(notes).await?;
    let missed = head(&world).await?.missed.context("nothing was noted")?;
    assert_eq!(missed.since, Some("2026-11-20T08:00:00Z".parse()?));
    world.set_clock("2026-11-20T12:00:00Z")?;
    begin_restored(&store, "2026-11-20T08:30:00Z".parse()?, world.now()).await?;
    let restored = Restored { stream, tables_to: Some("2026-11-20T08:30:00Z".parse()?), log_to: None };
    finish(&store, &restored, || world.now(), |_, _| {}).await?;
    let found = events(&all(&world, 1_000).await?)?;
    let gap = found.iter().find(|event| event["type"] == "log.gap").context("no gap")?;
    assert_eq!((&gap["since"], &gap["until"]), (&json!("2026-11-20T07:30:00Z"), &json!("2026-11-20T12:00:00Z")));
    Ok(())
}

/// The log's own table was restored: it counts segments that it lacks.
#[tokio::test]
async fn a_torn_log_goes_on_in_a_new_epoch_and_no_number_is_used_again() -> Result<()> {
    let world = World::open().await?;
    let (store, stream) = (world.store().await, world.stream().await?.arn().to_owned());
    let mut counting = append_three(&world).await?;
    let (client, table) = (world.client().await, &world.environment.tables.log);
    let key = |number: &str| Some([("pk".to_owned(), text("LOG#3622140")), ("sk".to_owned(), text(number))].into());
    client.delete_item().table_name(table).set_key(key("000000000003")).send().await?;
    world.set_clock("2026-11-20T12:00:00Z")?;
    // Meanwhile a change was counted without the log.
    store.note_missed(Missed { since: Some("2026-11-20T10:30:00Z".parse()?), until: world.now() }).await?;
    let restored = Restored { stream, tables_to: None, log_to: Some("2026-11-20T11:00:00Z".parse()?) };
    let error = finish(&store, &restored, || world.now(), |_, _| {}).await.err().context("it finished")?;
    assert!(error.to_string().contains("run begin first"), "{error}");
    begin(&store).await?;
    finish(&store, &restored, || world.now(), |_, _| {}).await?;
    create(&world, 1, 3).await?;
    counting.count(world.functions()).await?;
    let found = events(&all(&world, 1_000).await?)?;
    let types: Vec<_> = found.iter().map(|event| event["type"].as_str().unwrap_or_default()).collect();
    assert_eq!(types, ["payment.scheduled", "payment.scheduled", "log.restored", "log.gap", "payment.scheduled"]);
    assert_eq!(found[2]["endCursor"], "3622140.3.0");
    assert_eq!(
        (&found[3]["since"], &found[3]["until"]),
        (&json!("2026-11-20T10:30:00Z"), &json!("2026-11-20T12:00:00Z"))
    );
    assert_eq!(head(&world).await?.missed, None);
    Ok(())
}
