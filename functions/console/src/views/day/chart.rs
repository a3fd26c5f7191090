//! The lines of a day: payments claimed and settled in each five minutes, from samples of the counters.
//!
//! A point is the difference of two samples. If no sample was put for longer than ten minutes, the difference is spread over that time,
//! as a flat piece of the line.

use std::collections::BTreeMap;

use maud::{Markup, html};
use payments_model::{BusinessZone, DayCounts, Status, UtcSecond};

use crate::html::grouped;
use crate::times::Times;

/// The seconds of a point.
const EACH: i64 = 300;

/// The most seconds between two samples that a line joins. One sample may be missing.
const JOINED: i64 = 2 * EACH;

const HOUR: i64 = 3_600;

/// The size of the picture, which CSS stretches.
const WIDTH: i64 = 720;
const HEIGHT: i64 = 168;

/// The most spaces between two labels of the time. A phone has room for six.
const MOST_SPACES: i64 = 6;

/// The fewest hours of the picture.
const FEWEST_HOURS: i64 = 4;

/// A point of both lines: payments for each five minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    /// The begin of a time without samples, over which the numbers are spread.
    spread_from: Option<UtcSecond>,
    at: UtcSecond,
    claimed: i64,
    settled: i64,
}

/// Payments that were claimed, whatever came of them.
pub(super) fn claimed(counts: &DayCounts) -> i64 {
    counts.count(Status::Pending) + settled(counts)
}

/// Payments that were settled.
pub(super) fn settled(counts: &DayCounts) -> i64 {
    counts.count(Status::Processed) + counts.count(Status::Failed)
}

/// The seconds from one instant to another.
pub(super) fn seconds(from: UtcSecond, to: UtcSecond) -> i64 {
    (to.as_chrono() - from.as_chrono()).num_seconds()
}

/// The points of a day that began at `begin`. The last one is the counters as they are now, if the day is today.
pub(super) fn points(
    begin: UtcSecond,
    samples: &BTreeMap<UtcSecond, DayCounts>,
    now: Option<(UtcSecond, &DayCounts)>,
) -> Vec<Point> {
    // Nothing of a day is claimed before it begins.
    let mut before = (begin, 0, 0);
    let mut known = vec![before];
    let mut points = Vec::new();
    for (at, counts) in samples.range(begin..) {
        let sample = (*at, claimed(counts), settled(counts));
        points.push(point(before, sample));
        known.push(sample);
        before = sample;
    }
    if let Some((now, counts)) = now {
        // A difference of a few seconds says nothing about five minutes.
        let base = known.into_iter().rev().find(|(at, ..)| seconds(*at, now) >= EACH);
        points.extend(base.map(|base| point(base, (now, claimed(counts), settled(counts)))));
    }
    points
}

fn point(before: (UtcSecond, i64, i64), after: (UtcSecond, i64, i64)) -> Point {
    let ((from, ..), (at, ..)) = (before, after);
    let elapsed = seconds(from, at);
    // A repair of the counters can lower them.
    let per_five = |before: i64, after: i64| (after - before).max(0) * EACH / elapsed.max(EACH);
    Point {
        spread_from: (elapsed > JOINED).then_some(from),
        at,
        claimed: per_five(before.1, after.1),
        settled: per_five(before.2, after.2),
    }
}

/// The picture of a day's points.
#[derive(Debug, PartialEq, Eq)]
struct Chart {
    /// The labels of the time, evenly spaced.
    times: Vec<String>,
    /// The labels of the numbers, the largest first, evenly spaced.
    numbers: Vec<i64>,
    claimed: String,
    settled: String,
    /// The area below the settled ones.
    area: String,
}

