//! The two backends of a simulation: an engine behind the throttle, and a model that only counts.
//!
//! The model takes seconds for a million payments. What a write costs was measured on the engine.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use payments_boot::dynamodb_at;
use payments_machine::Engine;
use payments_machine::payload::DataKind;
use payments_model::{PaymentId, ShardCount};
use tokio::runtime::Runtime;

use crate::buckets::{Buckets, Name, Placement, UnitKind};
use crate::day::{Costs, PlaceCost};
use crate::design::{Design, Tables};
use crate::feed::Backend;
use crate::life::{Accounts, DAY, Data, Payment, Write, account_name, payment_id};
use crate::throttle::{Charge, Throttle};

/// The payments of the feed.
pub(crate) const PAYMENTS: u32 = 1_000_000;

/// A case to simulate, with its expected result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) title: &'static str,
    pub(crate) design: Design,
    pub(crate) shards: &'static str,
    pub(crate) accounts: Accounts,
    pub(crate) placement: Placement,
    /// What the data looks like. The payments are as large as permitted.
    pub(crate) kind: DataKind,
    /// Whether the feed alone is fast enough, and with sweep and settlement.
    pub(crate) passes: [bool; 2],
    /// The place and the key of the limit, if it is a key's, and the units a second that would be necessary.
    pub(crate) limit: Option<(&'static str, Option<&'static str>, u64)>,
}

/// Returns data that makes a payment of a design 8 KB, before compression. The shard is not 0, whose number takes a byte
/// less.
pub(crate) fn largest_data(design: Design, kind: DataKind) -> Result<Data> {
    let data = Data { kind, bytes: 10_000 };
    let mut payments = (0..100).map(|n| Payment::new(0, n, "10".parse()?, data));
    let large = payments.find(|payment| payment.as_ref().map_or(true, |payment| payment.details.shard.get() > 0));
    let large = large.context("all are of shard 0")??;
    let excess = match design {
        Design::Other(layout) if layout.whole => layout.excess(&large)?,
        _ => payments_store::details_excess(&large.details).unwrap_or(0),
    };
    Ok(Data { bytes: data.bytes - excess, ..data })
}

impl Scenario {
    fn shard_count(&self) -> Result<ShardCount> {
        Ok(self.shards.parse()?)
    }

    /// Returns the shard of a payment.
    pub(crate) fn shard_of(&self, n: u32) -> Result<usize> {
        let id = payment_id(n % self.accounts.count(PAYMENTS), n)?;
        Ok(usize::from(id.shard(self.shard_count()?).get()))
    }

    pub(crate) fn payment(&self, n: u32, data: Data) -> Result<Payment> {
        Payment::new(n % self.accounts.count(PAYMENTS), n, self.shard_count()?, data)
    }
}

/// An engine behind the throttle.
pub(crate) struct Throttled {
    runtime: Runtime,
    tables: Tables,
    throttle: Throttle,
    scenario: Scenario,
    data: Data,
    /// The buckets that throttled something. Their places are their numbers.
    pub(crate) empty: Vec<Name>,
    _engine: Engine,
}

impl Throttled {
    pub(crate) fn open(scenario: &Scenario) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let throttle = Throttle::new(scenario.design.indexes(), Buckets::new(scenario.placement));
        let (engine, tables) = runtime.block_on(async {
            let engine = Engine::start(0, None).await?;
            let client = dynamodb_at(&engine.url(), "local");
            let config = client.config().to_builder().http_client(throttle.interceptor());
            // A throttled write waits for a later second of the simulation instead.
            let client = Client::from_conf(config.retry_config(RetryConfig::disabled()).build());
            anyhow::Ok((engine, scenario.design.create(client).await?))
        })?;
        let data = largest_data(scenario.design, scenario.kind)?;
        Ok(Self { runtime, tables, throttle, scenario: *scenario, data, empty: Vec::new(), _engine: engine })
    }
}

