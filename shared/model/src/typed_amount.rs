//! Amounts as people type them: in major units, with or without the currency.

use std::fmt;
use std::str::FromStr;

use crate::currency::Currency;
use crate::money::Money;

/// Thousandths of a major unit: no currency has more decimals than three.
const THOUSANDTHS: u64 = 1_000;

/// The most digits of whole units: an amount has at most 16 digits.
const MAX_WHOLE_DIGITS: usize = 16;

/// The signs of currencies. A dollar or a yen sign can be of several, so these name none.
const SIGNS: [(char, &str); 4] = [('£', "GBP"), ('€', "EUR"), ('$', ""), ('¥', "")];

/// An amount as it is typed: `1,250.00`, `1250`, `17 352.53`, `1250 EUR`, `£20.05` or `20,05 €`. A comma before one or two digits at the end
/// is a decimal one, also after points between thousands. It stands for the amounts of this many major units in
/// every currency, or in the one that is named.
///
/// ```
/// # use payments_model::TypedAmount;
/// let typed: TypedAmount = "1,250.50".parse()?;
/// assert_eq!(typed.minor("GBP".parse()?), Some(125_050));
///
/// // Yen have no decimals, so no amount in yen is this one.
/// assert_eq!(typed.minor("JPY".parse()?), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypedAmount {
    thousandths: u64,
    currency: Option<Currency>,
}

/// A text that is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an amount is a number of major units, such as 1250 or 1,250.00, and a currency if one is meant")]
pub struct TypedAmountError;

impl TypedAmount {
    /// The amount in minor units of a currency; `None` if the currency is another one than is named, or has too few decimals.
    #[must_use]
    pub fn minor(self, currency: Currency) -> Option<i64> {
        if self.currency.is_some_and(|named| named != currency) {
            return None;
        }
        let unit = (currency.decimals()..3).fold(1, |unit, _| unit * 10);
        self.thousandths.is_multiple_of(unit).then(|| i64::try_from(self.thousandths / unit).ok()).flatten()
    }

    /// Whether an amount is this one.
    #[must_use]
    pub fn is(self, money: Money) -> bool {
        self.minor(money.currency) == Some(money.amount.get())
    }
}

impl FromStr for TypedAmount {
    type Err = TypedAmountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let (currency, number) = match (text.get(..3), text.get(text.len().saturating_sub(3)..)) {
            (Some(code), _) if is_code(code) => (Some(code), &text[3..]),
            (_, Some(code)) if is_code(code) => (Some(code), &text[..text.len() - 3]),
            _ => (None, text),
        };
        let (sign, number) = signed(number.trim());
        if currency.is_some() && sign.is_some() {
            return Err(TypedAmountError);
        }
        let number = pointed(number);
        let currency = currency.or(sign.filter(|code| !code.is_empty()));
        let currency = currency.map(|code| Currency::from_stored(&code.to_ascii_uppercase())).transpose();
        let currency = currency.map_err(|_| TypedAmountError)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        let whole = ungrouped(whole).ok_or(TypedAmountError)?;
        let is_fraction = fraction.len() <= 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
        if !is_fraction || number.ends_with('.') {
            return Err(TypedAmountError);
        }
        let thousandths = format!("{fraction:0<3}").parse::<u64>().map_err(|_| TypedAmountError)?;
        let whole =
            whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(THOUSANDTHS)).ok_or(TypedAmountError)?;
        let thousandths = whole.checked_add(thousandths).filter(|all| *all > 0).ok_or(TypedAmountError)?;
        Ok(Self { thousandths, currency })
    }
}

/// A number without the sign of a currency before or after it, and the code that the sign stands for.
fn signed(text: &str) -> (Option<&'static str>, &str) {
    let parted = |(sign, code): (char, &'static str)| {
        let number = text.strip_prefix(sign).or_else(|| text.strip_suffix(sign))?;
        Some((Some(code), number.trim()))
    };
    SIGNS.into_iter().find_map(parted).unwrap_or((None, text))
}

/// A number with a decimal point. A comma before one or two digits at the end is a decimal one, and then points are between thousands.
fn pointed(number: &str) -> String {
    match number.split_once(',') {
        Some((whole, fraction)) if (1..=2).contains(&fraction.len()) => {
            let whole = if whole.contains('.') { whole.replace(',', "?").replace('.', ",") } else { whole.to_owned() };
            format!("{whole}.{fraction}")
        }
        _ => number.to_owned(),
    }
}

