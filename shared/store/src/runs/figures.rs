//! The figures of a day: samples of its counts, each five minutes one, and its failures by code.
//!
//! The sweep adds the samples, and the report adds the failures. Each writes attributes of its own, so neither undoes a
//! write of the other. Nothing is written per payment. A restore of the long-term table loses the figures after its
//! instant, and nothing brings them back.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use chrono::{NaiveTime, TimeDelta};
use payments_model::{BusinessDate, DayCounts, FailureCode, Status, UtcSecond};

use crate::conditional::conditional;
use crate::counters::date_counters::abbreviated;
use crate::error::StoreError;
use crate::item::{Fault, Item, item_key, key_of, number, text_of};
use crate::key::runs_partition;
use crate::store::Store;

/// The end of the partition key of the figures of all days.
pub(crate) const FIGURES: &str = "FIGURES";

/// The time from one sample to the next. With 25 hours, a day has at most 300 samples of 60 bytes: 18 KB.
pub const SAMPLE_EVERY: TimeDelta = TimeDelta::minutes(5);

/// The most failure codes of a day that are told apart. The others count as [`OTHER`].
pub const MAX_CODES: usize = 50;

/// The name under which the failures of further codes are counted.
pub const OTHER: &str = "other";

/// The field of a sample with the seconds past the beginning of its five minutes.
const PAST: &str = "past";

/// The attribute of the failures by code.
const FAILURES: &str = "failures";

/// The attribute of the last run of the report whose failures were added.
const REPORTED: &str = "reportedRun";

/// The figures of a day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DayFigures {
    /// The payments by status, by the instant at which a sweep counted them: the last one of each five minutes. Without
    /// a sweep, five minutes have no sample. Sums are not in a sample.
    pub samples: BTreeMap<UtcSecond, DayCounts>,
    /// The failures that were reported, by code. Some may be under [`OTHER`].
    pub failures: BTreeMap<String, u64>,
    /// The number of the last run of the report whose failures were added.
    pub reported_run: Option<u64>,
}

