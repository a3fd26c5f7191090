//! Places in the log, and their texts.

use std::fmt;
use std::str::FromStr;

use payments_model::Epoch;

/// A place in the log: before an event. Places are in the order of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// The epoch.
    pub epoch: Epoch,
    /// The number of the segment.
    pub number: u64,
    /// The number of its events before the place.
    pub offset: u32,
}

/// A text that is not a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a position is epoch.number.offset, such as 3638040.42.0")]
pub struct LogPositionError;

impl LogPosition {
    /// The place before all events, for a reader that starts before the log.
    pub const BEGINNING: Self = Self { epoch: Epoch::FIRST, number: 1, offset: 0 };

    pub(super) fn start_of(epoch: Epoch, number: u64) -> Self {
        Self { epoch, number, offset: 0 }
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.epoch, self.number, self.offset)
    }
}

impl FromStr for LogPosition {
    type Err = LogPositionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('.').collect();
        let plain =
            |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit()) && (part.len() == 1 || !part.starts_with('0'));
        let [epoch, number, offset] = parts[..] else { return Err(LogPositionError) };
        if ![epoch, number, offset].iter().all(plain) {
            return Err(LogPositionError);
        }
        let epoch = epoch.parse().ok().and_then(Epoch::from_stored).ok_or(LogPositionError)?;
        let number = number.parse().ok().filter(|number| (1..=999_999_999_999).contains(number));
        Ok(Self {
            epoch,
            number: number.ok_or(LogPositionError)?,
            offset: offset.parse().map_err(|_| LogPositionError)?,
        })
    }
}
