//! Random sources: one for each purpose, so that a draw more in one place changes nothing elsewhere.

use fastrand::Rng;
use sha2::{Digest as _, Sha256};

/// The seed of everything that is random.
#[derive(Debug, Clone, Copy)]
pub struct Seed(pub u64);

impl Seed {
    /// Returns the random source of a purpose.
    #[must_use]
    pub fn source(self, purpose: &str) -> Rng {
        let digest = Sha256::new().chain_update(self.0.to_be_bytes()).chain_update(purpose).finalize();
        let first = digest.iter().take(8).fold(0_u64, |seed, byte| (seed << 8) | u64::from(*byte));
        Rng::with_seed(first)
    }
}

/// Whether something happens that happens `per_thousand` times of a thousand.
pub fn happens(random: &mut Rng, per_thousand: u16) -> bool {
    random.u16(0..1_000) < per_thousand
}
