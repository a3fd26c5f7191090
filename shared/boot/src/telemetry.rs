//! The log: one JSON object per line on standard output, whose fields CloudWatch Logs discovers.

use tracing_subscriber::EnvFilter;

/// Starts the log. `RUST_LOG` sets its level, by default `info`.
pub fn log_as_json() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // A second start fails, which changes nothing.
    let started =
        tracing_subscriber::fmt().json().flatten_event(true).with_env_filter(filter).without_time().try_init();
    drop(started);
}
