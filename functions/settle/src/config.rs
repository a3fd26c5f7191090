//! The configuration of `settle`.

use payments_boot::{ConfigError, DataConfig, Lookup};

/// The default of `SETTLEMENTS_PER_SECOND`. 16 invocations settle 640 payments a second, which use 1,280 write units of
/// the `due` index.
const DEFAULT_PER_SECOND: u32 = 40;

/// The configuration of `settle`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// `SETTLEMENTS_PER_SECOND`: results that one invocation settles per second. 0 is unlimited.
    pub per_second: u32,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let per_second = lookup.number("SETTLEMENTS_PER_SECOND", DEFAULT_PER_SECOND)?;
        Ok(Self { data: lookup.data()?, per_second })
    }
}
