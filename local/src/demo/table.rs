//! The summary as a table, with the budget beside the write units.

use std::fmt;
use std::time::Duration;

use payments_model::Status;

use super::summary::Summary;
use super::write_units::{PHASES, decimal, hundredths_each};

/// The text of an empty cell.
const NONE: &str = "–";

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = clock_face((self.settled_by.as_chrono() - self.zone.start_of(self.day).as_chrono()).num_minutes());
        writeln!(f, "\n  {} in {}, seed {}", self.day, self.zone, self.seed)?;
        let (count, noun) = (grouped(self.payments), if self.payments == 1 { "payment" } else { "payments" });
        writeln!(f, "  {count} {noun}, the last of them settled at {time}\n")?;
        self.statuses(f)?;
        self.phases(f)?;
        self.service(f)?;
        self.night(f)?;
        self.closed_days(f)?;
        self.sealed(f)?;
        write!(f, "\n  {}", self.promises())
    }
}

impl Summary {
    fn statuses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:<42}{:>12}", "STATUS", "PAYMENTS")?;
        for status in Status::ALL {
            let count = self.audit.with_status(status);
            if count == 0 {
                continue;
            }
            writeln!(f, "  {:<42}{:>12}", status.as_str(), grouped(count))?;
            if status == Status::Failed {
                for (why, count) in &self.audit.reasons {
                    writeln!(f, "    {why:<40}{:>12}", grouped(*count))?;
                }
            }
        }
        writeln!(f)
    }

    /// Writes each phase with its time on this machine, and its write units beside their budget.
    fn phases(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["PAYMENTS", "SECONDS", "PER SECOND", "WRITE UNITS", "UNITS EACH", "BUDGET EACH"];
        write!(f, "  {:<10}", "PHASE")?;
        writeln!(f, "{}", row(&header.map(str::to_owned)))?;
        let settled = self.counts.settled();
        let (took, phase) = (&self.took, |number: usize| (Some(self.units.0[number]), PHASES[number].2));
        for (name, payments, took, (units, budget)) in [
            ("ingest", self.payments, self.ingest, phase(0)),
            ("sweep", self.counts.claimed, took.sweep, phase(1)),
            ("dispatch", self.counts.sent, took.dispatch, (None, None)),
            ("settle", settled, took.settle, phase(2)),
            ("report", self.night.reported, took.report, phase(3)),
        ] {
            self.phase(f, name, payments, took, units, budget)?;
        }
        let amended = &self.amended;
        let each = decimal(hundredths_each(amended.units, amended.payments));
        let rate = grouped(per_second(amended.payments, amended.took));
        let cells =
            [grouped(amended.payments), seconds(amended.took), rate, grouped(amended.units), each, NONE.to_owned()];
        writeln!(f, "  {:<10}{}", "amend", row(&cells))?;
        let total = self.units.total();
        let all: u64 = PHASES.iter().filter_map(|(.., budget)| *budget).sum();
        let each = decimal(hundredths_each(total, self.payments));
        let blank = String::new;
        writeln!(f, "  {:<10}{}", "all", row(&[blank(), blank(), blank(), grouped(total), each, all.to_string()]))?;
        // Payments share the counters: the more there are at once, the less each costs.
        self.phase(f, "counters", self.counts.counted, took.aggregate, Some(self.units.counters()), None)?;
        writeln!(f)
    }

    fn phase(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        payments: u64,
        took: Duration,
        units: Option<u64>,
        budget: Option<u64>,
    ) -> fmt::Result {
        let each = units.map(|units| decimal(hundredths_each(units, self.payments)));
        let cells = [units.map(grouped), each, budget.map(|units| units.to_string())];
        let [units, each, budget] = cells.map(|cell| cell.unwrap_or_else(|| NONE.to_owned()));
        let cells = [grouped(payments), seconds(took), grouped(per_second(payments, took)), units, each, budget];
        writeln!(f, "  {name:<10}{}", row(&cells))
    }

    /// Writes the state after the night.
    fn night(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let night = &self.night;
        let line = |what: &str, count: u64, note: &str| format!("  {what:<22}{:>12}   {note}", grouped(count));
        writeln!(f, "\n  IN THE MORNING")?;
        let once = if night.reported_twice == 0 { "each settlement once" } else { "some settlements TWICE" };
        writeln!(f, "{}", line("reports", night.files, &format!("{once}, in {}", night.reports.display())))?;
        let left = match night.left_in_hot {
            0 => "none is left in the hot table".to_owned(),
            left => format!("{} are LEFT in the hot table", grouped(left)),
        };
        writeln!(f, "{}", line("archived", night.archived, &left))?;
        let counters = if night.counters_equal_recount { "equal a recount" } else { "DIFFER from a recount" };
        writeln!(f, "  {:<22}{:>12}   {counters}", "counters", "")?;
        let told = match (self.received.rejected, self.received.differing) {
            (0, 0) => format!(
                "events in {} messages, all verified: what they say is in the tables",
                grouped(self.received.messages)
            ),
            (rejected, differing) => format!(
                "events; {} messages are NOT verified, {} payments DIFFER in the tables",
                grouped(rejected),
                grouped(differing)
            ),
        };
        writeln!(f, "{}", line("webhooks", self.received.events, &told))?;
        if let Some((transaction, payment)) = &night.read_back {
            writeln!(f, "  {:<22}{:>12}   is payment {payment}", transaction, "")?;
        }
        Ok(())
    }

    /// Writes what happened to payments of closed dates.
    fn closed_days(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = &self.closed_days;
        writeln!(f, "\n  ON SUNDAY")?;
        let line = |what: &str, count: u64, note: &str| format!("  {what:<22}{:>12}   {note}", grouped(count));
        writeln!(f, "{}", line("for a Sunday", days.weekend, "are due on Monday, when they are created"))?;
        let found = format!("of {} that a look found are moved, once the bank announces it", grouped(days.waiting));
        writeln!(f, "{}", line("for a holiday", days.moved, &found))?;
        if days.wrong > 0 {
            writeln!(f, "{}", line("of both", days.wrong, "are due on ANOTHER date than they should"))?;
        }
        Ok(())
    }

    /// Writes the sealed payments, and the answer to the question about them, or its command.
    fn sealed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sealed = &self.sealed;
        writeln!(f, "\n  DAYS LATER")?;
        writeln!(f, "  {:<22}{:>12}   in Parquet files; to ask them in SQL:", "sealed", grouped(sealed.payments))?;
        writeln!(f, "  {}", sealed.command())?;
        sealed.answer.iter().flat_map(|answer| answer.lines()).try_for_each(|line| writeln!(f, "  {line}"))
    }

    fn service(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |what: &str, count: u64, note: &str| format!("  {what:<22}{:>12}   {note}", grouped(count));
        writeln!(f, "  TRANSACTION SERVICE")?;
        let content = match self.service.other_contents {
            0 => "all requests of a payment are the same".to_owned(),
            others => format!("{} DIFFER from the first of their payment", grouped(others)),
        };
        writeln!(f, "{}", line("requests", self.service.requests, &content))?;
        let repeated = format!("{} of them repeated, which changed nothing", grouped(self.service.repeated_results));
        writeln!(f, "{}", line("results", self.service.results, &repeated))?;
        let ids = match self.audit.shared_transaction_ids {
            0 => "no two payments share one".to_owned(),
            shared => format!("{} SHARED by two payments", grouped(shared)),
        };
        writeln!(f, "{}", line("transaction ids", self.audit.transaction_ids, &ids))?;
        if self.troubles > 0 {
            writeln!(f, "{}", line("failures", self.troubles, "corrected by a retry"))?;
        }
        Ok(())
    }
}

fn row(cells: &[String; 6]) -> String {
    let [payments, seconds, rate, units, each, budget] = cells;
    format!("{payments:>9}{seconds:>9}{rate:>12}{units:>13}{each:>12}{budget:>13}")
}

/// Returns a minute of the day as clocks show it, modulo a day.
pub(super) fn clock_face(minute: i64) -> String {
    format!("{:02}:{:02}", minute.div_euclid(60).rem_euclid(24), minute.rem_euclid(60))
}

fn seconds(time: Duration) -> String {
    format!("{}.{}", time.as_secs(), time.subsec_millis() / 100)
}

fn per_second(payments: u64, took: Duration) -> u64 {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    (payments * 1_000).checked_div(millis).unwrap_or(0)
}

/// Returns a number with separated thousands: `10,000`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345, "12,345"), (1_000_000, "1,000,000")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn rates_are_whole() {
        assert_eq!(per_second(1_000, Duration::from_millis(400)), 2_500);
        assert_eq!(per_second(1_000, Duration::ZERO), 0);
    }
}
