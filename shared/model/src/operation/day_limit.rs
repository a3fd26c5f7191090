//! The most that is claimed of the payments of one due date: their number, and their sums by currency.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::counts::DayCounts;
use crate::currency::Currency;
use crate::money::Money;
use crate::operation::second::ALONE;
use crate::payment::limits::{PaymentLimits, PaymentLimitsError};
use crate::payment::transition::Status;

/// The most claims of a date that a shard reserves before it makes them. A crash leaves at most so many a shard reserved.
pub const MAX_RESERVED: usize = 100;

/// The name of the number of payments in a limit's text.
const PAYMENTS: &str = "payments=";

/// A number of payments, and their sums by currency in minor units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DayTotal {
    /// The number of payments.
    pub payments: u64,
    /// The sums. A currency without payments is left out.
    pub sums: BTreeMap<Currency, i128>,
}

/// The limit of a date: `payments=1500000,GBP=50000000000`. A number or a currency that is not named has no limit.
///
/// ```
/// # use payments_model::*;
/// let limit: DayLimit = "payments=2,GBP=900".parse()?;
/// let money = |amount: &str| Ok::<_, Box<dyn std::error::Error>>(Money { amount: amount.parse()?, currency: "GBP".parse()? });
/// let two: DayTotal = [money("500")?, money("400")?].into_iter().collect();
/// assert!(limit.admits(&two));
/// let three: DayTotal = [money("1")?, money("1")?, money("1")?].into_iter().collect();
/// assert!(!limit.admits(&three));
/// assert!(!limit.admits(&[money("901")?].into_iter().collect()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DayLimit {
    payments: Option<u64>,
    sums: PaymentLimits,
}

/// The reason why a text is not the limit of a date.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DayLimitError {
    /// The number of payments.
    #[error("the number of payments {0:?} is not a whole number from 1, such as payments=1500000")]
    Payments(String),
    /// A second number of payments.
    #[error("payments has two limits; leave one")]
    Repeated,
    /// A sum.
    #[error(transparent)]
    Sums(#[from] PaymentLimitsError),
}

impl FromStr for DayLimit {
    type Err = DayLimitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (numbers, sums): (Vec<&str>, Vec<&str>) = text.split(',').partition(|entry| entry.starts_with(PAYMENTS));
        let number = |entry: &&str| -> Result<u64, DayLimitError> {
            let number = entry.trim_start_matches(PAYMENTS);
            let is_number = number.starts_with(|first| ('1'..='9').contains(&first));
            let parsed = number.parse().ok().filter(|_| is_number);
            parsed.ok_or_else(|| DayLimitError::Payments(number.to_owned()))
        };
        let payments = match &*numbers {
            [] => None,
            [one] => Some(number(one)?),
            _ => return Err(DayLimitError::Repeated),
        };
        let sums = if sums.is_empty() { PaymentLimits::default() } else { sums.join(",").parse()? };
        Ok(Self { payments, sums })
    }
}

/// The text from which the limit is read.
impl fmt::Display for DayLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.payments.map(|number| format!("{PAYMENTS}{number}"));
        let sums = self.sums.iter().map(|(currency, most)| format!("{currency}={}", most.get()));
        f.write_str(&number.into_iter().chain(sums).collect::<Vec<_>>().join(","))
    }
}

impl DayLimit {
    /// The most payments, if their number has a limit.
    #[must_use]
    pub fn payments(&self) -> Option<u64> {
        self.payments
    }

    /// The most of each currency that has a limit, in minor units.
    pub fn sums(&self) -> impl Iterator<Item = (Currency, i128)> {
        self.sums.iter().map(|(currency, most)| (currency, most.get().into()))
    }

    /// Whether these payments are within the limit.
    #[must_use]
    pub fn admits(&self, total: &DayTotal) -> bool {
        self.payments.is_none_or(|most| total.payments <= most)
            && self.sums().all(|(currency, most)| total.sum(currency) <= most)
    }

    /// The limit that is raised by `other`: of each part the larger one. What has no limit gets none.
    #[must_use]
    pub fn raised_to(&self, other: &Self) -> Self {
        let payments = self.payments.map(|most| most.max(other.payments.unwrap_or(0)));
        Self { payments, sums: self.sums.raised_to(&other.sums) }
    }

    /// Whether this limit has each part of `other`.
    #[must_use]
    pub fn names(&self, other: &Self) -> bool {
        let has_sum = |currency| self.sums().any(|(known, _)| known == currency);
        (self.payments.is_some() || other.payments.is_none()) && other.sums().all(|(currency, _)| has_sum(currency))
    }

    /// The parts of a total that exceed this limit, as a limit that just admits them. A sum is cut to the largest amount.
    #[must_use]
    pub fn exceeded_by(&self, total: &DayTotal) -> Self {
        let payments = self.payments.filter(|most| total.payments > *most).and(Some(total.payments));
        let sums = self.sums().map(|(currency, most)| (currency, most, total.sum(currency)));
        let sums = sums.filter(|(_, most, sum)| sum > most).map(|(currency, _, sum)| (currency, sum));
        Self { payments, sums: PaymentLimits::from_sums(sums) }
    }

    /// The limit with room for what comes while two persons decide: a hundredth, of payments at least what one person may free.
    #[must_use]
    pub fn with_margin(&self) -> Self {
        let payments = self.payments.map(|payments| payments.saturating_add(ALONE.max(payments / 100)));
        let sums = self.sums().map(|(currency, sum)| (currency, sum + (sum + 99) / 100));
        Self { payments, sums: PaymentLimits::from_sums(sums) }
    }
}

/// The statuses of payments that were claimed.
const CLAIMED: [Status; 3] = [Status::Pending, Status::Processed, Status::Failed];

