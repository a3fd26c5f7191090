//! The metrics of a healthy day and of the day before it: those of the functions, and AWS's own, as the day shows them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use payments_alarms::{Metric, Sample, Samples};
use payments_local::demo::{self, Minute, Progress, Settings};
use payments_queue::Queue;
use payments_tests::template;
use tokio::sync::OnceCell;

/// A day.
#[derive(Debug)]
pub(super) struct Day {
    /// Its samples, and those of the day before.
    pub(super) samples: Samples,
    /// When it begins: with the feed.
    pub(super) begin: DateTime<Utc>,
    /// When it ends: in the night after it, when everything is archived.
    pub(super) end: DateTime<Utc>,
}

/// The logical ids of what metrics are about.
pub(super) struct Ids {
    functions: BTreeMap<String, String>,
    /// The event source mappings. SAM names them by function and event.
    pub(super) mappings: Vec<String>,
}

impl Ids {
    /// The function of a package.
    pub(super) fn function(&self, package: &str) -> Result<&str> {
        self.functions.get(package).map(String::as_str).with_context(|| format!("no function {package}"))
    }
}

/// Reads the ids from the template.
pub(super) fn ids() -> Result<Ids> {
    let template = template()?;
    let (mut functions, mut mappings) = (BTreeMap::new(), Vec::new());
    for (id, resource) in template["Resources"].as_object().context("no resources")? {
        let Some(package) = resource["Metadata"]["BuildProperties"]["Binary"].as_str() else { continue };
        functions.insert(package.to_owned(), id.clone());
        let events = resource["Properties"]["Events"].as_object().context("no events")?.iter();
        let of_sources = events.filter(|(_, event)| event["Type"] == "DynamoDB" || event["Type"] == "SQS");
        mappings.extend(of_sources.map(|(name, _)| format!("{id}{name}")));
    }
    mappings.sort();
    Ok(Ids { functions, mappings })
}

/// Returns the day, which is simulated once.
pub(super) async fn healthy() -> Result<&'static Day> {
    static DAY: OnceCell<Day> = OnceCell::const_new();
    DAY.get_or_try_init(|| async { Box::pin(simulated()).await }).await
}

async fn simulated() -> Result<Day> {
    let reports = tempfile::tempdir()?;
    let settings = Settings { payments: 100, seed: 1, data_bytes: Some(100) };
    let (mut seen, mut fault) = (Seen::new(ids()?), None);
    let watch = |minute: &Minute<'_>| {
        if let Err(error) = seen.see(minute) {
            fault.get_or_insert(error);
        }
    };
    let summary = demo::run_watched(&settings, reports.path(), &Progress::hidden()?, watch).await?;
    summary.check()?;
    if let Some(fault) = fault {
        return Err(fault);
    }
    ensure!(seen.troubles.is_empty(), "a healthy day has no failures: {:?}", seen.troubles);
    let (begin, end) = (seen.begin.context("no day")?, seen.end.context("no day")?);
    ensure!(end - begin > TimeDelta::hours(24), "the day ends at {end}");
    // The day before was like it.
    let mut samples = seen.samples.later(-TimeDelta::days(1)).before(begin);
    samples.add_all(&seen.samples);
    Ok(Day { samples, begin, end: end + TimeDelta::minutes(1) })
}

/// What was seen of the day.
struct Seen {
    ids: Ids,
    samples: Samples,
    troubles: Vec<String>,
    begin: Option<DateTime<Utc>>,
    end: Option<DateTime<Utc>>,
    /// When each queue was last empty.
    empty_at: BTreeMap<&'static str, DateTime<Utc>>,
}

impl Seen {
    fn new(ids: Ids) -> Self {
        let (samples, empty_at) = (Samples::default(), BTreeMap::new());
        Self { ids, samples, troubles: Vec::new(), begin: None, end: None, empty_at }
    }

    fn see(&mut self, minute: &Minute<'_>) -> Result<()> {
        let at = minute.at;
        self.begin.get_or_insert(at);
        self.end = Some(at);
        self.troubles.extend(minute.tick.troubles.iter().cloned());
        for line in &minute.tick.metrics {
            for mut sample in Sample::of_line(line)? {
                let package = sample.metric.dimensions.get("Function").context("whose metric?")?;
                let id = self.ids.function(package)?.to_owned();
                sample.metric.dimensions.insert("Function".to_owned(), id.clone());
                // A function emits a line in each invocation. Its clock may be past the minute.
                sample.at = at;
                self.samples.add(sample);
                self.add("AWS/Lambda", "Invocations", "FunctionName", &id, at, 1);
                if ["DispatchFunction", "StreamAggregatorFunction"].contains(&id.as_str()) {
                    // Each tick delivers all that is in the stream.
                    self.add("AWS/Lambda", "IteratorAge", "FunctionName", &id, at, 0);
                }
            }
        }
        for mapping in self.ids.mappings.clone() {
            self.add("AWS/Lambda", "PolledEventCount", "EventSourceMappingUUID", &mapping, at, 0);
        }
        let queues = minute.queues;
        for (id, queue) in [
            ("RequestQueue", &queues.requests),
            ("RequestDeadLetters", &queues.request_dead_letters),
            ("ResultQueue", &queues.results),
            ("ResultDeadLetters", &queues.result_dead_letters),
            ("DispatchFailures", &queues.dispatch_failures),
        ] {
            self.see_queue(id, queue, at)?;
        }
        Ok(())
    }

    fn see_queue(&mut self, id: &'static str, queue: &Queue, at: DateTime<Utc>) -> Result<()> {
        let counts = queue.counts(at);
        if counts.visible + counts.in_flight == 0 {
            self.empty_at.insert(id, at);
        }
        // No message is older than the last time that the queue was empty.
        let oldest = self.empty_at.get(id).map_or(TimeDelta::zero(), |empty_at| at - *empty_at).num_seconds();
        self.add("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", id, at, i64::try_from(counts.visible)?);
        self.add("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", id, at, oldest);
        Ok(())
    }

    fn add(&mut self, namespace: &str, name: &str, dimension: &str, of: &str, at: DateTime<Utc>, value: i64) {
        self.samples.add(Sample { metric: Metric::of(namespace, name, dimension, of), at, value });
    }
}
