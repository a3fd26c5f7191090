//! Whole days on one machine, and the quantities that they take.

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use payments_machine::Template;
use payments_machine::payload::DataKind;
use seal::SEAL_AFTER_DAYS;

use crate::bill::HEAD_DAYS;
use crate::play::{Content, Kind, Machine, SHARDS, create};
use crate::quantities::Quantities;
use crate::recorded::log_to;

/// The recorded day.
const DAY: &str = "2026-11-20T00:00:00Z";

/// The minutes of a day.
const MINUTES: i64 = 24 * 60;

/// The days with payments before the recorded day: their heads are recounted in it, and some expire.
const BEFORE: i64 = 15;

/// The days after which a whole day's payments are sealed, so that one of the days before is sealed in it.
const SEALED_AFTER: u32 = 5;

/// The minutes at which payments of these days come: the feed, and the others, all at once.
const FEED: i64 = 60;
const NOON: i64 = 12 * 60;

/// The seconds between two looks in the recorded day.
const GRAIN: i64 = 10;

/// Plays a day without payments. Each index is read once for each of the shards of the template, or of this machine.
///
/// # Errors
/// If a function fails.
pub(crate) async fn idle_day(endpoints: u64, is_deployed: bool) -> Result<Quantities> {
    let content = Content { kind: DataKind::default(), bytes: 0, endpoints };
    let shards: u64 = Template::ours()?.default_of("ReadShards")?.parse()?;
    let index_reads = if is_deployed { shards / u64::from(SHARDS) } else { 1 };
    let begin: DateTime<Utc> = DAY.parse()?;
    let mut machine = Machine::start(begin - TimeDelta::minutes(1), content, (index_reads, 1), SEAL_AFTER_DAYS).await?;
    let _log = log_to(&machine.record);
    // Rates are due at once.
    machine.tick(begin - TimeDelta::minutes(1)).await?;
    machine.forget();
    for minute in 0..MINUTES {
        machine.tick(begin + TimeDelta::minutes(minute)).await?;
    }
    machine.end().await
}

/// Plays days with so many payments of each kind, and returns what the last one takes. In it, the feed comes at 01:00, and the
/// others come evenly.
///
/// # Errors
/// If a payment is not accepted, or a function fails.
pub(crate) async fn whole_day(kinds: &[(Kind, u64)], content: Content) -> Result<Quantities> {
    let begin: DateTime<Utc> = DAY.parse()?;
    let mut machine = Machine::start(begin - TimeDelta::days(BEFORE), content, (1, 1), SEALED_AFTER).await?;
    for minute in 0..BEFORE * MINUTES {
        let of_day = minute % MINUTES;
        let is_night = of_day < 6 * 60 && of_day % 15 == 0;
        let is_busy = [FEED, NOON].iter().any(|from| (*from..from + 15).contains(&of_day)) || of_day % 60 == 0;
        if !is_night && !is_busy {
            continue;
        }
        let at = begin - TimeDelta::days(BEFORE) + TimeDelta::minutes(minute);
        machine.time.move_to(at);
        for (kind, payments) in kinds.iter().filter(|(kind, _)| of_day == if *kind == Kind::Feed { FEED } else { NOON })
        {
            create(&machine.bank, *kind, content, (0..*payments, at)).await?;
        }
        machine.tick(at).await?;
    }
    let before = machine.kept().await?;
    machine.forget();
    let _log = log_to(&machine.record);
    for second in (0..MINUTES * 60).step_by(GRAIN.unsigned_abs().try_into()?) {
        let at = begin + TimeDelta::seconds(second);
        machine.time.move_to(at);
        for (kind, payments) in kinds {
            let until = |second: i64| payments * second.unsigned_abs() / (MINUTES * 60).unsigned_abs();
            let numbers = match kind {
                Kind::Feed if second == FEED * 60 => 0..*payments,
                Kind::Feed => 0..0,
                _ => until(second)..until(second + GRAIN),
            };
            create(&machine.bank, *kind, content, (numbers, at)).await?;
        }
        machine.tick(at).await?;
    }
    let kept = machine.kept().await?;
    let mut day = machine.end().await?;
    day.add_scaled(&kept.clone().without(&before), 1, 1);
    // The hot table does not grow from day to day.
    for line in ["payments, bytes", "payments, bytes backed up"] {
        day.amounts.insert(line.to_owned(), kept.amounts.get(line).copied().unwrap_or(0) / HEAD_DAYS);
    }
    Ok(day)
}