impl DayFigures {
    /// Adds failures. If the day has [`MAX_CODES`] codes, the failures of further codes count as [`OTHER`].
    fn add(&mut self, failures: &BTreeMap<FailureCode, u64>) {
        for (code, count) in failures {
            let codes = self.failures.len() - usize::from(self.failures.contains_key(OTHER));
            let is_known = self.failures.contains_key(code.as_str());
            let name = if is_known || codes < MAX_CODES { code.as_str() } else { OTHER };
            let sum = self.failures.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    fn parse(item: &Item) -> Result<Self, Fault> {
        let date: BusinessDate = text_of(item, "sk").parse()?;
        let mut figures = Self::default();
        for (name, value) in item {
            if let Some(slot) = parse_slot(date, name) {
                let (at, counts) = parse_sample(slot, value)?;
                figures.samples.insert(at, counts);
            } else if name == FAILURES {
                let codes = value.as_m().map_err(|_| "the failures are not a map")?;
                let codes = codes.iter().map(|(code, count)| Ok((code.clone(), parse_number(count)?)));
                figures.failures = codes.collect::<Result<_, Fault>>()?;
            } else if name == REPORTED {
                figures.reported_run = Some(parse_number(value)?);
            }
        }
        Ok(figures)
    }
}

/// The name of the five minutes in which an instant is: `m<minutes>`, since the date began in UTC. Also returns the
/// seconds past their beginning.
fn slot_of(date: BusinessDate, at: UtcSecond) -> (String, i64) {
    let since = at.as_chrono().timestamp() - begin_of(date).as_chrono().timestamp();
    let past = since.rem_euclid(SAMPLE_EVERY.num_seconds());
    (format!("m{}", (since - past) / 60), past)
}

/// Parses the name of five minutes. Returns their beginning.
fn parse_slot(date: BusinessDate, name: &str) -> Option<UtcSecond> {
    let minutes = name.strip_prefix('m')?.parse::<i16>().ok()?;
    Some(begin_of(date).saturating_add(TimeDelta::minutes(minutes.into())))
}

/// Midnight in UTC.
fn begin_of(date: BusinessDate) -> UtcSecond {
    let midnight = date.as_chrono().and_time(NaiveTime::MIN).and_utc();
    UtcSecond::new(midnight).unwrap_or(UtcSecond::MIN)
}

/// The counts that are not zero, and the seconds past the beginning of the five minutes. Sums are left out.
fn sample(counts: &DayCounts, past: i64) -> AttributeValue {
    let counts = Status::ALL.map(|status| (abbreviated(status), counts.count(status)));
    let counts = counts.into_iter().filter(|(_, count)| *count != 0);
    AttributeValue::M(counts.chain([(PAST, past)]).map(|(name, it)| (name.to_owned(), number(it))).collect())
}

fn parse_sample(slot: UtcSecond, value: &AttributeValue) -> Result<(UtcSecond, DayCounts), Fault> {
    let numbers = value.as_m().map_err(|_| "a sample is not a map")?;
    let mut counts = DayCounts::default();
    for status in Status::ALL {
        if let Some(count) = numbers.get(abbreviated(status)) {
            counts.shift(status, parse_number(count)?);
        }
    }
    let past: u16 = numbers.get(PAST).map(parse_number).transpose()?.unwrap_or(0);
    Ok((slot.saturating_add(TimeDelta::seconds(past.into())), counts))
}

fn parse_number<N: std::str::FromStr>(value: &AttributeValue) -> Result<N, Fault> {
    let number = value.as_n().ok().and_then(|number| number.parse().ok());
    number.ok_or_else(|| "a number is not a whole number, or is out of range".into())
}

fn figures_key(date: BusinessDate) -> Item {
    item_key(runs_partition(FIGURES), date.to_string())
}

impl Store {
    /// Adds the counts of a date at an instant to the date's figures: 1 write unit for each KB of a day's figures. A
    /// later sample of the same five minutes replaces an earlier one.
    pub async fn add_sample(&self, date: BusinessDate, at: UtcSecond, counts: &DayCounts) -> Result<(), StoreError> {
        let (slot, past) = slot_of(date, at);
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.history)
            .set_key(Some(figures_key(date)))
            .update_expression("SET #slot = :sample")
            .expression_attribute_names("#slot", slot)
            .expression_attribute_values(":sample", sample(counts, past));
        conditional("UpdateItem", update.send().await).map(drop)
    }

    /// Adds the failures of a run of the report to the figures of a due date, unless they were added before: 1 read
    /// unit for each 4 KB and 1 write unit for each KB of the figures. Runs are added in the order of their numbers.
    ///
    /// # Errors
    /// [`StoreError::Throttled`] if another invocation added failures meanwhile: a retry succeeds.
    pub async fn add_failures(
        &self,
        date: BusinessDate,
        run: u64,
        failures: &BTreeMap<FailureCode, u64>,
    ) -> Result<(), StoreError> {
        let stored = self.get(&self.tables.history, figures_key(date)).await?.unwrap_or_default();
        let mut figures = if stored.is_empty() { DayFigures::default() } else { self.parse_figures(&stored)? };
        if figures.reported_run >= Some(run) {
            return Ok(());
        }
        let before = figures.reported_run;
        figures.add(failures);
        let failures = figures.failures.into_iter().map(|(code, count)| (code, number(count))).collect();
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.history)
            .set_key(Some(figures_key(date)))
            .update_expression("SET failures = :failures, reportedRun = :run")
            .expression_attribute_values(":failures", AttributeValue::M(failures))
            .expression_attribute_values(":run", number(run))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let update = match before {
            None => update.condition_expression("attribute_not_exists(reportedRun)"),
            Some(before) => update
                .condition_expression("reportedRun = :before")
                .expression_attribute_values(":before", number(before)),
        };
        let Err(existing) = conditional("UpdateItem", update.send().await)? else { return Ok(()) };
        // Another invocation finishes the same run, or this call's first answer was lost.
        let existing = existing.map(|item| self.parse_figures(&item)).transpose()?;
        if existing.is_some_and(|figures| figures.reported_run >= Some(run)) {
            return Ok(());
        }
        Err(StoreError::Throttled { operation: "UpdateItem", source: "the figures of the day were changed".into() })
    }

    /// Returns the figures of a due date, strongly consistent: 1 read unit for each 4 KB, at most 5.
    pub async fn figures(&self, date: BusinessDate) -> Result<Option<DayFigures>, StoreError> {
        let item = self.get(&self.tables.history, figures_key(date)).await?;
        item.map(|item| self.parse_figures(&item)).transpose()
    }

