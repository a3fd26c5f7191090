//! The cost of each write of a payment, by table and index: measured on an engine behind the throttle.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_smithy_http_client::Builder;
use chrono::{DateTime, TimeDelta};
use payments_boot::dynamodb_at;
use payments_machine::layers::fault::Fault;
use payments_machine::layers::throttle::{Charge, Limits, Place, Throttle, throttled};
use payments_machine::payload::DataKind;
use payments_machine::{Engine, Fate, Layers, Time};
use payments_model::ShardCount;
use tokio::runtime::Runtime;

use crate::day::{Costs, PlaceCost};
use crate::design::{Design, Tables};
use crate::life::{ACCOUNTS, DAY, Data, Payment, Write, payment_id};
use crate::stacks::NEW;

/// The payments of the feed.
pub(crate) const PAYMENTS: u32 = 1_000_000;

/// The limits of a partition of DynamoDB.
const LIMITS: Limits = Limits { writes: 1_000, reads: Some(3_000), is_exact: true };

/// The payments of this project's design, and where its keys are: by the hash of a seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    /// The kind of the data. The payments are as large as permitted.
    pub(crate) kind: DataKind,
}

/// The scenario of incompressible data.
pub(crate) const OURS: Scenario = Scenario { seed: 0, kind: DataKind::Incompressible };

/// The shards of the tables that are measured.
const SHARDS: &str = "10";

/// Returns data that makes a payment of a design 8 KB, before compression. The shard is not 0, whose number takes a byte
/// less.
pub(crate) fn largest_data(design: Design, kind: DataKind) -> Result<Data> {
    let data = Data { kind, bytes: 10_000 };
    let mut payments = (0..100).map(|n| Payment::new(0, n, "10".parse()?, data));
    let large = payments.find(|payment| payment.as_ref().map_or(true, |payment| payment.details.shard.get() > 0));
    let large = large.context("all are of shard 0")??;
    let excess = match design {
        Design::Other(layout) => layout.excess(&large)?,
        Design::Ours => payments_store::details_excess(&large.details).unwrap_or(0),
    };
    Ok(Data { bytes: data.bytes - excess, ..data })
}

impl Scenario {
    /// Returns the shard of a payment.
    pub(crate) fn shard_of(n: u32) -> Result<usize> {
        Ok(usize::from(payment_id(n % ACCOUNTS, n)?.shard(SHARDS.parse()?).get()))
    }
}

/// A place and the number of its partition.
pub(crate) type Partition = (String, usize);

type Refused = Arc<Mutex<Option<Partition>>>;

/// An engine behind the throttle.
pub(crate) struct Throttled {
    runtime: Runtime,
    tables: Tables,
    throttle: Throttle,
    time: Time,
    data: Data,
    /// The place and partition that refused the last call.
    refused_by: Refused,
    _engine: Engine,
}

impl Throttled {
    pub(crate) fn open(scenario: &Scenario) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (time, refused_by) = (Time::at(DateTime::UNIX_EPOCH), Refused::default());
        let places = Design::Ours.indexes().into_iter().flat_map(|(table, indexes)| {
            let of_indexes = indexes.into_iter().map(|index| format!("{table}/{}", index.name)).collect::<Vec<_>>();
            std::iter::once(table).chain(of_indexes)
        });
        let places = places.map(|name| Place::new(&name, NEW, 0, Vec::new()));
        let throttle = Throttle::new(scenario.seed, LIMITS, &time.clock(), places);
        let (decides, noted) = (throttle.clone(), Arc::clone(&refused_by));
        let fault = Fault::new(move |call| {
            let is_write = call.operation != "GetItem" && call.operation != "BatchGetItem" && call.operation != "Query";
            let by = decides.refusing(call.input(), is_write).into_iter().next();
            let fate = by.as_ref().map_or(Fate::Pass, |_| throttled(call));
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = by;
            fate
        });
        let (engine, tables) = runtime.block_on(async {
            let engine = Engine::start(0, None).await?;
            let client = dynamodb_at(&engine.url(), "local");
            let layers = Layers::over(Builder::new().build_http()).with(fault).with(throttle.clone());
            let config = client.config().to_builder().http_client(layers);
            // A throttled write waits for a later second of the simulation instead.
            let client = Client::from_conf(config.retry_config(RetryConfig::disabled()).build());
            anyhow::Ok((engine, Design::Ours.create(client).await?))
        })?;
        let data = largest_data(Design::Ours, scenario.kind)?;
        Ok(Self { runtime, tables, throttle, time, data, refused_by, _engine: engine })
    }
}

