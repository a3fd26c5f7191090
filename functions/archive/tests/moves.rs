//! `archive` alone over the machine: cancelled payments move to the long-term table once their day is over.

use anyhow::Result;
use archive::{Archive, ArchiveOutcome, Config};
use chrono::TimeDelta;
use payments_machine::given::Given;
use payments_model::{Actor, Details, Head};
use serde_json::json;

/// `archive` on a machine.
struct Alone {
    given: Given,
    archive: Archive,
}

impl Alone {
    async fn start() -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
        let archive = given.function("archive", Config::read, Archive::new)?;
        Ok(Self { given, archive })
    }

    async fn run(&self) -> Result<ArchiveOutcome> {
        let event = self.given.scheduled_event(json!({ "action": "archive" }))?;
        self.archive.handle(event).await.map_err(anyhow::Error::from_boxed)
    }

    /// The head in the hot table, and in the long-term table.
    async fn heads(&self, details: &Details) -> Result<(Option<Head>, Option<Head>)> {
        let (store, key) = (&self.given.store, details.key());
        let hot = store.stored_head(&key).await?.map(|stored| stored.known().clone());
        Ok((hot, store.archived_head(&key).await?))
    }
}

#[tokio::test]
async fn a_cancelled_payment_moves_once_its_day_is_over_and_no_other_does() -> Result<()> {
    let alone = Alone::start().await?;
    let cancelled = alone.given.scheduled("cancelled", "2026-11-20").await?;
    let scheduled = alone.given.scheduled("scheduled", "2026-11-20").await?;
    let pending = alone.given.pending("pending").await?;
    alone.given.store.cancel_payment(&cancelled, alone.given.stack.clock.now(), &Actor::client("test")).await?;
    let before = alone.heads(&cancelled).await?;
    assert_eq!(before.0.as_ref().map(|head| head.state.status().as_str()), Some("CANCELLED"));
    alone.run().await?;
    assert_eq!(alone.heads(&cancelled).await?, before, "its day is not over");

    alone.given.pass(TimeDelta::days(3));
    alone.run().await?;
    assert!(alone.given.raised()?.contains(&"Archived 1".to_owned()));
    assert_eq!(alone.heads(&cancelled).await?, (None, before.0));
    for details in [&scheduled, &pending] {
        let (hot, history) = alone.heads(details).await?;
        assert!(hot.is_some() && history.is_none(), "{hot:?}, {history:?}");
    }
    alone.run().await?;
    assert!(!alone.given.raised()?.iter().any(|metric| metric.starts_with("Archived ")));
    Ok(())
}
