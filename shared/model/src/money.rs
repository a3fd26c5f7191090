//! Money: integer minor units of an ISO 4217 currency, never a float.

use std::str::FromStr;

use crate::currency::Currency;

/// The largest amount: up to it, doubles represent every integer, so a client that reads JSON's
/// numbers as doubles loses nothing. In pounds it is 90 trillion.
pub const MAX_AMOUNT_MINOR: i64 = (1 << 53) - 1;

/// A payment's amount in minor units of its currency (pence, cents, whole yen): 1 to [`MAX_AMOUNT_MINOR`].
///
/// A million million of the largest add up to 28 digits. A DynamoDB number holds 38.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AmountMinor(i64);

/// Why a number is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Zero or less.
    #[error("an amount is at least 1 minor unit")]
    NotPositive,
    /// A fraction or an exponent, even if its value is whole.
    #[error("an amount is a whole number of minor units, written without a fraction or an exponent")]
    NotWhole,
    /// Larger than [`MAX_AMOUNT_MINOR`].
    #[error("an amount is at most {MAX_AMOUNT_MINOR} minor units")]
    TooLarge,
}

impl TryFrom<i64> for AmountMinor {
    type Error = AmountError;

    fn try_from(minor: i64) -> Result<Self, Self::Error> {
        match minor {
            ..1 => Err(AmountError::NotPositive),
            1..=MAX_AMOUNT_MINOR => Ok(Self(minor)),
            _ => Err(AmountError::TooLarge),
        }
    }
}

/// Parses a JSON number's text, so no amount ever is a float.
impl FromStr for AmountMinor {
    type Err = AmountError;

    fn from_str(number: &str) -> Result<Self, Self::Err> {
        let digits = number.strip_prefix('-').unwrap_or(number);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(AmountError::NotWhole);
        }
        if number.starts_with('-') {
            return Err(AmountError::NotPositive);
        }
        number.parse().map_err(|_| AmountError::TooLarge).and_then(|minor: i64| minor.try_into())
    }
}

impl AmountMinor {
    /// The number of minor units.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

/// An amount and its currency.
///
/// ```
/// # use payments_model::*;
/// // 1,250.00 pounds are 125,000 pence.
/// let rent = Money { amount: "125000".parse()?, currency: "GBP".parse()? };
/// assert_eq!(rent.amount.get(), 125_000);
///
/// // A fraction is rejected, and so is zero.
/// assert!("1250.00".parse::<AmountMinor>().is_err());
/// assert!(AmountMinor::try_from(0).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Money {
    /// The amount in the currency's minor unit.
    pub amount: AmountMinor,
    /// The currency.
    pub currency: Currency,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_from_their_digits() {
        use AmountError::{NotPositive, NotWhole, TooLarge};
        for (text, want) in [
            ("1", Ok(1)),
            ("9007199254740991", Ok(MAX_AMOUNT_MINOR)),
            ("9007199254740992", Err(TooLarge)),
            ("9223372036854775807", Err(TooLarge)),
            ("9223372036854775808", Err(TooLarge)),
            ("99999999999999999999999999999999999999999", Err(TooLarge)),
            ("0", Err(NotPositive)),
            ("-0", Err(NotPositive)),
            ("-1", Err(NotPositive)),
            ("-99999999999999999999999", Err(NotPositive)),
            ("10.5", Err(NotWhole)),
            ("10.0", Err(NotWhole)),
            ("1e3", Err(NotWhole)),
            ("", Err(NotWhole)),
            ("+1", Err(NotWhole)),
        ] {
            assert_eq!(text.parse::<AmountMinor>().map(AmountMinor::get), want, "{text}");
        }
    }

    #[test]
    fn an_amount_survives_a_double() {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "it shows that nothing is lost"
        )]
        let read_as_double = MAX_AMOUNT_MINOR as f64 as i64;
        assert_eq!(read_as_double, MAX_AMOUNT_MINOR);
    }
}
