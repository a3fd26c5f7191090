//! What `ingest` has to be told.

use payments_boot::{AccessConfig, ConfigError, DataConfig, Lookup};
use payments_http::Access;
use payments_model::{BusinessZone, ShardCount};

/// How far ahead payments are taken, in days, unless `HORIZON_DAYS` says otherwise: two years.
const DEFAULT_HORIZON_DAYS: u32 = 731;

/// The configuration of `ingest`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the data is.
    pub data: DataConfig,
    /// Who may do what.
    pub access: Access,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
    /// `WRITE_SHARDS`: over how many shards new payments are spread.
    pub write_shards: ShardCount,
    /// `HORIZON_DAYS`: how many days ahead a payment may be.
    pub horizon_days: u32,
}

impl Config {
    /// Reads it.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let shards = "the number of shards that payments are spread over, such as 10";
        let write_shards: ShardCount = lookup.required("WRITE_SHARDS", shards)?;
        let read_shards: ShardCount = lookup.required("READ_SHARDS", "the number of shards that readers look at")?;
        if write_shards > read_shards {
            let why = format!("it is more than READ_SHARDS, {}, so payments would not be found", read_shards.get());
            return Err(ConfigError::Invalid("WRITE_SHARDS", write_shards.get().to_string(), why));
        }
        let AccessConfig { account_claim, is_sam_local } = AccessConfig::read(lookup)?;
        Ok(Self {
            data: DataConfig::read(lookup)?,
            access: Access { account_claim, is_open: is_sam_local },
            zone: lookup.required("BUSINESS_TIME_ZONE", "the bank's time zone, such as Europe/London")?,
            write_shards,
            horizon_days: lookup.optional("HORIZON_DAYS")?.unwrap_or(DEFAULT_HORIZON_DAYS),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_never_spread_further_than_readers_look() {
        let with = |write: &'static str, read: &'static str| {
            let value = move |name: &str| match name {
                "WRITE_SHARDS" => Some(write.to_owned()),
                "READ_SHARDS" => Some(read.to_owned()),
                "BUSINESS_TIME_ZONE" => Some("UTC".to_owned()),
                "ACCOUNT_CLAIM" => Some("accounts".to_owned()),
                _ => Some("table".to_owned()).filter(|_| name.ends_with("_TABLE")),
            };
            Config::read(&Lookup::new(&value)).map(|config| config.write_shards.get()).map_err(|e| e.to_string())
        };
        assert_eq!(with("10", "20"), Ok(10));
        let why = "the environment variable WRITE_SHARDS is \"11\": it is more than READ_SHARDS, 10, so payments would not be found";
        assert_eq!(with("11", "10"), Err(why.to_owned()));
    }
}
