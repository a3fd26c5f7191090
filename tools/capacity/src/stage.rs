//! Two stages for a play: the engine behind the meter, and virtual time alone, on which a million
//! payments take a second. What a write costs there was measured on the engine.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use payments_boot::dynamodb_at;
use payments_local::Engine;
use payments_model::{PaymentId, ShardCount};
use tokio::runtime::Runtime;

use crate::buckets::{Buckets, Kind, Name, Warmth};
use crate::design::{Bench, Design};
use crate::feed::Stage;
use crate::life::{Accounts, Act, DAY, Look, Payment, account_count, account_name, account_of, payment_id};
use crate::throttle::{Charge, Meter};

/// The payments of the feed: a million within half an hour.
pub(crate) const PAYMENTS: u32 = 1_000_000;

/// What is played: a design, its shards, and whose payments they are.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) design: Design,
    pub(crate) shards: &'static str,
    pub(crate) accounts: Accounts,
    pub(crate) warmth: Warmth,
}

/// How much data makes a payment of a design 8 KB, on whatever shard: the number 0 takes a byte less than
/// others do.
pub(crate) fn largest_data(design: Design) -> Result<usize> {
    let of_ten = |n, data| Payment::new(0, n, "10".parse()?, data);
    let mut payments = (0..100).map(|n| of_ten(n, 10_000)).collect::<Result<Vec<_>>>()?.into_iter();
    let large = payments.find(|payment| payment.details.shard.get() > 0).context("all are of shard 0")?;
    let excess = match design {
        Design::Fixture(layout) if layout.whole => layout.excess(&large),
        _ => payments_store::details_excess(&large.details)?.unwrap_or(0),
    };
    Ok(10_000 - excess)
}

impl Scene {
    fn shard_count(&self) -> Result<ShardCount> {
        Ok(self.shards.parse()?)
    }

    /// One of the payments.
    fn payment(&self, n: u32, data: usize) -> Result<Payment> {
        Payment::new(account_of(self.accounts, n, PAYMENTS), n, self.shard_count()?, data)
    }
}

/// An engine behind a meter.
pub(crate) struct Real {
    runtime: Runtime,
    engine: Engine,
    bench: Bench,
    meter: Meter,
    scene: Scene,
    data: usize,
    /// The buckets that refused something, as they are numbered for the play.
    pub(crate) refusing: Vec<Name>,
}

impl Real {
    pub(crate) fn open(scene: &Scene) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let meter = Meter::new(scene.design.keys(), scene.warmth.clone());
        let (engine, bench) = runtime.block_on(async {
            let engine = Engine::start(0, None).await?;
            let production = dynamodb_at(&engine.url(), "local");
            let config = production.config().to_builder().http_client(meter.interceptor());
            // What is refused waits for the play's next second instead.
            let client = Client::from_conf(config.retry_config(RetryConfig::disabled()).build());
            anyhow::Ok((engine, scene.design.open(client).await?))
        })?;
        let data = largest_data(scene.design)?;
        Ok(Self { runtime, engine, bench, meter, scene: scene.clone(), data, refusing: Vec::new() })
    }

    pub(crate) fn close(self) -> Result<()> {
        let Self { runtime, engine, bench, meter, .. } = self;
        drop((bench, meter));
        runtime.block_on(engine.stop())
    }

    /// What each write of one payment's life is charged to, with the reads before it.
    fn charges(&self, payment: &Payment) -> Result<Vec<Vec<Charge>>> {
        let each = |&(act, _): &(Act, u64)| {
            drop(self.meter.take_charges());
            self.runtime.block_on(write(&self.bench, payment, act))?;
            Ok(self.meter.take_charges())
        };
        self.scene.design.acts().iter().map(each).collect()
    }
}

/// One write, and what is read for it.
async fn write(bench: &Bench, payment: &Payment, act: Act) -> Result<()> {
    let looks: &[Look] = match act {
        Act::Pending => &[Look::Swept],
        Act::Settled => &[Look::Sent],
        _ => &[],
    };
    for look in looks {
        bench.read(std::slice::from_ref(payment), *look).await?;
    }
    bench.write(payment, act).await
}

impl Stage for Real {
    fn attempt(&mut self, payment: u32, write_number: usize, second: u64) -> Result<Option<usize>> {
        self.meter.set_second(second);
        let payment = self.scene.payment(payment, self.data)?;
        let (act, _) = self.scene.design.acts()[write_number];
        let tried = self.runtime.block_on(write(&self.bench, &payment, act));
        let Some(name) = self.meter.take_refusal() else { return tried.map(|()| None) };
        // What was refused has to reach the caller as what it is.
        let error = tried.err().context("a refused call succeeded")?;
        let shown = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ").to_lowercase();
        ensure!(shown.contains("throttl"), "refused, but: {shown}");
        let known = self.refusing.iter().position(|known| *known == name);
        Ok(Some(known.unwrap_or_else(|| {
            self.refusing.push(name);
            self.refusing.len() - 1
        })))
    }
}

/// The bank as far as a partition key tells payments apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Each payment has one of its own, which nothing else writes to.
    Own,
    Account,
    Shard,
    Date,
}

/// What one write of any payment is charged to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cost {
    place: String,
    role: Role,
    kind: Kind,
    half_units: u64,
}