impl Throttled {
    /// Tries a write without the read before it. Returns the bucket that throttles it.
    pub(crate) fn try_write(&mut self, payment: u32, write: Write, second: u64) -> Result<Option<usize>> {
        self.throttle.set_second(second);
        let payment = self.scenario.payment(payment, self.data)?;
        let done = self.runtime.block_on(self.tables.write(&payment, write));
        self.rejection(done)
    }

    /// Returns the bucket that throttled a call, or the call's own error.
    fn rejection(&mut self, done: Result<()>) -> Result<Option<usize>> {
        let Some(name) = self.throttle.take_rejection() else { return done.map(|()| None) };
        let error = done.err().context("a throttled call succeeded")?;
        let shown = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ").to_lowercase();
        ensure!(shown.contains("throttl"), "throttled, but the error is: {shown}");
        let known = self.empty.iter().position(|known| *known == name);
        Ok(Some(known.unwrap_or_else(|| {
            self.empty.push(name);
            self.empty.len() - 1
        })))
    }
}

impl Backend for Throttled {
    fn attempt(&mut self, payment: u32, write: usize, second: u64) -> Result<Option<usize>> {
        self.throttle.set_second(second);
        let payment = self.scenario.payment(payment, self.data)?;
        let (write, _) = self.scenario.design.writes()[write];
        let done = self.runtime.block_on(self.tables.read_and_write(&payment, write));
        self.rejection(done)
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
    kind: UnitKind,
    half_units: u64,
}

impl Cost {
    fn of(charge: Charge, payment: &Payment, shards: ShardCount) -> Result<Self> {
        let Charge { place, key, kind, half_units } = charge;
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
        Ok(Self { place, key, kind, half_units })
    }
}

/// Measures the charges of the writes that a scenario's design has.
pub(crate) fn measure(scenario: &Scenario) -> Result<Vec<Vec<Cost>>> {
    let writes: Vec<Write> = scenario.design.writes().iter().map(|(write, _)| *write).collect();
    measure_all(scenario, &writes)
}

/// Measures the write units of these writes.
pub(crate) fn write_units(scenario: &Scenario, writes: &[Write]) -> Result<Costs> {
    let of_write = |costs: Vec<Cost>| -> Result<Vec<PlaceCost>> {
        let mut units = Vec::new();
        for Cost { place, key, half_units, .. } in costs.into_iter().filter(|cost| cost.kind == UnitKind::Write) {
            ensure!(half_units.is_multiple_of(2), "half a write unit in {place}");
            units.push(PlaceCost { place, by_shard: key == KeyKind::Shard, units: i64::try_from(half_units / 2)? });
        }
        Ok(units)
    };
    measure_all(scenario, writes)?.into_iter().map(of_write).collect()
}

/// Measures the write units of these writes in the table in which an account's key has the most.
pub(crate) fn units_of_an_account(scenario: &Scenario, writes: &[Write]) -> Result<u64> {
    let mut units: BTreeMap<String, u64> = BTreeMap::new();
    for cost in measure_all(scenario, writes)?.into_iter().flatten() {
        if (cost.key, cost.kind) == (KeyKind::Account, UnitKind::Write) {
            *units.entry(cost.place).or_default() += cost.half_units / 2;
        }
    }
    units.into_values().max().context("nothing is written to an account's key")
}

/// Measures the charges of writes, with a sample of a scenario's payments on an engine.
fn measure_all(scenario: &Scenario, writes: &[Write]) -> Result<Vec<Vec<Cost>>> {
    let Throttled { runtime, tables, throttle, scenario, data, .. } =
        &Throttled::open(&Scenario { placement: Placement::Apart, ..*scenario })?;
    let (shards, mut measured) = (scenario.shard_count()?, None::<Vec<Vec<Cost>>>);
    // Far apart, so that shards and accounts differ.
    for (second, n) in (0..PAYMENTS).step_by(83_333).enumerate() {
        throttle.set_second(u64::try_from(second)?);
        let payment = scenario.payment(n, *data)?;
        let cost = |&write| -> Result<Vec<Cost>> {
            drop(throttle.take_charges());
            runtime.block_on(tables.read_and_write(&payment, write))?;
            throttle.take_charges().into_iter().map(|charge| Cost::of(charge, &payment, shards)).collect()
        };
        let costs = writes.iter().map(cost).collect::<Result<Vec<_>>>()?;
        let first = measured.get_or_insert_with(|| costs.clone());
        ensure!(*first == costs, "payment {n} costs {costs:#?}, but the first one {first:#?}");
    }
    measured.context("no payments")
}

/// The buckets that a cost is charged to.
#[derive(Debug, Clone)]
enum Charged {
    One(usize),
    ByAccount(Arc<[usize]>),
    ByShard(Arc<[usize]>),
}

impl Charged {
    fn number(&self, account: usize, shard: usize) -> usize {
        match self {
            Self::One(number) => *number,
            Self::ByAccount(numbers) => numbers[account],
            Self::ByShard(numbers) => numbers[shard],
        }
    }
}

/// A model that only counts.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) buckets: Buckets,
    writes: Vec<Vec<(Charged, u64)>>,
    shards: Arc<[u16]>,
    accounts: u32,
}

