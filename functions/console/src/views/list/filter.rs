//! The filter of a list: parts of texts, an amount, and the reason of a failure.

use payments_http::query::invalid_parameter;
use payments_http::{Problem, Query};
use payments_model::{FailureCode, TypedAmount};
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
    amount: Option<TypedAmount>,
    code: Option<FailureCode>,
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
            filter.amount = Some(amount.parse().map_err(|error| invalid_parameter("amount", &error))?);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_text_matches_in_capitals_or_not() {
        for (text, part, is) in
            [("acc-Alice", "ALI", true), ("acc-alice", "", true), ("acc-alice", "alicf", false), ("", "a", false)]
        {
            assert_eq!(has(text, part), is, "{text} {part}");
        }
    }
}
