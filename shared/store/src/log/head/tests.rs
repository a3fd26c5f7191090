//! Tests of the log's head, segments and places.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::UtcSecond;

use super::*;
use crate::item::number;
use crate::log::head::{LogHead, Missed};
use crate::log::position::LogPosition;
use crate::log::segment;
use crate::size::item_bytes;

const ARN: &str =
    "arn:aws:dynamodb:eu-west-2:123456789012:table/scheduled-payments-payments/stream/2026-11-20T09:00:00.000";

/// The epoch of a log that begins at the beginning of 2026.
const EPOCH: Epoch = Epoch::from_stored(3_156_480).unwrap();

fn begun() -> LogHead {
    LogHead::first(ARN, at("2026-01-01T00:00:00Z"))
}

fn at(text: &str) -> UtcSecond {
    text.parse().unwrap()
}

fn day(days: i64) -> UtcSecond {
    at("2026-01-01T12:00:00Z").saturating_add(TimeDelta::days(days))
}

#[test]
fn the_head_is_read_as_it_was_written_and_costs_one_unit() {
    let mut head = begun();
    for days in 0..100 {
        head = head.after_append(day(days));
    }
    head.next = 999_999_999;
    head.epoch = Epoch::from_stored(4_000_012).unwrap();
    head.ended = (4_000_001..4_000_012).map(|epoch| (Epoch::from_stored(epoch).unwrap(), 999_999_999)).collect();
    head.missed = Some(Missed { since: Some(day(98)), until: day(99) });
    let mut item = head.item().unwrap();
    assert!(item_bytes(&item) <= 1_024, "{} bytes", item_bytes(&item));
    // A later version's attribute.
    item.insert("somethingNew".to_owned(), number(1));
    assert_eq!(LogHead::parse(item).unwrap(), head);
}

#[test]
fn the_oldest_segment_is_the_first_of_a_day_that_is_kept() {
    let mut head = begun();
    for days in 0..60 {
        // Two segments a day.
        head = head.after_append(day(days)).after_append(day(days));
    }
    let now = day(59);
    // Day 23 began 36 days and 12 hours ago.
    assert_eq!(head.oldest(now), (EPOCH, 2 * 24 + 1));
    // After 36 idle days nothing is kept, and the numbers continue.
    assert_eq!(head.oldest(day(59 + 36)), (EPOCH, 121));
    let later = head.after_append(day(59 + 36));
    assert_eq!((later.oldest(day(59 + 36)), later.next), ((EPOCH, 121), 122));
}

#[test]
fn the_segment_after_a_place_has_its_day_and_is_kept_for_36_days() {
    let head = begun().after_append(day(0)).after_append(day(0)).after_append(day(2));
    let kept = |number| head.kept_at(LogPosition::start_of(EPOCH, number)).unwrap();
    let [first, third] = ["2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"].map(at);
    assert_eq!(kept(1), (first, at("2026-02-06T00:00:00Z")));
    assert_eq!(kept(2).0, first);
    assert_eq!((kept(3).0, kept(4).0), (third, third));
    assert_eq!(head.kept_at(LogPosition::BEGINNING).unwrap().0, first, "before all segments");
    assert_eq!(begun().kept_at(LogPosition::BEGINNING), None);
}

#[test]
fn a_clock_that_is_behind_hides_nothing() {
    let late = begun().after_append(at("2026-01-02T00:00:01Z"));
    let head = late.after_append(at("2026-01-01T23:59:59Z"));
    assert_eq!(head.oldest(at("2026-01-03T00:00:00Z")), (EPOCH, 1));
    let expired = at("2026-02-06T00:00:00Z");
    assert_eq!(head.oldest(expired), (EPOCH, 1), "the second day is kept");
    // A restore to the first day needs the segments that the fast clock appended, even if the days
    // of the head are inverted.
    let mut inverted = head.clone();
    inverted.days.insert(day_of(day(0)), (EPOCH, 2));
    for (head, what) in [(head, "in order"), (inverted, "inverted")] {
        for asked in ["2025-12-31T12:00:00Z", "2026-01-01T22:59:59Z", "2026-01-02T12:00:00Z"] {
            let place = LogPosition { epoch: EPOCH, number: 1, offset: 0 };
            assert_eq!(head.day_before(at(asked)), place, "{asked}, {what}");
        }
    }
}

