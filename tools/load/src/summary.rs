//! What the load found, in words and as JSON, and whether that is what it had to find.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use payments_model::BusinessDate;
use serde_json::{Map, Number, Value, json};

use crate::meter::Quantiles;

/// What the load found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// What kind of bank it was.
    pub bank: &'static str,
    /// How many payments were put in.
    pub payments: u64,
    /// The seed.
    pub seed: u64,
    /// Their size, as it was asked for.
    pub size: String,
    /// Their business date.
    pub due: BusinessDate,
    /// From the first request to the last answer to a payment.
    pub took: Duration,
    /// Payments a second, of them all, of the first tenth and of the last.
    pub rates: [Option<u64>; 3],
    /// Payments that the bank said it has.
    pub acknowledged: u64,
    /// Payments that it did not, and questions that it did not answer.
    pub errors: u64,
    /// Requests that were made once more.
    pub retries: u64,
    /// How many payments more the counters have.
    pub counted: i64,
    /// How many payments more the date's list has.
    pub recounted: i64,
    /// Whether the `recount` function finds the counters exact, where it can be asked.
    pub counters_exact: Option<bool>,
    /// Payments that were settled meanwhile, in mixed mode.
    pub settled: Option<i64>,
    /// How long the counters took to follow after the last answer.
    pub drain: Duration,
    /// Latencies, by what was asked for; those of payments first.
    pub latencies: Vec<(&'static str, Quantiles)>,
    /// Write units of all requests, where they are known.
    pub write_units: Option<u64>,
    /// The most memory that this process has had, in bytes, where the system tells.
    pub peak_memory: Option<u64>,
    /// The first thing that went wrong.
    pub trouble: Option<String>,
}

impl Summary {
    /// Payments that are not there.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.payments.saturating_sub(u64::try_from(self.recounted).unwrap_or(0))
    }

    /// The whole as one JSON object. Latencies are milliseconds, of payments at the top level; they are
    /// of whole requests, which carry up to a hundred.
    #[must_use]
    pub fn json(&self) -> Value {
        let (_, puts) = self.latencies.first().copied().unwrap_or_default();
        let [rate, first, last] = self.rates;
        let asked: Map<String, Value> =
            self.latencies.iter().map(|(name, told)| ((*name).to_owned(), quantiles(told))).collect();
        json!({
            "bank": self.bank,
            "payments": self.payments,
            "seed": self.seed,
            "size": self.size,
            "dueDate": self.due.to_string(),
            "seconds": seconds(self.took),
            "perSecond": rate,
            "firstTenthPerSecond": first,
            "lastTenthPerSecond": last,
            "acknowledged": self.acknowledged,
            "errors": self.errors,
            "retries": self.retries,
            "lost": self.lost(),
            "counted": self.counted,
            "recounted": self.recounted,
            "countersExact": self.counters_exact,
            "settled": self.settled,
            "drainSeconds": seconds(self.drain),
            "p50Millis": millis(puts.p50),
            "p90Millis": millis(puts.p90),
            "p99Millis": millis(puts.p99),
            "maxMillis": millis(puts.max),
            "requests": asked,
            "writeUnitsPerPayment": self.units_each(),
            "peakMemoryMegabytes": self.peak_memory.map(|bytes| bytes / 1_000_000),
            "trouble": self.trouble,
        })
    }

    /// Write units for each payment that was put in, to the hundredth.
    fn units_each(&self) -> Option<Number> {
        let hundredths = (self.write_units? * 100 + self.acknowledged / 2).checked_div(self.acknowledged)?;
        Some(decimal(hundredths, 100))
    }

    /// Whether everything is as it has to be.
    ///
    /// # Errors
    /// Everything that is not.
    pub fn check(&self) -> Result<()> {
        let is = |found: i64| i64::try_from(self.payments).is_ok_and(|payments| payments == found);
        let trouble = self.trouble.as_deref().unwrap_or("nothing else is known");
        let faults = [
            (self.errors > 0, format!("{} requests or payments were not done; the first: {trouble}", self.errors)),
            (self.lost() > 0, format!("{} payments are lost", self.lost())),
            (!is(self.recounted), format!("{} were put in, and the list has {} more", self.payments, self.recounted)),
            (!is(self.counted), format!("{} were put in, and the counters say {} more", self.payments, self.counted)),
            (self.counters_exact == Some(false), "the counters are not what a recount finds".to_owned()),
        ];
        let faults: Vec<String> = faults.into_iter().filter_map(|(is_fault, what)| is_fault.then_some(what)).collect();
        if faults.is_empty() {
            return Ok(());
        }
        bail!("the load went wrong:\n  {}\n{}", faults.join("\n  "), self.what_to_do())
    }

    fn what_to_do(&self) -> &'static str {
        match self.bank {
            "url" => {
                "Look at the bank's own log and alarms. Where others put payments in for the same date, give a date \
                 of your own with --due."
            }
            _ => "Run it again with RUST_LOG=warn to see what the functions say.",
        }
    }
}

