//! Queues and reports in the console: the parts that it shows, and the rights to see them.

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

use super::{HOSTILE, assert_plain, assert_statuses, page, rent};
use crate::laptop::get;

const REPORT: &str = "2026-11-20T080203Z--2026-11-20T085959Z-run-000042";

#[tokio::test]
async fn some_messages_of_a_queue_are_shown_as_text_and_stay() -> Result<()> {
    let world = World::open().await?;
    let (queues, now) = (&world.outside.operations.queues, world.now().as_chrono());
    let id = rent(&world, "rent-1").await?;
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
        assert_plain(&shown, queue);
        assert_eq!(shown.matches(&format!("#payment?id={id}")).count(), links, "{queue}: {shown}");
        assert_eq!(shown.contains("more characters are not shown"), links == 1, "{queue}: {shown}");
    }
    // A look hides no message: the queues still have 12 and 10.
    assert_eq!(queues.dispatch_failures.counts(now).visible, HOSTILE.len());
    assert_eq!(queues.result_dead_letters.counts(now).visible, 10);
    // A look at a queue that a program receives from could make a dead letter of a message.
    let wrong =
        ["sample?queue=results", "sample?queue=requests", "sample?queue=other", "sample", "queues?queue=results"];
    assert_statuses(&world, &wrong.map(|wanted| (wanted, 400))).await
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