#[test]
fn the_log_lacks_something_for_a_reader_who_is_beyond_its_end() {
    let head = begun().after_append(day(0)).after_append(day(1));
    let place = |epoch: Epoch, number, offset| LogPosition { epoch, number, offset };
    let later = Epoch::from_stored(EPOCH.get() + 1).unwrap();
    for (at, want) in [
        (LogPosition::BEGINNING, 2),
        (place(EPOCH, 1, 0), 2),
        (place(EPOCH, 2, 9), 1),
        (head.end(), 0),
        (place(EPOCH, 3, 1), 1),
        (place(EPOCH, 9, 0), 1),
        (place(later, 1, 0), 1),
    ] {
        assert_eq!(head.segments_after(at), want, "{at}");
    }
}

#[test]
fn a_damaged_head_is_an_error() {
    let item = begun().item().unwrap();
    for (name, value) in [
        ("epoch", number(0)),
        ("next", number("-1")),
        ("source", number(1)),
        ("ended", number(1)),
        ("missedUntil", number(1)),
    ] {
        let mut damaged = item.clone();
        damaged.insert(name.to_owned(), value);
        assert!(LogHead::parse(damaged).is_err(), "{name}");
    }
}

#[test]
fn a_segment_is_read_as_it_was_written() {
    let long: Vec<String> = (0..1_000).map(|n| format!(r#"{{"id":"1-{n}","type":"payment.scheduled"}}"#)).collect();
    for events in [vec!["{}".to_owned()], long] {
        let item = segment::segment_of(EPOCH, 7, &events, day(0));
        assert_eq!(segment::events_of(&item).unwrap(), events);
        assert_eq!(item["sk"], AttributeValue::S("000000000007".to_owned()));
        for name in ["codec", "text", "frame", "bytes", "events"] {
            let mut damaged = item.clone();
            if damaged.remove(name).is_some() {
                assert!(segment::events_of(&damaged).is_err(), "without {name}");
            }
        }
        let mut damaged = item.clone();
        damaged.insert("events".to_owned(), number(events.len() + 1));
        assert!(segment::events_of(&damaged).is_err());
    }
}

#[test]
fn a_position_has_one_text() {
    for text in ["1.1.0", "12.345.999", "1.999999999999.0"] {
        assert_eq!(text.parse::<LogPosition>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "1",
        "1.1",
        "0.1.0",
        "1.0.0",
        "01.1.0",
        "1.01.0",
        "1.1.00",
        "+1.1.0",
        "1.1.-1",
        "1.1.0.0",
        "1.1.4294967296",
    ] {
        assert!(text.parse::<LogPosition>().is_err(), "{text:?}");
    }
    assert!("1.2.0".parse::<LogPosition>().unwrap() < "1.10.0".parse::<LogPosition>().unwrap());
}

/// An epoch without a segment is before the log that follows a lost one. New readers begin with that log: it says what was lost.
#[test]
fn the_log_that_follows_a_lost_one_begins_with_itself() {
    let lost = LogHead::first(NO_SOURCE, day(0));
    let next = lost.next_epoch(1, day(1)).after_append(day(1)).after_append(day(2));
    assert_eq!(next.start_of_news(day(2)), next.start_of_epoch());
    assert!(next.has(next.start_of_epoch(), day(2)) && next.has(next.end(), day(2)));
    assert!(!next.has(lost.end(), day(2)), "nothing of the epoch before is there");
    assert!(!next.covers(day(0), day(2)) && !next.covers(day(1), day(2)));
    // A restore of a log that had segments is another matter.
    let restored = begun().after_append(day(0)).next_epoch(2, day(1)).after_append(day(1));
    assert_eq!(restored.start_of_news(day(1)), restored.end());
}

/// A reader that lost its place reads an epoch from its beginning, and waits for the next one while this one is to end.
#[test]
fn a_reader_without_a_place_begins_with_the_epoch_that_a_restore_began() {
    let lost = LogHead::first(NO_SOURCE, day(0));
    assert_eq!(lost.start_after_loss(day(0)), lost.end());
    let next = lost.next_epoch(1, day(1)).after_append(day(1)).after_append(day(2));
    assert_eq!(next.start_after_loss(day(2)), next.start_of_epoch());
    let ended = LogHead { source: NO_SOURCE.to_owned(), ..begun().after_append(day(0)) };
    assert_eq!(ended.start_after_loss(day(0)), ended.end());
    let restored = ended.next_epoch(2, day(1)).after_append(day(1));
    assert_eq!(restored.start_after_loss(day(1)), restored.start_of_epoch());
    // Expired segments have no place.
    assert_eq!(restored.start_after_loss(day(90)), restored.start(day(90)));
}
