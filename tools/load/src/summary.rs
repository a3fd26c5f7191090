//! The summary of a load, as text and as JSON, and whether everything is right.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use payments_model::BusinessDate;
use serde_json::{Map, Number, Value, json};

use crate::measurements::Quantiles;

/// The summary of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The kind of target: `in process`, `local` or `url`.
    pub target: &'static str,
    /// The number of payments that the load had to create.
    pub payments: u64,
    /// The seed.
    pub seed: u64,
    /// Their size, as given.
    pub size: String,
    /// The kind of their data.
    pub data_kind: &'static str,
    /// Their business date.
    pub due: BusinessDate,
    /// The time from the start to the last reply to a create.
    pub took: Duration,
    /// Payments a second: of all, of the first tenth and of the last tenth.
    pub rates: [Option<u64>; 3],
    /// Payments whose create was acknowledged.
    pub acknowledged: u64,
    /// Payments that were not created, and queries that failed.
    pub errors: u64,
    /// Requests that were sent again.
    pub retries: u64,
    /// The number of payments that the counters gained.
    pub counted: i64,
    /// The number of payments that the date's list gained.
    pub listed: i64,
    /// Whether the counters equal a recount. Only functions of this process can be asked.
    pub counters_exact: Option<bool>,
    /// Payments that were settled during a mixed load.
    pub settled: Option<i64>,
    /// The time from the last reply until the counters had all payments.
    pub drain: Duration,
    /// The latencies by kind of request, those of creates first.
    pub latencies: Vec<(&'static str, Quantiles)>,
    /// The write units of all requests, if they were counted.
    pub write_units: Option<u64>,
    /// The peak memory of this process in bytes, if the system is Linux.
    pub peak_memory: Option<u64>,
    /// The first error.
    pub first_error: Option<String>,
}

impl Summary {
    /// Returns how many payments are not in the date's list.
    pub fn lost(&self) -> u64 {
        self.payments.saturating_sub(u64::try_from(self.listed).unwrap_or(0))
    }

    /// Returns the summary as a JSON object. Latencies are milliseconds of whole requests, which
    /// create up to a hundred payments. Latencies of creates are also at the top level.
    pub fn json(&self) -> Value {
        let (_, creates) = self.latencies.first().copied().unwrap_or_default();
        let [rate, first, last] = self.rates;
        let requests: Map<String, Value> =
            self.latencies.iter().map(|(name, latency)| ((*name).to_owned(), quantiles(latency))).collect();
        json!({
            "bank": self.target,
            "payments": self.payments,
            "seed": self.seed,
            "size": self.size,
            "dataKind": self.data_kind,
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
            "recounted": self.listed,
            "countersExact": self.counters_exact,
            "settled": self.settled,
            "drainSeconds": seconds(self.drain),
            "p50Millis": millis(creates.p50),
            "p90Millis": millis(creates.p90),
            "p99Millis": millis(creates.p99),
            "maxMillis": millis(creates.max),
            "requests": requests,
            "writeUnitsPerPayment": self.units_each(),
            "peakMemoryMegabytes": self.peak_memory.map(|bytes| bytes / 1_000_000),
            "trouble": self.first_error,
        })
    }

    /// Returns the write units of each created payment, to the hundredth.
    fn units_each(&self) -> Option<Number> {
        let hundredths = (self.write_units? * 100 + self.acknowledged / 2).checked_div(self.acknowledged)?;
        Some(decimal(hundredths, 100))
    }

    /// Checks that nothing is lost and nothing failed.
    pub fn check(&self) -> Result<()> {
        let is = |found: i64| i64::try_from(self.payments).is_ok_and(|payments| payments == found);
        let first_error = self.first_error.as_deref().unwrap_or("unknown");
        let faults = [
            (self.errors > 0, format!("{} payments or queries failed; the first: {first_error}", self.errors)),
            (self.lost() > 0, format!("{} payments are lost", self.lost())),
            (!is(self.listed), format!("of {} payments, the list gained {}", self.payments, self.listed)),
            (!is(self.counted), format!("of {} payments, the counters gained {}", self.payments, self.counted)),
            (self.counters_exact == Some(false), "the counters differ from a recount".to_owned()),
        ];
        let faults: Vec<String> =
            faults.into_iter().filter_map(|(is_fault, fault)| is_fault.then_some(fault)).collect();
        if faults.is_empty() {
            return Ok(());
        }
        bail!("the load failed:\n  {}\n{}", faults.join("\n  "), self.what_to_do())
    }

