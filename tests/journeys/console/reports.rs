//! The view of reports: a day of them at a time, each once.

use anyhow::Result;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use payments_tests::World;

use super::{assert_statuses, links, pages};

#[tokio::test]
async fn reports_are_listed_a_day_at_a_time_each_once() -> Result<()> {
    let world = World::open().await?;
    let put = async |path: String| world.outside.reports.put(&Path::from(path), "content".into()).await.map(drop);
    let mut names = Vec::new();
    for run in 1..=230 {
        let day = 18 + run / 100;
        let minute = run % 100 / 2;
        let second = run % 2 * 30;
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
    let pages = pages(&world, "reports?from=2026-11-18", "cursor=").await?;
    let links = pages.iter().flat_map(|page| links(page));
    let shown: Vec<_> = links.filter_map(|link| link.strip_prefix("report?name=").map(str::to_owned)).collect();
    assert_eq!((shown, pages.len()), (names, 3));
    // Times are those of the bank, and sizes have units.
    assert!(pages[0].contains(">Wed 18 Nov, 08:00</time>") && pages[0].contains("7 bytes"), "{}", pages[0]);
    let wrong = [
        ("reports?from=yesterday", 400),
        ("reports?cursor=../journal", 400),
        ("report", 400),
        ("report?name=..%2Fjournal%2F1%2F1", 400),
        ("report?name=note.txt", 400),
        ("report?name=2026-11-20T080203Z--2026-11-20T085959Z-run-999999", 404),
    ];
    assert_statuses(&world, &wrong).await
}
