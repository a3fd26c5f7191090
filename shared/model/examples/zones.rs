//! Prints the code's knowledge of time zones, which `.ci/compare-zones.py` compares with another library.
//!
//! Usage: zones FIRST-YEAR LAST-YEAR ZONE... Prints the version of the data. Then, for each zone, `hour`, UTC and local time of
//! each hour, and `day` and the first instant of each date.

use std::env;
use std::error::Error;
use std::io::{self, BufWriter, Write as _};

use chrono::TimeDelta;
use payments_model::{BusinessDate, BusinessZone, UtcSecond, zone_data_version};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [first, last, zones @ ..] = arguments.as_slice() else {
        return Err("usage: zones FIRST-YEAR LAST-YEAR ZONE...".into());
    };
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "{}", zone_data_version())?;
    for name in zones {
        let zone: BusinessZone = name.parse()?;
        writeln!(out, "{zone}")?;
        let (mut at, end): (UtcSecond, UtcSecond) =
            (format!("{first}-01-01T00:00:00Z").parse()?, format!("{last}-12-31T23:00:00Z").parse()?);
        while at <= end {
            writeln!(out, "hour {at} {}", zone.local(at).format("%FT%T"))?;
            at = at.saturating_add(TimeDelta::hours(1));
        }
        let (mut date, last): (BusinessDate, BusinessDate) =
            (format!("{first}-01-01").parse()?, format!("{last}-12-31").parse()?);
        while date < last {
            writeln!(out, "day {date} {}", zone.start_of(date))?;
            date = date.plus_days(1);
        }
        writeln!(out, "day {date} {}", zone.start_of(date))?;
    }
    Ok(out.flush()?)
}
