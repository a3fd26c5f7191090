//! Currencies: the codes of ISO 4217 that a payment can have.

use std::fmt;
use std::str::FromStr;

/// The currencies of new payments, in alphabetical order: ISO 4217's list one, "Current currency & funds", as SIX
/// published it on 17 September 2026. Left out are its codes of units that no payment has:
///
/// - funds and units of account: BOV, CHE, CHW, CLF, COU, MXV, USN, UYI, UYW, XAD
/// - precious metals, bond market units and others without a minor unit: XAG, XAU, XBA, XBB, XBC, XBD, XDR, XPD,
///   XPT, XSU, XTS, XUA, XXX
///
/// SIX publishes a new list with each amendment, under "ISO 4217 currency codes, data standards". To follow one,
/// change this list and its date; stored payments stay as they are.
static LISTED: [&str; 155] = [
    "AED", "AFN", "ALL", "AMD", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BHD", "BIF", "BMD", "BND",
    "BOB", "BRL", "BSD", "BTN", "BWP", "BYN", "BZD", "CAD", "CDF", "CHF", "CLP", "CNY", "COP", "CRC", "CUP", "CVE",
    "CZK", "DJF", "DKK", "DOP", "DZD", "EGP", "ERN", "ETB", "EUR", "FJD", "FKP", "GBP", "GEL", "GHS", "GIP", "GMD",
    "GNF", "GTQ", "GYD", "HKD", "HNL", "HTG", "HUF", "IDR", "ILS", "INR", "IQD", "IRR", "ISK", "JMD", "JOD", "JPY",
    "KES", "KGS", "KHR", "KMF", "KPW", "KRW", "KWD", "KYD", "KZT", "LAK", "LBP", "LKR", "LRD", "LSL", "LYD", "MAD",
    "MDL", "MGA", "MKD", "MMK", "MNT", "MOP", "MRU", "MUR", "MVR", "MWK", "MXN", "MYR", "MZN", "NAD", "NGN", "NIO",
    "NOK", "NPR", "NZD", "OMR", "PAB", "PEN", "PGK", "PHP", "PKR", "PLN", "PYG", "QAR", "RON", "RSD", "RUB", "RWF",
    "SAR", "SBD", "SCR", "SDG", "SEK", "SGD", "SHP", "SLE", "SOS", "SRD", "SSP", "STN", "SVC", "SYP", "SZL", "THB",
    "TJS", "TMT", "TND", "TOP", "TRY", "TTD", "TWD", "TZS", "UAH", "UGX", "USD", "UYU", "UZS", "VED", "VES", "VND",
    "VUV", "WST", "XAF", "XCD", "XCG", "XOF", "XPF", "YER", "ZAR", "ZMW", "ZWG",
];

/// The currencies whose minor unit is not a hundredth, with their decimals, by the same list. Withdrawn ones stay here.
static DECIMALS: [(&str, usize); 23] = [
    ("BHD", 3),
    ("BIF", 0),
    ("CLP", 0),
    ("DJF", 0),
    ("GNF", 0),
    ("IQD", 3),
    ("ISK", 0),
    ("JOD", 3),
    ("JPY", 0),
    ("KMF", 0),
    ("KRW", 0),
    ("KWD", 3),
    ("LYD", 3),
    ("OMR", 3),
    ("PYG", 0),
    ("RWF", 0),
    ("TND", 3),
    ("UGX", 0),
    ("VND", 0),
    ("VUV", 0),
    ("XAF", 0),
    ("XOF", 0),
    ("XPF", 0),
];

/// An ISO 4217 currency.
///
/// Parsing accepts the currencies of new payments only: those of the current list. Payments in a currency that was
/// withdrawn since stay readable ([`Currency::from_stored`]).
///
/// ```
/// # use payments_model::Currency;
/// assert!("EUR".parse::<Currency>().is_ok());
///
/// // The kuna was withdrawn: stored payments keep it, and new ones cannot have it.
/// assert!("HRK".parse::<Currency>().is_err());
/// assert!(Currency::from_stored("HRK").is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

/// Why a text is not a currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CurrencyError {
    /// Not three capitals.
    #[error("a currency is a three-letter code of ISO 4217 in capitals, such as GBP")]
    Malformed,
    /// Not on the current list.
    #[error("send one of ISO 4217's current list, such as GBP; funds, metals and other units are not accepted")]
    NotListed,
}

