//! The output of `cargo month` about a month.

use std::io::{self, Write};

use anyhow::Result;
use chrono::{DateTime, Utc};
use payments_lab::{FaultKind, Month, Raised, Settings};

/// Returns the command that plays a month again.
pub(crate) fn command(settings: &Settings) -> String {
    let Settings { seed, days, payments, without, weakness, outages } = settings;
    let mut command = format!("cargo month --seed {seed} --days {days} --payments {payments}");
    if without.len() == FaultKind::all().len() {
        command += " --healthy";
    } else if !without.is_empty() {
        let kinds: Vec<String> = without.iter().map(|kind| kind.name()).collect();
        command += &format!(" --without {}", kinds.join(","));
    }
    if !outages.is_empty() {
        let names: Vec<String> = outages.iter().map(|outage| outage.name()).collect();
        command += &format!(" --outage {}", names.join(","));
    }
    if let Some(weakness) = weakness {
        command += &format!(" --weakness {}", weakness.name());
    }
    command
}

/// Prints a month, when no other month is printed.
pub(crate) fn tell(as_json: bool, month: &Month, settings: &Settings) -> Result<()> {
    let mut out = io::stdout().lock();
    if as_json {
        writeln!(out, "{}", serde_json::to_string(month)?)?;
        return Ok(());
    }
    Ok(show(&mut out, month, settings)?)
}

/// Writes what happened in a month.
fn show(out: &mut impl Write, month: &Month, settings: &Settings) -> io::Result<()> {
    let ends: Vec<String> = month.ends.iter().map(|(status, count)| format!("{count} {status}")).collect();
    writeln!(out, "seed {}, {}: {} payments asked for; {}", month.seed, month.zone, month.asked, ends.join(", "))?;
    let faults: Vec<String> = month.faults.iter().map(|(kind, count)| format!("{} {count}", kind.name())).collect();
    writeln!(out, "  faults      {}", faults.join(", "))?;
    let amendments: Vec<String> =
        month.amendments.iter().map(|(act, count)| format!("{} {count}", act.name())).collect();
    writeln!(out, "  amended     {}", amendments.join(", "))?;
    writeln!(out, "  sent        {} requests to the transaction service", month.requests)?;
    writeln!(out, "  repeated    {} invocations that had failed", month.troubles)?;
    writeln!(out, "  written     {} write units", month.write_units)?;
    writeln!(out, "  read        {} lists, to their end", month.lists)?;
    if !month.alarms.is_empty() && !settings.is_healthy() {
        writeln!(out, "  alarms      all times are UTC; with random faults they are not judged")?;
    }
    for (alarm, times) in &month.alarms {
        let times: Vec<String> = times.iter().map(shown).collect();
        writeln!(out, "  alarm       {alarm}: {}", times.join(", "))?;
    }
    for (outage, began) in &month.outages {
        writeln!(out, "  outage      {} at {} UTC", outage.name(), began.format("%F %H:%M"))?;
    }
    if month.redated > 0 {
        writeln!(out, "  redated     {} payments, off closed dates", month.redated)?;
    }
    for restore in &month.restores {
        writeln!(out, "  restored    {restore}")?;
    }
    writeln!(out, "  trace       {}, in {}.{:03} s", month.trace, month.took_ms / 1_000, month.took_ms % 1_000)?;
    if month.violations.is_empty() {
        return writeln!(out, "  guarantees  all hold");
    }
    for violation in month.violations.iter().take(10) {
        writeln!(out, "  BROKEN      {violation}")?;
    }
    for line in &month.story {
        writeln!(out, "    {line}")?;
    }
    let (count, day) = (month.violations.len(), month.days);
    writeln!(out, "  {count} violations, {} of them shown, found after day {day}. To see them again:", count.min(10))?;
    writeln!(out, "  {}", command(settings))
}

/// Shows when an alarm was on.
fn shown(raised: &Raised) -> String {
    let at = |at: DateTime<Utc>| at.format("%F %H:%M").to_string();
    format!("{} to {}", at(raised.from), raised.to.map_or_else(|| "the end".to_owned(), at))
}
