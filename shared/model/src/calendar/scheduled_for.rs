//! The requested time of a payment: a business date or an instant, in one spelling each.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, FixedOffset, SecondsFormat, Timelike};

use crate::calendar::instant::{BusinessDate, CalendarError, UtcSecond};
use crate::calendar::zone::BusinessZone;

/// The requested time of a payment: a business date or an instant. Displayed as received, except
/// that an offset of zero becomes `Z`, and a fraction of zeros is dropped.
///
/// ```
/// # use payments_model::*;
/// let london: BusinessZone = "Europe/London".parse()?;
///
/// // A date is due at its first instant by the bank's clocks, which in summer is the evening before by UTC.
/// let (at, date) = "2026-07-01".parse::<ScheduledFor>()?.due(london);
/// assert_eq!((at.to_string(), date.to_string()), ("2026-06-30T23:00:00Z".to_owned(), "2026-07-01".to_owned()));
///
/// // An instant keeps its offset.
/// let instant: ScheduledFor = "2026-07-01T09:30:00+05:30".parse()?;
/// assert_eq!(instant.to_string(), "2026-07-01T09:30:00+05:30");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduledFor {
    /// The first instant of that business day.
    Date(BusinessDate),
    /// That second.
    Instant(DateTime<FixedOffset>),
}

impl FromStr for ScheduledFor {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() <= "YYYY-MM-DD".len() {
            let malformed = |error| if error == CalendarError::NoDate { CalendarError::Malformed } else { error };
            return text.parse().map(Self::Date).map_err(malformed);
        }
        let text = without_zeros(text)?;
        // RFC 3339 and chrono allow more spellings: a space or "t" between date and time, "z", and signs that
        // look like "-".
        if !is_plain(&text) {
            return Err(CalendarError::Malformed);
        }
        let instant = DateTime::parse_from_rfc3339(&text).map_err(|_| CalendarError::Malformed)?;
        if instant.nanosecond() != 0 {
            return Err(CalendarError::Fraction);
        }
        // A day away from both ends, so its date is within YEARS in every time zone.
        let utc = instant.to_utc().date_naive();
        let inside = BusinessDate::MIN.0 < utc && utc < BusinessDate::MAX.0;
        if inside { Ok(Self::Instant(instant)) } else { Err(CalendarError::Year) }
    }
}

/// The form of an instant up to its offset; `0` stands for a digit.
const WHOLE_SECONDS: &str = "0000-00-00T00:00:00";

/// The most digits that a fraction can have: those of a nanosecond.
const MAX_FRACTION_DIGITS: usize = 9;

/// Removes a fraction of zeros.
fn without_zeros(text: &str) -> Result<Cow<'_, str>, CalendarError> {
    let parts =
        text.split_at_checked(WHOLE_SECONDS.len()).and_then(|(local, rest)| Some((local, rest.strip_prefix('.')?)));
    let Some((local, rest)) = parts else { return Ok(Cow::Borrowed(text)) };
    let offset = rest.trim_start_matches('0');
    match offset.bytes().next() {
        Some(b'0'..=b'9') => Err(CalendarError::Fraction),
        _ if !(1..=MAX_FRACTION_DIGITS).contains(&(rest.len() - offset.len())) => Err(CalendarError::Malformed),
        _ => Ok(Cow::Owned(format!("{local}{offset}"))),
    }
}

/// Whether a text is [`WHOLE_SECONDS`] with `Z` or a numeric offset.
fn is_plain(text: &str) -> bool {
    let has_form = |text: &str, form: &str| {
        let same = |(is, wanted): (u8, u8)| if wanted == b'0' { is.is_ascii_digit() } else { is == wanted };
        text.len() == form.len() && text.bytes().zip(form.bytes()).all(same)
    };
    let Some((local, offset)) = text.split_at_checked(WHOLE_SECONDS.len()) else { return false };
    let numeric = offset.strip_prefix(['+', '-']).is_some_and(|offset| has_form(offset, "00:00"));
    has_form(local, WHOLE_SECONDS) && (offset == "Z" || numeric)
}

impl fmt::Display for ScheduledFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date(date) => date.fmt(f),
            Self::Instant(instant) => f.write_str(&instant.to_rfc3339_opts(SecondsFormat::Secs, true)),
        }
    }
}

