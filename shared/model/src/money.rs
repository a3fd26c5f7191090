//! Money: integer minor units of an ISO 4217 currency, never a float.

use std::fmt;
use std::str::FromStr;

/// A payment's amount in minor units of its currency (pence, cents, whole yen): 1 to `i64::MAX`,
/// which is 92 quadrillion pounds.
///
/// A million million such amounts add up to 31 digits. A DynamoDB number holds 38.
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
    /// Larger than `i64::MAX`.
    #[error("an amount is at most {} minor units", i64::MAX)]
    TooLarge,
}

impl TryFrom<i64> for AmountMinor {
    type Error = AmountError;

    fn try_from(minor: i64) -> Result<Self, Self::Error> {
        if minor < 1 { Err(AmountError::NotPositive) } else { Ok(Self(minor)) }
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

/// An ISO 4217 currency.
///
/// Parsing accepts the list of `iso_currency`, without ISO's codes for testing (`XTS`) and for "no
/// currency" (`XXX`). Payments in a currency that was withdrawn since stay readable
/// ([`Currency::from_stored`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

/// Why a text is not a currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a currency is a three-letter code of ISO 4217 in capitals, such as GBP")]
pub struct CurrencyError;

impl FromStr for Currency {
    type Err = CurrencyError;

    fn from_str(code: &str) -> Result<Self, Self::Err> {
        let listed = iso_currency::Currency::from_code(code).is_some() && !matches!(code, "XTS" | "XXX");
        if listed { Self::from_stored(code) } else { Err(CurrencyError) }
    }
}

impl Currency {
    /// Returns the currency of a stored payment: any three capitals, listed or not.
    ///
    /// # Errors
    /// [`CurrencyError`] for any other text.
    pub fn from_stored(code: &str) -> Result<Self, CurrencyError> {
        let code: [u8; 3] = code.as_bytes().try_into().map_err(|_| CurrencyError)?;
        if code.iter().all(u8::is_ascii_uppercase) { Ok(Self(code)) } else { Err(CurrencyError) }
    }

    /// The three-letter code.
    #[must_use]
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// An amount and its currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Money {
    /// How much, in the currency's minor unit.
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
            ("9223372036854775807", Ok(i64::MAX)),
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
    fn currencies_are_iso_4217() {
        for code in ["GBP", "EUR", "JPY", "BHD", "CHF"] {
            assert_eq!(code.parse::<Currency>().map(|c| c.to_string()), Ok(code.to_owned()));
        }
        for code in ["", "gbp", "GB", "GBPX", "ABC", "XXX", "XTS", "£"] {
            assert_eq!(code.parse::<Currency>(), Err(CurrencyError), "{code}");
        }
    }

    #[test]
    fn withdrawn_currencies_stay_readable() {
        // A new payment cannot be in German marks, but a stored one can.
        assert_eq!("DEM".parse::<Currency>(), Err(CurrencyError));
        assert_eq!(Currency::from_stored("DEM").map(|c| c.to_string()), Ok("DEM".to_owned()));
        assert_eq!(Currency::from_stored("dem"), Err(CurrencyError));
    }
}
