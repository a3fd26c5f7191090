//! The most that one new payment may be, by currency.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::currency::{Currency, CurrencyError};
use crate::money::{AmountError, AmountMinor, MAX_AMOUNT_MINOR, Money};

/// The largest amounts of new payments: `GBP=100000000,EUR=100000000` in minor units. A currency without one has no limit.
///
/// ```
/// # use payments_model::*;
/// let limits: PaymentLimits = "GBP=500".parse()?;
/// let money = |amount: &str, currency: &str| Ok::<_, Box<dyn std::error::Error>>(Money {
///     amount: amount.parse()?,
///     currency: currency.parse()?,
/// });
/// assert_eq!(limits.exceeded_by(money("500", "GBP")?), None);
/// assert_eq!(limits.exceeded_by(money("501", "GBP")?), Some("500".parse()?));
/// assert_eq!(limits.exceeded_by(money("501", "EUR")?), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PaymentLimits(BTreeMap<Currency, AmountMinor>);

/// The reason why a text is not limits of payments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PaymentLimitsError {
    /// An entry is not `currency=amount`.
    #[error("{0:?} is not of the form currency=amount, such as GBP=100000000; separate entries with commas")]
    Form(String),
    /// The currency of an entry.
    #[error("{0:?} is not a currency: {1}")]
    Currency(String, CurrencyError),
    /// The amount of an entry.
    #[error("the limit of {0} is not an amount: {1}")]
    Amount(Currency, AmountError),
    /// A repeated entry.
    #[error("{0} has two limits; leave one")]
    Repeated(Currency),
}

impl FromStr for PaymentLimits {
    type Err = PaymentLimitsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut limits = BTreeMap::new();
        for entry in text.split(',') {
            let (code, amount) = entry.split_once('=').ok_or_else(|| PaymentLimitsError::Form(entry.to_owned()))?;
            let currency = code.parse().map_err(|error| PaymentLimitsError::Currency(code.to_owned(), error))?;
            let amount = amount.parse().map_err(|error| PaymentLimitsError::Amount(currency, error))?;
            if limits.insert(currency, amount).is_some() {
                return Err(PaymentLimitsError::Repeated(currency));
            }
        }
        Ok(Self(limits))
    }
}

impl PaymentLimits {
    /// The limit that an amount is above, if it is.
    #[must_use]
    pub fn exceeded_by(&self, money: Money) -> Option<AmountMinor> {
        self.0.get(&money.currency).copied().filter(|limit| money.amount > *limit)
    }

    /// The limits, by currency.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Currency, AmountMinor)> {
        self.0.iter().map(|(currency, limit)| (*currency, *limit))
    }

    /// The limits of these sums of money, each at most the largest amount. What is not above zero is left out.
    pub(crate) fn from_sums(sums: impl Iterator<Item = (Currency, i128)>) -> Self {
        let most = |sum: i128| i64::try_from(sum).unwrap_or(i64::MAX).min(MAX_AMOUNT_MINOR).try_into().ok();
        Self(sums.filter_map(|(currency, sum)| Some((currency, most(sum)?))).collect())
    }

    /// The larger limit of each currency that has one.
    pub(crate) fn raised_to(&self, other: &Self) -> Self {
        Self(
            self.iter()
                .map(|(currency, limit)| (currency, limit.max(other.0.get(&currency).copied().unwrap_or(limit))))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_limit_is_named() {
        for (text, want) in [
            ("GBP=1,EUR=9007199254740991", ""),
            ("", "\"\" is not of the form currency=amount, such as GBP=100000000; separate entries with commas"),
            ("GBP", "\"GBP\" is not of the form currency=amount, such as GBP=100000000; separate entries with commas"),
            (
                "GPB=1",
                "\"GPB\" is not a currency: send one of ISO 4217's current list, such as GBP; funds, metals and other units are not \
                 accepted",
            ),
            ("GBP=0", "the limit of GBP is not an amount: an amount is at least 1 minor unit"),
            (
                "GBP=1.5",
                "the limit of GBP is not an amount: an amount is a whole number of minor units, written without a fraction or an \
                 exponent",
            ),
            ("GBP=1,EUR=2,GBP=1", "GBP has two limits; leave one"),
        ] {
            let error = text.parse::<PaymentLimits>().err().map(|error| error.to_string());
            assert_eq!(error.unwrap_or_default(), want, "{text}");
        }
    }
}
