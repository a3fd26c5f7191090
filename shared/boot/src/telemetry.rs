//! The log: one JSON object per line on standard output, which CloudWatch Logs reads as fields.

use tracing_subscriber::EnvFilter;

/// Starts the log. `RUST_LOG` sets what is written, `info` by default.
pub fn log_as_json() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // A second start, as in tests of a main function, changes nothing.
    let started =
        tracing_subscriber::fmt().json().flatten_event(true).with_env_filter(filter).without_time().try_init();
    drop(started);
}
