//! The log: each version of a payment is one event, in the order of the versions, and its readers miss nothing.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use chrono::TimeDelta;
use payments_store::{LOG_KEPT_FOR, LogEntry, LogHead, LogPosition, LogRead};
use payments_tests::given::{ACCOUNT, HORIZON_DAYS, prepare};
use payments_tests::tables::{number, text};
use payments_tests::{Ask, World};
use serde_json::{Value, json};

mod between;
mod bus;
mod cost;
mod gaps;
mod journal;
mod rebuild;
mod restore;
mod webhooks;

/// So many segments are read at once.
const SEGMENTS: u8 = 3;

async fn head(world: &World) -> Result<LogHead> {
    world.store().await.log_head().await?.context("nothing was ever logged")
}

async fn read(world: &World, after: LogPosition, limit: usize) -> Result<LogRead> {
    let now = world.now();
    Ok(world.store().await.log_page(&head(world).await?, after, limit, SEGMENTS, now).await?)
}

/// The whole log, page by page.
async fn all(world: &World, limit: usize) -> Result<Vec<LogEntry>> {
    let (mut after, mut entries) = (head(world).await?.start(world.now()), Vec::new());
    loop {
        let LogRead::Page(page) = read(world, after, limit).await? else { anyhow::bail!("no page after {after}") };
        ensure!(page.entries.len() <= limit && page.after >= after);
        let is_end = page.is_end;
        after = page.after;
        entries.extend(page.entries);
        if is_end {
            return Ok(entries);
        }
    }
}

fn events(entries: &[LogEntry]) -> Result<Vec<Value>> {
    entries.iter().map(|entry| Ok(serde_json::from_str(&entry.json)?)).collect()
}

/// Deletes a segment of the first epoch.
async fn lose_segment(world: &World, number: usize) -> Result<()> {
    let key = [("pk".to_owned(), text("LOG#3622140")), ("sk".to_owned(), text(format!("{number:012}")))].into();
    let table = &world.environment.tables.log;
    world.client().await.delete_item().table_name(table).set_key(Some(key)).send().await?;
    Ok(())
}

async fn create(world: &World, count: usize, from: usize) -> Result<()> {
    let entry = |n: usize| {
        json!({
            "accountId": format!("payer-{}", n * 7919 % 997), "idempotencyKey": format!("{n}"), "payeeAccountId": format!("shop-{}", n * 31 % 89),
            "amountMinor": 1 + n * 7907 % 100_003, "currency": "GBP", "scheduledFor": format!("2026-12-{:02}", 1 + n % 3),
        })
    };
    world.create_all((from..from + count).map(entry)).await.map(drop)
}

#[tokio::test]
async fn every_version_is_one_event_whatever_the_stream_repeats() -> Result<()> {
    let world = World::with(|environment| environment.horizon_days = HORIZON_DAYS).await?;
    prepare(&world, &["a-day"], "2090-06-15T00:05:00Z").await?;
    world.count_all().await?;
    let once = all(&world, 1_000).await?;
    // A new mapping reads from the oldest record, and the functions skip what they counted.
    world.count_all().await?;
    assert_eq!(all(&world, 1_000).await?, once);
    for limit in [1, 2, 7] {
        assert_eq!(events(&all(&world, limit).await?)?, events(&once)?, "pages of {limit}");
    }

    let mut last: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for event in events(&once)? {
        let field = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let version = event["version"].as_u64().context("no version")?;
        let before = last.insert(field("paymentId"), (version, field("status")));
        assert_eq!(version, before.map_or(0, |(version, _)| version) + 1, "{event}");
        assert_eq!(field("id"), format!("{}-{}-{version}", event["epoch"], field("paymentId")), "{event}");
        assert_eq!(field("type"), format!("payment.{}", field("status").to_lowercase()), "{event}");
    }
    let heads = world.heads(ACCOUNT).await?;
    assert_eq!(last.len(), heads.len());
    for head in heads {
        let id = head["sk"].as_s().ok().and_then(|sort| sort.rsplit('#').next()).context("no id")?;
        let (version, status) = &last[id];
        assert_eq!((&number(i64::try_from(*version)?), &text(status)), (&head["version"], &head["status"]));
    }
    Ok(())
}

