//! The attempts of a request, and the pauses between them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::errors::Error;

/// The statuses that may pass. An internal error is different: it is retried only once.
const PASSING: [u16; 3] = [429, 503, 504];
const INTERNAL: u16 = 500;

/// The number and the time limit of a request's attempts. Pauses double, and are at least as long
/// as the response demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// The most attempts, the first included.
    pub attempts: u32,
    /// The time after the first attempt in which others may begin.
    pub total: Duration,
    /// The first pause, if the response demands none.
    pub first: Duration,
    /// The most per cent by which a pause is longer, by chance, so that clients do not return at the same moment.
    pub jitter_percent: u32,
}

impl Default for Retries {
    fn default() -> Self {
        Self { attempts: 6, total: Duration::from_secs(60), first: Duration::from_millis(500), jitter_percent: 25 }
    }
}

/// Time and chance. Tests have an implementation that never waits.
#[async_trait]
pub trait Timer: fmt::Debug + Send + Sync {
    /// Returns the time since any fixed moment. It never goes back.
    fn now(&self) -> Duration;

    /// Waits.
    async fn wait(&self, pause: Duration);

    /// Returns a random number.
    fn random(&self) -> u32;
}

/// The time of Tokio, and random numbers of this thread.
#[derive(Debug, Clone, Copy)]
pub struct SystemTimer(Instant);

impl Default for SystemTimer {
    fn default() -> Self {
        Self(Instant::now())
    }
}

#[async_trait]
impl Timer for SystemTimer {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    async fn wait(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }

    fn random(&self) -> u32 {
        fastrand::u32(..)
    }
}

impl Retries {
    /// Begins to count the attempts of one request.
    pub fn begin(self, timer: &Arc<dyn Timer>) -> Tries {
        let end = timer.now().saturating_add(self.total);
        Tries { retries: self, timer: Arc::clone(timer), end, failed: 0, internal: 0 }
    }
}

/// The attempts of one request.
#[derive(Debug)]
pub struct Tries {
    retries: Retries,
    timer: Arc<dyn Timer>,
    end: Duration,
    failed: u32,
    internal: u32,
}

impl Tries {
    /// Waits, if the request with this error is to be sent again. Returns whether it is.
    pub async fn again(&mut self, error: &Error) -> bool {
        let is_internal = error.status() == Some(INTERNAL);
        self.internal += u32::from(is_internal);
        let passing = match error {
            Error::NoAnswer { .. } => true,
            _ => error.status().is_some_and(|status| PASSING.contains(&status)),
        };
        (passing || (is_internal && self.internal == 1)) && self.pause(error.retry_after()).await
    }

    /// Waits before the next attempt, at least as long as is demanded. Returns false, at once, if none is left.
    pub async fn pause(&mut self, demanded: Option<Duration>) -> bool {
        let doublings = self.failed;
        self.failed += 1;
        let first = demanded.filter(|demanded| !demanded.is_zero()).unwrap_or(self.retries.first);
        let pause = self.longer(first.saturating_mul(2_u32.saturating_pow(doublings)));
        if self.failed >= self.retries.attempts || self.timer.now().saturating_add(pause) > self.end {
            return false;
        }
        self.timer.wait(pause).await;
        true
    }

    /// Returns a pause that is longer by chance.
    fn longer(&self, pause: Duration) -> Duration {
        if self.retries.jitter_percent == 0 {
            return pause;
        }
        let share = u128::from(self.retries.jitter_percent) * u128::from(self.timer.random());
        let extra = pause.as_nanos().saturating_mul(share) / (100 * u128::from(u32::MAX));
        pause.saturating_add(Duration::from_nanos(u64::try_from(extra).unwrap_or(u64::MAX)))
    }
}
