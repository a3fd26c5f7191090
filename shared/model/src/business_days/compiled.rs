//! The calendars that are compiled in.

use std::sync::LazyLock;

use crate::business_days::calendar_file::{CalendarFileError, parse};
use crate::business_days::closed_days::Calendar;

static CALENDARS: LazyLock<Result<[Calendar; 3], CalendarFileError>> = LazyLock::new(|| {
    Ok([
        parse("FED", include_str!("../../calendars/FED.txt"))?,
        parse("GB", include_str!("../../calendars/GB.txt"))?,
        parse("T2", include_str!("../../calendars/T2.txt"))?,
    ])
});

/// Returns every compiled calendar, by their ids.
///
/// # Errors
/// An error if one of their files is invalid.
pub fn calendars() -> Result<&'static [Calendar], CalendarFileError> {
    CALENDARS.as_ref().map(<[Calendar; 3]>::as_slice).map_err(Clone::clone)
}
