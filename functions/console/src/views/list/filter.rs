//! The filter of a list: parts of texts, an amount, and the reason of a failure.

use payments_http::query::invalid_parameter;
use payments_http::{Problem, Query};
use payments_model::{Currency, FailureCode, Money};
use payments_store::DueRow;

/// The longest text of a field, in characters: that of an account id.
const LONGEST: usize = 48;

/// The fields that a filter takes, in the order of the form.
const FIELDS: [&str; 5] = ["account", "payee", "reference", "amount", "code"];

/// A filter. Empty fields match every payment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// The fields as they were sent, in the order of [`FIELDS`].
    texts: [String; 5],
    amount: Option<Asked>,
    code: Option<FailureCode>,
}

/// An amount in major units, with or without a currency.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    whole: String,
    /// Without zeros at its end.
    fraction: String,
    currency: Option<Currency>,
}

impl Filter {
    /// Reads the fields of a request.
    ///
    /// # Errors
    /// A problem for a field that is too long, an amount that cannot be read, or a code that is not a code.
    pub(super) fn read(query: &Query<'_>) -> Result<Self, Problem> {
        let mut filter = Self::default();
        for (name, text) in FIELDS.into_iter().zip(&mut filter.texts) {
            *text = query.text(name)?.unwrap_or_default().trim().to_owned();
            if text.chars().count() > LONGEST {
                return Err(invalid_parameter(name, &format!("it has more than {LONGEST} characters")));
            }
        }
        let [.., amount, code] = &filter.texts;
        if !amount.is_empty() {
            let wrong = "write it in major units, such as 1,312.47 or 1312.47 GBP";
            filter.amount = Some(Asked::parse(amount).ok_or_else(|| invalid_parameter("amount", &wrong))?);
        }
        if !code.is_empty() {
            filter.code = Some(code.parse().map_err(|error| invalid_parameter("code", &error))?);
        }
        Ok(filter)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.iter().all(String::is_empty)
    }

    /// The fields that are not empty, for a link.
    pub(super) fn arguments(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = FIELDS.into_iter().zip(self.texts.iter().map(String::as_str));
        all.filter(|(_, text)| !text.is_empty())
    }

    /// The text of a field.
    pub(super) fn text(&self, field: &str) -> &str {
        self.arguments().find(|(name, _)| *name == field).map_or("", |(_, text)| text)
    }

    pub(super) fn matches(&self, row: &DueRow) -> bool {
        let [account, payee, reference, ..] = &self.texts;
        has(row.head.account.as_str(), account)
            && has(row.payee.as_str(), payee)
            && has(row.reference.as_ref().map_or("", |reference| reference.as_str()), reference)
            && self.amount.as_ref().is_none_or(|asked| asked.is(row.money))
            && self.code.as_ref().is_none_or(|code| row.failure_code.as_ref() == Some(code))
    }
}

/// Whether a text has a part, in capitals or not.
fn has(text: &str, part: &str) -> bool {
    part.is_empty() || text.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
}

impl Asked {
    fn parse(text: &str) -> Option<Self> {
        let text: String = text.chars().filter(|c| !c.is_whitespace() && *c != ',').collect();
        let (number, currency) = match text.find(|c: char| c.is_ascii_alphabetic()) {
            Some(place) => {
                let (number, code) = text.split_at(place);
                (number, Some(Currency::from_stored(&code.to_ascii_uppercase()).ok()?))
            }
            None => (text.as_str(), None),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if number.len() > 24 || (whole.is_empty() && fraction.is_empty()) || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        Some(Self { whole: whole.to_owned(), fraction: fraction.trim_end_matches('0').to_owned(), currency })
    }

    /// Whether an amount is this one, by the decimals of its currency.
    fn is(&self, money: Money) -> bool {
        let decimals = money.currency.decimals();
        if self.currency.is_some_and(|currency| currency != money.currency) || self.fraction.len() > decimals {
            return false;
        }
        let minor = format!("{}{:0<decimals$}", self.whole, self.fraction);
        minor.parse() == Ok(money.amount.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(minor: i64, currency: &str) -> Money {
        Money { amount: minor.try_into().unwrap(), currency: currency.parse().unwrap() }
    }

    #[test]
    fn an_amount_is_asked_for_as_people_write_it() {
        for (text, minor, currency, is) in [
            ("1,312.47", 131_247, "GBP", true),
            ("1312.47 GBP", 131_247, "GBP", true),
            ("1312.47gbp", 131_247, "GBP", true),
            ("1312.47 EUR", 131_247, "GBP", false),
            ("1312.4", 131_240, "GBP", true),
            ("1312.4", 131_247, "GBP", false),
            ("1312", 131_200, "GBP", true),
            ("1312", 1_312, "GBP", false),
            ("1,832,162", 1_832_162, "JPY", true),
            ("1832162.00 JPY", 1_832_162, "JPY", true),
            ("1832162.5", 1_832_162, "JPY", false),
            (".05", 5, "GBP", true),
            ("0.050", 5, "GBP", true),
            ("99999999999999999999", 1, "GBP", false),
        ] {
            assert_eq!(Asked::parse(text).map(|asked| asked.is(money(minor, currency))), Some(is), "{text} {minor}");
        }
        for text in ["", ".", "x", "-1", "1.2.3", "12 pounds", "1e3", "GBP", "1'000", "<b>"] {
            assert_eq!(Asked::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_part_of_a_text_matches_in_capitals_or_not() {
        for (text, part, is) in
            [("acc-Alice", "ALI", true), ("acc-alice", "", true), ("acc-alice", "alicf", false), ("", "a", false)]
        {
            assert_eq!(has(text, part), is, "{text} {part}");
        }
    }
}
