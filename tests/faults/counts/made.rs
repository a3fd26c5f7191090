//! A handmade stream: copies of a real head for as many payments, dates and currencies as a test wants, and damaged
//! records.

use anyhow::{Context as _, Result, ensure};
use payments_delivery::{Delivery, InMemoryStream, Record, ShardId, StreamMapping};
use payments_lab::facts::heads::Tables;
use payments_lab::laws::counters::{self, Numbers};
use payments_machine::layers::attributes::{Key, key_of};
use payments_machine::triggers::stream_settings;
use serde_json::{Value, json};

use super::shards;
use crate::kit::fixture::Fixture;
use crate::recount::counters as shown;
use payments_tests::counting::{aggregate, drain};

/// A stream of one shard, and the expected tables.
pub(crate) struct Made {
    pub(crate) stream: InMemoryStream,
    pub(crate) shard: ShardId,
    pub(crate) records: u64,
    model: Value,
    tables: Tables,
}

impl Made {
    /// Creates an empty stream of this table.
    pub(crate) async fn for_fixture(fixture: &Fixture) -> Result<Self> {
        let intents = fixture.created(1).await?;
        let pk = format!("ACCT#{}", intents[0].account);
        let model = fixture.items(&fixture.tables().payments, &pk).await?.pop().context("no head")?;
        let (stream, shard) = (InMemoryStream::new(fixture.source.arn()), ShardId::from("shardId-made"));
        stream.add_shard(shard.clone(), None)?;
        fixture.faults.clear();
        drop((fixture.metrics.take(), fixture.faults.recorder().take_capacity_use()));
        Ok(Self { stream, shard, records: 0, model, tables: Tables::default() })
    }

    /// The n-th payment.
    pub(crate) fn head(&self, n: usize, date: &str, status: &str, currency: &str) -> Value {
        let mut head = self.model.clone();
        let sk = format!("{date}T12:00:00Z#{n:08x}-0000-5000-8000-{n:012x}");
        for (name, text) in [
            ("pk", format!("ACCT#made-{}", n % 7)),
            ("due", format!("{status}#{date}#{sk}")),
            ("sk", sk),
            ("status", status.to_owned()),
            ("currency", currency.to_owned()),
        ] {
            head[name] = json!({ "S": text });
        }
        head["amountMinor"] = json!({ "N": (n + 1).to_string() });
        let life = ["SCHEDULED", "PENDING", "PROCESSED"];
        let so_far = life.iter().position(|one| *one == status).map_or(&life[..], |last| &life[..=last]);
        let created = &self.model["trail"]["L"][0]["M"];
        let entry = |status| json!({ "M": { "status": { "S": status }, "at": created["at"], "by": created["by"] } });
        head["trail"] = json!({ "L": so_far.iter().map(entry).collect::<Vec<_>>() });
        head["version"] = json!({ "N": so_far.len().to_string() });
        if so_far.len() > 1 {
            head["dispatchAttempt"] = json!({ "N": "1" });
        }
        if status == "PROCESSED" {
            head["transactionId"] = json!({ "S": "made" });
            head["settledAt"] = created["at"].clone();
        }
        head
    }

    /// Creates a payment, or changes it to this.
    pub(crate) fn put(&mut self, head: Value) -> Result<()> {
        let key = key_of(&head);
        let before = self.tables.hot.insert(key.clone(), head.clone());
        self.push(&key, before, Some(head))
    }

    /// Archives a payment.
    pub(crate) fn archive(&mut self, key: &Key) -> Result<()> {
        let head = self.tables.hot.remove(key).context("no such payment")?;
        self.tables.history.insert(key.clone(), head.clone());
        self.push(key, Some(head), None)
    }

    /// Adds a record with any images.
    pub(crate) fn push(&mut self, key: &Key, before: Option<Value>, after: Option<Value>) -> Result<()> {
        self.records += 1;
        let mut change = json!({
            "Keys": { "pk": { "S": key.0 }, "sk": { "S": key.1 } },
            "ApproximateCreationDateTime": shards::beginning().timestamp(),
            "SequenceNumber": self.records.to_string(), "SizeBytes": 1, "StreamViewType": "NEW_AND_OLD_IMAGES",
        });
        for (name, image) in [("OldImage", before), ("NewImage", after)] {
            if let Some(image) = image {
                change[name] = image;
            }
        }
        let event = json!({
            "eventID": "made", "eventName": "MODIFY", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
            "awsRegion": "local", "eventSourceARN": self.stream.arn(), "dynamodb": change,
        });
        Ok(self.stream.push(&self.shard, Record::from_event(event)?)?)
    }

    /// The stream's mapping, at the oldest record.
    pub(crate) fn mapping(&self) -> Result<StreamMapping> {
        Ok(StreamMapping::new(stream_settings("stream-aggregator", None)?, self.stream.clone())?)
    }

    /// Delivers the whole stream from the oldest record.
    pub(crate) async fn deliver(&self, fixture: &Fixture) -> Result<Vec<Delivery>> {
        drain(&mut self.mapping()?, shards::beginning(), |event| aggregate(&fixture.functions, event)).await
    }

    /// Creates an empty stream of a new system.
    pub(crate) async fn start() -> Result<(Fixture, Self)> {
        let fixture = Fixture::start().await?;
        let made = Self::for_fixture(&fixture).await?;
        Ok((fixture, made))
    }

    /// Fails unless the counters are as expected.
    pub(crate) async fn assert_counted(&self, fixture: &Fixture, when: &str) -> Result<()> {
        let wrong = counters::between(&shown(fixture).await?, &self.counts());
        ensure!(wrong.is_empty(), "{when}: {wrong:#?}");
        Ok(())
    }

    /// The expected counters.
    pub(crate) fn counts(&self) -> Numbers {
        counters::recounted(&self.tables)
    }
}
