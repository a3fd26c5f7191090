//! How fast and how patiently the scheduled functions work on a shard: arithmetic, without a clock.

use std::time::Duration;

/// The wait after a shard's first throttle; it doubles with each one that follows.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);

/// The throttles in a row after which a shard is left for the next tick: 100 ms to 1.6 s of
/// waiting, 3.1 s in all, on top of the SDK's own.
const MAX_THROTTLES: u32 = 5;

/// How long to wait before more writes, after `written` of them in `elapsed`; a rate of 0 knows no
/// waiting.
#[must_use]
pub fn wait(written: u32, elapsed: Duration, per_second: u32) -> Duration {
    if per_second == 0 {
        return Duration::ZERO;
    }
    let due = Duration::from_millis(u64::from(written) * 1_000 / u64::from(per_second));
    due.saturating_sub(elapsed)
}

/// How long to wait after this many throttles in a row, or that it is enough.
#[must_use]
pub fn backoff(throttles: u32) -> Option<Duration> {
    (throttles <= MAX_THROTTLES).then(|| FIRST_BACKOFF * 2_u32.saturating_pow(throttles.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_keep_their_rate() {
        let ms = Duration::from_millis;
        for (written, elapsed, rate, want) in [
            (0, ms(0), 200, ms(0)),
            (16, ms(0), 200, ms(80)),
            (16, ms(50), 200, ms(30)),
            (16, ms(500), 200, ms(0)),
            (1_000, ms(0), 0, ms(0)),
        ] {
            assert_eq!(wait(written, elapsed, rate), want, "{written} in {elapsed:?} at {rate}");
        }
    }

    #[test]
    fn patience_doubles_and_ends() {
        let waits: Vec<_> = (1..=6).map(backoff).collect();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(waits, [ms(100), ms(200), ms(400), ms(800), ms(1_600), None]);
    }
}