fn cost_of(charge: Charge, payment: &Payment, shards: ShardCount) -> Result<Cost> {
    let (details, key) = (&payment.details, charge.key.as_str());
    let role = if key.contains(&details.payment_id.to_string()) {
        Role::Own
    } else if key == format!("ACCT#{}", details.instruction.account) {
        Role::Account
    } else if key == DAY {
        Role::Date
    } else {
        // The shard that its id has, since the play goes by that.
        ensure!(key == details.payment_id.shard(shards).get().to_string(), "whose key is {charge:?}?");
        Role::Shard
    };
    Ok(Cost { place: charge.place, role, kind: charge.kind, half_units: charge.half_units })
}

/// The buckets that a cost can be charged to.
#[derive(Debug, Clone)]
enum Charged {
    To(usize),
    ByAccount(Arc<[usize]>),
    ByShard(Arc<[usize]>),
}

/// Virtual time alone.
#[derive(Debug, Clone)]
pub(crate) struct Virtual {
    pub(crate) buckets: Buckets,
    writes: Vec<Vec<(Charged, u64)>>,
    shards: Arc<[u16]>,
    accounts: Accounts,
}

/// What the writes of a scene are charged to, measured from a sample of its payments on an engine.
pub(crate) fn measured(scene: &Scene) -> Result<Vec<Vec<Cost>>> {
    let real = Real::open(&Scene { warmth: Warmth::Ample, ..scene.clone() })?;
    let (count, mut measured) = (scene.shard_count()?, None::<Vec<Vec<Cost>>>);
    // Far apart, so that they are of different shards and accounts.
    for (second, n) in (0..PAYMENTS).step_by(83_333).enumerate() {
        real.meter.set_second(u64::try_from(second)?);
        let payment = scene.payment(n, real.data)?;
        let charges = real.charges(&payment)?.into_iter();
        let costs = charges.map(|write| write.into_iter().map(|charge| cost_of(charge, &payment, count)).collect());
        let costs = costs.collect::<Result<Vec<Vec<Cost>>>>()?;
        let first = measured.get_or_insert_with(|| costs.clone());
        ensure!(*first == costs, "payment {n} costs {costs:#?}, and the first one {first:#?}");
    }
    real.close()?;
    measured.context("no payments")
}

impl Virtual {
    /// A scene of these payments in which writes cost what was measured.
    pub(crate) fn of(scene: &Scene, measured: &[Vec<Cost>], ids: &[PaymentId]) -> Result<Self> {
        let (mut buckets, count) = (Buckets::new(scene.warmth.clone()), scene.shard_count()?);
        let accounts = if scene.accounts == Accounts::One { 1 } else { account_count(PAYMENTS) };
        let mut by_account: HashMap<(&str, Kind), Arc<[usize]>> = HashMap::new();
        let mut writes = vec![Vec::new(); measured.len()];
        for (write, cost) in measured.iter().enumerate().flat_map(|(n, costs)| costs.iter().map(move |cost| (n, cost)))
        {
            let mut number =
                |key: Option<String>| buckets.number(&Name { place: cost.place.clone(), key, kind: cost.kind });
            let whole = number(None);
            let key = match cost.role {
                // 8 units of 1,000: it never runs out.
                Role::Own => None,
                Role::Account => {
                    let keys = by_account.entry((&cost.place, cost.kind));
                    let all = || (0..accounts).map(|n| number(Some(format!("ACCT#{}", account_name(n))))).collect();
                    Some(Charged::ByAccount(Arc::clone(keys.or_insert_with(all))))
                }
                Role::Shard => Some(Charged::ByShard((0..count.get()).map(|n| number(Some(n.to_string()))).collect())),
                Role::Date => Some(Charged::To(number(Some(DAY.to_owned())))),
            };
            let whole = buckets.is_limited(whole).then_some(Charged::To(whole));
            writes[write].extend(key.into_iter().chain(whole).map(|charged| (charged, cost.half_units)));
        }
        let shards = ids.iter().map(|id| id.shard(count).get()).collect();
        Ok(Self { buckets, writes, shards, accounts: scene.accounts })
    }
}

impl Stage for Virtual {
    fn attempt(&mut self, payment: u32, write: usize, second: u64) -> Result<Option<usize>> {
        let account = usize::try_from(account_of(self.accounts, payment, PAYMENTS))?;
        let shard = usize::from(self.shards[usize::try_from(payment)?]);
        let costs = &self.writes[write];
        for (n, (charged, half_units)) in costs.iter().enumerate() {
            let number = charged.number(account, shard);
            if !self.buckets.take(number, second, *half_units) {
                for (charged, half_units) in &costs[..n] {
                    self.buckets.give_back(charged.number(account, shard), *half_units);
                }
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

impl Charged {
    fn number(&self, account: usize, shard: usize) -> usize {
        match self {
            Self::To(number) => *number,
            Self::ByAccount(numbers) => numbers[account],
            Self::ByShard(numbers) => numbers[shard],
        }
    }
}

/// The ids of a feed's first payments. Those of one account would be others, spread as evenly.
pub(crate) fn ids(payments: u32) -> Result<Vec<PaymentId>> {
    (0..payments).map(|n| payment_id(account_of(Accounts::Many, n, PAYMENTS), n)).collect()
}