    fn what_to_do(&self) -> &'static str {
        match self.target {
            "url" => {
                "Look at the logs and the alarms of the API. If others create payments for the same date, give another \
                 date with --due."
            }
            _ => "Run it again with RUST_LOG=warn to see what the functions log.",
        }
    }
}

fn quantiles(latency: &Quantiles) -> Value {
    json!({
        "requests": latency.requests,
        "p50Millis": millis(latency.p50),
        "p90Millis": millis(latency.p90),
        "p99Millis": millis(latency.p99),
        "maxMillis": millis(latency.max),
    })
}

fn millis(micros: u64) -> Number {
    decimal(micros, 1_000)
}

fn seconds(time: Duration) -> Number {
    decimal(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), 1_000)
}

/// Returns a number of hundredths or thousandths as a decimal.
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
        let Self { payments, size, data_kind, due, target, .. } = self;
        writeln!(f, "{payments} payments of size {size} with {data_kind} data, due on {due}, {target}\n")?;
        let mut row = |name: &str, value: String| writeln!(f, "  {name:<24}{value}");
        row("took", format!("{} s", seconds(self.took)))?;
        row("payments a second", format!("{rate}; of the first tenth {first}, of the last {last}"))?;
        for (name, latency) in &self.latencies {
            let Quantiles { requests, p50, p90, p99, max } = *latency;
            let [p50, p90, p99, max] = [p50, p90, p99, max].map(millis);
            let line = format!("{requests} requests; ms: p50 {p50}, p90 {p90}, p99 {p99}, max {max}");
            row(name, line)?;
        }
        row("errors", format!("{}, and {} requests sent again", self.errors, self.retries))?;
        row("lost", self.lost().to_string())?;
        let exact = match self.counters_exact {
            Some(true) => "; a recount agrees",
            Some(false) => "; a recount DISAGREES",
            None => "",
        };
        row("counted", format!("{}, {} s after the last reply{exact}", self.counted, seconds(self.drain)))?;
        row("in the date's list", self.listed.to_string())?;
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
            target: "in process",
            payments: 200,
            seed: 1,
            size: "8k".to_owned(),
            data_kind: "structured",
            due: "2026-11-21".parse().unwrap(),
            took: Duration::from_millis(1_250),
            rates: [Some(160), Some(170), None],
            acknowledged: 200,
            errors: 0,
            retries: 1,
            counted: 200,
            listed: 200,
            counters_exact: Some(true),
            settled: None,
            drain: Duration::from_secs(5),
            latencies: vec![(
                "feed",
                Quantiles { requests: 2, p50: 600_100, p90: 650_000, p99: 650_000, max: 650_000 },
            )],
            write_units: Some(1_995),
            peak_memory: Some(64_999_999),
            first_error: None,
        }
    }

    #[test]
    fn json_has_every_field() {
        let feed = json!({ "requests": 2, "p50Millis": 600.1, "p90Millis": 650, "p99Millis": 650, "maxMillis": 650 });
        let want = json!({
            "bank": "in process", "payments": 200, "seed": 1, "size": "8k", "dataKind": "structured", "dueDate": "2026-11-21", "seconds": 1.25,
            "perSecond": 160, "firstTenthPerSecond": 170, "lastTenthPerSecond": null, "acknowledged": 200, "errors": 0,
            "retries": 1, "lost": 0, "counted": 200, "recounted": 200, "countersExact": true, "settled": null,
            "drainSeconds": 5, "p50Millis": 600.1, "p90Millis": 650, "p99Millis": 650, "maxMillis": 650,
            "requests": { "feed": feed }, "writeUnitsPerPayment": 9.98, "peakMemoryMegabytes": 64, "trouble": null,
        });
        assert_eq!(summary().json(), want);
        summary().check().unwrap();
    }

    #[test]
    fn a_failed_load_says_why() {
        type Change = fn(&mut Summary);
        let changes: [(Change, &str); 6] = [
            (|load| load.errors = 2, "2 payments or queries failed"),
            (|load| load.listed = 199, "1 payments are lost"),
            (|load| load.listed = 201, "the list gained 201"),
            (|load| load.counted = 199, "the counters gained 199"),
            (|load| load.counters_exact = Some(false), "differ from a recount"),
            (|load| (load.target, load.counted) = ("url", 201), "with --due"),
        ];
        for (change, want) in changes {
            let mut load = summary();
            change(&mut load);
            let error = load.check().unwrap_err().to_string();
            assert!(error.contains(want), "{want}: {error}");
        }
    }
}
