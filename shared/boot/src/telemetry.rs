//! The log: one JSON object per line on standard output, whose fields CloudWatch Logs discovers.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::Lookup;

/// Starts the log. `RUST_LOG` sets its level, by default `info`.
pub fn log_as_json() {
    let layer = layer().json().flatten_event(true).without_time();
    // A second start fails, which changes nothing.
    let started = tracing_subscriber::registry().with(log_filter("info")).with(layer).try_init();
    drop(started);
}

/// Returns the log's filter: levels by target, from `RUST_LOG` (such as `info,dynoxide=error`). If `RUST_LOG` is missing or invalid, `default`
/// applies.
#[must_use]
pub fn log_filter(default: &str) -> Targets {
    let wanted = Lookup::environment().text("RUST_LOG").and_then(|text| text.parse().ok());
    wanted.or_else(|| default.parse().ok()).unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO))
}