fn is_code(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// The digits of a number without the marks between its thousands; `None` if a mark stands elsewhere.
fn ungrouped(whole: &str) -> Option<String> {
    let mark = whole.chars().find(|c| !c.is_ascii_digit());
    let mut groups = whole.split(|c| Some(c) == mark);
    let first = groups.next()?;
    let mut digits = first.to_owned();
    if mark.is_some() {
        let is_mark = matches!(mark, Some(',' | ' ' | '\'' | '\u{2019}' | '\u{a0}' | '\u{202f}'));
        if !is_mark || !(1..=3).contains(&first.len()) {
            return None;
        }
        for group in groups {
            if group.len() != 3 {
                return None;
            }
            digits.push_str(group);
        }
    }
    let fits = (1..=MAX_WHOLE_DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    fits.then_some(digits)
}

/// The amount with at least two decimals, if it has any.
impl fmt::Display for TypedAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.thousandths / THOUSANDTHS, self.thousandths % THOUSANDTHS);
        write!(f, "{whole}")?;
        match fraction {
            0 => {}
            _ if fraction.is_multiple_of(10) => write!(f, ".{:02}", fraction / 10)?,
            _ => write!(f, ".{fraction:03}")?,
        }
        self.currency.map_or(Ok(()), |currency| write!(f, " {currency}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_typed_in_major_units() {
        for (text, minor, shown) in [
            ("1250", [Some(125_000), Some(1_250), Some(1_250_000)], "1250"),
            ("1,250.00", [Some(125_000), Some(1_250), Some(1_250_000)], "1250"),
            ("17 352.53", [Some(1_735_253), None, Some(17_352_530)], "17352.53"),
            ("1\u{202f}832\u{a0}162", [None; 3], ""),
            ("1\u{202f}832\u{202f}162", [Some(183_216_200), Some(1_832_162), Some(1_832_162_000)], "1832162"),
            ("0.5", [Some(50), None, Some(500)], "0.50"),
            ("1.005", [None, None, Some(1_005)], "1.005"),
            ("1250 GBP", [Some(125_000), None, None], "1250 GBP"),
            ("£20.05", [Some(2_005), None, None], "20.05 GBP"),
            ("20.05£", [Some(2_005), None, None], "20.05 GBP"),
            ("£ 1,250", [Some(125_000), None, None], "1250 GBP"),
            ("20,05 GBP", [Some(2_005), None, None], "20.05 GBP"),
            ("$20.05", [Some(2_005), None, None], "20.05"),
            ("¥1250", [Some(125_000), Some(1_250), None], "1250"),
            ("12,50", [Some(1_250), None, None], "12.50"),
            ("12,5", [Some(1_250), None, None], "12.50"),
            ("1 250,00", [Some(125_000), Some(1_250), None], "1250"),
            ("1.250,50", [Some(125_050), None, None], "1250.50"),
            ("1.250.000,50", [Some(125_000_050), None, None], "1250000.50"),
            ("jpy1250", [None, Some(1_250), None], "1250 JPY"),
            (
                "9007199254740991",
                [Some(900_719_925_474_099_100), Some(9_007_199_254_740_991), None],
                "9007199254740991",
            ),
        ] {
            let typed = text.parse::<TypedAmount>();
            let Ok(typed) = typed else {
                assert_eq!(shown, "", "{text}");
                continue;
            };
            let currencies = ["GBP", "JPY", "KWD"].map(|code| code.parse::<Currency>().unwrap());
            let found = currencies.map(|currency| typed.minor(currency));
            assert_eq!(found[..2], minor[..2], "{text}");
            assert!(minor[2].is_none() || found[2] == minor[2], "{text}: {found:?}");
            assert_eq!(typed.to_string(), shown, "{text}");
            assert_eq!(typed.to_string().parse(), Ok(typed), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not_amounts() {
        let long = "9".repeat(17);
        for text in [
            "",
            "0",
            "0.00",
            "-1",
            "+1",
            "1.",
            ".5",
            "1.2345",
            "1,25.00",
            "1,2500",
            ",125",
            "1,,250",
            "1'250 000",
            "1e3",
            "44-10",
            "GBP",
            "GBPEUR",
            "tenant",
            "£",
            "£5 GBP",
            "£5€",
            "££5",
            "1.25,00",
            "1,250,00",
            "1,250.00,5",
            "12,",
            "12,5x",
            long.as_str(),
            "9999999999999999.999.9",
            "１２",
        ] {
            assert_eq!(text.parse::<TypedAmount>(), Err(TypedAmountError), "{text:?}");
        }
    }
}
