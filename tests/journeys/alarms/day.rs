//! The metrics of a healthy day and of the day before it: those of the functions, and AWS's own, as the day shows them.

use chrono::{DateTime, TimeDelta, Utc};
use payments_alarms::{Metric, Resources, Sample, Samples};
use payments_local::demo::{self, Minute, Progress, Settings};
use payments_machine::payload::DataKind;
use payments_queue::Queue;
use payments_tests::prelude::*;
use payments_tests::template;
use tokio::sync::OnceCell;

/// A day.
#[derive(Debug)]
pub(super) struct Day {
    /// The day's samples, and those of the day before.
    pub(super) samples: Samples,
    /// The start of the day: with the feed.
    pub(super) begin: DateTime<Utc>,
    /// The end of the day: in the night after it, when everything is archived.
    pub(super) end: DateTime<Utc>,
}

/// Reads the logical ids of what metrics are about from the template.
pub(super) fn ids() -> Result<Resources> {
    Resources::parse(&template()?)
}

/// Returns the day, which is simulated once.
pub(super) async fn healthy() -> Result<&'static Day> {
    static DAY: OnceCell<Day> = OnceCell::const_new();
    DAY.get_or_try_init(|| async { Box::pin(simulated()).await }).await
}

async fn simulated() -> Result<Day> {
    let reports = tempfile::tempdir()?;
    let settings = Settings { payments: 100, seed: 1, data_bytes: Some(100), data_kind: DataKind::Structured };
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

/// The observations of the day.
struct Seen {
    ids: Resources,
    samples: Samples,
    troubles: Vec<String>,
    begin: Option<DateTime<Utc>>,
    end: Option<DateTime<Utc>>,
}

impl Seen {
    fn new(ids: Resources) -> Self {
        Self { ids, samples: Samples::default(), troubles: Vec::new(), begin: None, end: None }
    }

    fn see(&mut self, minute: &Minute<'_>) -> Result<()> {
        let at = minute.at;
        self.begin.get_or_insert(at);
        self.end = Some(at);
        self.troubles.extend(minute.tick.troubles.iter().cloned());
        for line in &minute.tick.metrics {
            let samples = self.ids.samples_of(line, at)?;
            let id = samples.first().and_then(|sample| sample.metric.dimensions.get("Function")).cloned();
            self.samples.extend(samples);
            // A function emits a line in each invocation.
            let id = id.context("whose metrics?")?;
            self.add("AWS/Lambda", "Invocations", "FunctionName", &id, at, 1);
            if ["DispatchFunction", "StreamAggregatorFunction"].contains(&id.as_str()) {
                // Each tick delivers all that is in the stream.
                self.add("AWS/Lambda", "IteratorAge", "FunctionName", &id, at, 0);
            }
        }
        for mapping in self.ids.mappings().to_vec() {
            self.add("AWS/Lambda", "PolledEventCount", "EventSourceMappingUUID", &mapping, at, 0);
        }
        for (id, queue) in minute.queues.by_resource() {
            self.see_queue(id, queue, at)?;
        }
        Ok(())
    }

    fn see_queue(&mut self, id: &'static str, queue: &Queue, at: DateTime<Utc>) -> Result<()> {
        let counts = queue.counts(at);
        let oldest = queue.oldest_sent_at().map_or(TimeDelta::zero(), |sent_at| at - sent_at).num_seconds();
        self.add("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", id, at, i64::try_from(counts.visible)?);
        self.add("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", id, at, oldest);
        Ok(())
    }

    fn add(&mut self, namespace: &str, name: &str, dimension: &str, of: &str, at: DateTime<Utc>, value: i64) {
        self.samples.add(Sample { metric: Metric::new(namespace, name, dimension, of), at, value });
    }
}
