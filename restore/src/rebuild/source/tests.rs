//! Proofs that no events are missing, and cases without a proof.

use super::*;

const SINCE: &str = "2026-11-20T08:30:00Z";

fn at(text: &str) -> UtcSecond {
    text.parse().unwrap()
}

/// The head of a log that began then, and got a segment at each of these instants.
fn head(begun: &str, segments: &[&str]) -> LogHead {
    segments.iter().fold(LogHead::first("arn", at(begun)), |head, segment| head.after_append(at(segment)))
}

#[test]
fn a_log_covers_an_instant_if_it_is_older_than_its_day() {
    let now = "2026-11-20T12:00:00Z";
    for (segments, now, want) in [
        (&[][..], now, false),
        // The log began later, or on the day itself.
        (&["2026-11-21T00:00:00Z"], "2026-11-22T00:00:00Z", false),
        (&["2026-11-20T10:00:00Z"], now, false),
        (&["2026-11-20T08:00:00Z", "2026-11-20T10:00:00Z"], now, false),
        // Reading begins at the first segment, whose events say when the log began.
        (&["2026-11-01T08:00:00Z", "2026-11-21T10:00:00Z"], "2026-11-22T00:00:00Z", false),
        // The log is older, with and without a segment on that day.
        (&["2026-11-19T08:00:00Z", "2026-11-20T10:00:00Z"], now, true),
        (&["2026-11-01T08:00:00Z", "2026-11-02T08:00:00Z", "2026-11-21T10:00:00Z"], "2026-11-22T00:00:00Z", true),
        // The segment before that day has expired.
        (&["2026-10-01T08:00:00Z", "2026-11-21T10:00:00Z"], "2026-11-22T00:00:00Z", true),
        // The segment of that day itself has expired.
        (&["2026-11-19T08:00:00Z", "2026-11-20T08:00:00Z"], "2027-01-20T00:00:00Z", false),
    ] {
        let begun = segments.first().copied().unwrap_or(SINCE);
        assert_eq!(head(begun, segments).covers(at(SINCE), at(now)), want, "{segments:?} at {now}");
    }
}

#[test]
fn the_first_event_is_from_before_or_what_was_before_is_unknown() {
    for (first, want) in [
        (None, Some("the log has no event; changes since")),
        (Some("2026-11-20T08:30:00Z"), None),
        (Some("2026-11-20T08:30:01Z"), Some("the log begins at 2026-11-20T08:30:01Z; changes since")),
    ] {
        let mut read = Read::default();
        read.payments.first_at = first.map(at);
        read.check_beginning("log", at(SINCE));
        let hole = read.holes.first().map(|hole| hole.chars().take(want.map_or(0, str::len)).collect::<String>());
        assert_eq!(hole.as_deref(), want);
    }
}

#[test]
fn an_epoch_of_the_journal_ends_where_the_next_one_says() {
    let place = |text: &str| text.parse::<LogPosition>().unwrap();
    let restored =
        |at: &str, end: &str| format!(r#"{{"id":"8-restored","type":"log.restored","at":"{at}","endCursor":"{end}"}}"#);
    let scheduled = r#"{"id":"8-x-1","type":"payment.scheduled","at":"2026-11-20T09:00:00Z"}"#.to_owned();
    let later = "2026-11-20T09:00:00Z";
    for (first, event, want) in [
        ("8.1.0", restored(later, "7.5.0"), None),
        // The table of the log was restored, and the journal has more events.
        ("8.1.0", restored(later, "7.4.0"), None),
        ("8.1.0", restored(later, "7.6.0"), Some("the journal has nothing between 7.5.0 and 7.6.0")),
        ("9.1.0", restored(later, "8.2.0"), Some("the journal has nothing between 7.5.0 and 8.2.0")),
        ("8.1.0", restored("2026-11-20T08:00:00Z", "7.6.0"), None),
        ("8.3.0", scheduled.clone(), Some("the journal has nothing between 7.5.0 and 8.3.0")),
        ("8.1.0", scheduled, Some("a log without an end before it begins at 8.1.0: changes after 7.5.0 are unknown")),
    ] {
        let first = place(first);
        let after = LogPosition { number: first.number + 1, ..first };
        let object = JournalObject { first, after, events: vec![event] };
        let hole = hole_between(place("7.5.0"), &object, at(SINCE)).unwrap();
        assert_eq!(hole.as_deref(), want);
    }
}
