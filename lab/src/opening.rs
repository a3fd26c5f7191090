//! The world of a month: everything that is put together before it begins.

use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use payments_machine::transaction_service::{TransactionService, TransactionServiceSettings};
use payments_machine::{EngineChoice, Queues, Stack};
use payments_model::BusinessZone;

use crate::facts::changes::{Changes, EngineStream};
use crate::facts::zone::Zone;
use crate::plans::broken::Broken;
use crate::plans::faults::Faults;
use crate::plans::switches::Switches;
use crate::plans::weakness::Weakness;
use crate::random::Seed;
use crate::settings::Settings;
use crate::time::Time;
use crate::workloads::redates;
use crate::workloads::webhooks;
use crate::world::alarms::Alarms;
use crate::world::bank::{Bank, State};
use crate::world::files::Files;
use crate::world::lag::Lag;
use crate::world::lambda::Lambda;
use crate::world::metrics::Metrics;
use crate::world::network::{Network, Shared};
use crate::world::partitions::Partitions;
use crate::world::receivers::Receivers;
use crate::world::requests::RequestQueue;
use crate::world::stream::Stream;
use crate::world::template;
use crate::world::trace::Trace;

/// Makes the world of a month.
pub(crate) async fn build(
    settings: &Settings,
    seed: Seed,
    begin: DateTime<Utc>,
    zone: BusinessZone,
) -> Result<(Arc<Bank>, Trace, Arc<dyn ObjectStore>)> {
    let (time, faults, trace) = (Time::from(begin), Faults::new(seed, &settings.without), Trace::default());
    let (stack, receivers) = start(settings, zone, seed, time, &faults).await?;
    let partitions = Partitions::new(seed, &faults, begin, (settings.days, settings.payments));
    let stream = Stream::new(seed, &faults, &partitions, begin)?;
    let engine = stack.direct().context("a month needs the embedded engine")?.clone();
    let changes = Changes::default();
    let engine_stream = {
        let stream = stream.clone();
        EngineStream::of(engine.clone(), &changes, move |record| stream.deal(record, time.now()))?
    };
    let requests = RequestQueue::over(stack.queues.requests.clone());
    let (broken, metrics) = (Broken::default(), Metrics::new(stack.metrics.clone(), template::resources()?));
    let lag = Lag::new(seed, &faults, &partitions, (begin, settings.days));
    let (alarms, switches) = (Alarms::new(template::alarms()?, begin), Switches::default());
    let network = Network::new(Shared {
        time,
        faults: faults.clone(),
        trace: trace.clone(),
        changes: changes.clone(),
        engine_stream: engine_stream.clone(),
        lag,
        partitions,
        engine: engine.clone(),
        used: Mutex::default(),
        calls: Mutex::default(),
        random: Mutex::new(seed.source("weakness")),
        decided: Mutex::default(),
        complaints: Mutex::default(),
        requests: requests.clone(),
        switches: switches.clone(),
        weakness: settings.weakness,
        broken: broken.clone(),
        metrics: metrics.clone(),
    });
    let files: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let faulty = faulty(&files, &faults, &switches, &broken, settings.weakness);
    let (redates, queues) = (redates::are_in(settings, seed), stack.queues.clone());
    let stacks = (&stack, redates.then(|| redates::closing(&stack.environment)), receivers.clone().unwrap_or_default());
    let (clocks, seen) = ((seed, time, &faults), (&broken, &metrics));
    let lambda = Lambda::new(stacks, &network, &faulty, clocks, seen)?;
    let service = service_of(settings, &faults, &queues);
    let bank = Bank {
        seed,
        time,
        begin,
        zone,
        tz: Zone::read(&zone.to_string())?,
        faults,
        lambda,
        network,
        engine,
        changes,
        engine_stream,
        stream,
        queues,
        requests,
        switches,
        weakness: settings.weakness,
        broken,
        metrics,
        alarms,
        amends: settings.outages.is_empty(),
        redates,
        shards: stack.environment.shards.to_string().parse()?,
        receivers,
        state: Mutex::new(State::of(service)),
    };
    Ok((Arc::new(bank), trace, files))
}

/// Starts the system, with a receiver of webhooks if it sends any.
async fn start(
    settings: &Settings,
    zone: BusinessZone,
    seed: Seed,
    time: Time,
    faults: &Faults,
) -> Result<(Stack, Option<Receivers>)> {
    let stack = Stack::on(EngineChoice::Unserved)
        .clock(&time.clock(TimeDelta::zero()))
        .environment(|environment| settings.tell(environment, zone))
        .start()
        .await?;
    // Where an outage is planned, no endpoint is there.
    let receivers = match settings.outages.is_empty() {
        true => Some(webhooks::create(&stack, seed, time, faults).await?),
        false => None,
    };
    Ok((stack, receivers))
}

/// Makes the report store as the functions see it: over calls that can fail.
fn faulty(
    files: &Arc<dyn ObjectStore>,
    faults: &Faults,
    switches: &Switches,
    broken: &Broken,
    weakness: Option<Weakness>,
) -> Arc<dyn ObjectStore> {
    let (inner, faults) = (Arc::clone(files), faults.clone());
    Arc::new(Files { inner, faults, switches: switches.clone(), broken: broken.clone(), weakness })
}

/// Makes the transaction service, which is slow if anything may fail.
fn service_of(settings: &Settings, faults: &Faults, queues: &Queues) -> TransactionService {
    let service = TransactionServiceSettings {
        longest_delay: TimeDelta::minutes(if faults.are_enabled() { 100 } else { 2 }),
        ..TransactionServiceSettings::seeded(settings.seed)
    };
    TransactionService::new(service, queues.requests.clone(), queues.results.clone())
}