fn quantiles(told: &Quantiles) -> Value {
    json!({
        "requests": told.requests,
        "p50Millis": millis(told.p50),
        "p90Millis": millis(told.p90),
        "p99Millis": millis(told.p99),
        "maxMillis": millis(told.max),
    })
}

fn millis(micros: u64) -> Number {
    decimal(micros, 1_000)
}

fn seconds(time: Duration) -> Number {
    decimal(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), 1_000)
}

/// A number of hundredths or thousandths, exactly.
fn decimal(parts: u64, of: u64) -> Number {
    let (whole, rest) = (parts / of, parts % of);
    if rest == 0 {
        return whole.into();
    }
    let digits = if of == 100 { 2 } else { 3 };
    format!("{whole}.{rest:0digits$}").parse().unwrap_or_else(|_| whole.into())
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_dash = |number: Option<u64>| number.map_or_else(|| "–".to_owned(), |number| number.to_string());
        let [rate, first, last] = self.rates.map(or_dash);
        let Self { payments, size, due, bank, .. } = self;
        writeln!(f, "{payments} payments of size {size}, due on {due}, {bank}\n")?;
        let mut row = |name: &str, value: String| writeln!(f, "  {name:<24}{value}");
        row("took", format!("{} s", seconds(self.took)))?;
        row("payments a second", format!("{rate}; of the first tenth {first}, of the last {last}"))?;
        for (name, told) in &self.latencies {
            let Quantiles { requests, p50, p90, p99, max } = *told;
            let [p50, p90, p99, max] = [p50, p90, p99, max].map(millis);
            let line = format!("{requests} requests; ms: p50 {p50}, p90 {p90}, p99 {p99}, max {max}");
            row(name, line)?;
        }
        row("errors", format!("{}, and {} requests made once more", self.errors, self.retries))?;
        row("lost", self.lost().to_string())?;
        let exact = match self.counters_exact {
            Some(true) => "; a recount agrees",
            Some(false) => "; a recount DISAGREES",
            None => "",
        };
        row("counted", format!("{}, {} s after the last answer{exact}", self.counted, seconds(self.drain)))?;
        row("in the date's list", self.recounted.to_string())?;
        if let Some(settled) = self.settled {
            row("settled", settled.to_string())?;
        }
        if let Some(units) = self.units_each() {
            row("write units a payment", units.to_string())?;
        }
        if let Some(bytes) = self.peak_memory {
            row("memory at most", format!("{} MB", bytes / 1_000_000))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            bank: "in process",
            payments: 200,
            seed: 1,
            size: "8k".to_owned(),
            due: "2026-11-21".parse().unwrap(),
            took: Duration::from_millis(1_250),
            rates: [Some(160), Some(170), None],
            acknowledged: 200,
            errors: 0,
            retries: 1,
            counted: 200,
            recounted: 200,
            counters_exact: Some(true),
            settled: None,
            drain: Duration::from_secs(5),
            latencies: vec![(
                "feed",
                Quantiles { requests: 2, p50: 600_100, p90: 650_000, p99: 650_000, max: 650_000 },
            )],
            write_units: Some(1_995),
            peak_memory: Some(64_999_999),
            trouble: None,
        }
    }

    #[test]
    fn json_tells_what_was_found() {
        let feed = json!({ "requests": 2, "p50Millis": 600.1, "p90Millis": 650, "p99Millis": 650, "maxMillis": 650 });
        let want = json!({
            "bank": "in process", "payments": 200, "seed": 1, "size": "8k", "dueDate": "2026-11-21", "seconds": 1.25,
            "perSecond": 160, "firstTenthPerSecond": 170, "lastTenthPerSecond": null, "acknowledged": 200, "errors": 0,
            "retries": 1, "lost": 0, "counted": 200, "recounted": 200, "countersExact": true, "settled": null,
            "drainSeconds": 5, "p50Millis": 600.1, "p90Millis": 650, "p99Millis": 650, "maxMillis": 650,
            "requests": { "feed": feed }, "writeUnitsPerPayment": 9.98, "peakMemoryMegabytes": 64, "trouble": null,
        });
        assert_eq!(summary().json(), want);
        summary().check().unwrap();
    }

    #[test]
    fn a_load_that_went_wrong_says_how() {
        type Change = fn(&mut Summary);
        let changes: [(Change, &str); 6] = [
            (|load| load.errors = 2, "2 requests or payments were not done"),
            (|load| load.recounted = 199, "1 payments are lost"),
            (|load| load.recounted = 201, "the list has 201 more"),
            (|load| load.counted = 199, "the counters say 199 more"),
            (|load| load.counters_exact = Some(false), "not what a recount finds"),
            (|load| (load.bank, load.counted) = ("url", 201), "with --due"),
        ];
        for (change, want) in changes {
            let mut load = summary();
            change(&mut load);
            let error = load.check().unwrap_err().to_string();
            assert!(error.contains(want), "{want}: {error}");
        }
    }
}
