//! The world of a month: everything that is put together before it begins.

use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use payments_boot::Clock;
use payments_machine::layers::lag::Changes;
use payments_machine::layers::random::Seed;
use payments_machine::layers::record::Record;
use payments_machine::layers::sqs::Sqs;
use payments_machine::layers::throttle::placement::SPACE;
use payments_machine::layers::throttle::{Heat, LONGEST_HEAT, Limits, Place, Throttle};
use payments_machine::layers::trace::Trace;
use payments_machine::layers::weaken::{Weaken, Weakness};
use payments_machine::transaction_service::{TransactionService, TransactionServiceSettings};
use payments_machine::{EngineChoice, Queues, Stack};
use payments_model::BusinessZone;

use crate::facts::heads::HOT;
use crate::facts::zone::Zone;
use crate::laws::calls::Complaints;
use crate::plans::broken::Broken;
use crate::plans::faults::{FaultKind, Faults};
use crate::plans::limits::DayLimits;
use crate::plans::switches::Switches;
use crate::settings::Settings;
use crate::time::Time;
use crate::workloads::{redates, undos, webhooks};
use crate::world::alarms::Alarms;
use crate::world::bank::{Bank, State};
use crate::world::files::Files;
use crate::world::lag::Spells;
use crate::world::lambda::Lambda;
use crate::world::metrics::Metrics;
use crate::world::network::{Network, Shared};
use crate::world::receivers::Receivers;
use crate::world::stream::Stream;
use crate::world::template;

/// The partitions of a new table or index, as on demand.
const AT_FIRST: u32 = 4;

/// The number of times a day at which some partition is hot.
const HEATS_A_DAY: i64 = 12;

const PLACES: [&str; 9] = [
    "payments",
    "payments/due",
    "payments/unreported",
    "payments/transaction",
    "payments/moved",
    "payment-history",
    "payment-history/due",
    "payment-history/transaction",
    "payment-history/moved",
];