impl Chart {
    fn new(zone: BusinessZone, begin: UtcSecond, points: &[Point]) -> Self {
        let end = points.last().map_or(begin, |last| last.at);
        let hours = ((seconds(begin, end) + HOUR - 1) / HOUR).max(FEWEST_HOURS);
        let step = (hours + MOST_SPACES - 1) / MOST_SPACES;
        let spaces = (hours + step - 1) / step;
        let most = points.iter().map(|point| point.claimed.max(point.settled)).max().unwrap_or(0);
        let unit = round_unit((most + 2) / 3);
        let scale = Scale { begin, seconds: spaces * step * HOUR, top: 3 * unit };
        let label = |space: i64| {
            let at = begin.saturating_add(chrono::TimeDelta::hours(space * step));
            zone.local(at).format("%H:%M").to_string()
        };
        let settled = scale.path(points, |point| point.settled);
        let area = match (points.first(), points.last()) {
            (Some(first), Some(last)) => {
                let (from, to) = (scale.x(first.spread_from.unwrap_or(first.at)), scale.x(last.at));
                // One area, without the jumps of the line.
                format!("M{}L{to} {HEIGHT}L{from} {HEIGHT}Z", settled.replacen('M', "", 1).replace('M', "L"))
            }
            _ => String::new(),
        };
        Self {
            times: (0..=spaces).map(label).collect(),
            numbers: (0..=3).rev().map(|part| part * unit).collect(),
            claimed: scale.path(points, |point| point.claimed),
            settled,
            area,
        }
    }
}

/// The places of instants and numbers in the picture.
struct Scale {
    begin: UtcSecond,
    seconds: i64,
    top: i64,
}

impl Scale {
    fn x(&self, at: UtcSecond) -> String {
        tenths(seconds(self.begin, at).max(0), self.seconds, WIDTH)
    }

    fn y(&self, number: i64) -> String {
        tenths(self.top - number.clamp(0, self.top), self.top, HEIGHT)
    }

    fn path(&self, points: &[Point], number: impl Fn(&Point) -> i64) -> String {
        let mut path = String::new();
        for point in points {
            let y = self.y(number(point));
            if let Some(from) = point.spread_from {
                path += &format!("M{} {y}", self.x(from));
            }
            path += &format!("{}{} {y}", if path.is_empty() { "M" } else { "L" }, self.x(point.at));
        }
        path
    }
}

