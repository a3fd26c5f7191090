//! The signals that end `cargo local`: Ctrl-C, and SIGTERM on systems that have it.

use std::io::Result;

/// The signals. Once they are listened to, none ends the process by itself.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Starts to listen.
    pub fn listen() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Result<()> {
        tokio::select! {
            _ = self.interrupt.recv() => Ok(()),
            _ = self.terminate.recv() => Ok(()),
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Starts to listen.
    pub fn listen() -> Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Result<()> {
        tokio::signal::ctrl_c().await
    }
}
