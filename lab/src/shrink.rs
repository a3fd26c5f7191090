//! A month in which something is wrong becomes smaller, as long as the same is wrong.

use anyhow::Result;

use crate::month::{Month, play};
use crate::plans::faults::FaultKind;
use crate::settings::Settings;

/// Returns a smaller month that shows the same as this one: fewer days, fewer payments, fewer kinds of faults.
///
/// # Errors
/// If a month cannot be played.
pub fn shrink(settings: &Settings, month: Month, mut watch: impl FnMut(&Settings)) -> Result<(Settings, Month)> {
    let mut best = (settings.clone(), month);
    let sign = best.1.violations.first().map(|violation| shape(violation)).unwrap_or_default();
    let mut attempt = |best: &mut (Settings, Month), smaller: Settings| -> Result<bool> {
        watch(&smaller);
        let month = play(&smaller)?;
        let is_same = month.violations.iter().any(|violation| shape(violation) == sign);
        if is_same {
            *best = (smaller, month);
        }
        Ok(is_same)
    };
    // The days after the first violation are not needed.
    let last = best.1.days.clamp(1, best.0.days);
    let smaller = Settings { days: last, ..best.0.clone() };
    attempt(&mut best, smaller)?;
    while best.0.payments > 2 {
        let smaller = Settings { payments: best.0.payments / 2, ..best.0.clone() };
        if !attempt(&mut best, smaller)? {
            break;
        }
    }
    let smaller = best.0.clone().healthy();
    if !attempt(&mut best, smaller)? {
        for kind in FaultKind::all() {
            let mut smaller = best.0.clone();
            smaller.without.insert(*kind);
            attempt(&mut best, smaller)?;
        }
    }
    while best.0.days > 1 {
        let smaller = Settings { days: best.0.days - 1, ..best.0.clone() };
        if !attempt(&mut best, smaller)? {
            break;
        }
    }
    Ok(best)
}

/// A violation without what is particular to a payment: its numbers, ids and instants.
pub(crate) fn shape(violation: &str) -> String {
    let words = violation.split(|c: char| c.is_whitespace() || ",:{}\"()[]".contains(c));
    let plain = words.filter(|word| !word.is_empty() && !word.chars().any(|c| c.is_ascii_digit()));
    plain.take(6).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_a_violation_has_no_payment() {
        let one = shape("2026-03-12 10:00:00: payment 1005 was accepted as ab1-2 and is lost");
        assert_eq!(one, "payment was accepted as and is");
        assert_eq!(one, shape("2026-03-14 11:00:00: payment 7 was accepted as 99-ff and is lost"));
        assert_ne!(one, shape("2026-03-14 11:00:00: payment 7 is there 2 times"));
    }
}