impl FromStr for Currency {
    type Err = CurrencyError;

    fn from_str(code: &str) -> Result<Self, Self::Err> {
        let currency = Self::from_stored(code)?;
        if currency.is_listed() { Ok(currency) } else { Err(CurrencyError::NotListed) }
    }
}

impl Currency {
    /// Returns the currency of a stored payment: any three capitals, listed or not.
    ///
    /// # Errors
    /// [`CurrencyError::Malformed`] for any other text.
    pub fn from_stored(code: &str) -> Result<Self, CurrencyError> {
        let code: [u8; 3] = code.as_bytes().try_into().map_err(|_| CurrencyError::Malformed)?;
        if code.iter().all(u8::is_ascii_uppercase) { Ok(Self(code)) } else { Err(CurrencyError::Malformed) }
    }

    /// Whether new payments can have this currency.
    #[must_use]
    pub fn is_listed(self) -> bool {
        LISTED.binary_search(&self.code()).is_ok()
    }

    /// The decimals of an amount in major units: 2 for pounds, whose minor unit is a hundredth.
    #[must_use]
    pub fn decimals(self) -> usize {
        DECIMALS.iter().find(|(code, _)| *code == self.code()).map_or(2, |(_, decimals)| *decimals)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order_and_has_currencies_only() {
        assert!(LISTED.is_sorted_by(|a, b| a < b), "a binary search needs the order");
        assert!(LISTED.iter().all(|code| Currency::from_stored(code).is_ok()));
    }

    #[test]
    fn a_minor_unit_is_a_hundredth_unless_the_list_says_otherwise() {
        assert!(DECIMALS.iter().all(|(code, _)| code.parse::<Currency>().is_ok()));
        for (code, decimals) in [("GBP", 2), ("EUR", 2), ("MGA", 2), ("JPY", 0), ("XPF", 0), ("KWD", 3), ("TND", 3)] {
            assert_eq!(code.parse::<Currency>().map(Currency::decimals), Ok(decimals), "{code}");
        }
    }

    #[test]
    fn currencies_of_new_payments_are_on_the_current_list() {
        use CurrencyError::{Malformed, NotListed};
        for code in ["GBP", "EUR", "JPY", "BHD", "CHF", "AED", "ZWG", "SLE", "XCG", "VES", "VED", "XOF", "XAF", "XPF"] {
            assert_eq!(code.parse::<Currency>().map(|c| c.to_string()), Ok(code.to_owned()));
        }
        for (code, want) in [
            ("", Malformed),
            ("gbp", Malformed),
            ("GB", Malformed),
            ("GBPX", Malformed),
            ("G P", Malformed),
            ("£", Malformed),
            ("ABC", NotListed),
            // Withdrawn.
            ("DEM", NotListed),
            ("CUC", NotListed),
            ("HRK", NotListed),
            ("SLL", NotListed),
            ("ZWL", NotListed),
            ("ANG", NotListed),
            ("BGN", NotListed),
            // Funds and units of account.
            ("BOV", NotListed),
            ("CHE", NotListed),
            ("CHW", NotListed),
            ("CLF", NotListed),
            ("COU", NotListed),
            ("MXV", NotListed),
            ("USN", NotListed),
            ("UYI", NotListed),
            ("UYW", NotListed),
            ("XAD", NotListed),
            ("XDR", NotListed),
            ("XSU", NotListed),
            ("XUA", NotListed),
            // Metals, bond market units, tests and none.
            ("XAG", NotListed),
            ("XAU", NotListed),
            ("XPD", NotListed),
            ("XPT", NotListed),
            ("XBA", NotListed),
            ("XBB", NotListed),
            ("XBC", NotListed),
            ("XBD", NotListed),
            ("XTS", NotListed),
            ("XXX", NotListed),
        ] {
            assert_eq!(code.parse::<Currency>(), Err(want), "{code}");
        }
    }

    #[test]
    fn withdrawn_currencies_stay_readable() {
        for code in ["DEM", "HRK", "XAU"] {
            assert_eq!(
                Currency::from_stored(code).map(|c| (c.to_string(), c.is_listed())),
                Ok((code.to_owned(), false))
            );
        }
        assert_eq!(Currency::from_stored("dem"), Err(CurrencyError::Malformed));
    }
}
