//! Faults of `publish` that last: its alarms see, minute by minute, what real runs emit while a part of it fails.

use chrono::TimeDelta;
use payments_alarms::{Metric, Sample};
use payments_machine::Layers;
use payments_machine::layers::{client_over, fault};
use payments_model::EventFilter;
use payments_model::webhook::EndpointUrl;
use payments_store::{EndpointChoice, LogPosition, Store};
use payments_tests::events::triggers::world_of;
use payments_tests::prelude::*;
use payments_tests::{Bus, Receivers};

use super::day::Day;
use super::fault::{Fault, samples_of};

/// The hour of the day in which a fault begins.
const BEGINS: i64 = 11;

/// `publish`, whose journal, endpoint and bus are at the end of a log.
struct Publisher {
    world: World,
    store: Store,
    begin: LogPosition,
    end: LogPosition,
    bus: Arc<Bus>,
}

impl Publisher {
    async fn open() -> Result<Self> {
        let world = world_of(&["a-day", "counted"]).await?;
        // The time at which the log was written.
        world.set_clock("2026-11-20T09:00:00Z")?;
        let store = world.store().await;
        let Some(head) = store.log_head().await? else { anyhow::bail!("no log") };
        let (begin, end) = (head.start_of_epoch(), head.end());
        for consumer in ["journal", Bus::CONSUMER] {
            ensure!(store.move_log_consumer(consumer, None, end).await?);
        }
        create_endpoint(&world, "shop", end).await?;
        Ok(Self { world, store, begin, end, bus: Arc::default() })
    }

    /// A place that the log has not reached.
    fn beyond(&self) -> LogPosition {
        LogPosition { number: self.end.number + 3, ..self.end }
    }

    /// Returns the metrics of a run whose calls of DynamoDB have a fate, and whether the run fails.
    async fn run(&self, fate: Fate) -> Result<(Vec<String>, bool)> {
        let layers = Layers::over(self.world.recorder.clone()).with(fault::Fault::new(move |_| fate));
        let client = client_over(&self.world.client().await, layers);
        let webhooks = Receivers::default().webhooks()?;
        let dependencies = Dependencies { webhooks, ..self.world.dependencies(client) };
        let publish = self.world.functions_in(&dependencies)?.publish.with_bus(Some(Arc::clone(&self.bus) as _));
        drop(self.world.outside.metrics.take());
        let done = invoke(|event| Box::pin(publish.handle(event)), json!({ "action": "publish" })).await;
        Ok((self.world.outside.metrics.take(), done.is_err()))
    }
}

/// Creates an endpoint whose receiver is this machine's.
pub(super) async fn create_endpoint(world: &World, id: &str, from: LogPosition) -> Result<()> {
    let url = EndpointUrl::loopback("http://127.0.0.1:7001/hook")?;
    let chosen = EndpointChoice { url, description: String::new(), filter: EventFilter::default() };
    let (store, now) = (world.store().await, world.now().as_chrono());
    let before = store.endpoints_created().await?;
    store.create_webhook_endpoint(&id.parse()?, &chosen, from, false, now, before).await?;
    Ok(())
}

/// All of them.
pub(super) async fn faults(day: &Day) -> Result<Vec<Fault>> {
    let mut faults = Vec::new();
    let refused = Fate::Refuse(400, "AccessDeniedException");
    for (what, alarms, minutes, fate, fails) in [
        ("a run without a fault", &[][..], 90, Fate::Pass, false),
        ("a journal beyond the log", &["JournalBehind"], 25, Fate::Pass, true),
        ("an endpoint beyond the log", &["WebhooksBehind"], 70, Fate::Pass, true),
        ("a bus beyond the log", &["BusBehind"], 25, Fate::Pass, true),
        ("a missing bus", &["BusBehind"], 25, Fate::Pass, false),
        ("a throttled bus", &["BusBehind"], 25, Fate::Pass, false),
        ("events that a bus never accepts", &["BusMissed"], 1, Fate::Pass, false),
        ("no access to DynamoDB", &["JournalBehind", "BusBehind", "WebhooksBehind"], 70, refused, true),
    ] {
        let publisher = Box::pin(Publisher::open()).await?;
        let (healthy, _) = publisher.run(Fate::Pass).await?;
        let (store, end) = (&publisher.store, Some(publisher.end));
        match what {
            "a journal beyond the log" => {
                ensure!(store.move_log_consumer("journal", end, publisher.beyond()).await?);
            }
            "an endpoint beyond the log" => create_endpoint(&publisher.world, "other", publisher.beyond()).await?,
            "a bus beyond the log" => {
                ensure!(store.move_log_consumer(Bus::CONSUMER, end, publisher.beyond()).await?);
            }
            _ => {
                ensure!(store.move_log_consumer(Bus::CONSUMER, end, publisher.begin).await?);
            }
        }
        match what {
            "a missing bus" => publisher.bus.set_missing(true),
            "a throttled bus" => publisher.bus.reject(|_, _| true),
            "events that a bus never accepts" => publisher.bus.reject_as("MalformedDetail", |_, _| true),
            _ => {}
        }
        let (faulty, failed) = publisher.run(fate).await?;
        ensure!(failed == fails, "{what}: a run fails: {failed}");
        faults.push(lasting(day, what, alarms, &healthy, &faulty, minutes)?);
    }
    Ok(faults)
}

/// A fault that lasts some minutes. In all other minutes, and on the day before, the runs are healthy.
fn lasting(
    day: &Day,
    what: &str,
    alarms: &[&'static str],
    healthy: &[String],
    faulty: &[String],
    minutes: i64,
) -> Result<Fault> {
    let all = |lines: &[String]| -> Result<Vec<Sample>> {
        Ok(lines.iter().map(|line| samples_of(line, "publish")).collect::<Result<Vec<_>>>()?.concat())
    };
    let (healthy, faulty) = (all(healthy)?, all(faulty)?);
    let metrics: BTreeSet<Metric> = healthy.iter().chain(&faulty).map(|sample| sample.metric.clone()).collect();
    let (mut samples, mut at) = (Vec::new(), day.begin - TimeDelta::days(1));
    let begin = day.begin + TimeDelta::hours(BEGINS);
    let end = begin + TimeDelta::minutes(minutes);
    while at < day.end {
        let of_minute = if (begin..end).contains(&at) { &faulty } else { &healthy };
        samples.extend(of_minute.iter().map(|sample| Sample { at, ..sample.clone() }));
        at += TimeDelta::minutes(1);
    }
    Ok(Fault { what: what.to_owned(), alarms: alarms.to_vec(), silent: metrics.into_iter().collect(), samples })
}