impl DayTotal {
    /// The payments of a date that were claimed, by its counters.
    #[must_use]
    pub fn claimed(counts: &DayCounts) -> Self {
        Self::from_counts(counts, &CLAIMED)
    }

    /// The payments of a date in some statuses, by its counters. Numbers below zero, of counters that lag, count as zero.
    #[must_use]
    pub fn from_counts(counts: &DayCounts, statuses: &[Status]) -> Self {
        let payments = statuses.iter().map(|status| u64::try_from(counts.count(*status)).unwrap_or(0)).sum();
        let mut total = Self { payments, sums: BTreeMap::new() };
        for (currency, _, sum) in counts.sums().filter(|(_, status, _)| statuses.contains(status)) {
            *total.sums.entry(currency).or_default() += sum.max(0);
        }
        total
    }

    /// The sum of a currency.
    #[must_use]
    pub fn sum(&self, currency: Currency) -> i128 {
        self.sums.get(&currency).copied().unwrap_or(0)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut all = Self { payments: self.payments + other.payments, sums: self.sums.clone() };
        for (currency, sum) in &other.sums {
            *all.sums.entry(*currency).or_default() += sum;
        }
        all
    }

    /// Adds a payment.
    pub fn add(&mut self, money: Money) {
        self.payments += 1;
        *self.sums.entry(money.currency).or_default() += i128::from(money.amount.get());
    }

    /// Of the number and of each sum the larger one.
    #[must_use]
    pub fn raised_to(&self, other: &Self) -> Self {
        let mut raised = Self { payments: self.payments.max(other.payments), sums: self.sums.clone() };
        for (currency, sum) in &other.sums {
            let raised = raised.sums.entry(*currency).or_default();
            *raised = (*raised).max(*sum);
        }
        raised
    }
}

impl FromIterator<Money> for DayTotal {
    fn from_iter<Payments: IntoIterator<Item = Money>>(payments: Payments) -> Self {
        let mut total = Self::default();
        payments.into_iter().for_each(|money| total.add(money));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_read_from_its_text() {
        for (text, want) in [
            ("payments=5", ""),
            ("GBP=5", ""),
            ("payments=1500000,EUR=9007199254740991,GBP=1", ""),
            ("payments=0", "the number of payments \"0\" is not a whole number from 1, such as payments=1500000"),
            ("payments=+1", "the number of payments \"+1\" is not a whole number from 1, such as payments=1500000"),
            ("payments=", "the number of payments \"\" is not a whole number from 1, such as payments=1500000"),
            ("payments=1,payments=2", "payments has two limits; leave one"),
            ("payments=1,GBP=1,GBP=2", "GBP has two limits; leave one"),
            (
                "1500000",
                "\"1500000\" is not of the form currency=amount, such as GBP=100000000; separate entries with commas",
            ),
            ("", "\"\" is not of the form currency=amount, such as GBP=100000000; separate entries with commas"),
        ] {
            let read = text.parse::<DayLimit>();
            assert_eq!(read.clone().err().map(|error| error.to_string()).unwrap_or_default(), want, "{text}");
            assert_eq!(read.map_or(text.to_owned(), |limit| limit.to_string()), text);
        }
    }

    #[test]
    fn a_release_raises_a_limit_and_lowers_nothing() {
        let limit = |text: &str| text.parse::<DayLimit>().unwrap();
        for (of_day, release, want) in [
            ("payments=5,GBP=10", "payments=7,GBP=20", "payments=7,GBP=20"),
            ("payments=5,GBP=10", "payments=3", "payments=5,GBP=10"),
            // The parameter has no limit of these.
            ("GBP=10", "payments=7,EUR=3", "GBP=10"),
        ] {
            assert_eq!(limit(of_day).raised_to(&limit(release)).to_string(), want);
        }
    }

    #[test]
    fn a_release_has_what_exceeds_a_limit_and_a_margin() {
        let limit = "payments=5,GBP=10,EUR=7,JPY=1,CHF=8".parse::<DayLimit>().unwrap();
        let sums = [("GBP", 1_000), ("JPY", i128::from(i64::MAX)), ("USD", 9), ("CHF", 8)];
        let sums = sums.map(|(currency, sum)| (currency.parse().unwrap(), sum)).into();
        for (payments, just, with_margin) in [
            (5, "GBP=1000,JPY=9007199254740991", "GBP=1010,JPY=9007199254740991"),
            (6, "payments=6,GBP=1000,JPY=9007199254740991", "payments=106,GBP=1010,JPY=9007199254740991"),
            (50_000, "payments=50000,GBP=1000,JPY=9007199254740991", "payments=50500,GBP=1010,JPY=9007199254740991"),
        ] {
            let total = DayTotal { payments, sums: BTreeMap::clone(&sums) };
            assert_eq!(limit.exceeded_by(&total).to_string(), just);
            assert_eq!(limit.exceeded_by(&total).with_margin().to_string(), with_margin);
            assert_eq!(total.plus(&total).sum("GBP".parse().unwrap()), 2_000);
        }
    }

    #[test]
    fn counters_that_lag_count_as_zero() {
        let (mut counts, gbp) = (DayCounts::default(), "GBP".parse().unwrap());
        counts.shift(Status::Pending, -3);
        counts.shift_sum(gbp, Status::Pending, -300);
        counts.shift(Status::Failed, 2);
        counts.shift_sum(gbp, Status::Failed, 200);
        counts.shift(Status::Cancelled, 9);
        let total = DayTotal::from_counts(&counts, &[Status::Pending, Status::Failed]);
        assert_eq!((total.payments, total.sum(gbp)), (2, 200));
    }
}
