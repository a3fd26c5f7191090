//! A create that crashed between its two writes and is repeated after its day: completed as long as the archive
//! cannot have begun, rejected later.
//!
//! A month hits such a second by chance only.

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta};
use payments_machine::Fate;

use crate::kit::fixture::Fixture;
use crate::kit::invariants::Stage;

/// The minute before the day ends.
const EVENING: &str = "2026-11-20T23:58:00Z";

#[tokio::test]
async fn a_missing_head_is_completed_until_half_an_hour_after_its_day() -> Result<()> {
    for (retry_at, call_seconds, want) in [
        ("2026-11-20T23:59:30Z", 0, 201),
        ("2026-11-21T00:29:59Z", 0, 201),
        ("2026-11-21T00:30:00Z", 0, 422),
        // The reads take so long that the deadline passes before the head is put.
        ("2026-11-21T00:29:57Z", 2, 422),
        ("2026-11-29T09:00:00Z", 0, 422),
    ] {
        let fixture = Fixture::start().await?;
        pass_until(&fixture, EVENING)?;
        let mut intents = vec![fixture.intent(&fixture.new_name())];
        fixture.faults.inject(|call| if call.number == 1 { Fate::KillBefore } else { Fate::Pass });
        assert!(fixture.faults.until_killed(fixture.create(&mut intents[0])).await.is_none());
        fixture.faults.clear();

        pass_until(&fixture, retry_at)?;
        fixture.faults.calls_take(TimeDelta::seconds(call_seconds));
        for retry in ["first", "second"] {
            let reply = fixture.create(&mut intents[0]).await?;
            assert_eq!(reply.status, want, "{retry} retry at {retry_at}: {reply}");
        }
        fixture.faults.calls_take(TimeDelta::zero());
        let heads = fixture.world.heads(&intents[0].account).await?.len();
        assert_eq!(heads, usize::from(want == 201), "at {retry_at}");
        fixture.assert_lawful(&intents, Stage::UnderWay).await?;
        fixture.assert_finishes(&intents).await?;
        fixture.assert_counters_exact().await?;
    }
    Ok(())
}

fn pass_until(fixture: &Fixture, instant: &str) -> Result<()> {
    let instant = DateTime::parse_from_rfc3339(instant).context("no instant")?.to_utc();
    fixture.time.pass(instant - fixture.time.now());
    Ok(())
}