/// The cost of the log beside that of counting. A transaction doubles what it writes.
#[tokio::test]
async fn an_event_costs_less_than_a_sixth_of_a_unit_in_full_batches_and_half_in_batches_of_ten() -> Result<()> {
    for (batches, size, most) in [(1, 1_000, 160), (10, 10, 50)] {
        let world = World::open().await?;
        let mut units = 0;
        for batch in 0..batches {
            create(&world, size, batch * size).await?;
            drop(world.take_units());
            world.count_all().await?;
            let log = world.take_write_units().into_iter().filter(|((_, place), _)| place == "payments-log");
            units += log.map(|(_, units)| units).sum::<u64>();
        }
        assert_eq!(all(&world, 1_000).await?.len(), batches * size);
        assert!((1..=most).contains(&units), "{batches} batches of {size} cost {units} units");
    }
    Ok(())
}

#[tokio::test]
async fn a_place_that_expired_and_one_that_never_was_are_told_apart() -> Result<()> {
    let world = World::open().await?;
    create(&world, 3, 0).await?;
    world.count_all().await?;
    let start: LogPosition = "3622140.1.0".parse()?;
    assert_eq!(head(&world).await?.start(world.now()), start);
    for beyond in ["3622140.1.4", "3622140.2.1", "3622140.3.0", "3622141.1.0", "3622140.999999999999.0"] {
        let found = read(&world, beyond.parse()?, 10).await?;
        assert_eq!(found, LogRead::Beyond("3622140.2.0".parse()?), "{beyond}");
    }

    // 36 idle days, then a payment: no number is used again, and readers learn what they missed.
    world.set_clock("2026-12-27T09:00:00Z")?;
    assert_eq!(read(&world, start, 10).await?, LogRead::Expired("3622140.2.0".parse()?));
    let late = json!({ "payeeAccountId": "shop", "amountMinor": 1, "currency": "GBP", "scheduledFor": "2026-12-31" });
    ensure!(world.send(Ask::create("late", "late", &late)).await?.status == 201);
    world.count_all().await?;
    assert_eq!(read(&world, start, 10).await?, LogRead::Expired("3622140.2.0".parse()?));
    let LogRead::Page(page) = read(&world, "3622140.2.0".parse()?, 10).await? else { anyhow::bail!("no page") };
    assert_eq!((page.entries.len(), page.after, page.is_end), (1, "3622140.3.0".parse()?, true));
    assert!(LOG_KEPT_FOR > TimeDelta::days(34));
    Ok(())
}

#[tokio::test]
async fn a_hole_is_an_error_that_nobody_reads_over() -> Result<()> {
    let world = World::open().await?;
    for n in 0..3 {
        create(&world, 1, n).await?;
        world.count_all().await?;
    }
    lose_segment(&world, 2).await?;
    for limit in [1, 10] {
        let LogRead::Page(page) = read(&world, "3622140.1.0".parse()?, limit).await? else { anyhow::bail!("no page") };
        assert_eq!((page.entries.len(), page.after, page.is_end), (1, "3622140.2.0".parse()?, false));
        let error = read(&world, page.after, limit).await.err().context("it read over the hole")?;
        assert!(error.to_string().contains("LOG#3622140 / 000000000002"), "{error}");
    }
    Ok(())
}