    fn parse_figures(&self, item: &Item) -> Result<DayFigures, StoreError> {
        DayFigures::parse(item).map_err(|fault| StoreError::unreadable(&self.tables.history, key_of(item), fault))
    }
}

#[cfg(test)]
mod tests {
    use payments_model::Money;

    use super::*;
    use crate::item_bytes;

    fn date() -> BusinessDate {
        "2026-11-20".parse().unwrap()
    }

    fn counts(each: i64) -> DayCounts {
        let mut counts = DayCounts::default();
        Status::ALL.into_iter().for_each(|status| counts.shift(status, each));
        counts
    }

    fn codes(from: usize, to: usize) -> BTreeMap<FailureCode, u64> {
        (from..to).map(|n| (format!("X{n:03}").parse().unwrap(), 1)).collect()
    }

    #[test]
    fn a_sample_belongs_to_five_minutes_and_keeps_its_instant() {
        let date = date();
        for (at, slot) in [
            ("2026-11-19T22:59:59Z", "m-65"),
            ("2026-11-20T00:00:00Z", "m0"),
            ("2026-11-20T08:04:59Z", "m480"),
            ("2026-11-21T00:30:01Z", "m1470"),
        ] {
            let (name, past) = slot_of(date, at.parse().unwrap());
            let read = parse_sample(parse_slot(date, &name).unwrap(), &sample(&counts(1), past)).unwrap();
            assert_eq!((&*name, &*read.0.to_string(), read.1), (slot, at, counts(1)));
        }
        assert_eq!(["moves", "m", "480", "m1e3"].map(|name| parse_slot(date, name)), [None; 4]);
    }

    #[test]
    fn a_sample_is_read_without_sums_and_zeros() {
        let mut given = DayCounts::default();
        given.enter(Status::Failed, Money { amount: "5".parse().unwrap(), currency: "GBP".parse().unwrap() });
        let value = sample(&given, 0);
        assert_eq!(value.as_m().unwrap().len(), 2);
        let (_, read) = parse_sample(UtcSecond::MIN, &value).unwrap();
        assert_eq!((read.count(Status::Failed), read.sum_count()), (1, 0));
    }

    #[test]
    fn the_figures_of_the_longest_day_fit_20_kilobytes() {
        let mut item = figures_key(date());
        for slot in 0..300 {
            let (name, past) = slot_of(date(), begin_of(date()).saturating_add(SAMPLE_EVERY * slot));
            item.insert(name, sample(&counts(99_999_999), past + 299));
        }
        let mut figures = DayFigures::default();
        figures.add(&codes(0, 999));
        let failures = figures.failures.iter().map(|(code, count)| (code.clone(), number(count))).collect();
        item.insert(FAILURES.to_owned(), AttributeValue::M(failures));
        item.insert(REPORTED.to_owned(), number(99_999_999));
        assert!(item_bytes(&item) <= 20 * 1024, "{} bytes", item_bytes(&item));
        let read = DayFigures::parse(&item).unwrap();
        assert_eq!((read.samples.len(), read.failures, read.reported_run), (300, figures.failures, Some(99_999_999)));
    }

    #[test]
    fn the_51st_code_counts_as_other() {
        let mut figures = DayFigures::default();
        figures.add(&codes(0, 52));
        figures.add(&codes(49, 53));
        let count = |code: &str| figures.failures.get(code).copied();
        assert_eq!(figures.failures.len(), MAX_CODES + 1);
        assert_eq!([count("X000"), count("X049"), count("X050"), count(OTHER)], [Some(1), Some(2), None, Some(5)]);
    }

    #[test]
    fn damaged_figures_are_unreadable() {
        let text = AttributeValue::S("7".to_owned());
        for (name, value) in [
            ("m480", text.clone()),
            ("m480", AttributeValue::M([("sch".to_owned(), text.clone())].into())),
            (FAILURES, AttributeValue::M([("AC01".to_owned(), AttributeValue::N("1.5".to_owned()))].into())),
            (REPORTED, text.clone()),
            ("sk", text.clone()),
        ] {
            let mut item = figures_key(date());
            item.insert(name.to_owned(), value);
            assert!(DayFigures::parse(&item).is_err(), "{item:?}");
        }
        let mut later = figures_key(date());
        later.insert("unknown".to_owned(), text);
        assert_eq!(DayFigures::parse(&later).unwrap(), DayFigures::default());
    }
}