impl Model {
    /// Creates a model of a scenario's first payments, in which writes cost what was measured.
    pub(crate) fn of(scenario: &Scenario, measured: &[Vec<Cost>], ids: &[PaymentId]) -> Result<Self> {
        let (mut buckets, count) = (Buckets::new(scenario.placement), scenario.shard_count()?);
        let accounts = scenario.accounts.count(PAYMENTS);
        let mut by_account: HashMap<(&str, UnitKind), Arc<[usize]>> = HashMap::new();
        let mut writes = vec![Vec::new(); measured.len()];
        for (write, cost) in measured.iter().enumerate().flat_map(|(n, costs)| costs.iter().map(move |cost| (n, cost)))
        {
            let mut number = |key: String| buckets.number(Name { place: cost.place.clone(), key, kind: cost.kind });
            let charged = match cost.key {
                // A few units of 1,000: it is never empty.
                KeyKind::Payment => continue,
                KeyKind::Account => {
                    let keys = by_account.entry((&cost.place, cost.kind));
                    let all = || (0..accounts).map(|n| number(format!("ACCT#{}", account_name(n)))).collect();
                    Charged::ByAccount(Arc::clone(keys.or_insert_with(all)))
                }
                KeyKind::Shard => Charged::ByShard((0..count.get()).map(|n| number(n.to_string())).collect()),
                KeyKind::Date => Charged::One(number(DAY.to_owned())),
            };
            writes[write].push((charged, cost.half_units));
        }
        let shards = ids.iter().map(|id| id.shard(count).get()).collect();
        Ok(Self { buckets, writes, shards, accounts })
    }
}

impl Backend for Model {
    fn attempt(&mut self, payment: u32, write: usize, second: u64) -> Result<Option<usize>> {
        let account = usize::try_from(payment % self.accounts)?;
        let shard = usize::from(self.shards[usize::try_from(payment)?]);
        let Self { buckets, writes, .. } = self;
        let mut numbers = writes[write].iter().map(|(charged, _)| charged.number(account, shard));
        if let Some(empty) = numbers.find(|&number| buckets.is_empty(number, second)) {
            return Ok(Some(empty));
        }
        for (charged, half_units) in &writes[write] {
            buckets.charge(charged.number(account, shard), *half_units);
        }
        Ok(None)
    }
}

/// Returns the ids of a feed's first payments. With one account the ids would be others, spread as evenly.
pub(crate) fn ids(payments: u32) -> Result<Vec<PaymentId>> {
    (0..payments).map(|n| payment_id(n % Accounts::Many.count(PAYMENTS), n)).collect()
}
