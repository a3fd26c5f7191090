//! The pace of a shard: the number of writes that are sent at once.

/// The most writes of one shard in flight.
const AT_ONCE: usize = 16;

/// Number of steps into which the writes of a second are divided.
const STEPS_PER_SECOND: u32 = 4;

/// Returns the number of writes that are sent at once. It is a part of a second's writes, so that these
/// do not all start at the beginning of the second. A rate of 0 is unlimited.
pub(crate) fn writes_at_once(per_second: u32) -> usize {
    if per_second == 0 {
        return AT_ONCE;
    }
    usize::try_from(per_second / STEPS_PER_SECOND).unwrap_or(AT_ONCE).clamp(1, AT_ONCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_at_least_four_steps_of_at_most_sixteen_writes() {
        for (per_second, want) in [(0, 16), (1, 1), (3, 1), (20, 5), (64, 16), (500, 16)] {
            assert_eq!(writes_at_once(per_second), want, "{per_second}");
        }
    }
}
