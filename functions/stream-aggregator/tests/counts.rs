//! `stream-aggregator` alone over the machine: each change of the hot table is counted once.

use std::cell::RefCell;

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use lambda_runtime::LambdaEvent;
use payments_delivery::StreamMapping;
use payments_machine::given::Given;
use payments_machine::invocation::{read, written};
use payments_machine::triggers::stream_settings;
use payments_model::{DayCounts, Status};
use serde_json::Value;
use stream_aggregator::{Aggregator, Config};

/// `stream-aggregator` on a machine, behind the stream of the hot table.
struct Alone {
    given: Given,
    aggregator: Aggregator,
    mapping: StreamMapping,
    /// The events that the function received.
    events: RefCell<Vec<Value>>,
}

impl Alone {
    async fn start() -> Result<Self> {
        let given = Given::at("2026-11-20T09:00:00Z", |_| {}).await?;
        let aggregator = given.function("stream-aggregator", Config::read, Aggregator::new)?;
        let mapping = StreamMapping::new(stream_settings("stream-aggregator", None)?, given.stack.stream().await?)?;
        Ok(Self { given, aggregator, mapping, events: RefCell::default() })
    }

    /// Delivers the records of the stream.
    async fn deliver(&mut self) -> Result<()> {
        let Self { given, aggregator, mapping, events } = self;
        let function = |event: Value| {
            events.borrow_mut().push(event.clone());
            handle(aggregator, given, event)
        };
        // The window begins when the records are read.
        mapping.step(given.stack.clock.instant(), function).await?;
        given.pass(mapping.settings().maximum_batching_window);
        mapping.step(given.stack.clock.instant(), function).await?;
        Ok(())
    }

    async fn counts(&self) -> Result<DayCounts> {
        let date = "2026-11-20".parse()?;
        let counters = self.given.store.counters(date, date).await?;
        Ok(counters.into_values().next().context("no counters")?.counts)
    }
}

async fn handle(aggregator: &Aggregator, given: &Given, event: Value) -> Result<Value, String> {
    let event = LambdaEvent::new(read(event)?, given.context());
    written(&aggregator.handle(event).await.map_err(|error| error.to_string())?)
}

/// The counts of this many payments of 5.00 GBP.
fn counted(scheduled: i64, pending: i64) -> Result<DayCounts> {
    let mut counts = DayCounts::default();
    for (status, payments) in [(Status::Scheduled, scheduled), (Status::Pending, pending)] {
        counts.shift(status, payments);
        counts.shift_sum("GBP".parse()?, status, i128::from(payments) * 500);
    }
    Ok(counts)
}

#[tokio::test]
async fn each_change_is_counted_once_however_often_it_is_delivered() -> Result<()> {
    let mut alone = Alone::start().await?;
    alone.given.scheduled("first", "2026-11-20").await?;
    alone.given.scheduled("second", "2026-11-20").await?;
    alone.deliver().await?;
    assert_eq!(alone.counts().await?, counted(2, 0)?);
    alone.given.pending("third").await?;
    alone.deliver().await?;
    assert_eq!(alone.counts().await?, counted(2, 1)?);
    alone.given.pass(TimeDelta::seconds(1));
    let events = alone.events.take();
    assert!(events.len() >= 2);
    for event in events {
        handle(&alone.aggregator, &alone.given, event).await.map_err(anyhow::Error::msg)?;
        assert_eq!(alone.counts().await?, counted(2, 1)?);
    }
    Ok(())
}