impl ScheduledFor {
    /// The instant and the business date at which the payment falls due.
    #[must_use]
    pub fn due(&self, zone: BusinessZone) -> (UtcSecond, BusinessDate) {
        match self {
            Self::Date(date) => (zone.start_of(*date), *date),
            Self::Instant(instant) => {
                let due_at = UtcSecond(instant.to_utc());
                (due_at, zone.date_of(due_at))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::calendar::instant::tests::instants;

    #[test]
    fn scheduled_for_is_a_date_or_an_instant() {
        use CalendarError::{Fraction, Malformed, Year};
        for (text, want) in [
            ("2026-12-01", Ok("2026-12-01")),
            ("2026-12-01T09:30:00Z", Ok("2026-12-01T09:30:00Z")),
            ("2026-12-01T09:30:00+05:30", Ok("2026-12-01T09:30:00+05:30")),
            ("2026-12-01T09:30:00-05:30", Ok("2026-12-01T09:30:00-05:30")),
            ("2026-12-01T09:30:00+00:00", Ok("2026-12-01T09:30:00Z")),
            ("2026-12-01T09:30:00-00:00", Ok("2026-12-01T09:30:00Z")),
            ("2026-12-01T09:30:00.000Z", Ok("2026-12-01T09:30:00Z")),
            ("2026-12-01T09:30:00.0+01:00", Ok("2026-12-01T09:30:00+01:00")),
            ("2026-12-01T09:30:00.000000000Z", Ok("2026-12-01T09:30:00Z")),
            ("2026-12-01T09:30:00.0000000000Z", Err(Malformed)),
            ("2026-12-01T09:30:00.5Z", Err(Fraction)),
            ("2026-12-01T09:30:00.0005Z", Err(Fraction)),
            ("2026-12-01T09:30:00.Z", Err(Malformed)),
            ("2026-12-01T09:30:00.", Err(Malformed)),
            ("2026-12-01T09:30:00.0", Err(Malformed)),
            ("2026-12-01T09:30:00.0.0Z", Err(Malformed)),
            ("2026-12-01T09:30:00,0Z", Err(Malformed)),
            ("2026-12-01 09:30:00Z", Err(Malformed)),
            ("2026-12-01t09:30:00Z", Err(Malformed)),
            ("2026-12-01T09:30:00z", Err(Malformed)),
            ("2026-12-01_09:30:00Z", Err(Malformed)),
            ("2026-12-01T09:30:00\u{2212}05:00", Err(Malformed)),
            ("2026-12-01T09:30:00+0100", Err(Malformed)),
            ("2026-12-01T09:30:00+01", Err(Malformed)),
            ("2026-12-01T09:30:00+24:00", Err(Malformed)),
            ("2026-12-01T09:30:00+01:00 ", Err(Malformed)),
            ("2026-12-01T09:30Z", Err(Malformed)),
            ("2026-12-01T9:30:00Z", Err(Malformed)),
            ("+2026-12-01T09:30:00Z", Err(Malformed)),
            ("\u{660}026-12-01T09:30:00Z", Err(Malformed)),
            ("2026-12-01T23:59:60Z", Err(Fraction)),
            ("2026-02-30", Err(Malformed)),
            ("2026-13-01", Err(Malformed)),
            ("2026-1-1", Err(Malformed)),
            ("26-01-01", Err(Year)),
            ("2026-12- 1", Err(Malformed)),
            ("2026-12-01 ", Err(Malformed)),
            ("2026-12-01T09:30:00", Err(Malformed)),
            ("2026-12-01T24:00:00Z", Err(Malformed)),
            ("tomorrow", Err(Malformed)),
            ("", Err(Malformed)),
            ("1999-12-31", Err(Year)),
            ("2100-01-01", Err(Year)),
            ("9999-12-31", Err(Year)),
            ("2000-01-01T23:59:59Z", Err(Year)),
            ("2000-01-02T00:00:00Z", Ok("2000-01-02T00:00:00Z")),
            ("2099-12-30T23:59:59Z", Ok("2099-12-30T23:59:59Z")),
            ("2099-12-30T23:59:59-12:00", Err(Year)),
        ] {
            let got = text.parse::<ScheduledFor>().map(|s| s.to_string());
            assert_eq!(got, want.map(str::to_owned), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_displayed_is_read_again(at in instants(), minutes in -1_439_i32..=1_439) {
            let offset = FixedOffset::east_opt(minutes * 60).ok_or_else(|| TestCaseError::fail("an offset"))?;
            let wanted = ScheduledFor::Instant(at.as_chrono().with_timezone(&offset));
            // Stored texts were displayed, so each is in the one form that can be parsed.
            prop_assert_eq!(wanted.to_string().parse::<ScheduledFor>()?, wanted);
        }
    }
}