/// Over the API the log is the same, whatever the size of a page; an old or invented cursor names the oldest one.
#[tokio::test]
async fn clients_read_the_log_page_by_page_and_never_an_empty_page_for_what_is_gone() -> Result<()> {
    let world = World::open().await?;
    let empty = world.send(Ask::get("/events?cursor=now")).await?;
    assert_eq!(empty.body, json!({ "events": [], "nextCursor": "1.1.0", "hasMore": false }));
    for after in ["", "?cursor=1.1.0"] {
        assert_eq!(world.send(Ask::get(&format!("/events{after}"))).await?.body, empty.body);
    }
    is_gone(&world, "1.2.0", "1.1.0").await?;
    for n in 0..4 {
        create(&world, 3, 3 * n).await?;
        world.count_all().await?;
    }
    let whole = events(&all(&world, 1_000).await?)?;
    for limit in [1, 2, 3, 4, 1_000] {
        let (mut after, mut found) = ("1.1.0".to_owned(), Vec::new());
        loop {
            let page = world.send(Ask::get(&format!("/events?cursor={after}&limit={limit}"))).await?.body;
            found.extend(page["events"].as_array().context("no events")?.clone());
            after = page["nextCursor"].as_str().context("no cursor")?.to_owned();
            if page["hasMore"] == false {
                break;
            }
        }
        assert_eq!((found, after.as_str()), (whole.clone(), "3622140.5.0"), "pages of {limit}");
    }
    let now = world.send(Ask::get("/events?cursor=now")).await?;
    assert_eq!(now.body, json!({ "events": [], "nextCursor": "3622140.5.0", "hasMore": false }));
    for after in ["3622140.2.9", "3622140.5.1", "3622141.1.0", "999999999.999999999999.999999999"] {
        is_gone(&world, after, "3622140.1.0").await?;
    }
    world.set_clock("2026-12-27T09:00:00Z")?;
    for after in ["3622140.1.0", "3622140.4.2", "3622140.6.0"] {
        is_gone(&world, after, "3622140.5.0").await?;
    }
    Ok(())
}

async fn is_gone(world: &World, after: &str, oldest: &str) -> Result<()> {
    let reply = world.send(Ask::get(&format!("/events?cursor={after}"))).await?;
    assert_eq!((reply.status, reply.problem()), (410, "cursor-gone"), "{after}: {reply}");
    assert_eq!(reply.field("oldestCursor"), oldest, "{after}: {reply}");
    Ok(())
}

/// Who asked before the log began misses nothing, unless something has expired.
#[tokio::test]
async fn the_beginning_is_the_first_place_of_any_log() -> Result<()> {
    let world = World::open().await?;
    create(&world, 2, 0).await?;
    world.count_all().await?;
    let LogRead::Page(page) = read(&world, LogPosition::BEGINNING, 10).await? else { anyhow::bail!("no page") };
    assert_eq!((page.entries.len(), page.is_end), (2, true));
    world.set_clock("2026-12-27T09:00:00Z")?;
    let expired = LogRead::Expired("3622140.2.0".parse()?);
    assert_eq!(read(&world, LogPosition::BEGINNING, 10).await?, expired);
    Ok(())
}

/// After a restore of the hot table its stream is another one, and old invocations may still run.
#[tokio::test]
async fn the_log_takes_no_changes_of_another_stream() -> Result<()> {
    let world = World::open().await?;
    create(&world, 1, 0).await?;
    world.count_all().await?;
    let (client, table) = (world.client().await, &world.environment.tables.log);
    let key = [("pk".to_owned(), text("LOG#HEAD")), ("sk".to_owned(), text("HEAD"))];
    let update = client.update_item().table_name(table).set_key(Some(key.into()));
    let update = update.update_expression("SET #source = :none").expression_attribute_names("#source", "source");
    update.expression_attribute_values(":none", text("none")).send().await?;
    create(&world, 1, 1).await?;
    let error = world.count_all().await.err().context("it appended")?;
    assert!(format!("{error:#}").contains("docs/restore.md, A new epoch of the log"), "{error:#}");
    assert_eq!(head(&world).await?.end(), "3622140.2.0".parse()?);
    Ok(())
}
