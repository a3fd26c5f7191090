//! Counts and sums of the payments of one business date, and changes of them.
//!
//! Numbers are signed: a change moves a payment out of one status and into another. Overflowing an
//! `i64` count takes 2^63 payments a day, and an `i128` sum 2^64 payments of the largest amount.
//! Release builds check for overflow anyway.

use std::collections::BTreeMap;

use crate::currency::Currency;
use crate::money::Money;
use crate::payment::transition::Status;

/// The number of statuses.
const STATUSES: usize = Status::ALL.len();

/// Counts and sums of the payments of one date. Sums of zero are left out, so equal numbers are equal values.
///
/// ```
/// # use payments_model::*;
/// # let rent = Money { amount: "125000".parse()?, currency: "GBP".parse()? };
/// // A claim moves a payment from one status to another.
/// let (mut day, mut claim) = (DayCounts::default(), DayCounts::default());
/// day.enter(Status::Scheduled, rent);
/// claim.leave(Status::Scheduled, rent);
/// claim.enter(Status::Pending, rent);
/// day.add(&claim);
/// assert_eq!((day.count(Status::Scheduled), day.count(Status::Pending)), (0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DayCounts {
    by_status: [i64; STATUSES],
    sums: BTreeMap<(Currency, Status), i128>,
    /// Archived payments. They also count in their status.
    pub archived: i64,
    /// Changes that could not be read. The other numbers may be wrong until a repair.
    pub unparsed: i64,
}

impl DayCounts {
    /// Adds a payment to a status.
    pub fn enter(&mut self, status: Status, money: Money) {
        self.shift(status, 1);
        self.shift_sum(money.currency, status, money.amount.get().into());
    }

    /// Removes a payment from a status.
    pub fn leave(&mut self, status: Status, money: Money) {
        self.shift(status, -1);
        self.shift_sum(money.currency, status, -i128::from(money.amount.get()));
    }

    /// Changes the count of a status.
    pub fn shift(&mut self, status: Status, by: i64) {
        // The statuses' discriminants are their places in `Status::ALL`.
        self.by_status[status as usize] += by;
    }

    /// Changes the sum of a currency and status.
    pub fn shift_sum(&mut self, currency: Currency, status: Status, by: i128) {
        let sum = self.sums.entry((currency, status)).or_default();
        *sum += by;
        if *sum == 0 {
            self.sums.remove(&(currency, status));
        }
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.add_times(other, 1);
    }

    /// Returns the difference between these numbers and `other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut difference = self.clone();
        difference.add_times(other, -1);
        difference
    }

    fn add_times(&mut self, other: &Self, times: i64) {
        Status::ALL.into_iter().for_each(|status| self.shift(status, times * other.count(status)));
        other.sums().for_each(|(currency, status, sum)| self.shift_sum(currency, status, i128::from(times) * sum));
        self.archived += times * other.archived;
        self.unparsed += times * other.unparsed;
    }

    /// The payments in a status.
    #[must_use]
    pub fn count(&self, status: Status) -> i64 {
        self.by_status[status as usize]
    }

    /// The payments in any status.
    #[must_use]
    pub fn total(&self) -> i64 {
        self.by_status.iter().sum()
    }

    /// The sums that are not zero, in minor units, by currency and status.
    pub fn sums(&self) -> impl Iterator<Item = (Currency, Status, i128)> {
        self.sums.iter().map(|((currency, status), sum)| (*currency, *status, *sum))
    }

    /// The sum of a currency and status, in minor units.
    #[must_use]
    pub fn sum(&self, currency: Currency, status: Status) -> i128 {
        self.sums.get(&(currency, status)).copied().unwrap_or(0)
    }

    /// The number of sums that are not zero.
    #[must_use]
    pub fn sum_count(&self) -> usize {
        self.sums.len()
    }

    /// Whether all numbers are zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::money::MAX_AMOUNT_MINOR;

    fn money(amount: i64, currency: &str) -> Money {
        Money { amount: amount.try_into().unwrap(), currency: currency.parse().unwrap() }
    }

    #[test]
    fn discriminants_index_all_statuses() {
        for (place, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, place);
        }
    }

    #[test]
    fn a_payment_moves_from_status_to_status() {
        let mut counts = DayCounts::default();
        counts.enter(Status::Scheduled, money(MAX_AMOUNT_MINOR, "GBP"));
        counts.enter(Status::Scheduled, money(MAX_AMOUNT_MINOR, "GBP"));
        counts.leave(Status::Scheduled, money(MAX_AMOUNT_MINOR, "GBP"));
        counts.enter(Status::Pending, money(MAX_AMOUNT_MINOR, "GBP"));
        let gbp = "GBP".parse().unwrap();
        assert_eq!((counts.count(Status::Scheduled), counts.count(Status::Pending), counts.total()), (1, 1, 2));
        assert_eq!(counts.sum(gbp, Status::Pending), i128::from(MAX_AMOUNT_MINOR));
        assert_eq!(counts.sums().count(), 2);
        counts.leave(Status::Scheduled, money(MAX_AMOUNT_MINOR, "GBP"));
        counts.leave(Status::Pending, money(MAX_AMOUNT_MINOR, "GBP"));
        assert!(counts.is_zero(), "{counts:?}");
    }

    #[test]
    fn a_sum_stays_within_the_digits_of_a_dynamodb_number() {
        // A million million payments of the largest amount.
        let largest = i128::from(MAX_AMOUNT_MINOR) * 1_000_000_000_000;
        assert!(largest.to_string().len() <= 38);
    }

    fn counts() -> impl Strategy<Value = DayCounts> {
        let change = (0_usize..5, 1..=MAX_AMOUNT_MINOR, prop::sample::select(vec!["GBP", "EUR", "JPY"]), any::<bool>());
        prop::collection::vec(change, 0..8).prop_map(|changes| {
            let mut counts = DayCounts::default();
            for (status, amount, currency, enters) in changes {
                let (status, money) = (Status::ALL[status], money(amount, currency));
                if enters {
                    counts.enter(status, money)
                } else {
                    counts.leave(status, money)
                }
                counts.archived += i64::from(enters);
            }
            counts
        })
    }

    proptest! {
        #[test]
        fn adding_a_difference_gives_the_minuend(one in counts(), other in counts()) {
            let mut sum = other.clone();
            sum.add(&one.minus(&other));
            prop_assert_eq!(&sum, &one);
            prop_assert!(one.minus(&one).is_zero());
        }
    }
}
