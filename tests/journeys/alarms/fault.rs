//! A fault in the metrics of a day, and the alarms that it sets off.

use payments_alarms::{Alarm, Metric, Sample, Samples};
use payments_tests::prelude::*;

use super::day::{Day, ids};

/// The samples of a line that a function emits, by its package's name.
pub(super) fn samples_of(line: &str, function: &str) -> Result<Vec<Sample>> {
    let (id, mut samples) = (ids()?.function(function)?.to_owned(), Sample::parse_line(line)?);
    samples.iter_mut().for_each(|sample| drop(sample.metric.dimensions.insert("Function".to_owned(), id.clone())));
    Ok(samples)
}

/// A fault in the metrics of a healthy day, and the alarms that it sets off: the first one is meant to, the others are
/// its companions. None is a fault too small for an alarm.
#[derive(Clone)]
pub(super) struct Fault {
    /// The fault's name, for messages.
    pub(super) what: String,
    /// The alarms that it sets off.
    pub(super) alarms: Vec<&'static str>,
    /// The metrics without any samples.
    pub(super) silent: Vec<Metric>,
    /// More samples.
    pub(super) samples: Vec<Sample>,
}

impl Fault {
    /// The day's samples with the fault.
    pub(super) fn in_day(&self, day: &Day) -> Samples {
        let mut samples = day.samples.clone();
        self.silent.iter().for_each(|metric| samples.remove(metric));
        samples.extend(self.samples.iter().cloned());
        samples
    }

    /// Whether the fault changes what an alarm sees.
    pub(super) fn concerns(&self, alarm: &Alarm) -> bool {
        let changed: BTreeSet<&Metric> = self.silent.iter().chain(self.samples.iter().map(|it| &it.metric)).collect();
        alarm.series().iter().any(|series| changed.contains(&series.metric))
    }
}
