//! Queues and reports in the console: what they show, and what of it can be read by whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::Result;
use chrono::DateTime;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use payments_boot::Clock;
use payments_local::{Bank, Gateway};
use payments_machine::links::REPORTS_PATH;
use payments_tests::World;
use serde_json::json;

use super::{HOSTILE, page, payment, view};
use crate::laptop::get;

const REPORT: &str = "2026-11-20T080203Z--2026-11-20T085959Z-run-000042";

#[tokio::test]
async fn some_messages_of_a_queue_are_shown_as_text_and_stay() -> Result<()> {
    let world = World::open().await?;
    let (queues, now) = (&world.outside.operations.queues, world.now().as_chrono());
    let id = world.create("tenant", "rent-1", &payment("2026-12-01")).await?;
    for (n, text) in HOSTILE.into_iter().enumerate() {
        queues.dispatch_failures.send(text, now)?;
        if n < 9 {
            queues.result_dead_letters.send(text, now)?;
        }
    }
    queues
        .result_dead_letters
        .send(json!({ "v": 1, "kind": "settlement", "paymentId": id, "status": "x".repeat(9_000) }).to_string(), now)?;
    for (queue, links) in [("result-dead-letters", 1), ("dispatch-failures", 0), ("request-dead-letters", 0)] {
        let shown = page(&world, &format!("sample?queue={queue}")).await?;
        for raw in ["<script", "<img", "<svg", "<iframe", "<a href=j", "<div data-hx-get=/", "<div hx-on", "<!--"] {
            assert!(!shown.contains(raw), "{queue}: {raw}");
        }
        assert_eq!(shown.matches(&format!("#payment?id={id}")).count(), links, "{queue}: {shown}");
        assert_eq!(shown.contains("more characters are not shown"), links == 1, "{queue}: {shown}");
    }
    // A look hides none: 12 and 10 messages are there.
    assert_eq!(queues.dispatch_failures.counts(now).visible, HOSTILE.len());
    assert_eq!(queues.result_dead_letters.counts(now).visible, 10);
    // A look at a queue that a program receives from could make a dead letter of a message.
    for (wanted, status) in [
        ("sample?queue=results", 400),
        ("sample?queue=requests", 400),
        ("sample?queue=other", 400),
        ("sample", 400),
        ("queues?queue=results", 400),
    ] {
        assert_eq!(view(&world, wanted).await?.status, status, "{wanted}");
    }
    Ok(())
}

#[tokio::test]
async fn the_queues_view_calls_nothing_of_dynamodb() -> Result<()> {
    let world = World::open().await?;
    drop(world.recorder.take_operations());
    page(&world, "queues").await?;
    page(&world, "reports?from=2026-11-20").await?;
    assert_eq!(world.recorder.take_operations(), Vec::<String>::new());
    page(&world, "reports").await?;
    assert_eq!(world.recorder.take_operations(), ["GetItem"]);
    Ok(())
}

#[tokio::test]
async fn reports_are_listed_a_day_at_a_time_each_once() -> Result<()> {
    let world = World::open().await?;
    let put = async |path: String| world.outside.reports.put(&Path::from(path), "content".into()).await.map(drop);
    let mut names = Vec::new();
    for run in 1..=230 {
        let (day, minute, second) = (18 + run / 100, run % 100 / 2, run % 2 * 30);
        let name = format!("2026-11-{day}T08{minute:02}{second:02}Z--2026-11-{day}T095959Z-run-{run:06}");
        put(format!("reports/{name}.csv.gz")).await?;
        put(format!("reports/{name}.summary.json")).await?;
        names.push(name);
    }
    for other in
        ["reports/note.txt", "reports/2026-11-20T0-run-1.csv.gz", "attempts/run-1/report.csv.gz", "journal/1/1"]
    {
        put(other.to_owned()).await?;
    }
    let (mut shown, mut pages, mut next) = (Vec::new(), 0, Some("reports?from=2026-11-18".to_owned()));
    while let Some(wanted) = next {
        let text = page(&world, &wanted).await?;
        let links: Vec<_> = text.split("href=\"#").skip(1).filter_map(|link| link.split('"').next()).collect();
        shown.extend(links.iter().filter_map(|link| link.strip_prefix("report?name=").map(str::to_owned)));
        next = links.iter().find(|link| link.contains("cursor=")).map(|link| (*link).to_owned());
        pages += 1;
        anyhow::ensure!(pages < 9, "the list does not end");
    }
    assert_eq!((shown, pages), (names, 3));
    for (wanted, status) in [
        ("reports?from=yesterday", 400),
        ("reports?cursor=../journal", 400),
        ("report", 400),
        ("report?name=..%2Fjournal%2F1%2F1", 400),
        ("report?name=note.txt", 400),
        ("report?name=2026-11-20T080203Z--2026-11-20T085959Z-run-999999", 404),
    ] {
        assert_eq!(view(&world, wanted).await?.status, status, "{wanted}");
    }
    Ok(())
}

#[tokio::test]
async fn a_reports_address_works_for_a_minute() -> Result<()> {
    let world = World::open().await?;
    for ending in [".csv.gz", ".summary.json"] {
        let path = Path::from(format!("reports/{REPORT}{ending}"));
        world.outside.reports.put(&path, format!("the {ending}").into()).await?;
    }
    // The gateway has the clock of the functions, as in `cargo local`.
    let seconds = Arc::new(AtomicI64::new(world.now().as_chrono().timestamp()));
    let shown = Arc::clone(&seconds);
    let clock =
        Clock::simulated(move || DateTime::from_timestamp(shown.load(Ordering::SeqCst), 0).unwrap_or_default(), |_| {});
    let bank = Bank {
        functions: world.functions().clone(),
        clock,
        zone: "Europe/London".parse()?,
        reports: world.outside.operations.links.clone(),
    };
    let gateway = Gateway::start(0, bank, None, None).await?;
    let text = page(&world, &format!("report?name={REPORT}")).await?;
    let links: Vec<_> = text.split("href=\"").skip(1).filter_map(|link| link.split('"').next()).collect();
    let links: Vec<_> = links.into_iter().filter(|link| link.starts_with(REPORTS_PATH)).collect();
    assert_eq!(links.len(), 2, "{text}");
    for (later, works) in [(0, true), (59, true), (60, false)] {
        seconds.store(world.now().as_chrono().timestamp() + later, Ordering::SeqCst);
        for (link, content) in links.iter().zip(["the .csv.gz", "the .summary.json"]) {
            let reply = get(&gateway.url(), link).await?;
            assert_eq!(reply.body.contains(content), works, "after {later} s: {reply}");
            assert_eq!(reply.status == 403, !works, "after {later} s: {reply}");
        }
    }
    get(&gateway.url(), &format!("{REPORTS_PATH}guessed")).await?.with_status(403)?;
    gateway.stop().await
}
