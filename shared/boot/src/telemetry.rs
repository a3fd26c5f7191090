//! The log: one JSON object per line on standard output, whose fields CloudWatch Logs discovers.

use std::sync::LazyLock;

use payments_model::zone_data_version;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::Lookup;

/// The version of a program and of its time zones, as `--version` shows it.
static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{} (time zones {})", env!("CARGO_PKG_VERSION"), zone_data_version()));

/// Returns the version of a program and of its time zones.
#[must_use]
pub fn version() -> &'static str {
    &VERSION
}

/// Starts the log, and logs the version of the time zones. `RUST_LOG` sets its level, by default `info`.
pub fn log_as_json() {
    let layer = layer().json().flatten_event(true).without_time();
    // A second start fails, which changes nothing.
    let started = tracing_subscriber::registry().with(log_filter("info")).with(layer).try_init();
    drop(started);
    log_zones();
}

fn log_zones() {
    tracing::info!(time_zones = zone_data_version(), "the function starts");
}

/// Returns the log's filter: levels by target, from `RUST_LOG` (such as `info,dynoxide=error`). If
/// `RUST_LOG` is missing or invalid, `default` applies.
#[must_use]
pub fn log_filter(default: &str) -> Targets {
    let wanted = Lookup::environment().text("RUST_LOG").and_then(|text| text.parse().ok());
    wanted.or_else(|| default.parse().ok()).unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO))
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_function_and_a_program_name_their_time_zones() {
        let lines = Lines::default();
        let layer = layer().json().flatten_event(true).without_time().with_writer({
            let lines = lines.clone();
            move || lines.clone()
        });
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log_zones);
        let text = String::from_utf8_lossy(&lines.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned();
        assert!(text.contains(&format!(r#""time_zones":"{}""#, zone_data_version())), "{text}");
        assert!(version().ends_with(&format!(" (time zones {})", zone_data_version())), "{}", version());
    }
}