/// Makes the world of a month.
pub(crate) async fn build(
    settings: &Settings,
    seed: Seed,
    begin: DateTime<Utc>,
    zone: BusinessZone,
) -> Result<(Arc<Bank>, Trace, Arc<dyn ObjectStore>)> {
    let (time, faults) = (Time::from(begin), Faults::new(seed, &settings.without));
    let (stack, receivers) = start(settings, zone, seed, time, &faults).await?;
    let (clock, trace) = (time.clock(TimeDelta::zero()), Trace::default());
    let throttle = throttle(settings, seed, begin, &clock, &faults);
    let stream = Stream::new(seed, &faults, &throttle)?;
    let engine = stack.direct().context("a month needs the embedded engine")?.clone();
    let (dealt, rejects) = (stream.clone(), faults.clone());
    let changes = Changes::start(&engine, HOT, &clock, move |record| dealt.deal(record, time.now()))?;
    let is_rejected = move || rejects.draw(FaultKind::SendRejected, 10);
    let requests = Sqs::over(&stack.queues.requests, &clock, &changes, is_rejected);
    let (broken, metrics) = (Broken::default(), Metrics::new(stack.metrics.clone(), template::resources()?));
    let spells = Spells::new(seed, &faults, &throttle, (begin, settings.days));
    let (alarms, switches) = (Alarms::new(template::alarms()?, begin), Switches::default());
    let network = Network::new(Shared {
        time,
        faults: faults.clone(),
        trace: trace.clone(),
        changes: changes.clone(),
        spells,
        throttle,
        engine: engine.clone(),
        record: Record::default(),
        decided: Mutex::default(),
        cleared: Mutex::default(),
        complaints: Complaints::new(&clock),
        weaken: Weaken::new(settings.weakness, seed.source("weakness"), &clock, &engine),
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
    let (limits, service) = (limits_of(settings, seed), service_of(settings, &faults, &queues));
    let lambda = Lambda::new(stacks, &network, &faulty, clocks, (seen, limits.clone()))?;
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
        undos: undos::are_in(settings, seed),
        clears_after: settings.seal_ages().map(|(_, clears_after)| clears_after),
        limits,
        shards: stack.environment.shards.to_string().parse()?,
        receivers,
        state: Mutex::new(State::new(service)),
    };
    Ok((Arc::new(bank), trace, files))
}

/// Makes the partitions, and draws the heat of the days after `begin`.
///
/// A partition of this small bank accepts a few write units a second, so that the feed's peaks reach the limit as those of a
/// million payments reach the real one. Beside the bank's own load, other heat stays on a part of a table for minutes.
fn throttle(settings: &Settings, seed: Seed, begin: DateTime<Utc>, clock: &Clock, faults: &Faults) -> Throttle {
    let mut random = seed.source("heat");
    let second = begin.timestamp();
    let days = i64::from(settings.days);
    let mut heats = PLACES.map(|_| Vec::new());
    for _ in 0..if faults.has(FaultKind::Throttled) { days * HEATS_A_DAY } else { 0 } {
        let from = second + random.i64(0..days.max(1) * 86_400);
        let to = from + random.i64(10..LONGEST_HEAT.num_seconds());
        let place = random.usize(0..PLACES.len());
        heats[place].push(Heat { from, to, position: random.u32(0..SPACE) });
    }
    let writes = 10 + u64::try_from(settings.payments).unwrap_or(0) / 10;
    let limits = Limits { writes, reads: None, is_exact: false };
    let places = PLACES.into_iter().zip(heats).map(|(name, heats)| Place::new(name, AT_FIRST, second, heats));
    Throttle::new(seed.0, limits, clock, places)
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
    // A month with a planned outage has no endpoint.
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

/// The limits of due dates, in a month that has some.
fn limits_of(settings: &Settings, seed: Seed) -> Option<DayLimits> {
    let may_limit = settings.outages.is_empty() && !settings.without.contains(&FaultKind::DayLimited);
    if may_limit { DayLimits::draw(settings.days, settings.payments, seed) } else { None }
}

/// Makes the transaction service, which is slow if anything may fail.
fn service_of(settings: &Settings, faults: &Faults, queues: &Queues) -> TransactionService {
    let service = TransactionServiceSettings {
        longest_delay: TimeDelta::minutes(if faults.are_enabled() { 100 } else { 2 }),
        ..TransactionServiceSettings::seeded(settings.seed)
    };
    TransactionService::new(service, queues.requests.clone(), queues.results.clone())
}

#[cfg(test)]
mod tests {
    use payments_machine::client::Request;
    use serde_json::{Value, json};
    use tokio::runtime::Builder;

    use super::*;
    use crate::time::pause;
    use crate::workloads::clients::ask;

    /// Runs a test in a healthy world.
    fn in_a_healthy_world(test: impl AsyncFnOnce(Arc<Bank>) -> Result<()>) -> Result<()> {
        let (begin, settings) = ("2026-03-12T00:00:00Z".parse()?, Settings::new(1, 1, 1).healthy());
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
        runtime.block_on(async {
            let (bank, ..) = build(&settings, Seed(1), begin, "Europe/London".parse()?).await?;
            test(bank).await
        })
    }

    #[test]
    fn an_invocation_has_as_long_as_the_template_says() -> Result<()> {
        in_a_healthy_world(async |bank| {
            for (function, seconds) in [("publish", 55), ("dispatch", 60), ("daily-due-sweeper", 290), ("recount", 900)]
            {
                let taking = |seconds| {
                    async move |_| {
                        pause(TimeDelta::seconds(seconds)).await;
                        Ok(Value::Null)
                    }
                };
                let within = bank.lambda.invoke(function, taking(seconds - 1)).await;
                let beyond = bank.lambda.invoke(function, taking(seconds + 1)).await;
                assert_eq!((within, beyond), (Ok(Ok(Value::Null)), Err(format!("{function} was killed"))));
            }
            Ok(())
        })
    }

    #[test]
    fn an_answer_of_500_without_a_planned_fault_is_a_complaint() -> Result<()> {
        in_a_healthy_world(async |bank| {
            let list = Request::get("/accounts/acc-0/payments");
            assert_eq!(ask(&bank, &list).await.map(|reply| reply.status), Some(200));
            assert_eq!(bank.state().complaints, [""; 0]);
            bank.engine.call("DeleteTable", &json!({ "TableName": "payments" }))?;
            assert_eq!(ask(&bank, &list).await.map(|reply| reply.status), Some(500));
            let complaints = bank.state().complaints.clone();
            assert!(complaints.iter().all(|told| told.contains("query-account answered 500")), "{complaints:?}");
            assert_eq!(complaints.len(), 1);
            bank.switches.table_lost.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(ask(&bank, &list).await.map(|reply| reply.status), Some(500));
            assert_eq!(bank.state().complaints.len(), 1, "a lost table explains it");
            Ok(())
        })
    }
}