/// A part of a length, with one decimal.
fn tenths(part: i64, whole: i64, length: i64) -> String {
    let tenths = i128::from(part) * i128::from(length) * 10 / i128::from(whole.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// The next number of the series 1, 2, 5, 10, 20, 50, …
fn round_unit(least: i64) -> i64 {
    let mut unit = 1;
    loop {
        for factor in [1, 2, 5] {
            if unit * factor >= least {
                return unit * factor;
            }
        }
        unit *= 10;
    }
}

/// The panel with both lines. `is_today` says whether the last point is now.
pub(super) fn panel(times: Times, begin: UtcSecond, points: &[Point], is_today: bool) -> Markup {
    html! {
        section class="panel" {
            @match points.last() {
                None => {
                    div class="head" { h2 { "Per five minutes" @if is_today { ", today" } } }
                    p class="empty quiet" {
                        @if is_today { b { "No run yet today." } " First sweep " (times.brief(begin)) "." } @else { "No sweep counted this date while it was today." }
                    }
                }
                Some(last) => {
                    div class="head" {
                        h2 { "Per five minutes" @if is_today { ", today" } }
                        p class="key quiet" { (key("claimed", last.claimed, is_today)) (key("settled", last.settled, is_today)) }
                    }
                    (figure(&Chart::new(times.zone, begin, points), &in_words(times, points)))
                }
            }
        }
    }
}

/// The dash of a line, and its number now.
fn key(line: &str, number: i64, is_today: bool) -> Markup {
    html! {
        span {
            svg viewBox="0 0 24 8" aria-hidden="true" { path class=(line) d="M0 4H24" {} }
            (line) @if is_today { ", now " b { (grouped(number.into())) } }
        }
    }
}

fn figure(chart: &Chart, words: &str) -> Markup {
    html! {
        figure class="chart" {
            ol class="y" aria-hidden="true" { @for number in &chart.numbers { li { (grouped((*number).into())) } } }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(words) {
                path class="area" d=(chart.area) {}
                @for part in 0..=3 { path class="grid" d={ "M0 " (part * HEIGHT / 3) "H" (WIDTH) } {} }
                path class="settled" d=(chart.settled) {}
                path class="claimed" d=(chart.claimed) {}
            }
            ol class="x" aria-hidden="true" { @for time in &chart.times { li { (time) } } }
        }
    }
}

/// The lines for people who do not see them: the last numbers, and the largest.
fn in_words(times: Times, points: &[Point]) -> String {
    let local = |at: UtcSecond| times.zone.local(at).format("%H:%M").to_string();
    let line = |verb: &str, number: fn(&Point) -> i64| {
        let last = points.last()?;
        let most = points.iter().max_by_key(|point| number(point))?;
        let [last_number, most_number] = [last, most].map(|point| grouped(number(point).into()));
        Some(format!("{verb}: {last_number} at {}, at most {most_number} at {}.", local(last.at), local(most.at)))
    };
    [line("Claimed", |point| point.claimed), line("Settled", |point| point.settled)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> UtcSecond {
        text.parse().unwrap()
    }

    fn counts(pending: i64, processed: i64) -> DayCounts {
        let mut counts = DayCounts::default();
        counts.shift(Status::Pending, pending);
        counts.shift(Status::Processed, processed);
        counts
    }

    /// Samples of 26 November: their time, and the pending and the processed payments.
    fn samples(of: &[(&str, i64, i64)]) -> BTreeMap<UtcSecond, DayCounts> {
        let sample = |(time, pending, processed): &(&str, i64, i64)| {
            (at(&format!("2026-11-26T{time}Z")), counts(*pending, *processed))
        };
        of.iter().map(sample).collect()
    }

    const BEGIN: &str = "2026-11-26T00:00:00Z";

    /// Points as text: the begin of a spread, the time, and both numbers.
    fn shown(points: &[Point]) -> Vec<String> {
        let time = |at: UtcSecond| at.as_chrono().format("%H:%M:%S").to_string();
        let one = |point: &Point| {
            let spread = point.spread_from.map(|from| format!("{}/", time(from))).unwrap_or_default();
            format!("{spread}{} {} {}", time(point.at), point.claimed, point.settled)
        };
        points.iter().map(one).collect()
    }

    #[test]
    fn a_point_is_the_difference_of_two_samples() {
        for (of, want) in [
            (&[][..], &[][..]),
            // The first sample is compared with the begin of the day, when nothing was claimed.
            (&[("00:00:04", 90, 10)], &["00:00:04 100 10"]),
            (&[("00:04:50", 90, 10), ("00:09:50", 150, 70)], &["00:04:50 100 10", "00:09:50 120 60"]),
            // One missing sample: the mean of ten minutes.
            (&[("00:05:00", 100, 0), ("00:15:00", 100, 80)], &["00:05:00 100 0", "00:15:00 40 40"]),
            // More are missing: the mean of the whole time, apart from what was before.
            (&[("00:05:00", 100, 0), ("01:05:00", 100, 120)], &["00:05:00 100 0", "00:05:00/01:05:00 10 10"]),
            (&[("09:00:00", 0, 1_080)], &["00:00:00/09:00:00 10 10"]),
            // A repair of the counters lowers them.
            (&[("00:05:00", 100, 50), ("00:10:00", 100, 40)], &["00:05:00 150 50", "00:10:00 0 0"]),
        ] {
            assert_eq!(shown(&points(at(BEGIN), &samples(of), None)), want, "{of:?}");
        }
        // A sample of the evening before is not part of the day.
        let early = BTreeMap::from([(at("2026-11-25T23:59:59Z"), counts(5, 5))]);
        assert_eq!(points(at(BEGIN), &early, None), []);
    }

    #[test]
    fn the_last_point_is_now() {
        let samples = samples(&[("00:05:00", 100, 10), ("00:10:00", 100, 40)]);
        for (now, want) in [
            // The newest sample is too young, so the one before is compared.
            ("00:11:00", Some("00:11:00 16 50")),
            ("00:15:00", Some("00:15:00 0 30")),
            ("00:19:59", Some("00:19:59 0 15")),
            ("00:40:00", Some("00:10:00/00:40:00 0 5")),
        ] {
            let live = counts(60, 70);
            let now = at(&format!("2026-11-26T{now}Z"));
            let points = points(at(BEGIN), &samples, Some((now, &live)));
            assert_eq!(shown(&points[2..]).first().map(String::as_str), want);
        }
        let live = counts(5, 0);
        // Within the first five minutes nothing can be said.
        assert_eq!(points(at(BEGIN), &BTreeMap::new(), Some((at("2026-11-26T00:04:59Z"), &live))), []);
        let without_samples = points(at(BEGIN), &BTreeMap::new(), Some((at("2026-11-26T00:05:00Z"), &live)));
        assert_eq!(shown(&without_samples), ["00:05:00 5 0"]);
    }

    #[test]
    fn the_picture_has_round_numbers_and_fits_its_size() {
        let samples = samples(&[
            ("00:00:00", 21_400, 5_600),
            ("00:05:00", 35_000, 20_000),
            ("02:05:00", 35_000, 20_240),
            ("02:10:00", 30_000, 40_000),
        ]);
        let chart = Chart::new("Europe/London".parse().unwrap(), at(BEGIN), &points(at(BEGIN), &samples, None));
        assert_eq!(chart.numbers, [30_000, 20_000, 10_000, 0]);
        assert_eq!(chart.times, ["00:00", "01:00", "02:00", "03:00", "04:00"]);
        // Two hours without a sample are a flat piece of the line of its own.
        assert_eq!(chart.settled, "M0.0 136.6L15.0 87.3M15.0 167.9L375.0 167.9L390.0 57.3");
        assert_eq!(chart.area, "M0.0 136.6L15.0 87.3L15.0 167.9L375.0 167.9L390.0 57.3L390.0 168L0.0 168Z");
        assert!(chart.claimed.starts_with("M0.0 16.8L15.0 11.2"), "{}", chart.claimed);
    }

    #[test]
    fn labels_are_round() {
        for (least, want) in
            [(0, 1), (1, 1), (2, 2), (3, 5), (6, 10), (9_434, 10_000), (10_001, 20_000), (30_000, 50_000)]
        {
            assert_eq!(round_unit(least), want);
        }
    }

    #[test]
    fn the_day_of_a_change_of_clocks_has_23_or_25_hours() {
        let london: BusinessZone = "Europe/London".parse().unwrap();
        for (date, last, want) in [
            // Clocks skip 01:00.
            ("2026-03-29", "2026-03-29T03:30:00Z", &["00:00", "02:00", "03:00", "04:00", "05:00"][..]),
            ("2026-03-29", "2026-03-29T22:59:00Z", &["00:00", "05:00", "09:00", "13:00", "17:00", "21:00", "01:00"]),
            // Clocks show 01:00 twice.
            ("2026-10-25", "2026-10-25T02:30:00Z", &["00:00", "01:00", "01:00", "02:00", "03:00"]),
            ("2026-10-25", "2026-10-25T23:59:00Z", &["00:00", "04:00", "09:00", "14:00", "19:00", "00:00"]),
            ("2026-11-26", "2026-11-26T23:59:00Z", &["00:00", "04:00", "08:00", "12:00", "16:00", "20:00", "00:00"]),
        ] {
            let begin = london.start_of(date.parse().unwrap());
            let samples = BTreeMap::from([(at(last), counts(1, 0))]);
            let points = points(begin, &samples, None);
            let chart = Chart::new(london, begin, &points);
            assert_eq!(chart.times, want, "{date}");
            let x: Vec<&str> = chart.settled.split(['M', 'L', ' ']).collect();
            assert!(x.iter().filter_map(|x| x.split('.').next()?.parse::<i64>().ok()).all(|x| x <= WIDTH), "{chart:?}");
        }
    }

    #[test]
    fn a_quiet_day_has_a_line_at_zero() {
        let samples = samples(&[("00:05:00", 0, 0), ("00:10:00", 0, 0)]);
        let chart = Chart::new("UTC".parse().unwrap(), at(BEGIN), &points(at(BEGIN), &samples, None));
        assert_eq!((chart.numbers, chart.settled.as_str()), (vec![3, 2, 1, 0], "M15.0 168.0L30.0 168.0"));
    }
}
