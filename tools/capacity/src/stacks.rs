//! The stacks whose capacity is simulated: both stages as `template.yaml` and `samconfig.toml` deploy them, and prod as
//! it was before partitions were modelled.

use std::collections::BTreeMap;

use anyhow::Result;
use payments_boot::MARGIN;
use payments_machine::Template;
use payments_machine::template::overrides;

use crate::results::Settling;

/// The partitions of a new on-demand table or index: it accepts 4,000 write units a second, and each partition 1,000.
pub(crate) const NEW: u32 = 4;

/// The write units a second of one partition.
const UNITS: u64 = 1_000;

/// For how many seconds `settle` tries a throttled result: its timeout of 28 s less the margin of 11 s, and a second for what
/// went before.
const SETTLE_TRIES_FOR: u32 = 16;

/// The tries of the SDK alone.
const SDK_TRIES_FOR: u32 = 3;

/// A stack.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    pub(crate) name: &'static str,
    pub(crate) shards: usize,
    /// Claims a second and shard.
    pub(crate) claims: i64,
    /// Redrives a second and shard.
    pub(crate) redrives: i64,
    /// The seconds of an invocation of the sweeper: its timeout, less the margin of 11 s.
    pub(crate) sweeper_seconds: u64,
    pub(crate) settling: Settling,
    /// The partitions of tables and indexes that are not [`NEW`], by name.
    pub(crate) partitions: BTreeMap<&'static str, u32>,
}

impl Stack {
    /// Returns the stack of a stage.
    pub(crate) fn for_stage(stage: &'static str) -> Result<Self> {
        let (template, overrides) = (Template::ours()?, overrides(stage)?);
        let parameter = |name: &str| -> Result<u64> {
            Ok(overrides.get(name).cloned().map_or_else(|| template.default_of(name), Ok)?.parse()?)
        };
        let number = |name: &str| parameter(name).and_then(|units| Ok(i64::try_from(units)?));
        let warm = [
            ("payments", "PaymentsWarmWriteUnits"),
            ("payments/due", "IndexWarmWriteUnits"),
            ("payments/unreported", "IndexWarmWriteUnits"),
            ("payments-history", "HistoryWarmWriteUnits"),
        ];
        let mut partitions = BTreeMap::new();
        for (place, name) in warm {
            let warm = u32::try_from(parameter(name)?.div_ceil(UNITS))?;
            partitions.insert(place, warm.max(NEW));
        }
        let settling = Settling {
            invocations: number("SettleConcurrency")?,
            per_second: number("SettlementsPerSecond")?,
            tries_for: SETTLE_TRIES_FOR,
        };
        let (shards, claims) = (usize::try_from(parameter("WriteShards")?)?, number("ClaimsPerSecondPerShard")?);
        let timeout = template.function("daily-due-sweeper")?.timeout;
        let sweeper_seconds = (timeout.to_std()? - MARGIN).as_secs();
        Ok(Self { name: stage, shards, claims, redrives: claims, sweeper_seconds, settling, partitions })
    }

    /// Returns prod with twice the pace, and indexes that are warm for it.
    pub(crate) fn raised() -> Result<Self> {
        let mut stack = Self { name: "prod, raised", ..Self::for_stage("prod")? };
        stack.claims *= 2;
        stack.redrives *= 2;
        stack.settling.invocations *= 2;
        for index in ["payments/due", "payments/unreported"] {
            stack.partitions.insert(index, 2 * stack.partitions_of(index));
        }
        Ok(stack)
    }

    /// Returns prod as it was until 2026-11-22: 10 shards, 200 claims a second on each, no pace of `settle` and of the
    /// redrive (which reach 400 a second in each of 50 invocations, and 2,000 in all), and only the long-term table warm.
    pub(crate) fn before() -> Self {
        Self {
            name: "prod before",
            shards: 10,
            claims: 200,
            redrives: 200,
            sweeper_seconds: 229,
            settling: Settling { invocations: 50, per_second: 400, tries_for: SDK_TRIES_FOR },
            partitions: BTreeMap::from([("payments-history", 6)]),
        }
    }

    /// Returns the partitions of a table or index.
    pub(crate) fn partitions_of(&self, place: &str) -> u32 {
        self.partitions.get(place).copied().unwrap_or(NEW)
    }
}
