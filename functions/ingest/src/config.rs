//! Configuration of `ingest`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_http::Access;
use payments_model::{BusinessDays, PaymentLimits, ShardCount};

/// The configuration of `ingest`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// The access rules.
    pub access: Access,
    /// The bank's time zone, calendars and cut-offs.
    pub business_days: BusinessDays,
    /// `WRITE_SHARDS`: the number of shards that new payments are spread over.
    pub write_shards: ShardCount,
    /// `HORIZON_DAYS`: the most days ahead that a payment may be due.
    pub horizon_days: u32,
    /// `MAX_PAYMENT`: the largest amounts of new payments.
    pub max_payment: PaymentLimits,
    /// `REFUSED_CLIENTS`: the clients whose creates and amendments are refused.
    pub refused_clients: Vec<String>,
}

impl Config {
    /// Reads the configuration. An error names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let shards = "the number of shards that payments are spread over, such as 10";
        let write_shards: ShardCount = lookup.required("WRITE_SHARDS", shards)?;
        let read_shards = lookup.read_shards()?;
        if write_shards > read_shards {
            let why = format!(
                "it is more than READ_SHARDS, {}, so readers would miss payments; raise READ_SHARDS first",
                read_shards.get()
            );
            return Err(ConfigError::Invalid("WRITE_SHARDS", write_shards.get().to_string(), why));
        }
        let access = Access {
            account_claim: lookup.account_claim()?,
            machine_clients: lookup.machine_clients()?,
            is_open: lookup.is_sam_local(),
        };
        Ok(Self {
            data: lookup.data()?,
            access,
            business_days: lookup.business_days()?,
            write_shards,
            horizon_days: lookup.horizon_days()?,
            max_payment: lookup.optional("MAX_PAYMENT")?.unwrap_or_default(),
            refused_clients: lookup.refused_clients(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_use_at_most_the_shards_that_readers_read() {
        let with = |write: &'static str, read: &'static str| {
            let value = move |name: &str| match name {
                "WRITE_SHARDS" => Some(write.to_owned()),
                "READ_SHARDS" => Some(read.to_owned()),
                "BUSINESS_TIME_ZONE" => Some("UTC".to_owned()),
                "ACCOUNT_CLAIM" => Some("accounts".to_owned()),
                "MACHINE_CLIENTS" => Some("none".to_owned()),
                _ => Some("table".to_owned()).filter(|_| name.ends_with("_TABLE")),
            };
            Config::read(&Lookup::new(&value)).map(|config| config.write_shards.get()).map_err(|e| e.to_string())
        };
        assert_eq!(with("10", "20"), Ok(10));
        let why = "the environment variable WRITE_SHARDS is \"11\": it is more than READ_SHARDS, 10, so readers would miss payments; raise READ_SHARDS first";
        assert_eq!(with("11", "10"), Err(why.to_owned()));
    }
}
