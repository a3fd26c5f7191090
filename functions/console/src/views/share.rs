//! Shares of payments: percentages, and the widths of the pieces of a bar.

use maud::{Markup, html};
use payments_model::{DayCounts, Status};

use crate::html::class;

/// The statuses in the order of a bar: the settled ones first.
const ORDER: [Status; 5] = [Status::Processed, Status::Failed, Status::Pending, Status::Scheduled, Status::Cancelled];

/// The width of a bar for each factor of ten.
const DECADE: i64 = 32;

/// The width of a bar of one payment.
const ONE: i64 = 8;

/// A share with one decimal. Only all is 100 %, and only none is 0 %.
pub(crate) fn percent(part: i64, whole: i64) -> String {
    if part <= 0 || whole <= 0 {
        return "0 %".to_owned();
    }
    if part >= whole {
        return "100 %".to_owned();
    }
    let (part, whole) = (i128::from(part), i128::from(whole));
    match (part * 2_000 + whole) / (whole * 2) {
        0 => "under 0.1 %".to_owned(),
        1_000 => "over 99.9 %".to_owned(),
        tenths => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

/// The share of settled payments among those that were not cancelled: how many of how many.
pub(crate) fn settled(counts: &DayCounts) -> (i64, i64) {
    let settled = counts.count(Status::Processed) + counts.count(Status::Failed);
    (settled, counts.total() - counts.count(Status::Cancelled))
}

/// A piece of a bar: a status, its start and its width.
pub(crate) type Piece = (Status, i64, i64);

/// The pieces of a bar of this width. A status with payments has at least `least`; the largest one pays for that.
pub(crate) fn pieces(counts: &DayCounts, width: i64, least: i64) -> Vec<Piece> {
    let counted = ORDER.map(|status| (status, counts.count(status).max(0)));
    let total: i128 = counted.iter().map(|(_, count)| i128::from(*count)).sum();
    let share = |count: i64| i64::try_from(i128::from(count) * i128::from(width) / total).unwrap_or(width);
    let present = counted.into_iter().filter(|(_, count)| *count > 0);
    let mut widths: Vec<(Status, i64)> = present.map(|(status, count)| (status, share(count).max(least))).collect();
    let missing = width - widths.iter().map(|(_, width)| width).sum::<i64>();
    if let Some((_, largest)) = widths.iter_mut().max_by_key(|(_, width)| *width) {
        *largest = (*largest + missing).max(0);
    }
    let mut start = 0;
    let placed = widths.into_iter().map(|(status, width)| {
        start += width;
        (status, start - width, width)
    });
    placed.collect()
}

/// The pieces as rectangles.
pub(crate) fn rectangles(pieces: &[Piece], height: i64) -> Markup {
    html! { @for (status, x, width) in pieces { rect class=(class(*status)) x=(x) width=(width) height=(height) {} } }
}

/// The length of a bar. Ten times the payments are one [`DECADE`] more, so small dates are seen beside large ones.
pub(crate) fn length(total: i64) -> i64 {
    let Some(decades) = total.checked_ilog10() else { return 0 };
    let power = 10_i128.pow(decades);
    let within = (i128::from(total) - power) * i128::from(DECADE) / (9 * power);
    ONE + i64::from(decades) * DECADE + i64::try_from(within).unwrap_or(DECADE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: [i64; 5]) -> DayCounts {
        let mut counts = DayCounts::default();
        Status::ALL.into_iter().zip(of).for_each(|(status, count)| counts.shift(status, count));
        counts
    }

    #[test]
    fn a_percentage_never_rounds_to_all_or_none() {
        for (part, whole, want) in [
            (0, 0, "0 %"),
            (0, 7, "0 %"),
            (7, 7, "100 %"),
            (1, 3, "33.3 %"),
            (2, 3, "66.7 %"),
            (622_112, 1_003_388, "62.0 %"),
            (9_996, 10_000, "over 99.9 %"),
            (9_994, 10_000, "99.9 %"),
            (999_999, 1_000_000, "over 99.9 %"),
            (1, 1_000_000, "under 0.1 %"),
            (5, 10_000, "0.1 %"),
            (4, 10_000, "under 0.1 %"),
            // The lanes of the counters are read one by one, so a difference can be negative for a moment.
            (-1, 5, "0 %"),
            (i64::MAX - 1, i64::MAX, "over 99.9 %"),
        ] {
            assert_eq!(percent(part, whole), want, "{part} of {whole}");
        }
    }

    #[test]
    fn cancelled_payments_are_in_no_share() {
        assert_eq!(settled(&counts([1, 2, 3, 4, 90])), (7, 10));
        assert_eq!(settled(&counts([0, 0, 0, 0, 90])), (0, 0));
    }

    #[test]
    fn the_pieces_of_a_bar_fill_it_and_each_is_seen() {
        for of in [
            [1_212, 380_064, 619_871, 2_241, 130],
            [1, 0, 0, 0, 0],
            [1, 1, 1, 0, 0],
            [0, 0, i64::MAX, 1, 1],
            [-1, 0, 3, 0, 0],
        ] {
            let pieces = pieces(&counts(of), 1_000, 2);
            assert_eq!(pieces.iter().map(|(_, _, width)| width).sum::<i64>(), 1_000, "{of:?}");
            assert!(pieces.iter().all(|(_, _, width)| *width >= 2), "{of:?}: {pieces:?}");
            assert_eq!(pieces.len(), of.iter().filter(|count| **count > 0).count());
            let ends = pieces.iter().map(|(_, start, width)| start + width);
            assert!(pieces.iter().skip(1).map(|(_, start, _)| *start).eq(ends.take(pieces.len() - 1)), "{pieces:?}");
        }
        assert_eq!(pieces(&counts([0; 5]), 1_000, 2), []);
    }

    #[test]
    fn ten_times_the_payments_are_as_much_longer_everywhere() {
        for (total, want) in [
            (-1, 0),
            (0, 0),
            (1, ONE),
            (10, ONE + DECADE),
            (55, ONE + DECADE + DECADE / 2),
            (100, ONE + 2 * DECADE),
            (1_000_000, ONE + 6 * DECADE),
            (i64::MAX, ONE + 18 * DECADE + 29),
        ] {
            assert_eq!(length(total), want, "{total}");
        }
        assert!((1..5_000).map(length).is_sorted());
    }
}
