//! Reading the log: page by page, over the API or not, whatever expired, was never there or is torn.

use std::collections::BTreeMap;

use payments_tests::given::{ACCOUNT, HORIZON_DAYS, prepare};

use super::*;

#[tokio::test]
async fn every_version_is_one_event_whatever_the_stream_repeats() -> Result<()> {
    let world = World::with(|environment| environment.horizon_days = HORIZON_DAYS).await?;
    prepare(&world, &["a-day"], "2090-06-15T00:05:00Z").await?;
    let log = Log::new(world).await?;
    log.count_all().await?;
    let once = log.entries(1_000).await?;
    // A new mapping reads from the oldest record, and the functions skip what they counted.
    log.count_all().await?;
    for limit in [1_000, 1, 2, 7] {
        assert_eq!(log.entries(limit).await?, once, "pages of {limit}");
    }

    let mut last: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for event in log.events().await? {
        let field = |name: &str| text_of(&event[name]).to_owned();
        let version = event["version"].as_u64().context("no version")?;
        let before = last.insert(field("paymentId"), (version, field("status")));
        assert_eq!(version, before.map_or(0, |(version, _)| version) + 1, "{event}");
        assert_eq!(field("id"), format!("{}-{}-{version}", event["epoch"], field("paymentId")), "{event}");
        assert_eq!(field("type"), format!("payment.{}", field("status").to_lowercase()), "{event}");
    }
    let heads = log.heads(ACCOUNT).await?;
    assert_eq!(last.len(), heads.len());
    for head in heads {
        let id = head["sk"].as_s().ok().and_then(|sort| sort.rsplit('#').next()).context("no id")?;
        let (version, status) = &last[id];
        assert_eq!((&number(version), &text(status)), (&head["version"], &head["status"]));
    }
    Ok(())
}

/// The cost of the log beside that of counting. A transaction doubles what it writes.
#[tokio::test]
async fn an_event_costs_less_than_a_sixth_of_a_unit_in_full_batches_and_half_in_batches_of_ten() -> Result<()> {
    for (batches, size, most) in [(1, 1_000, 160), (10, 10, 50)] {
        let log = Log::open().await?;
        let mut units = 0;
        for _ in 0..batches {
            log.create(size).await?;
            log.forget();
            log.count().await?;
            units += log.take_log_units();
        }
        assert_eq!(log.entries(1_000).await?.len(), batches * size);
        assert!((1..=most).contains(&units), "{batches} batches of {size} cost {units} units");
    }
    Ok(())
}

#[tokio::test]
async fn a_place_that_expired_and_one_that_never_was_are_told_apart() -> Result<()> {
    let log = Log::with(&[3]).await?;
    let (start, end): (LogPosition, LogPosition) = ("3622140.1.0".parse()?, "3622140.2.0".parse()?);
    assert_eq!(log.start().await?, start);
    for beyond in ["3622140.1.4", "3622140.2.1", "3622140.3.0", "3622141.1.0", "3622140.999999999999.0"] {
        assert_eq!(log.read(beyond.parse()?, 10).await?, LogRead::Beyond(end), "{beyond}");
    }
    let starts = [("the_beginning_is_the_first_place_of_any_log", LogPosition::BEGINNING), ("the start", start)];
    for (case, start) in starts {
        let page = log.page(start, 10).await?;
        assert_eq!((page.entries.len(), page.is_end), (3, true), "{case}");
    }

    // 36 idle days, then a payment: no number is used again, and readers learn what they missed.
    log.expire()?;
    for is_late in [false, true] {
        if is_late {
            log.late_segment().await?;
        }
        for (case, start) in starts {
            assert_eq!(log.read(start, 10).await?, LogRead::Expired(end), "{case}, {is_late}");
        }
    }
    let page = log.page(end, 10).await?;
    assert_eq!((page.entries.len(), page.after, page.is_end), (1, "3622140.3.0".parse()?, true));
    Ok(())
}

#[tokio::test]
async fn a_hole_is_an_error_that_nobody_reads_over() -> Result<()> {
    let log = Log::with(&[1, 1, 1]).await?;
    log.tear(2).await?;
    for limit in [1, 10] {
        let page = log.page("3622140.1.0".parse()?, limit).await?;
        assert_eq!((page.entries.len(), page.after, page.is_end), (1, "3622140.2.0".parse()?, false));
        assert_fails(log.read(page.after, limit).await, "LOG#3622140 / 000000000002");
    }
    Ok(())
}

/// Over the API the log is the same, whatever the size of a page; an old or invented cursor names the oldest one.
#[tokio::test]
async fn clients_read_the_log_page_by_page_and_never_an_empty_page_for_what_is_gone() -> Result<()> {
    let log = Log::open().await?;
    let page = async |query: &str| anyhow::Ok(log.get(&format!("/events{query}")).await?.body);
    let nothing_after = |cursor: &str| json!({ "events": [], "nextCursor": cursor, "hasMore": false });
    for query in ["?cursor=now", "", "?cursor=1.1.0"] {
        assert_eq!(page(query).await?, nothing_after("1.1.0"), "{query}");
    }
    log.is_gone("1.2.0", "1.1.0").await?;
    for _ in 0..4 {
        log.segment(3).await?;
    }
    let whole = log.events().await?;
    for limit in [1, 2, 3, 4, 1_000] {
        let (mut after, mut found) = ("1.1.0".to_owned(), Vec::new());
        loop {
            let page = page(&format!("?cursor={after}&limit={limit}")).await?;
            found.extend(page["events"].as_array().context("no events")?.clone());
            text_of(&page["nextCursor"]).clone_into(&mut after);
            if page["hasMore"] == false {
                break;
            }
        }
        assert_eq!((found, after.as_str()), (whole.clone(), "3622140.5.0"), "pages of {limit}");
    }
    assert_eq!(page("?cursor=now").await?, nothing_after("3622140.5.0"));
    for cursor in ["3622140.2.9", "3622140.5.1", "3622141.1.0", "999999999.999999999999.999999999"] {
        log.is_gone(cursor, "3622140.1.0").await?;
    }
    log.expire()?;
    for cursor in ["3622140.1.0", "3622140.4.2", "3622140.6.0"] {
        log.is_gone(cursor, "3622140.5.0").await?;
    }
    Ok(())
}

/// After a restore of the hot table its stream is another one, and old invocations may still run.
#[tokio::test]
async fn the_log_takes_no_changes_of_another_stream() -> Result<()> {
    let log = Log::with(&[1]).await?;
    log.set_head("SET #source = :value", text("none")).await?;
    log.create(1).await?;
    assert_fails(log.count().await, "docs/restore.md, A new epoch of the log");
    assert_eq!(log.end().await?, "3622140.2.0".parse()?);
    Ok(())
}