impl Throttled {
    /// Tries a write without the read before it. Returns the partition that throttles it.
    pub(crate) fn try_write(&mut self, payment: u32, write: Write, second: i64) -> Result<Option<Partition>> {
        self.set_second(second);
        let payment = payment_of(payment, self.data)?;
        let done = self.runtime.block_on(self.tables.write(&payment, write));
        let refused_by = self.refused_by.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(partition) = refused_by else { return done.map(|()| None) };
        let error = done.err().context("a throttled call succeeded")?;
        let shown = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ").to_lowercase();
        ensure!(shown.contains("throttl"), "throttled, but the error is: {shown}");
        Ok(Some(partition))
    }

    fn set_second(&self, second: i64) {
        self.time.set(DateTime::UNIX_EPOCH + TimeDelta::seconds(second));
    }
}

/// The kind of a partition key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    /// Each payment has its own.
    Payment,
    Account,
    Shard,
    Date,
}

/// The charge of one write, for any payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cost {
    place: String,
    key: KeyKind,
    is_write: bool,
    units: u64,
}

impl Cost {
    fn measure(charge: Charge, payment: &Payment, shards: ShardCount) -> Result<Self> {
        let Charge { place, key, units, is_write } = charge;
        let details = &payment.details;
        let key = if key.contains(&details.payment_id.to_string()) {
            KeyKind::Payment
        } else if key == format!("ACCT#{}", details.instruction.account) {
            KeyKind::Account
        } else if key == DAY {
            KeyKind::Date
        } else {
            // The model computes shards from ids.
            ensure!(key == details.payment_id.shard(shards).get().to_string(), "the key {key} of {place} is unknown");
            KeyKind::Shard
        };
        Ok(Self { place, key, is_write, units })
    }
}

/// Returns the payment of this number.
fn payment_of(n: u32, data: Data) -> Result<Payment> {
    Payment::new(n % ACCOUNTS, n, SHARDS.parse()?, data)
}

/// Measures the write units of these writes.
pub(crate) fn write_units(scenario: &Scenario, writes: &[Write]) -> Result<Costs> {
    let of_write = |costs: Vec<Cost>| -> Result<Vec<PlaceCost>> {
        let mut units = Vec::new();
        for Cost { place, key, units: of_place, .. } in costs.into_iter().filter(|cost| cost.is_write) {
            units.push(PlaceCost { place, by_shard: key == KeyKind::Shard, units: i64::try_from(of_place)? });
        }
        Ok(units)
    };
    measure_all(scenario, writes)?.into_iter().map(of_write).collect()
}

/// Measures the write units of these writes in the table in which an account's key has the most.
pub(crate) fn units_of_an_account(scenario: &Scenario, writes: &[Write]) -> Result<u64> {
    let mut units: BTreeMap<String, u64> = BTreeMap::new();
    for cost in measure_all(scenario, writes)?.into_iter().flatten() {
        if cost.key == KeyKind::Account && cost.is_write {
            *units.entry(cost.place).or_default() += cost.units;
        }
    }
    units.into_values().max().context("nothing is written to an account's key")
}

/// Measures the charges of writes, with a sample of a scenario's payments on an engine.
fn measure_all(scenario: &Scenario, writes: &[Write]) -> Result<Vec<Vec<Cost>>> {
    let throttled = &Throttled::open(scenario)?;
    let Throttled { runtime, tables, throttle, data, .. } = throttled;
    let (shards, mut measured) = (SHARDS.parse()?, None::<Vec<Vec<Cost>>>);
    // Far apart, so that shards and accounts differ.
    for (second, n) in (0..PAYMENTS).step_by(83_333).enumerate() {
        throttled.set_second(i64::try_from(second)?);
        let payment = payment_of(n, *data)?;
        let cost = |&write| -> Result<Vec<Cost>> {
            runtime.block_on(tables.read_and_write(&payment, write))?;
            throttle.take_charges().into_iter().map(|charge| Cost::measure(charge, &payment, shards)).collect()
        };
        let costs = writes.iter().map(cost).collect::<Result<Vec<_>>>()?;
        let first = measured.get_or_insert_with(|| costs.clone());
        ensure!(*first == costs, "payment {n} costs {costs:#?}, but the first one {first:#?}");
    }
    measured.context("no payments")
}

/// The heads of an account are one partition key in each table.
#[test]
fn one_account_is_limited_by_the_writes_of_its_heads() -> Result<()> {
    const LIFE: [Write; 6] =
        [Write::Details, Write::Head, Write::Pending, Write::Decided, Write::Followed, Write::Reported];
    let lives = |writes: &[Write]| -> Result<u64> { Ok(1_000 / units_of_an_account(&OURS, writes)?) };
    assert_eq!((lives(&LIFE[..2])?, lives(&LIFE[..5])?, lives(&LIFE)?), (1_000, 333, 250));
    Ok(())
}
