//! The log of a test's thread, line by line.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use serde_json::Value;

/// The log of this test's thread, from [`LogLines::start`] until its guard is dropped.
#[derive(Debug, Clone, Default)]
pub struct LogLines(Arc<Mutex<Vec<u8>>>);

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl LogLines {
    /// Begins to keep what this thread logs.
    pub fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone());
        (log, tracing::subscriber::set_default(subscriber.finish()))
    }

    /// Takes the lines that there are.
    pub fn take(&self) -> Result<Vec<Value>> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&bytes).lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }
}
