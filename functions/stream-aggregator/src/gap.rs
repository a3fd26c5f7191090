//! Gaps of the log: changes that the stream dropped, and losses that a repair or a restore noted.

use chrono::TimeDelta;
use payments_model::{GapEvent, UtcSecond};
use payments_store::LogHead;

use crate::fold::Change;

/// The age from which a record shows that the stream may have dropped older records. The stream keeps records for 24
/// hours and then drops them without an error. Clocks differ, and reading takes time, so the age is an hour less.
const ALMOST_DROPPED: TimeDelta = TimeDelta::hours(23);

const DROPPED: &str =
    "changes were read 23 hours after they were made, or later, so that the stream may have dropped older ones";
const RESTORED: &str = "a restore may have lost changes of the log";
const DRIFT: &str = "the counters of a date had to be repaired, so that changes may be missing here, too";

/// Returns the gap before new changes that are read at `now`, if a gap must be marked: the log's head
/// notes missed events, or the stream may have dropped changes.
pub(crate) fn gap_before(new: &[Change], head: &LogHead, now: UtcSecond) -> Option<GapEvent> {
    let counted = new.iter().find(|change| !change.is_neutral());
    let created_at = counted.and_then(|change| change.created_at);
    let dropped = created_at.filter(|created_at| created_at.saturating_add(ALMOST_DROPPED) < now);
    match (head.missed, dropped) {
        (None, None) => None,
        (Some(missed), None) => {
            let reason = if missed.since.is_some() { RESTORED } else { DRIFT };
            Some(GapEvent { at: now, since: missed.since, until: missed.until, reason })
        }
        (missed, Some(created_at)) => {
            let until = missed.map_or(created_at, |missed| missed.until.max(created_at));
            Some(GapEvent { at: now, since: None, until, reason: DROPPED })
        }
    }
}

#[cfg(test)]
mod tests {
    use payments_model::Logged;
    use payments_store::Missed;

    use super::*;
    use crate::fold::Effect;

    fn at(text: &str) -> UtcSecond {
        text.parse().unwrap()
    }

    #[test]
    fn a_gap_is_what_was_dropped_or_noted() {
        let now = at("2026-12-02T10:00:00Z");
        let made = |created_at| Change {
            sequence_number: 1.into(),
            created_at,
            effect: Effect::Unreadable(None),
            logged: Logged::Nothing,
        };
        let neutral =
            Change { effect: Effect::Moved { before: None, after: None }, ..made(Some(at("2026-12-01T10:00:00Z"))) };
        let head = LogHead::first("arn", now);
        let missed = Missed { since: Some(at("2026-12-01T08:00:00Z")), until: at("2026-12-01T12:00:00Z") };
        let mut restored = head.clone();
        restored.missed = Some(missed);
        let mut drifted = head.clone();
        drifted.missed = Some(Missed { since: None, ..missed });
        for (created_at, head, want) in [
            (None, &head, None),
            (Some("2026-12-01T11:00:00Z"), &head, None),
            (Some("2026-12-01T10:59:59Z"), &head, Some((None, "2026-12-01T10:59:59Z", DROPPED))),
            (None, &restored, Some((missed.since, "2026-12-01T12:00:00Z", RESTORED))),
            (None, &drifted, Some((None, "2026-12-01T12:00:00Z", DRIFT))),
            (Some("2026-12-01T10:00:00Z"), &restored, Some((None, "2026-12-01T12:00:00Z", DROPPED))),
        ] {
            let changes = [neutral.clone(), made(created_at.map(at))];
            let want = want.map(|(since, until, why)| GapEvent { at: now, since, until: at(until), reason: why });
            assert_eq!(gap_before(&changes, head, now), want, "{created_at:?}");
        }
    }
}
