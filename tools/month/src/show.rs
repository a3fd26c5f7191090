//! What `cargo month` prints of a month.

use std::io::{self, Write};

use chrono::{DateTime, Utc};
use payments_month::{FaultKind, Month, Raised, Settings};

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

/// Writes what happened in a month.
pub(crate) fn show(out: &mut impl Write, month: &Month, settings: &Settings) -> io::Result<()> {
    let ends: Vec<String> = month.ends.iter().map(|(status, count)| format!("{count} {status}")).collect();
    writeln!(out, "seed {}, {}: {} payments asked for; {}", month.seed, month.zone, month.asked, ends.join(", "))?;
    let faults: Vec<String> = month.faults.iter().map(|(kind, count)| format!("{} {count}", kind.name())).collect();
    writeln!(out, "  faults      {}", faults.join(", "))?;
    writeln!(out, "  requests    {}; {} invocations failed and were made again", month.requests, month.troubles)?;
    writeln!(out, "  units       {} written; {} lists were read to their end", month.write_units, month.lists)?;
    for (alarm, times) in &month.alarms {
        let times: Vec<String> = times.iter().map(shown).collect();
        writeln!(out, "  alarm       {alarm}: {}", times.join(", "))?;
    }
    for (outage, began) in &month.outages {
        writeln!(out, "  outage      {outage:?} at {}", began.format("%F %H:%M"))?;
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
    writeln!(out, "  {} are broken, on day {}. To see it again:", month.violations.len(), month.days)?;
    writeln!(out, "  {}", command(settings))
}

/// Shows when an alarm was on.
fn shown(raised: &Raised) -> String {
    let at = |at: DateTime<Utc>| at.format("%F %H:%M").to_string();
    format!("{} to {}", at(raised.from), raised.to.map_or_else(|| "the end".to_owned(), at))
}
