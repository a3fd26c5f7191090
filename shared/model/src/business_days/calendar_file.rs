//! The files of calendars: a header of `field: value`, an empty line, then `date name`, one closed date a line.

use sha2::{Digest as _, Sha256};

use crate::business_days::closed_days::{Calendar, ClosedDate, is_weekend};
use crate::calendar::instant::BusinessDate;
use crate::calendar::zone::BusinessZone;

/// Why a calendar's file is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the calendar {calendar} is invalid in line {line}: {why}")]
pub struct CalendarFileError {
    /// The calendar.
    pub calendar: &'static str,
    /// The line, from 1 on.
    pub line: usize,
    /// The fault, and its remedy.
    pub why: String,
}

/// The fields of the header, in their order.
const HEADER: [&str; 9] = ["calendar", "name", "zone", "source", "licence", "made", "first", "published", "covered"];

/// The bytes of a file's digest that a version has: 32 bits distinguish the few versions of a calendar made on one day.
const DIGEST_BYTES: usize = 4;

/// Parses a calendar's file.
pub(super) fn parse(id: &'static str, text: &'static str) -> Result<Calendar, CalendarFileError> {
    let lines: Vec<&'static str> = text.lines().collect();
    let fault = |index: usize, why: String| CalendarFileError { calendar: id, line: index + 1, why };
    let header = |index: usize| {
        let value = lines.get(index).and_then(|line| line.strip_prefix(HEADER[index])?.strip_prefix(": "));
        value.filter(|value| !value.is_empty()).ok_or_else(|| fault(index, format!("write \"{}: …\"", HEADER[index])))
    };
    let date = |index: usize, text: &str| {
        text.parse::<BusinessDate>().map_err(|error| fault(index, format!("{text:?} is not a date: {error}")))
    };
    let own = header(0)?;
    if own != id {
        return Err(fault(0, format!("it is the calendar {own}")));
    }
    let name = header(1)?;
    let zone: BusinessZone = header(2)?.parse().map_err(|error| fault(2, format!("{error}")))?;
    let source = header(3)?;
    header(4)?;
    let version = format!("{}-{}", date(5, header(5)?)?, digest(text));
    let first = date(6, header(6)?)?;
    let published = date(7, header(7)?)?;
    let covered = date(8, header(8)?)?;
    if !(first <= published && published <= covered) {
        return Err(fault(8, "the dates \"first\", \"published\" and \"covered\" are not in this order".to_owned()));
    }
    if lines.get(HEADER.len()).is_some_and(|line| !line.is_empty()) {
        return Err(fault(HEADER.len(), "the header ends with an empty line".to_owned()));
    }
    let mut closed: Vec<ClosedDate> = Vec::new();
    for (index, line) in lines.iter().enumerate().skip(HEADER.len() + 1) {
        let (day, name) = line.split_once(' ').ok_or_else(|| fault(index, "write \"YYYY-MM-DD name\"".to_owned()))?;
        let date = date(index, day)?;
        let why = if is_weekend(date) {
            "is a Saturday or a Sunday, which are closed anyway; remove the line"
        } else if closed.last().is_some_and(|before| before.date >= date) {
            "is not after the date of the line before"
        } else if !(first..=covered).contains(&date) {
            "is outside \"first\" to \"covered\""
        } else {
            closed.push(ClosedDate { date, name });
            continue;
        };
        return Err(fault(index, format!("{date} {why}")));
    }
    Ok(Calendar { id, version, name, zone, source, first, published, covered, closed })
}

/// The first digits of a file's SHA-256.
fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "calendar: X\nname: A rail\nzone: Europe/Berlin\nsource: us\nlicence: none\nmade: 2026-11-24\n\
                         first: 2026-01-01\npublished: 2026-06-30\ncovered: 2026-12-31\n\n2026-01-01 New Year\n2026-12-25 Christmas\n";

    #[test]
    fn each_change_of_a_file_is_another_version() {
        let version = |text: String| parse("X", text.leak()).map(|calendar| calendar.version().to_owned());
        let whole = version(WHOLE.to_owned()).unwrap();
        assert_eq!((whole.len(), &whole[..11]), (19, "2026-11-24-"));
        assert_eq!(version(WHOLE.to_owned()), Ok(whole.clone()));
        for (from, to) in
            [("2026-12-25 Christmas\n", ""), ("made: 2026-11-24", "made: 2026-11-25"), ("source: us", "source: them")]
        {
            assert_ne!(version(WHOLE.replacen(from, to, 1)).unwrap(), whole, "{from}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_has_its_line() {
        assert_eq!(parse("X", WHOLE).map(|calendar| calendar.closed.len()), Ok(2));
        for (from, to, want) in [
            ("calendar: X", "calendar: Y", "1: it is the calendar Y"),
            ("name: A rail", "name: ", "2: write \"name: …\""),
            ("name: A rail\n", "", "2: write \"name: …\""),
            ("Europe/Berlin", "Europe/Frankfurt", "3: a time zone is an IANA name, such as Europe/London or UTC"),
            (
                "2026-11-24",
                "today",
                "6: \"today\" is not a date: expected an existing date as YYYY-MM-DD, such as 2026-12-01",
            ),
            ("2026-06-30", "2027-06-30", "9: the dates \"first\", \"published\" and \"covered\" are not in this order"),
            ("\n\n", "\n", "10: the header ends with an empty line"),
            ("2026-01-01 New Year", "2026-01-01", "11: write \"YYYY-MM-DD name\""),
            (
                "2026-12-25 Christmas",
                "2026-12-26 Boxing Day",
                "12: 2026-12-26 is a Saturday or a Sunday, which are closed anyway; remove the line",
            ),
            ("2026-12-25 Christmas", "2026-01-01 Again", "12: 2026-01-01 is not after the date of the line before"),
            ("2026-12-25 Christmas", "2027-01-01 New Year", "12: 2027-01-01 is outside \"first\" to \"covered\""),
        ] {
            let text: &'static str = WHOLE.replacen(from, to, 1).leak();
            let error = parse("X", text).expect_err(want).to_string();
            assert_eq!(error, format!("the calendar X is invalid in line {want}"));
        }
    }
}
