//! `query-due` alone over the machine: the payments of a date and the counts of dates.

use anyhow::{Context as _, Result};
use payments_machine::client::{Reply, Request};
use payments_machine::given::Given;
use payments_model::{DayCounts, Status};
use payments_store::DateCounters;
use query_due::{Config, QueryDue};
use serde_json::{Value, json};

/// `query-due` on a machine with three payments of a date, one of them pending, and one of the next date.
struct Alone {
    given: Given,
    query: QueryDue,
}

impl Alone {
    async fn start() -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
        given.scheduled("first", "2026-11-20").await?;
        given.scheduled("second", "2026-11-20").await?;
        given.pending("third").await?;
        given.scheduled("tomorrow", "2026-11-21").await?;
        let query = given.function("query-due", Config::read, QueryDue::new)?;
        Ok(Self { given, query })
    }

    async fn get(&self, path: &str) -> Result<(u16, Value)> {
        let reply = Reply::from_response(self.query.handle(self.given.http_event(&Request::get(path))?).await)?;
        Ok((reply.status, reply.json()?))
    }

    /// The statuses of the payments of a list, over all its pages, and how many pages there are.
    async fn statuses(&self, path: &str) -> Result<(Vec<String>, usize)> {
        let mut statuses = Vec::new();
        let mut pages = 0;
        let mut next = path.to_owned();
        loop {
            let (status, page) = self.get(&next).await?;
            assert_eq!(status, 200, "{page}");
            pages += 1;
            assert!(pages < 100, "{path} has no end");
            let payments = page["payments"].as_array().context("no list")?;
            statuses.extend(payments.iter().filter_map(|payment| payment["status"].as_str()).map(str::to_owned));
            let Some(cursor) = page["nextCursor"].as_str() else { return Ok((statuses, pages)) };
            next = format!("{path}&cursor={cursor}");
        }
    }
}

#[tokio::test]
async fn a_list_has_each_payment_of_its_date_and_status_once() -> Result<()> {
    let alone = Alone::start().await?;
    for (query, statuses) in [
        ("dueDate=2026-11-20&status=SCHEDULED", vec!["SCHEDULED", "SCHEDULED"]),
        ("dueDate=2026-11-20&status=SCHEDULED,PENDING", vec!["SCHEDULED", "SCHEDULED", "PENDING"]),
        ("dueDate=2026-11-20&status=PROCESSED", vec![]),
        ("dueDate=2026-11-21", vec!["SCHEDULED"]),
        ("dueDate=2026-11-22", vec![]),
    ] {
        for limit in ["", "&limit=1"] {
            let (listed, pages) = alone.statuses(&format!("/payments?{query}{limit}")).await?;
            assert_eq!(listed, statuses, "{query}{limit}");
            assert!(limit.is_empty() || pages >= statuses.len(), "{query}: {pages} pages");
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_invalid_list_is_rejected_with_the_name_of_its_fault() -> Result<()> {
    let alone = Alone::start().await?;
    for (query, name) in [
        ("status=SCHEDULED", "dueDate"),
        ("dueDate=2026-11-31", "dueDate"),
        ("dueDate=2026-11-20&status=SENT", "status"),
        ("dueDate=2026-11-20&limit=0", "limit"),
        ("dueDate=2026-11-20&shard=10", "shard"),
        ("dueDate=2026-11-20&cursor=x", "cursor"),
        ("dueDate=2026-11-20&transactionId=TX-1", "dueDate"),
        ("date=2026-11-20", "date"),
    ] {
        let (status, problem) = alone.get(&format!("/payments?{query}")).await?;
        assert_eq!(status, 400, "{query}: {problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(name)), "{query}: {problem}");
    }
    Ok(())
}

#[tokio::test]
async fn counts_are_the_counters_of_their_dates() -> Result<()> {
    let alone = Alone::start().await?;
    let mut counts = DayCounts::default();
    counts.shift(Status::Scheduled, 2);
    counts.shift(Status::Pending, 1);
    counts.shift_sum("GBP".parse()?, Status::Scheduled, 1_000);
    counts.shift_sum("GBP".parse()?, Status::Pending, 500);
    let is_written =
        alone.given.store.correct_counters("2026-11-20".parse()?, &DateCounters::default(), &counts).await?;
    assert!(is_written);
    let (status, body) = alone.get("/counts?from=2026-11-20&to=2026-11-21").await?;
    assert_eq!(status, 200, "{body}");
    for (place, date, scheduled, pending) in [(0, "2026-11-20", 2, 1), (1, "2026-11-21", 0, 0)] {
        let day = &body["counts"][place];
        assert_eq!(day["date"], date, "{body}");
        assert_eq!(day["byStatus"]["SCHEDULED"], json!(scheduled), "{date}");
        assert_eq!(day["byStatus"]["PENDING"], json!(pending), "{date}");
    }
    Ok(())
}
