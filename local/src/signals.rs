//! The signals that end `cargo local`: Ctrl-C, and SIGTERM and SIGHUP on systems that have them.

use std::io::Result;
use std::time::Duration;

use tokio::time::timeout;

/// The longest time of the work under way at the end: a request that is half sent (10 s), and a
/// function that was just invoked (30 s). Longer work, for example with an engine that does not
/// answer, ends as if the process were killed, without losing an answered request.
pub const LONGEST_STOP: Duration = Duration::from_secs(40);

/// The signals. Once they are listened to, none ends the process by itself.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// SIGHUP, which a terminal sends when it closes, if it ends the program's work as the others do.
    #[cfg(unix)]
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    /// Starts to listen.
    pub fn listen() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hangup: None })
    }

    /// Starts to listen, to SIGHUP as well.
    pub fn with_hangup() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { hangup: Some(signal(SignalKind::hangup())?), ..Self::listen()? })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Result<()> {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Ok(()),
            _ = self.terminate.recv() => Ok(()),
            _ = hangup => Ok(()),
        }
    }
}

impl Signals {
    /// Waits for the end of the work under way, up to [`LONGEST_STOP`]. Returns nothing if it did not end, or another signal came.
    pub async fn end<T>(&mut self, work: impl Future<Output = T>) -> Result<Option<T>> {
        tokio::select! {
            ended = timeout(LONGEST_STOP, work) => Ok(ended.ok()),
            signal = self.next() => signal.map(|()| None),
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Starts to listen.
    pub fn listen() -> Result<Self> {
        Ok(Self {})
    }

    /// Starts to listen.
    pub fn with_hangup() -> Result<Self> {
        Self::listen()
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Result<()> {
        tokio::signal::ctrl_c().await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_that_does_not_end_is_not_waited_for() {
        let mut signals = Signals::listen().unwrap();
        let start = tokio::time::Instant::now();
        assert_eq!(signals.end(ready(7)).await.unwrap(), Some(7));
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(signals.end(pending::<()>()).await.unwrap(), None);
        assert_eq!(start.elapsed(), LONGEST_STOP);
    }
}
